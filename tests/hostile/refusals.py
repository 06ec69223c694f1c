"""What the one entry of every interface refuses: the errors of a document, and whether they name the field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apps.core.errors import FieldError, Invalid
from apps.definitions.reading.documents import read_object
from tests.hostile.fields import Field

# Whether a chain and a key are what they say is judged by the service, which knows the time: see test_doors.py. So are
# addresses of a cloud's API, by what the installation calls: see tests/apps/test_definitions_clouds.py.
CHECKED_LATER = {"/chain", "/key", "/endpoint_url"}


def errors_of(kind: str, spec: object) -> tuple[FieldError, ...]:
    """What is wrong with it; nothing where it is read."""
    try:
        read_object({"kind": kind, "name": "x", "spec": spec})
    except Invalid as invalid:
        return invalid.field_errors
    return ()


def errors_with(field: Field, values: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Which of the values that are none of the field are read, and which refusals do not name it."""
    through, unnamed = [], []
    for value in values:
        if field.legal(value):
            continue
        field_errors = errors_of(field.kind, field.document(value))
        if not field_errors and field.pointer not in CHECKED_LATER:
            through.append(value)
        elif field_errors and not any(_names(field_error, field.pointer) for field_error in field_errors):
            unnamed.append((value, field_errors))
    return through, unnamed


def _names(field_error: FieldError, pointer: str) -> bool:
    """Whether the error is at the field or at a list or object that is it, and says what to do."""
    pointer = f"/spec{pointer}"
    near = field_error.pointer.startswith(pointer) or pointer.startswith(f"{field_error.pointer}/")
    return near and bool(field_error.code) and field_error.detail.endswith((".", "?"))
