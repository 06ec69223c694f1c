"""SHOW the state to people: Terraform's JSON with a word where a secret stands; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from apps.drivers.infra.reading import SENSITIVE

# What providers forget to mark.
_NAMES = re.compile(r"(private_key|password|passphrase|secret|token|credential)", re.IGNORECASE)
_ENDS = re.compile(r"_(arn|id|name|names|ids|type)$")


def without_secrets(content: bytes) -> dict[str, Any]:
    """A state as data, without the values of sensitive outputs and attributes."""
    found: dict[str, Any] = json.loads(content)
    for output in (found.get("outputs") or {}).values():
        if output.get("sensitive"):
            output["value"] = SENSITIVE
    for resource in found.get("resources") or []:
        for instance in resource.get("instances") or []:
            for path in instance.pop("sensitive_attributes", None) or []:
                _hide(instance.get("attributes"), [step.get("value") for step in path])
            instance.pop("private", None)
            instance["attributes"] = _by_name(instance.get("attributes"))
    return found


def _hide(value: Any, path: Sequence[Any]) -> None:
    """Put the word at the end of the path, where there is something."""
    for step in path[:-1]:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return
    last = path[-1] if path else None
    known = isinstance(value, dict) and last in value
    listed = isinstance(value, list) and isinstance(last, int) and last < len(value)
    if known or listed:
        value[last] = SENSITIVE


def _by_name(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _by_name(entry, key) for key, entry in value.items()}
    if isinstance(value, list):
        return [_by_name(entry, name) for entry in value]
    secret = isinstance(value, str) and value and _NAMES.search(name) and not _ENDS.search(name)
    return SENSITIVE if secret else value
