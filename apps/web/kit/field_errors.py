"""Puts every error of a refused change beside the field that it is about."""

from __future__ import annotations

import re

from django import forms

from apps.core.errors import Invalid


def attach_errors(form: forms.Form, error: Invalid) -> None:
    """Add each error to the field that its pointer names (`/networks/2` → `/networks`), else to the form's top.

    In a field of several objects it says which one is wrong (`/keys/1/pem`: the second).
    """
    for field_error in error.field_errors:
        field = field_error.pointer
        while field and field not in form.fields:
            field = field.rpartition("/")[0]
        inside = re.match(r"/([0-9]+)/", field_error.pointer.removeprefix(field)) if field else None
        detail = f"Entry {int(inside[1]) + 1}: {field_error.detail}" if inside else field_error.detail
        form.add_error(field or None, forms.ValidationError(detail, code=field_error.code))
