"""The one entry of every interface: each field uses a grammar, and no hostile value is read, with its field named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from apps.core.errors import Invalid
from apps.definitions.reading.documents import read_object
from apps.definitions.shapes.base.fields import fields_of
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.kinds import SHAPES
from apps.definitions.shapes.platform.topology import GrantSpec
from tests.hostile.corpus import CORPUS, SHARP, VALUES
from tests.hostile.fields import EXAMPLES, FIELDS, Field
from tests.hostile.legal import NAME
from tests.hostile.pointers import Document, leaves, with_value, without_positions
from tests.hostile.refusals import errors_of, errors_with


def test_the_corpus_has_at_least_640_values_and_none_twice() -> None:
    assert len(VALUES) >= 640
    assert len({f"{type(value).__name__} {value!r}" for _, value in VALUES}) == len(VALUES)
    assert len(CORPUS) == 15


@pytest.mark.parametrize("example", [name for name in EXAMPLES if name != "certificate"])
def test_the_example_that_values_are_put_into_is_itself_read(example: str) -> None:
    assert errors_of(*EXAMPLES[example]) == ()


def test_the_dozen_stands_in_the_corpus() -> None:
    values = [value for _, value in VALUES]
    assert [value for value in SHARP if value not in values] == []


def test_every_field_of_a_kind_is_in_an_example() -> None:
    asked = {f"{kind}/{path}" for kind, shape in SHAPES.items() for path in paths_of(shape)}
    shown = {
        f"{kind}/{without_positions(pointer)}"
        for kind, spec in EXAMPLES.values()
        for leaf, _ in leaves(spec)
        for pointer in _ways_to(leaf)
    }
    assert asked - shown == set()


def paths_of(shape: type[Shape], path: str = "") -> Iterator[str]:
    """Where each field of a shape and of the objects in it stands."""
    for field in fields_of(shape):
        yield f"{path}{field.name}"
        if field.child:
            yield from paths_of(field.child, f"{path}{field.name}/")


def _ways_to(leaf: str) -> list[str]:
    """The leaf and everything that holds it."""
    parts = leaf.strip("/").split("/")
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


@pytest.mark.slow(reason="every field of a kind with a third of the sharp values")
@pytest.mark.parametrize("example", EXAMPLES)
def test_a_field_reads_no_sharp_value_and_the_refusal_names_it(example: str) -> None:
    fields = [field for field in FIELDS if field.example == example]
    # Each field is asked others than the field before it.
    found = {field.pointer: errors_with(field, SHARP[at % 3 :: 3]) for at, field in enumerate(fields)}
    assert {pointer: field_errors for pointer, field_errors in found.items() if field_errors != ([], [])} == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field.example}{field.pointer}")
def test_a_field_reads_no_hostile_value_and_the_refusal_names_it(field: Field) -> None:
    assert errors_with(field, [value for _, value in VALUES]) == ([], [])


@dataclass(frozen=True, slots=True)
class WithoutGrammar(GrantSpec):
    """A grant of any host name."""

    hostname: Any = None


def test_without_its_grammar_a_field_would_read_hostile_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHAPES, "Grant", WithoutGrammar)
    field = next(each for each in FIELDS if each.pointer == "/hostname" and each.example == "grant")
    through = [value for _, value in VALUES if not field.legal(value) and not errors_of("Grant", field.document(value))]
    assert len(through) > 100


def test_a_name_reads_no_hostile_value() -> None:
    through = []
    for _, value in VALUES:
        if NAME(value):
            continue
        try:
            read_object({"kind": "Pool", "name": value, "spec": {}})
        except Invalid as invalid:
            through += [value] * (invalid.field_errors[0].pointer != "/name")
        else:
            through.append(value)
    assert through == []


@pytest.mark.parametrize("name", ["pool-17", "defaults", "queue-17", "route-0", "lb-1", "A", "a/b", None])
def test_names_that_we_generate_ourselves_are_refused(name: object) -> None:
    with pytest.raises(Invalid) as caught:
        read_object({"kind": "Pool", "name": name, "spec": {}})
    assert caught.value.field_errors[0].pointer == "/name"


@pytest.mark.parametrize("spec", [None, [], "x", 17, True, {1: 2}])
def test_a_specification_that_is_no_object_is_refused(spec: object) -> None:
    assert errors_of("Pool", spec)


def test_an_unknown_field_is_refused_with_the_nearest_known_one() -> None:
    field_errors = {
        field_error.pointer: field_error for field_error in errors_of("Pool", {"balanse": "random", "is_staff": True})
    }
    assert "did you mean balance?" in field_errors["/spec/balanse"].detail
    assert field_errors["/spec/is_staff"].code == "unknown_field"


@pytest.mark.parametrize("field", ["account", "id", "version", "manager", "generation", "is_staff", "role", "url"])
def test_nothing_of_a_row_can_be_set_that_is_no_field_of_its_document(field: str) -> None:
    for kind, spec in EXAMPLES.values():
        if field not in spec:
            pointers = [field_error.pointer for field_error in errors_of(kind, spec | {field: "x"})]
            assert f"/spec/{field}" in pointers


def test_every_error_of_a_document_is_named_at_once() -> None:
    spec = {"hostname": "A.example", "path": "x", "action": {"pools": [{"pool": "p", "weight": -1}]}}
    pointers = {field_error.pointer for field_error in errors_of("Route", spec)}
    assert {"/spec/hostname", "/spec/path", "/spec/load_balancer", "/spec/action/pools/0/weight"} <= pointers


ACTIONS: list[Document] = [
    {}, {"pools": []}, {"pools": [{"pool": "p", "weight": 0}]}, {"redirect": {"code": 301}},
    {"redirect": {"code": 302, "host": "b.example"}, "pools": [{"pool": "p"}]}, {"fixed_response": {"status": 99}},
]  # fmt: skip


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_that_says_nothing_or_two_things_is_refused(action: Any) -> None:
    assert errors_of("Route", with_value(EXAMPLES["redirect"][1], "/action", action))
