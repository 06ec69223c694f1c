"""The state to people: Terraform's JSON with a word where a secret stands; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from apps.drivers.infra.reading import SENSITIVE, SHORTEST_SECRET

# What providers forget to mark.
_NAMES = re.compile(r"(private_key|password|passphrase|secret|token|credential)", re.IGNORECASE)
_ENDS = re.compile(r"_(arn|id|name|names|ids|type)$")


def without_secrets(content: bytes) -> dict[str, Any]:
    """A state as data, without the values of sensitive outputs and attributes, wherever else these stand as well."""
    found: dict[str, Any] = json.loads(content)
    hidden: set[str] = set()
    for output in (found.get("outputs") or {}).values():
        if output.get("sensitive"):
            hidden |= set(_texts(output.get("value")))
            output["value"] = SENSITIVE
    instances = [each for row in found.get("resources") or [] for each in row.get("instances") or []]
    for instance in instances:
        for path in instance.pop("sensitive_attributes", None) or []:
            hidden |= set(_texts(_hide(instance, [_key(step) for step in path])))
        instance.pop("private", None)
    hidden = {text for text in hidden if len(text) >= SHORTEST_SECRET}
    for instance in instances:
        instance["attributes"] = _by_name(instance.get("attributes"), hidden)
    return found


def _key(step: Mapping[str, Any]) -> Any:
    """Attributes are named by a text, entries by `{"value": 0, "type": "number"}`."""
    value = step.get("value")
    return value.get("value") if isinstance(value, dict) else value


def _hide(instance: dict[str, Any], path: Sequence[Any]) -> Any:
    """Put the word at the end of the path, and answer what stood there.

    A path that cannot be followed to its end (into a set) hides all from there on: rather too much than a secret.
    """
    holder: Any = instance
    last: Any = "attributes"
    for step in path:
        inner = holder[last]
        if isinstance(inner, dict) and inner.keys() == {"value", "type"} and step not in inner:
            holder, last, inner = inner, "value", inner["value"]  # how a state keeps what may be of any type
        known = isinstance(inner, dict) and isinstance(step, str) and step in inner
        listed = isinstance(inner, list) and type(step) is int and 0 <= step < len(inner)
        if not (known or listed):
            break
        holder, last = inner, step
    gone = holder.get(last) if isinstance(holder, dict) else holder[last]
    if gone is not None:
        holder[last] = SENSITIVE
    return gone


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _by_name(value: Any, hidden: Collection[str], name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _by_name(entry, hidden, key) for key, entry in value.items()}
    if isinstance(value, list):
        return [_by_name(entry, hidden, name) for entry in value]
    if not isinstance(value, str) or not value:
        return value
    secret = value in hidden or (_NAMES.search(name) and not _ENDS.search(name))
    return SENSITIVE if secret else value
