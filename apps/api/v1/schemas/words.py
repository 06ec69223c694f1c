"""The fields that documents are made of, with the bounds that readers keep.

The readers decide (definitions/reading/); what stands here is never stricter than they are, so a client that
follows the document is not kept from anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from django.db.models import Manager
from rest_framework import serializers

from apps.definitions.shapes.base.words import HOSTNAME, NAME, REFERENCE


class Sent(serializers.Serializer[Any]):
    """Something that callers send: unknown fields are refused, a field that may be left out may be null as well."""


class Shown(serializers.Serializer[Any]):
    """Something that callers get: every field is there, but for those in `may_be_absent`."""

    may_be_absent: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Any, **known: Any) -> dict[str, Any]:
        """What a row (or a mapping) looks like: each field from its `source`, by default of its own name, or `known`.

        Null on the way to a source is null; what is not there at all raises AttributeError or KeyError, so that a
        column with a new name is never shown as null.
        """
        readers = _readers(cls)
        return {name: known[name] if name in known else read(row) for name, read in readers.items()} | known


@cache
def _readers(shown: type[Shown]) -> dict[str, Callable[[Any], Any]]:
    return {
        name: partial(_read, field, (field.source or name).split("."))
        for name, field in shown().get_fields().items()
        if name not in shown.may_be_absent
    }


def _read(field: serializers.Field[Any, Any, Any, Any], source: list[str], row: Any) -> Any:
    if isinstance(field, Url):
        return f"/api/v1/{field.noun}/{row.pk}"
    found = row
    for part in source:
        found = None if found is None else found[part] if isinstance(found, Mapping) else getattr(found, part)
    if isinstance(field, serializers.ListSerializer) and isinstance(field.child, Shown):
        return [field.child.of(each) for each in (found.all() if isinstance(found, Manager) else found)]
    return field.of(found) if isinstance(field, Shown) and found is not None else found


def name(**options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """The name of an object."""
    return serializers.RegexField(NAME, **options)


def reference(**options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """The name of another object: `name`, or `account/name` for one of another account."""
    return serializers.RegexField(REFERENCE, **options)


def hostname(**options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """A DNS name, lower case, `*.` in front for every name below."""
    return serializers.RegexField(HOSTNAME, max_length=253, **options)


def port(**options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """1 to 65535."""
    return serializers.IntegerField(min_value=1, max_value=65535, **options)


def text(longest: int, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """Text that may be empty."""
    return serializers.CharField(max_length=longest, allow_blank=True, **options)


def word(words: Any, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """One of a closed list of words."""
    return serializers.ChoiceField(choices=list(words), **options)


def number(lowest: float, highest: float, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """A number between two bounds."""
    return serializers.FloatField(min_value=lowest, max_value=highest, **options)


def whole(lowest: int, highest: int, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """A whole number between two bounds."""
    return serializers.IntegerField(min_value=lowest, max_value=highest, **options)


def ident(**options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """The id of a row."""
    return serializers.IntegerField(min_value=1, **options)


def count(**options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """How many."""
    return serializers.IntegerField(min_value=0, **options)


def share_of_traffic(**options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """Requests (connections for tcp) per second."""
    return serializers.FloatField(min_value=0, **options)


def instant(**options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """A moment, RFC 3339."""
    return serializers.DateTimeField(**options)


class Anything(serializers.JSONField):
    """Any JSON value."""


class Url(serializers.CharField):
    """The URL of a row of a noun."""

    def __init__(self, noun: str, **options: Any) -> None:
        super().__init__(**options)
        self.noun = noun
