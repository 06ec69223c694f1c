"""What the shape of a schedule leaves open: whether the installation calls its URL, and the object of a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError, Invalid
from apps.definitions.reading.outside import called_url

# Keys would stand in plain text in the schedule, and nobody's rights should change while nobody looks.
UNCHANGEABLE = ("Account", "Certificate", "Schedule")


def errors_of_target(spec: object, pointer: str, wrong: set[str], read_object: Callable[..., Any]) -> list[FieldError]:
    """What is wrong with a target beside what its shape says; `wrong` are the pointers that have an error already."""
    field_errors: list[FieldError] = []
    url_pointer = f"{pointer}/target/webhook/url"
    url = _at(spec, "target", "webhook", "url")
    if url is not None and url_pointer not in wrong:
        try:
            called_url(url)
        except GrammarError as error:
            field_errors.append(FieldError(url_pointer, error.code, error.message))
    object_pointer = f"{pointer}/target/change/object"
    changed = _at(spec, "target", "change", "object")
    if changed is not None and object_pointer not in wrong:
        try:
            found = read_object(changed, pointer=object_pointer)
        except Invalid as invalid:
            return [*field_errors, *invalid.field_errors]
        if found.kind in UNCHANGEABLE:
            detail = f"A schedule cannot change a {found.kind}; change it manually or with apply."
            field_errors.append(FieldError(f"{object_pointer}/kind", "kind", detail))
    return field_errors


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
