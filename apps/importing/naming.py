"""Names of ours for what an old configuration calls otherwise; and policies for what several routes say alike."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError


@dataclass(slots=True)
class Names:
    """Equal texts get equal names, different ones different names; each has the prefix, and has it once."""

    prefix: str = ""
    given: dict[tuple[str, str], str] = field(default_factory=dict)
    _taken: dict[str, set[str]] = field(default_factory=dict)

    def name(self, kind: str, text: str, apart: str = "") -> str:
        """A name of ours for one of the old file; `apart` tells equal texts apart and stands in no name."""
        key = (kind, f"{text}\0{apart}" if apart else text)
        if key not in self.given:
            taken = self._taken.setdefault(kind, set())
            self.given[key] = _free(_plain(self.prefix + text.removeprefix(self.prefix), kind), taken)
            taken.add(self.given[key])
        return self.given[key]


def shared_rules(name: Callable[[str, str], str], routes: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rules that more than one route has, as policies that these name."""
    users: dict[str, list[dict[str, Any]]] = {}
    for spec in routes.values():
        if "rules" in spec:
            users.setdefault(json.dumps(spec["rules"], sort_keys=True), []).append(spec)
    found: dict[str, dict[str, Any]] = {}
    for specs in users.values():
        if len(specs) > 1:
            rules = specs[0]["rules"]
            called = name("Policy", f"{specs[0]['load_balancer']}-{'-'.join(sorted(rules))}")
            while called in found:
                called = name("Policy", called + "-more")
            found[called] = rules
            for spec in specs:
                del spec["rules"]
                spec["policies"] = [called]
    return found


def _plain(text: str, kind: str) -> str:
    name = (
        re.sub(r"-+", "-", re.sub(r"[^a-z0-9-]+", "-", text.lower())).strip("-")[:55].strip("-")
        or kind.partition(" ")[0].lower()
    )
    try:
        return grammar.name(name)
    except GrammarError:
        return f"{name}-old"


def _free(name: str, taken: set[str]) -> str:
    number, found = 2, name
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    return found
