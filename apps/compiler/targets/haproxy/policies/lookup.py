"""How rules of a block ask what holds: by the code of the block, for a text under a key, or by the client's network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.compiler.targets.haproxy.writer import Argument, Call, Section, Value

# What stands in the map for a key that only has to be found.
SAID = "1"
# HAProxy takes 64 words a line.
_PER_LINE = 40
HTTP_REQUEST = ("http-request",)


@dataclass(frozen=True, slots=True)
class Lookup:
    """One kind of block in the map of values; `letters` are the kind's."""

    path: str
    letters: str

    def holds(self, code: str) -> tuple[str, ...]:
        """The condition that the block with this code holds for the request."""
        return ("{", f"var(txn.rules),concat(/{self.letters}),map_str({self.path})", "-m", "str", code, "}")

    def any_holds(self) -> tuple[str, ...]:
        """The condition that a block of this kind holds."""
        return ("{", f"var(txn.rules),concat(/{self.letters}),map_str({self.path})", "-m", "found", "}")

    def has(self, key: str, name: str = "") -> tuple[Argument, ...]:
        """The condition that there is a text under the key, of which `name` is from a definition."""
        return ("{", Call((*self._fetch(key, name), f",map_str({self.path})")), "-m", "found", "}")

    def text(self, key: str, name: str = "") -> Call:
        """The text under the key, as a format."""
        return Call(("%[", *self._fetch(key, name), f",map_str({self.path}),b64dec]"))

    def has_of(self, key: str, variable: str) -> tuple[str, ...]:
        """The condition that there is a text under the key and the value of a variable (`txn.origin`)."""
        fetch = f"var(txn.rules),concat(/{self.letters}-{key}-,{variable}),map_str({self.path})"
        return ("{", fetch, "-m", "found", "}")

    def _fetch(self, key: str, name: str) -> tuple[str | Value, ...]:
        return f"var(txn.rules),concat(/{self.letters}-{key}", Value(name), ")"


def add_mark(
    section: Section,
    variable: str,
    networks: Sequence[str],
    when: tuple[str, ...],
    rule: tuple[str, ...] = HTTP_REQUEST,
) -> None:
    """The variable (`txn.passes`) is true for clients of any of the networks, forty networks a line."""
    for start in range(0, len(networks), _PER_LINE):
        some = map(Value, networks[start : start + _PER_LINE])
        section.add(*rule, f"set-var({variable})", "bool(true)", "if", *when, "{", "src", *some, "}")
