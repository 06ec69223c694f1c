"""The schemas of objects, made of their shapes (apps/definitions/shapes)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.definitions.shapes.base.fields import Field, fields_of
from apps.definitions.shapes.base.words import MAX_LIST

Written = serializers.Field[Any, Any, Any, Any]
BOUNDS = {"minimum": "min_value", "maximum": "max_value", "maxLength": "max_length"}

PLAIN: Mapping[str, Callable[..., Written]] = {
    "integer": serializers.IntegerField,
    "number": serializers.FloatField,
    "boolean": serializers.BooleanField,
    "string": serializers.DateTimeField,  # of the format date-time
    "any": words.Anything,
}


@cache
def serializer_of(shape: Any) -> type[serializers.Serializer[Any]]:
    """A serializer that says what a shape (a class of Shape) does; it validates nothing."""
    members: dict[str, Any] = {field.name: _field(field) for field in fields_of(shape)}
    absent = [field.name for field in fields_of(shape) if field.about.absent_when_empty or field.sparse]
    members |= {"__doc__": shape.__doc__, "may_be_absent": (*shape.may_be_absent, *absent)}
    return type(shape.component or shape.__name__, (serializers.Serializer,), members)


def _field(field: Field) -> Written:
    options: dict[str, Any] = {} if field.required else {"required": False}
    options |= {"allow_null": True} if field.null else {}
    options |= {"write_only": True} if field.about.secret else {}
    options |= {"help_text": field.about.note} if field.about.note else {}
    if field.child:
        child, most = serializer_of(cast("Any", field.child)), field.about.most
        if most:
            return serializers.ListField(child=child(), max_length=most, **options)
        return child(many=field.many, **options)
    schema = field.grammar.schema if field.grammar else {}
    if field.many:
        return serializers.ListField(child=_plain(schema), max_length=field.about.most or MAX_LIST, **options)
    return _plain(schema, **options)


def _plain(schema: Mapping[str, Any], **options: Any) -> Written:
    """The field of a value, by its JSON schema."""
    kind = schema["type"]
    options |= {BOUNDS[name]: value for name, value in schema.items() if name in BOUNDS}
    if "enum" in schema:
        return serializers.ChoiceField(choices=list(schema["enum"]), **options)
    if kind == "object":
        values = schema.get("additionalProperties")
        return serializers.DictField(child=_plain(values or {"type": "any"}), **options)
    if kind == "string" and schema.get("format") != "date-time":
        options |= {} if "minLength" in schema else {"allow_blank": True}
        return (
            serializers.RegexField(schema["pattern"], **options)
            if "pattern" in schema
            else serializers.CharField(**options)
        )
    return PLAIN[kind](**options)
