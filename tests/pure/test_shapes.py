"""Shapes read documents, say every error at once, and write documents again."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from apps.core.errors import FieldError
from apps.definitions.shapes.base.fields import Field, fields_of
from apps.definitions.shapes.base.pages import example
from apps.definitions.shapes.base.reading import read
from apps.definitions.shapes.base.shape import SORTED, About, Data, Distinct, Shape
from apps.definitions.shapes.base.words import LISTED, Boolean, Name
from apps.definitions.shapes.base.writing import settled, write
from apps.definitions.shapes.kinds import SHAPES
from apps.definitions.shapes.traffic.certificate import CertificateSpec
from apps.definitions.shapes.traffic.pool import PoolSpec
from apps.definitions.shapes.traffic.route import RouteSpec
from tests.hostile.fields import POOL, ROUTE


def errors_of(shape: type[Shape], document: object) -> list[FieldError]:
    """What is wrong with a document."""
    field_errors: list[FieldError] = []
    assert (read(shape, document, "/spec", field_errors) is None) == bool(field_errors)
    return field_errors


def all_fields(shape: type[Shape]) -> Iterator[Field]:
    """Every field of a shape and of the objects in it."""
    for field in fields_of(shape):
        yield field
        if field.child:
            yield from all_fields(field.child)


@pytest.mark.parametrize("kind", SHAPES)
def test_every_field_of_a_kind_says_what_it_is_for(kind: str) -> None:
    assert [field.name for field in all_fields(SHAPES[kind]) if not field.about.help] == []


@pytest.mark.parametrize("kind", SHAPES)
def test_the_example_of_a_kind_is_read_and_its_document_again_gives_the_same(kind: str) -> None:
    field_errors: list[FieldError] = []
    found = read(SHAPES[kind], example(SHAPES[kind]), "/spec", field_errors)
    assert found is not None, field_errors
    assert read(SHAPES[kind], write(SHAPES[kind], found), "/spec", field_errors) == found


def test_every_error_of_a_document_is_said_at_once_with_where_it_stands() -> None:
    pool: Any = copy.deepcopy(POOL) | {"protocol": "https", "queue_timeout_ms": "1", "tags": {"A": None}}
    pool["health_check"] = {"intervall_ms": 1, "rise": 0}
    server = pool["backends"][0]["servers"][0]
    pool["backends"][0]["servers"] += [server, {"name": "other"}, 5]
    pool["backends"] += [{"region": "us-central1", "limit": {"kind": "rate"}}]
    assert [(field_error.pointer, field_error.code) for field_error in errors_of(PoolSpec, pool)] == [
        ("/spec/protocol", "choice"),
        ("/spec/queue_timeout_ms", "not_integer"),
        ("/spec/health_check/rise", "out_of_range"),
        ("/spec/health_check/intervall_ms", "unknown_field"),
        ("/spec/backends/0/servers/2/address", "missing"),
        ("/spec/backends/0/servers/2/port", "missing"),
        ("/spec/backends/0/servers/3", "not_object"),
        ("/spec/backends/0/servers/1/name", "twice"),
        ("/spec/backends/0/servers/1/address", "twice"),
        ("/spec/backends/1/limit/value", "limit"),
        ("/spec/backends/1/region", "twice"),
        ("/spec/tags/A", "tag"),
        ("/spec/tags/A", "missing"),
    ]


def test_what_does_not_fit_together_in_a_route_is_said_where_it_stands() -> None:
    expected: Any = {"path": "/", "host": "b.example", "expect": {"status": 200}}
    route = copy.deepcopy(ROUTE) | {"path": "/a/", "scheme": "ftp", "assertions": [{"path": "/"}, expected]}
    route["headers"] += [{"name": "X-B"}, {"name": "X-C", "match": "absent", "value": "v"}]
    route["action"] = {"pools": [{"pool": "shop", "weight": 0}] * 2, "redirect": {"code": 301}}
    assert [(field_error.pointer, field_error.code) for field_error in errors_of(RouteSpec, route)] == [
        ("/spec/scheme", "scheme"),
        ("/spec/headers/1/value", "missing"),
        ("/spec/headers/2/value", "header_value"),
        ("/spec/action/pools/1/pool", "twice"),
        ("/spec/action/redirect", "redirect_loop"),
        ("/spec/action", "one_action"),
        ("/spec/assertions/0/expect", "missing"),
        ("/spec/path", "final_slash"),
    ]
    route = ROUTE | {"action": {"redirect": {"code": 301, "path": "/b"}}, "assertions": [expected]}
    assert [(field_error.pointer, field_error.code) for field_error in errors_of(RouteSpec, route)] == [
        ("/spec/prefix_rewrite", "prefix_rewrite"),
        ("/spec/mirror", "mirror"),
        ("/spec/assertions/0/host", "other_host"),
    ]
    assert [field_error.code for field_error in errors_of(RouteSpec, ROUTE | {"assertions": [expected] * 21})] == [
        "too_many"
    ]


@pytest.mark.parametrize(
    ("field", "hint"), [("queue_timeot_ms", "did you mean queue_timeout_ms?"), ("zzz", "known are protocol, balance,")]
)
def test_an_unknown_field_is_told_the_nearest_or_all_that_there_are(field: str, hint: str) -> None:
    (field_error,) = errors_of(PoolSpec, {field: None})
    assert (field_error.pointer, field_error.code) == (f"/spec/{field}", "unknown_field")
    assert hint in field_error.detail


def test_null_says_the_same_as_nothing() -> None:
    field_errors: list[FieldError] = []
    assert (
        read(PoolSpec, dict.fromkeys(POOL), "/spec", field_errors)
        == PoolSpec()
        == read(PoolSpec, {}, "/spec", field_errors)
    )


def test_a_list_that_is_none_or_too_long_is_one_error() -> None:
    for servers, code in (("abc", "not_list"), ([{"name": "a", "address": "10.0.0.1", "port": 1}] * 1001, "too_many")):
        pool = {"backends": [{"region": "eu", "servers": servers}]}
        assert [field_error.code for field_error in errors_of(PoolSpec, pool)] == [code]


@dataclass(frozen=True, slots=True)
class Ticket(Shape):
    """A shape for tests: exactly one of two names, words in any order, and what stays as it is."""

    name: Annotated[Name, About("One name.")] | None = None
    other: Annotated[Name, About("Another.")] | None = None
    words: Annotated[tuple[Name, ...], LISTED, Distinct(), SORTED, About("Any.")] = ()
    paused: Annotated[Boolean | None, About("Whether it waits.", stays=False)] = None

    @classmethod
    def together(cls, sent: Data) -> list[FieldError]:
        """Exactly one of the two."""
        return [] if ("name" in sent) != ("other" in sent) else [FieldError("", "one_of", "Name exactly one.")]


def test_what_concerns_the_whole_object_is_said_beside_the_errors_of_its_fields() -> None:
    found = [
        (field_error.pointer, field_error.code)
        for field_error in errors_of(Ticket, {"words": ["b", "b", "B"], "naem": "x"})
    ]
    assert found == [
        ("/spec/words/2", "name"),
        ("/spec/words", "twice"),
        ("/spec/naem", "unknown_field"),
        ("/spec", "one_of"),
    ]


def test_a_list_without_an_order_is_sorted_and_what_is_left_out_stays() -> None:
    ticket = read(Ticket, {"name": "a", "words": ["b", "a"]}, "/spec", [])
    assert ticket is not None
    said = write(Ticket, ticket)
    assert said == {"name": "a", "other": None, "words": ["a", "b"]}
    assert settled(Ticket, {}, said)["paused"] is False
    assert settled(Ticket, {"paused": True}, said)["paused"] is True


def test_a_secret_is_read_and_never_written() -> None:
    found = read(CertificateSpec, {"chain": "chain", "key": "key"}, "/spec", [])
    assert found is not None
    assert "key" in str(found.key)
    assert list(write(CertificateSpec, found)) == ["chain"]
