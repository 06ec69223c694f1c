"""Every writable field is read by a grammar, and every grammar is asked each value of the corpus once."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.core.errors import Invalid
from apps.definitions.reading import fields as reading
from apps.definitions.reading.documents import read_object
from apps.definitions.shapes.base.fields import fields_of
from apps.definitions.shapes.base.reading import escaped
from apps.definitions.shapes.base.shape import Shape, Wrong
from apps.definitions.shapes.kinds import SHAPES
from tests.hostile.corpus import VALUES
from tests.hostile.fields import EXAMPLES, FIELDS, Field
from tests.hostile.refusals import CHECKED_LATER, errors_with

Grammar = Callable[[object], Any]
# Texts that the calendar, or a check beside other fields, judges after their grammar: asked through the whole reader.
READ_FURTHER = {
    "/target/webhook/url", "/when/cron", "/when/at", "/zone", "/server", "/values/0",
    "/path", "/headers/0/value", "/query/0/value", "/cookies/0/value", "/trusted_ca",
}  # fmt: skip
# Routes of other actions, and zones of other records, are read alike.
AGAIN = {"route_with_passwords", "redirect", "redirect_prefix", "fixed_response", "zone_of_powerdns"}
# Hundreds of times what a grammar spends on the whole corpus: only a pattern that turns back reaches it.
LONG_S = 1.0


@dataclass(frozen=True, slots=True)
class Use:
    """A field and the grammar that read it."""

    field: Field
    allowed: Grammar

    @property
    def key(self) -> tuple[object, ...]:
        """What tells grammars apart: the function, what it closes over, and the same of what the field may hold."""
        return (*_identity(self.allowed), *_identity(self.field.legal))


def _identity(function: object) -> tuple[object, ...]:
    cells = getattr(function, "__closure__", None) or ()
    return getattr(function, "__code__", function), tuple(repr(cell.cell_contents) for cell in cells)


@contextmanager
def noting(read: dict[str, Grammar]) -> Iterator[None]:
    """Note which grammar reads the value at which pointer meanwhile."""
    plain = reading.Reader._checked

    def checked(self: reading.Reader, field: str, value: object, allowed: Grammar) -> Any:
        read[f"{self.pointer}/{escaped(field)}".removeprefix("/spec")] = allowed
        return plain(self, field, value, allowed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading.Reader, "_checked", checked)
        yield


def declared(shape: type[Shape], document: Any, pointer: str = "") -> Iterator[tuple[str, Grammar]]:
    """Pointer and grammar of every plain value of a document that a shape reads."""
    for field in fields_of(shape):
        value, below = document.get(field.name), f"{pointer}/{field.name}"
        entries = (
            {f"{below}/{index}": entry for index, entry in enumerate(value or ())} if field.many else {below: value}
        )
        for at, each in entries.items():
            if field.child and each is not None:
                yield from declared(field.child, each, at)
            elif field.grammar and field.grammar.schema["type"] == "object":
                yield from ((f"{at}/{key}", of_key(field.grammar.read, key)) for key in each or ())
            elif field.grammar:
                yield at, field.grammar.read


def by_shapes(kind: str, spec: dict[str, Any]) -> dict[str, Grammar]:
    """What shapes read of an object, and of the one in a schedule that would be changed."""
    found = dict(declared(SHAPES[kind], spec))
    if kind == "Schedule" and (changed := spec["target"].get("change", {}).get("object")):
        found |= declared(SHAPES[changed["kind"]], changed["spec"], "/target/change/object/spec")
    return found


def of_key(read: Grammar, key: str) -> Grammar:
    """The grammar of one value of an object that is read as a whole."""
    return lambda value: read({key: value})


def uses() -> list[Use]:
    """Every field of every example that a grammar reads."""
    found = []
    for example, (kind, spec) in EXAMPLES.items():
        read = by_shapes(kind, spec)
        with noting(read):
            try:
                read_object({"kind": kind, "name": "x", "spec": spec})
            except Invalid:
                assert example == "certificate"
        found += [
            Use(field, read[field.pointer]) for field in FIELDS if field.example == example and field.pointer in read
        ]
    return found


def let_through(use: Use) -> list[Any]:
    """The values that the grammar takes though the field may not hold them."""
    through = []
    for _, value in VALUES:
        try:
            use.allowed(value)
        except (GrammarError, Wrong):
            continue
        if not use.field.legal(value):
            through.append(value)
    return through


def test_every_writable_field_is_read_by_a_grammar() -> None:
    read = {(use.field.example, use.field.pointer) for use in uses()}
    assert [f"{field.example}{field.pointer}" for field in FIELDS if (field.example, field.pointer) not in read] == []


def distinct_uses() -> list[Use]:
    """One field for each grammar; two fields that may hold different things count twice."""
    found = {use.key: use for use in uses() if use.field.pointer not in READ_FURTHER | CHECKED_LATER}
    return list(found.values())


def test_no_grammar_takes_a_hostile_value() -> None:
    found = {f"{use.field.example}{use.field.pointer}": let_through(use) for use in distinct_uses()}
    assert len(found) > 100
    assert {field: values for field, values in found.items() if values} == {}


def read_alike(field: Field) -> bool:
    """Whether another field is read by the same code."""
    return field.example in AGAIN or (field.pointer == "/zone" and field.example.startswith("record_"))


@pytest.mark.parametrize(
    "field",
    [
        pytest.param(field, marks=pytest.mark.exhaustive if read_alike(field) else ())
        for field in FIELDS
        if field.pointer in READ_FURTHER
    ],
    ids=lambda field: f"{field.example}{field.pointer}",
)
def test_what_is_judged_after_its_grammar_reads_no_hostile_value(field: Field) -> None:
    assert errors_with(field, [value for _, value in VALUES]) == ([], [])


def spent(use: Use) -> float:
    """Seconds of processor time for all values."""
    began = time.thread_time()
    let_through(use)
    return time.thread_time() - began


def test_no_grammar_works_long_on_any_value() -> None:
    assert {use.field.pointer: seconds for use in distinct_uses() if (seconds := spent(use)) > LONG_S} == {}


def test_a_grammar_that_turns_back_again_and_again_is_found() -> None:
    field = next(field for field in FIELDS if field.pointer == "/hostname" and field.example == "route")
    turning_back = Use(field, lambda value: value == "shop\n" and re.fullmatch("(?:s+)+x", "s" * 22))
    assert spent(turning_back) > 5 * spent(Use(field, grammar.hostname))


def test_a_grammar_with_a_hole_is_found() -> None:
    field = next(field for field in FIELDS if field.pointer == "/hostname" and field.example == "route")
    assert let_through(Use(field, grammar.hostname)) == []
    assert "shop\n" in let_through(Use(field, lambda value: grammar.hostname(str(value).strip() + ".example")))


def test_a_field_that_no_grammar_reads_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    known = fields_of
    monkeypatch.setattr(
        f"{__name__}.fields_of", lambda shape: [field for field in known(shape) if field.name != "hostname"]
    )
    assert ("route", "/hostname") not in {(use.field.example, use.field.pointer) for use in uses()}
