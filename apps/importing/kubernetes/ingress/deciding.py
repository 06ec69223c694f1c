"""The order of routes of one host: where ours would choose otherwise than the controller, prefixes become patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable

from apps.importing.kubernetes.ingress.drafts import Draft

ELSEWHERE = (
    "Where both this and {other} match, the controller takes the longer one as it is written; here an exact path and "
    "conditions come before patterns."
)


def in_order(drafts: Iterable[Draft]) -> list[Draft]:
    """Drafts as documents come: by host, the longest path as written first, as ingress-nginx sorts its patterns."""
    by_text = sorted(drafts, key=lambda each: each.path.written, reverse=True)
    found = sorted(by_text, key=lambda each: (each.entry.host, -len(each.path.written)))
    by_host: dict[str, list[Draft]] = {}
    for each in found:
        by_host.setdefault(each.entry.host, []).append(each)
    for host in by_host.values():
        _settle(host)
    return [each for host in by_host.values() for each in host]


def _settle(drafts: list[Draft]) -> None:
    """Prefixes that would come before a longer pattern become patterns, which keep the order of the file."""
    for at, late in enumerate(drafts):
        for early in drafts[:at]:
            if early.path.kind != "regex" or late.path.text == "/" or not _meet(early, late):
                continue
            if late.path.kind == "prefix":
                late.path = late.path.as_pattern()
            if late.path.kind == "exact" or (late.conditions and not early.conditions):
                late.entry.reading.ingress.differs(late.entry.path_at, ELSEWHERE.format(other=early.path.written))


def _meet(one: Draft, other: Draft) -> bool:
    """Whether a path may be of both: what is literal at the beginning of one begins the other, or the other way."""
    left, right = _literal(one), _literal(other)
    return left.startswith(right) or right.startswith(left)


def _literal(draft: Draft) -> str:
    if draft.path.kind != "regex":
        return draft.path.text.rstrip("/")
    return re.split(r"[\[(.*+?{|\\]", draft.path.text, maxsplit=1)[0].rstrip("/")
