"""Routes to be: what a rule of a cloud takes and does, in our words, before it has a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.adoption.contract import Report, Wish

# A condition on a header as pairs of words and values, in the order of the words.
Header = tuple[tuple[str, str], ...]


class Unsaid(Exception):
    """The rule says something that a route of ours cannot; `reason` is a sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Candidate:
    """A route to be, with what is lost by it."""

    path: str
    exact: bool
    methods: tuple[str, ...]
    headers: tuple[Header, ...]
    action: tuple[Any, ...]
    rewrite: str | None
    loss: str = ""
    mirror: str | None = None


def scheme_of(action: Mapping[str, Any]) -> dict[str, str]:
    """The scheme of a route whose redirect changes the scheme alone: for both it would lead to itself."""
    redirect = action.get("redirect") or {}
    changes_more = any(redirect.get(part) for part in ("host", "path", "port", "prefix"))
    others = {"https": {"scheme": "http"}, "http": {"scheme": "https"}}
    return {} if changes_more else others.get(str(redirect.get("scheme")), {})


def route_of(wish: Wish, host: str, candidate: Candidate, action: Mapping[str, Any]) -> dict[str, Any]:
    """The specification of a route that matches what a rule of the cloud does."""
    return {
        "load_balancer": wish.name,
        "hostname": host,
        "path": candidate.path,
        "path_kind": "exact" if candidate.exact else "prefix",
        "methods": list(candidate.methods),
        "headers": [dict(each) for each in candidate.headers],
        "action": action,
    } | scheme_of(action)


def certificates_of(where: str, theirs: list[str], wish: Wish, report: Report) -> list[str]:
    """Our certificates in place of theirs; no cloud shows a key, so what is not mapped is said."""
    missing = [name for name in theirs if name not in wish.certificates]
    if missing:
        words = ", ".join(missing)
        reason = f"Upload the certificate with its key and map {words} to it, because no cloud shows a key."
        tell = report.left_out if len(missing) == len(theirs) else report.lossy
        tell(where, reason)
    return [f"{wish.account}/{wish.certificates[name]}" for name in theirs if name in wish.certificates]
