"""Routes that are closed with another one: left open, they would take requests that the other one keeps out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from apps.compiler.matching.hosts import ONE_LABEL, SUFFIX, domain_of
from apps.compiler.model.shared import PathKind, Route
from apps.exporting.gateway.conditions import matches_of

BROADER = "a wildcard for several labels keeps clients out of this path, and *. of the same domain takes these names"
STRICTER = "a route of the same path keeps clients out by conditions of which some cannot be said"
KeepsOut = Callable[[Route], bool]


def closed_with_others(routes: Sequence[Route], keeps_out: KeepsOut) -> Mapping[str, str]:
    """Route id → why it is closed; `routes` are in the order of precedence."""
    return {
        **dict.fromkeys(_overtaking(routes, keeps_out), STRICTER),
        **dict.fromkeys(_below(routes, keeps_out), BROADER),
    }


def _overtaking(routes: Iterable[Route], keeps_out: KeepsOut) -> Iterator[str]:
    """Routes that clusters try first, as they count only the conditions that can be said."""
    counted: dict[tuple[str, PathKind, str], tuple[bool, int, int]] = {}
    for route in routes:
        key = route.hostname, route.path_kind, route.path
        if not (route.headers or route.query or key in counted):
            continue
        found = matches_of(route)
        match = found.matches[0]
        said = "method" in match, len(match.get("headers", ())), len(match.get("queryParams", ()))
        if said > counted.get(key, said):
            yield route.id
        if found.unsaid and keeps_out(route):
            counted[key] = min(counted.get(key, said), said)


def _below(routes: Sequence[Route], keeps_out: KeepsOut) -> Iterator[str]:
    """Of each domain with both wildcards: routes of the broad one that keep out, those of the narrow one below them."""
    narrow: dict[str, list[Route]] = {}
    for route in routes:
        if route.hostname.startswith(ONE_LABEL):
            narrow.setdefault(domain_of(route.hostname), []).append(route)
    kept: dict[str, list[Route]] = {}
    for route in routes:
        domain = domain_of(route.hostname)
        if route.hostname.startswith(SUFFIX) and domain in narrow and keeps_out(route):
            kept.setdefault(domain, []).append(route)
            yield route.id
    for domain, closing in kept.items():
        paths = {each.path for each in closing}
        patterns = any(each.path_kind is PathKind.REGEX for each in closing)
        for route in narrow[domain]:
            if patterns or route.path_kind is PathKind.REGEX or not paths.isdisjoint(_over(route.path)):
                yield route.id


def _over(path: str) -> Iterator[str]:
    """`/a/b` → `/a/b`, `/a`, `/`."""
    while path != "/":
        yield path
        path = path.rpartition("/")[0] or "/"
    yield path
