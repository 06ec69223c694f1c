"""SHOW, when two edits met: yours beside what is live, field by field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Fields whose name says less to people than a word of theirs.
WORDS = {"load_balancer": "Load balancer", "path_kind": "Compared as", "prefix_rewrite": "Replace the path by"}


@dataclass(frozen=True, slots=True)
class Side:
    """One field that differs, as text for both columns."""

    field: str
    yours: str
    live: str


def sides(yours: Mapping[str, Any], live: Mapping[str, Any]) -> list[Side]:
    """The fields of two specs that differ; a field that one of them leaves out is empty there."""
    mine = dict(yours)
    if "pools" in mine.get("action", {}):
        shares = [{"weight": 100} | dict(share) for share in mine["action"]["pools"]]
        mine["action"] = {"pools": sorted(shares, key=lambda share: str(share["pool"]))}
    return [
        Side(WORDS.get(name, name.capitalize()), _text(mine.get(name)), _text(value))
        for name, value in live.items()
        if _text(mine.get(name)) != _text(value)
    ]


def _text(value: Any) -> str:
    if value is None or value == []:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(sorted(_text(entry) for entry in value))
    if isinstance(value, dict) and len(value) == 1 and isinstance(next(iter(value.values())), dict | list):
        kind, part = next(iter(value.items()))
        return f"{kind.replace('_', ' ')}\n{_text(part)}"
    if isinstance(value, dict) and set(value) == {"pool", "weight"}:
        return f"{value['pool']} {value['weight']}"
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_text(value[key])}" for key in sorted(value) if value[key] not in (None, ""))
    return json.dumps(value)
