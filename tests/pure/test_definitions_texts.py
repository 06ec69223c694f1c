"""The outermost wall: a text that could mean two things, or eat the machine, is refused before it means anything."""

from __future__ import annotations

import pytest

from apps.core.errors import Malformed
from apps.definitions.texts import MAX_BYTES, MAX_DEPTH, read_json, read_yaml

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


@pytest.mark.parametrize("text", YAML, ids=lambda text: text[:20])
def test_yaml_that_is_not_plain_is_refused(text: str) -> None:
    with pytest.raises(Malformed):
        read_yaml(text.encode())


def test_plain_texts_mean_the_same_in_both() -> None:
    wanted = {"name": "a", "on": [1, 1.5, True, None, "0x50"], "yes": "no"}
    assert read_json(b'{"name": "a", "on": [1, 1.5, true, null, "0x50"], "yes": "no"}') == wanted
    assert read_yaml(b"name: a\non: [1, 1.5, true, null, 0x50]\nyes: no") == wanted
