"""Puts every error of a refused change beside the field that it is about."""

from __future__ import annotations

from django import forms

from apps.core.errors import Invalid


def attach_errors(form: forms.Form, error: Invalid) -> None:
    """Add each error to the field that its pointer names (`/networks/2` → `/networks`), else to the form's top."""
    for field_error in error.field_errors:
        field = field_error.pointer
        while field and field not in form.fields:
            field = field.rpartition("/")[0]
        form.add_error(field or None, forms.ValidationError(field_error.detail, code=field_error.code))
