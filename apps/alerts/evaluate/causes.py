"""Which findings have one cause, and what that is in a sentence; pure.

What is wrong carries keys of what may be the reason: machines (`server:europe-west1:10.0.0.1`), pools, regions, nodes.
Findings that share a key, directly or through others, are one alert: two servers of three pools are one message.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from apps.definitions.shapes.operations.alert_watches import CRITICAL, INFO, WARNING

T = TypeVar("T", bound=Hashable)
RANK = {CRITICAL: 3, WARNING: 2, INFO: 1}
SERVER, REGION = "server:", "region:"
LONGEST_TITLE = 200
# Nothing keeps a key from being in many findings; so many are enough to know later ones by.
MOST_KEYS = 500


class Part(Protocol):
    """What is read of a finding here."""

    watches: str
    object_kind: str
    object_id: int
    title: str
    severity: str
    keys: list[str]


def groups(keys_of: Mapping[T, Iterable[str]]) -> list[list[T]]:
    """The findings in groups that share keys, each in the order in which they were given."""
    leader: dict[str, T] = {}
    parent: dict[T, T] = {}

    def root(of: T) -> T:
        while parent[of] != of:
            parent[of] = parent[parent[of]]
            of = parent[of]
        return of

    for each, keys in keys_of.items():
        parent[each] = each
        for key in keys:
            first = leader.setdefault(key, each)
            ours, theirs = root(each), root(first)
            if ours != theirs:
                parent[ours] = theirs
    found: dict[T, list[T]] = {}
    for each in keys_of:
        found.setdefault(root(each), []).append(each)
    return list(found.values())


def keys_of(parts: Iterable[Part]) -> list[str]:
    """Every key of an alert's findings, once."""
    return sorted({key for part in parts for key in part.keys})[:MOST_KEYS]


def severity_of(parts: Iterable[Part]) -> str:
    """The worst."""
    return max((part.severity for part in parts), key=lambda word: RANK[word], default=INFO)


def weight_of(parts: Sequence[Part]) -> int:
    """How bad and how far: whoever was told is told again where it rises."""
    reach = 1 if any(part.object_kind == "region" for part in parts) else 0
    return RANK[severity_of(parts)] * 2 + reach


def title_of(parts: Sequence[Part]) -> str:
    """The cause in a sentence: a region, servers that several objects share, or what is worst of a single one."""
    worst = sorted(parts, key=lambda part: -RANK[part.severity])
    regions = [part.title for part in parts if part.object_kind == "region"]
    objects = {(part.object_kind, part.object_id) for part in parts}
    if regions:
        found = regions[0] if len(regions) == 1 else f"{len(regions)} regions have no node left"
    elif len(objects) == 1 or not (servers := _servers(parts)):
        more = len(objects) - 1
        found = worst[0].title[: LONGEST_TITLE - 20] + (f", and {more} more" if more else "")
    else:
        found = f"{_spelled(servers)}: {len(objects)} pools are affected"
    return found[:LONGEST_TITLE]


def _servers(parts: Iterable[Part]) -> list[tuple[str, str]]:
    """Region and address of every machine that is a cause."""
    keys = {key for part in parts for key in part.keys if key.startswith(SERVER)}
    return sorted((region, address) for _, region, address in (key.split(":", 2) for key in keys))


def _spelled(servers: Collection[tuple[str, str]]) -> str:
    regions = sorted({region for region, _ in servers})
    where = regions[0] if len(regions) == 1 else f"{len(regions)} regions"
    if len(servers) == 1:
        return f"Server {next(iter(servers))[1]} in {where} does not answer"
    return f"{len(servers)} servers in {where} do not answer"
