"""What the one entry of every interface refuses: the faults of a document, and whether they name the field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apps.core.errors import FieldError, Invalid
from apps.definitions.reading.documents import read_object
from tests.hostile.fields import Field

# Whether a chain and a key are what they say is judged by the service, which knows the time: see test_doors.py. So are
# addresses of a cloud's API, by what the installation calls: see tests/apps/test_definitions_clouds.py.
JUDGED_LATER = {"/chain", "/key", "/endpoint_url"}


def faults_of(kind: str, spec: object) -> tuple[FieldError, ...]:
    """What is wrong with it; nothing where it is read."""
    try:
        read_object({"kind": kind, "name": "x", "spec": spec})
    except Invalid as invalid:
        return invalid.faults
    return ()


def faults_with(field: Field, values: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Which of the values that are none of the field are read, and which refusals do not name it."""
    through, unnamed = [], []
    for value in values:
        if field.legal(value):
            continue
        faults = faults_of(field.kind, field.document(value))
        if not faults and field.pointer not in JUDGED_LATER:
            through.append(value)
        elif faults and not any(_names(fault, field.pointer) for fault in faults):
            unnamed.append((value, faults))
    return through, unnamed


def _names(fault: FieldError, pointer: str) -> bool:
    """Whether the fault is at the field or at a list or object that is it, and says what to do."""
    pointer = f"/spec{pointer}"
    near = fault.pointer.startswith(pointer) or pointer.startswith(f"{fault.pointer}/")
    return near and bool(fault.code) and fault.detail.endswith((".", "?"))
