"""The outermost wall: a text that could mean two things, or eat the machine, is refused before it means anything."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from apps.core.errors import Malformed
from apps.definitions.reading import texts
from apps.definitions.reading.texts import MAX_BYTES, MAX_DEPTH, MAX_YAML_VALUES, read_json, read_yaml

DEEP = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
JSON = (
    *('{"name": "a", "name": "b"}', '{"spec": {"a": 1, "a": 1}}', '{"a": NaN}', "[1, Infinity]", DEEP, "[" * 100_000),
    *('{"a": "\\u0000"}', '{"\\ud800": 1}', '{"a": 1', "[1] [2]", "{'a': 1}", " " * (MAX_BYTES + 1)),
)
YAML = (
    *("name: a\nname: b", "spec: {a: 1, a: 1}", "a: &x [1]\nb: *x", "a: !!python/object:os.system x", "a: !x y"),
    *("a: 1\n---\nb: 2", "? [a, b]\n: 1", DEEP, 'a: "\\0"', "a: [1", "\ta: 1"),
)


@pytest.mark.parametrize("text", JSON, ids=lambda text: text[:20])
def test_json_that_is_not_plain_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        read_json(text.encode())


def test_a_field_that_occurs_twice_is_found_among_many_at_once() -> None:
    names = ",".join(f'"k{number}": 1' for number in range(100_000))
    before = time.process_time()
    with pytest.raises(Malformed, match="field z occurs twice"):
        read_json(f'{{{names}, "z": 1, "z": 2}}'.encode())
    assert time.process_time() - before < 2, "counting each name takes minutes"


@pytest.mark.parametrize("read", [read_json, read_yaml])
def test_an_object_has_no_more_fields_than_are_read(read: Callable[[bytes], Any]) -> None:
    names = ",".join(f'"k{number}": 1' for number in range(texts.MAX_FIELDS))
    assert len(read(f"[{{{names}}}]".encode())[0]) == texts.MAX_FIELDS
    with pytest.raises(Malformed, match="more than 10000 fields"):
        read(f'[{{{names}, "z": 1}}]'.encode())


@pytest.mark.parametrize("text", YAML, ids=lambda text: text[:20])
def test_yaml_that_is_not_plain_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        read_yaml(text.encode())


def test_plain_texts_mean_the_same_in_both() -> None:
    wanted = {"name": "a", "on": [1, 1.5, True, None, "0x50"], "yes": "no"}
    assert read_json(b'{"name": "a", "on": [1, 1.5, true, null, "0x50"], "yes": "no"}') == wanted
    assert read_yaml(b"name: a\non: [1, 1.5, true, null, 0x50]\nyes: no") == wanted


MANY = {
    "words": b"[" + b"a," * 2000 + b"a]",
    "objects": b"[" + b"{}," * 2000 + b"{}]",
    "names": b"{" + b",".join(b"a%d: 1" % number for number in range(1000)) + b"}",
    "lines": b"".join(b"- name: route-%d\n  port: 80\n" % number for number in range(400)),
}


@pytest.mark.parametrize("content", MANY.values(), ids=MANY.keys())
def test_yaml_is_read_up_to_so_many_words_and_no_further(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    read_yaml(content)
    monkeypatch.setattr(texts, "MAX_YAML_VALUES", 1000)
    with pytest.raises(Malformed, match="more than 1000 words"):
        read_yaml(content + b"\n:::: [")  # what comes behind is not even read


def test_a_word_of_yaml_costs_so_little_that_two_megabytes_take_no_fifty() -> None:
    content = b"[" + b"abcdefg," * 10_000 + b"a]"
    tracemalloc.start()
    try:
        read_yaml(content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / 10_000 * MAX_YAML_VALUES < 50_000_000


def test_json_with_too_many_values_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"[" + b"[]," * 500_000 + b"[]]"
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("It was parsed."))
    with pytest.raises(Malformed, match="more than 1000000 values"):
        read_json(content)


@pytest.mark.parametrize("text", ["9" * 5000, "-" + "9" * 30, "[1e999]", '{"a": [' + "1" * 4301 + "]}"])
def test_numbers_that_no_field_takes_are_refused_in_our_own_words(text: str) -> None:
    with pytest.raises(Malformed) as caught:
        read_json(text.encode())
    assert "no field takes more" in str(caught.value) or "larger than any field" in str(caught.value)
    assert "sys.set_int_max_str_digits" not in str(caught.value)


def test_a_number_with_many_digits_is_text_in_yaml_as_ever() -> None:
    assert read_yaml(b"a: " + b"9" * 5000) == {"a": "9" * 5000}


def test_the_value_grows_as_it_is_read() -> None:
    text = b"a:\n  - {b: [], c: {}}\n  - \"1\"\n  - ''\n  -\n  - |\n    x\n    y\nd: 'true'\ne: -0.5\nnull: ~\n"
    wanted = {"a": [{"b": [], "c": {}}, "1", "", None, "x\ny\n"], "d": "true", "e": -0.5, "null": None}
    assert read_yaml(text) == wanted
    assert read_yaml(b"") is None
