"""Puts every fault of a refused change beside the field that it is about."""

from __future__ import annotations

from django import forms

from apps.core.errors import Invalid


def attach_errors(form: forms.Form, error: Invalid) -> None:
    """Add each fault to the field that its pointer names (`/networks/2` → `/networks`), else to the form's top."""
    for fault in error.faults:
        field = fault.pointer
        while field and field not in form.fields:
            field = field.rpartition("/")[0]
        form.add_error(field or None, forms.ValidationError(fault.detail, code=fault.code))
