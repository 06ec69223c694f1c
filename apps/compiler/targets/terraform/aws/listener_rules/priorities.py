"""The priorities of rules for AWS: our precedence, with gaps, so that a new rule moves next to no other.

Priorities are a pure function of the rules, since no memory may decide what is compiled. Each rule computes its own,
1 to 50 000, from itself alone, as an arithmetic code: what the precedence looks at first cuts the whole stretch into
bands, what it looks at next cuts a band, and a digest of host and path says where in the last band. Rules that can meet
in one request are in the right order by that, all others stand anywhere. Of rules that want one number the older one
has it and the younger one the next; only where that is taken too does a rule that was there move on by one.

| cut by | first |
|---|---|
| host | exact ones, then wildcards, those of more labels first, then suffixes in the same way, then any host |
| guard | the names that ALB's `*` would add to a wildcard, before the wildcard's own routes |
| path | exact ones, then prefixes, those of more segments first |
| conditions | those that name methods first, then more headers, then more query parameters, then client networks |
| scheme | at one host and path, a route of one scheme before one of both |
| age | the older route, then the next rule of the same route |
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from apps.compiler.matching import hosts
from apps.compiler.model.shared import PathKind, Route
from apps.compiler.routing import number_of
from apps.compiler.targets.terraform.aws.limits import MAX_PRIORITY

_WHOLE = 1 << 60
# Parts of the rest, in thousandths, that the last, the last but one … of a descending order get.
_WILDCARDS, _SEGMENTS, _HEADERS = 500, 300, 700
_EXACT_HOSTS, _EXACT_PATHS, _NAME_METHODS, _GUARDS = 600, 250, 300, 100
# Suffixes and further conditions were added later: they share bands, so that no other rule moved for them.
_SUFFIXES, _ANY_HOST, _FURTHER = 970, 990, 10


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Where a rule stands among the others: what the precedence looks at, the number that it wants, scheme and age."""

    rank: tuple[int, ...]
    wanted: int
    is_of_both_schemes: bool = True
    number: int = 0
    rule: int = 0


def position_of(route: Route, rule: int = 0) -> Position:
    """The position of a route's first, second … rule."""
    segments = route.path.rstrip("/").count("/")
    is_prefix = route.path_kind is PathKind.PREFIX
    conditions = (not route.methods, -len(route.headers), -len(route.query), not route.client_networks)
    rank = (is_prefix, -segments if is_prefix else 0, *conditions)
    band = _rules_of(route.hostname)
    band = _from_the_end(_after(band, _EXACT_PATHS), segments, _SEGMENTS) if is_prefix else _before(band, _EXACT_PATHS)
    band = _before(band, _NAME_METHODS) if route.methods else _after(band, _NAME_METHODS)
    band = _from_the_end(band, len(route.headers), _HEADERS)
    band = _before(band, _FURTHER) if route.query or route.client_networks else band
    wanted = _somewhere(band, f"{route.hostname} {route.path}")
    return Position((*_host_rank(route.hostname), 1, *rank), wanted, route.scheme is None, number_of(route.id), rule)


def position_of_guard(wildcard: str) -> Position:
    """The position of the rule that takes what ALB's `*` would add to the wildcard."""
    return Position((*_host_rank(wildcard), 0), _somewhere(_before(_host_band(wildcard), _GUARDS), wildcard))


def allot(positions: Sequence[Position]) -> list[int]:
    """A priority for each of these positions, which rise. Raises ValueError for more of them than there are numbers."""
    if len(positions) > MAX_PRIORITY:
        raise ValueError(f"A listener has {MAX_PRIORITY} priorities; these are {len(positions)} rules.")
    priorities: list[int] = []
    last = 0
    for index, position in enumerate(positions):
        last = min(max(position.wanted, last + 1), MAX_PRIORITY - (len(positions) - 1 - index))
        priorities.append(last)
    return priorities


_Band = tuple[int, int]


def _host_rank(hostname: str) -> tuple[int, int]:
    kind, _ = hosts.position_of(hostname)
    return kind, -hostname.count(".") if hosts.is_wildcard(hostname) else 0


def _rules_of(hostname: str) -> _Band:
    """Where the routes of a host stand."""
    band = _host_band(hostname)
    return _after(band, _GUARDS) if hostname.startswith("*.") else band


def _host_band(hostname: str) -> _Band:
    whole = (0, _WHOLE)
    if not hosts.is_wildcard(hostname):
        return _before(whole, _EXACT_HOSTS)
    if hostname == hosts.ANY:
        return _after(whole, _ANY_HOST)
    if hostname.startswith(hosts.SUFFIX):
        return _after(_before(whole, _ANY_HOST), _SUFFIXES)
    return _from_the_end(_after(whole, _EXACT_HOSTS), hostname.count(".") - 2, _WILDCARDS)


def _before(band: _Band, part: int) -> _Band:
    return band[0], _cut(band, part)


def _after(band: _Band, part: int) -> _Band:
    return _cut(band, part), band[1]


def _cut(band: _Band, part: int) -> int:
    return band[0] + (band[1] - band[0]) * part // 1000


def _from_the_end(band: _Band, steps: int, part: int) -> _Band:
    """0 steps is the last part of the band, 1 the last of what is before it, and so on."""
    for _ in range(steps):
        band = _before(band, 1000 - part)
    return _after(band, 1000 - part)


def _somewhere(band: _Band, key: str) -> int:
    """A number of the band, which one the key says."""
    drawn = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8])
    position = band[0] + ((band[1] - band[0]) * drawn >> 64)
    return 1 + position * MAX_PRIORITY // _WHOLE
