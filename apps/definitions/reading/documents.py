"""The documents of every kind of object, the one way in for the API, the pages, apply and seed.

An object is `{kind, name, account?, spec}`. `read_object` turns it into a frozen specification or raises
`Invalid` with every error.

References are names. `name` is an object of the same account, `account/name` one of another (operators, and what they
share); a load balancer, and a region, fleet, stack or static IP, belong to the operator and are named by `name`
alone.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from apps.compiler import grammar
from apps.compiler.model.shared import LimitKind, WhenFull
from apps.core.errors import FieldError, Invalid
from apps.definitions.reading.fields import Reader
from apps.definitions.reading.schedules import errors_of_target
from apps.definitions.shapes.base.reading import read
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.kinds import SHAPES
from apps.definitions.shapes.traffic.pool import QUEUE_NEEDS_CONNECTIONS, LimitChange


@dataclass(frozen=True, slots=True)
class Object:
    """One object as it was sent; `account` is None where the sender's own is meant, `pointer` where it stood."""

    kind: str
    name: str
    account: str | None
    spec: Shape
    pointer: str = ""


def read_limit(data: dict[str, Any], when_full: str) -> LimitChange:
    """`{kind, value?, scope?, measured_by?, capacity_scaler?}` of a pool with this policy. Raises Invalid."""
    field_errors: list[FieldError] = []
    wanted = read(LimitChange, data, "", field_errors)
    if wanted and when_full == WhenFull.QUEUE and wanted.kind is LimitKind.RATE:
        field_errors.append(FieldError("/kind", "queue", QUEUE_NEEDS_CONNECTIONS))
    if wanted is None or field_errors:
        raise Invalid(field_errors)
    return wanted


def read_spec(kind: str, spec: object, *, pointer: str = "/spec") -> Shape:
    """The specification of a known kind. Raises Invalid with every error."""
    field_errors: list[FieldError] = []
    found = read(SHAPES[kind], spec, pointer, field_errors)
    if kind == "Schedule":
        field_errors += errors_of_target(
            spec, pointer, {field_error.pointer for field_error in field_errors}, read_object
        )
    if field_errors or found is None:
        raise Invalid(field_errors)
    return found


def _kind(value: object) -> str:
    if isinstance(value, str) and value in SHAPES:
        return value
    near = difflib.get_close_matches(str(value)[:40], SHAPES, 1)
    hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(SHAPES)}."
    raise grammar.GrammarError("kind", f"There is no such kind; {hint}")


def read_object(data: object, *, pointer: str = "", kind: str | None = None) -> Object:
    """One object with its envelope; `kind` says it where the URL already does. Raises Invalid."""
    field_errors: list[FieldError] = []
    reader = Reader(data, pointer, field_errors)
    found = reader.required("kind", _kind) if kind is None else reader.optional("kind", _kind, kind)
    if kind and found and found != kind:
        reader.add_error("kind", "kind", f"Objects here are of kind {kind}.")
    name = reader.required("name", grammar.name)
    account = reader.optional("account", grammar.name, None)
    if not reader.has("spec"):
        reader.add_error("spec", "missing", "Fill in spec.")
    reader.close()
    spec: Shape | None = None
    if found and reader.data.get("spec") is not None:
        try:
            spec = read_spec(found, reader.data["spec"], pointer=f"{pointer}/spec")
        except Invalid as invalid:
            field_errors.extend(invalid.field_errors)
    if field_errors or spec is None:
        raise Invalid(field_errors)
    return Object(found, name, account, spec, pointer)
