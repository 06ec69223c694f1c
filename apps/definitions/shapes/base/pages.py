"""The page of reference of a kind, made of its shape: every field with what it may be and what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from apps.definitions.shapes.base.fields import Field, fields_of
from apps.definitions.shapes.base.shape import Shape


def page(kind: str, shape: type[Shape]) -> str:
    """The page as Markdown."""
    shown = yaml.safe_dump({"objects": [{"kind": kind, "name": "example", "spec": example(shape)}]}, sort_keys=False)
    head = [
        f"# {kind}",
        shape.__doc__ or "",
        "`python -m apps.definitions.shapes` writes this page from the declaration by which documents are read.",
        f"```yaml\n{shown}```",
    ]
    tables = [f"## {title}\n\n{_table(each)}" for title, each in _shapes("spec", shape)]
    return "\n\n".join([*head, *tables]) + "\n"


def _shapes(title: str, shape: type[Shape]) -> Iterator[tuple[str, type[Shape]]]:
    """The shape and those of the objects in it, each with where it stands."""
    yield title, shape
    for field in fields_of(shape):
        if field.child:
            yield from _shapes(f"{title}.{field.name}{'[]' if field.many else ''}", field.child)


def _table(shape: type[Shape]) -> str:
    rows = [
        f"| `{field.name}` | {_may_be(field)} | {default_of(field)} | {field.about.help} | {field.about.since} |"
        for field in fields_of(shape)
    ]
    return "\n".join(["| field | what it may be | default | what it is for | since |", "|---|---|---|---|---|", *rows])


def default_of(field: Field) -> str:
    """What holds where nobody wrote the field, as Markdown."""
    if field.required:
        return "required"
    plain = field.grammar.write(field.default) if field.grammar and field.default not in (None, ()) else None
    return f"`{plain}`" if plain not in (None, "") else ""


def _may_be(field: Field) -> str:
    one = "an object, see below" if field.child else values_of(field.grammar.schema if field.grammar else {})
    return f"a list, each: {one}" if field.many else one


def values_of(schema: Any) -> str:
    """Which values a grammar takes, in words."""
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema["type"] in ("integer", "number"):
        return f"{_grouped(schema['minimum'])} to {_grouped(schema['maximum'])}"
    if schema["type"] == "boolean":
        return "`true`, `false`"
    if schema["type"] == "object":
        return str(schema["title"])
    one = schema.get("title", "text")
    return f"{one}, at most {_grouped(schema['maxLength'])} characters" if "maxLength" in schema else one


def _grouped(number: float) -> str:
    return f"{number:,}".replace(",", " ")


def example(shape: type[Shape]) -> dict[str, Any]:
    """The fields that say what they may look like, and the objects that have such."""
    found: dict[str, Any] = {}
    for field in fields_of(shape):
        if field.about.example is not None:
            found[field.name] = [field.about.example] if field.many else field.about.example
        elif field.child and (inner := example(field.child)):
            found[field.name] = [inner] if field.many else inner
    return found
