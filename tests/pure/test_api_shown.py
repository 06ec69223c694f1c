"""What a row looks like in the API follows from the schema that its document has."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from rest_framework import serializers

from apps.api.v1.schemas import words


@dataclass
class Fleet:
    name: str


@dataclass
class Row:
    pk: int
    fleet: Fleet | None
    entries: tuple[dict[str, int], ...] = ({"port": 80}, {"port": 443})


class Entry(words.Shown):
    """Part of a row."""

    port = words.port()


class Noun(words.Shown):
    """A row."""

    may_be_absent = ("secret",)

    url = words.Url("nouns")
    fleet = words.name(source="fleet.name", allow_null=True)
    entries = Entry(many=True)
    secret = serializers.CharField()


def test_each_field_comes_from_its_source_and_null_on_the_way_is_null() -> None:
    assert Noun.of(Row(7, Fleet("eu"))) == {
        "url": "/api/v1/nouns/7",
        "fleet": "eu",
        "entries": [{"port": 80}, {"port": 443}],
    }
    assert Noun.of(Row(7, None))["fleet"] is None


def test_what_is_known_already_stands_instead_and_beside() -> None:
    found = Noun.of(Row(7, None), fleet="us", secret="s3cret")
    assert (found["fleet"], found["secret"]) == ("us", "s3cret")


def test_an_attribute_that_is_missing_is_an_error_also_where_null_is_allowed() -> None:
    class Renamed(words.Shown):
        """A field whose column has another name now."""

        ended_at = words.instant(allow_null=True)

    with pytest.raises(AttributeError):
        Renamed.of(Row(7, None))
    with pytest.raises(KeyError):
        Renamed.of({"pk": 7})
