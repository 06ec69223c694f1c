"""Clients of some networks, marked by a variable that later rules ask."""

from __future__ import annotations

from collections.abc import Sequence

from apps.compiler.targets.haproxy.writer import Section, Value

# HAProxy takes 64 words a line.
_PER_LINE = 40


HTTP_REQUEST = ("http-request",)


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
