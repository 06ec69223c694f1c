"""The state to people: secrets in lists, in what may be of any type, and where they stand a second time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.stacks.state.redaction import without_secrets

HUSH = "correct horse battery"
ENTRY: dict[str, Any] = {"type": "index", "value": {"value": 1, "type": "number"}}


def attr(name: str) -> dict[str, Any]:
    return {"type": "get_attr", "value": name}


def shown(attributes: dict[str, Any], *path: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a resource of which Terraform marked this path."""
    instance = {"attributes": attributes, "sensitive_attributes": [list(path)]}
    body = {"version": 4, "resources": [{"instances": [instance]}]}
    found: dict[str, Any] = without_secrets(json.dumps(body).encode())["resources"][0]["instances"][0]["attributes"]
    return found


def test_a_secret_in_an_entry_of_a_list_is_hidden_and_its_neighbours_are_not() -> None:
    found = shown({"action": [{"word": "one"}, {"word": HUSH}]}, attr("action"), ENTRY, attr("word"))
    assert found == {"action": [{"word": "one"}, {"word": "(sensitive)"}]}


def test_a_secret_in_a_value_of_any_type_is_hidden_and_so_is_its_copy_elsewhere() -> None:
    value = {"value": {"list": ["a", HUSH]}, "type": ["object", {}]}
    found = shown({"input": value, "output": {"word": HUSH}}, attr("input"), attr("list"), ENTRY)
    assert found["input"]["value"] == {"list": ["a", "(sensitive)"]}
    assert found["output"] == {"word": "(sensitive)"}


@pytest.mark.parametrize("way", [{"type": "index", "value": {"value": {"word": HUSH}, "type": "object"}}, attr("x")])
def test_a_path_that_leads_nowhere_hides_all_from_there_on(way: dict[str, Any]) -> None:
    found = shown({"set": [{"word": HUSH}], "name": "front"}, attr("set"), way, attr("word"))
    assert found == {"set": "(sensitive)", "name": "front"}
