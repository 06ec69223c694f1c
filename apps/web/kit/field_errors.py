"""Puts every error of a refused change beside the field that it is about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from django import forms

from apps.core.errors import Conflict, Invalid, Stale


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


@contextmanager
def refusals_in(form: forms.Form, conflicts_at: str | None = None) -> Iterator[None]:
    """Do something; what is refused stands in the form: a conflict, also of versions, at this field or at the top."""
    try:
        yield
    except Invalid as error:
        attach_errors(form, error)
    except Conflict as error:
        code = "stale" if isinstance(error, Stale) else "conflict"
        form.add_error(conflicts_at, forms.ValidationError(error.detail, code=code))
