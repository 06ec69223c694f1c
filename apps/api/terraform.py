"""What the Terraform provider is told of each kind: its URL, and its fields from the shape that reads documents."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.definitions.services import KINDS, PLATFORM
from apps.definitions.shapes.base.fields import Field, fields_of
from apps.definitions.shapes.base.writing import write
from apps.definitions.shapes.kinds import SHAPES, file_name
from apps.definitions.shapes.traffic.authentication import SECRETS

CHECKED_IN = Path(settings.BASE_DIR) / "deploy" / "terraform" / "kinds.json"
Json = dict[str, Any]


def kinds() -> list[Json]:
    """Every kind that `apply` takes."""
    return [
        {
            "kind": kind,
            "type": file_name(kind).removesuffix(".md").replace("-", "_"),
            "noun": KINDS[kind].noun,
            "help": shape.__doc__ or "",
            "owned": kind not in PLATFORM,
            "fields": [_field(field, "") for field in fields_of(shape)],
        }
        for kind, shape in SHAPES.items()
    ]


def text_of(found: list[Json]) -> str:
    """The file as it is checked in."""
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _field(field: Field, parent: str) -> Json:
    """A field; what says nothing is left out."""
    schema = field.grammar.schema if field.grammar else {}
    found = {
        "name": field.name,
        "type": type_of(field),
        "help": field.about.help,
        "many": field.many,
        "set": field.many and field.sorted,
        "key": list(field.distinct.keys[0]) if field.many and field.distinct and field.distinct.keys else [],
        "required": field.required,
        "secret": field.about.secret or (parent, field.name) in SECRETS,
        "words": list(schema.get("enum", ())) if type_of(field) == "string" and not field.many else [],
        "fields": [_field(each, field.name) for each in fields_of(field.child)] if field.child else [],
    }
    default = _default(field)
    return {name: value for name, value in found.items() if value} | ({} if default is None else {"default": default})


def type_of(field: Field) -> str:
    """What the provider calls values of the field."""
    if field.child or field.grammar is None:
        return "object"
    schema = field.grammar.schema
    if schema["type"] == "object":
        return "map" if "additionalProperties" in schema else "json"
    return str(schema["type"])


def _default(field: Field) -> Any:
    """What documents show where somebody wrote nothing; None for nothing."""
    if field.required or field.default is None:
        return None
    if field.many:
        plain = [field.grammar.write(each) for each in field.default] if field.grammar else []
        return sorted(plain) if field.sorted else plain
    if field.child:
        return write(field.child, field.default) if is_dataclass(field.default) else None
    return field.grammar.write(field.default) if field.grammar else None
