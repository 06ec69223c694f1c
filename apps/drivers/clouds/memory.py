"""The honest fake: clouds that live in this process; `memory://<name>` is the endpoint of one.

`memory_cloud(name)` opens its world to a test.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from apps.drivers.clouds.contract import (
    CloudAccess,
    CloudError,
    FoundLoadBalancer,
    FoundNetwork,
    Numbers,
    Standing,
    Stranger,
    TargetHealth,
)

SCHEME = "memory://"


@dataclass
class MemoryCloud:
    """What a cloud would say, and the controls of its world; `failure` is what every call then raises."""

    health: list[TargetHealth] = field(default_factory=list)
    counted: list[Numbers] = field(default_factory=list)
    balancers: list[FoundLoadBalancer] = field(default_factory=list)
    regions: list[str] = field(default_factory=list)
    networks: list[FoundNetwork] = field(default_factory=list)
    buckets: list[str] = field(default_factory=list)
    made: list[Standing] = field(default_factory=list)
    added: list[Stranger] = field(default_factory=list)
    failure: str = ""
    asked: int = 0


_clouds: dict[str, MemoryCloud] = {}
_lock = threading.Lock()


def memory_cloud(name: str) -> MemoryCloud:
    """The cloud of that name, made at the first call."""
    with _lock:
        return _clouds.setdefault(name, MemoryCloud())


class MemoryReader:
    """One account of a cloud in memory."""

    def __init__(self, access: CloudAccess) -> None:
        self._cloud = memory_cloud(access.endpoint_url.removeprefix(SCHEME))

    def target_health(self) -> Sequence[TargetHealth]:
        """As the test wrote it."""
        return list(self._asked().health)

    def numbers(self, since: datetime) -> Sequence[Numbers]:
        """Minutes that end after `since`, oldest first."""
        return sorted((each for each in self._asked().counted if each.at > since), key=lambda each: each.at)

    def load_balancers(self) -> Sequence[FoundLoadBalancer]:
        """Names and ids."""
        return [FoundLoadBalancer(each.kind, each.name, each.id) for each in self._asked().balancers]

    def describe(self, found_id: str) -> FoundLoadBalancer:
        """One of them, whole."""
        for each in self._asked().balancers:
            if each.id == found_id:
                return each
        raise CloudError("The cloud no longer has this load balancer in the region.")

    def regions(self) -> Sequence[str]:
        """As the test wrote them."""
        return list(self._asked().regions)

    def networks(self) -> Sequence[FoundNetwork]:
        """As the test wrote them."""
        return list(self._asked().networks)

    def buckets(self) -> Sequence[str]:
        """As the test wrote them."""
        return list(self._asked().buckets)

    def standing(self, mark: str, kinds: Collection[str]) -> Iterator[Standing]:  # noqa: ARG002 - all is of one stack
        """What was made there, of these kinds."""
        return iter([each for each in self._asked().made if each.kind in kinds])

    def strangers(self, known: Collection[str]) -> Iterator[Stranger]:
        """What was added below one of these."""
        return iter([each for each in self._asked().added if each.parent in known and each.id not in known])

    def _asked(self) -> MemoryCloud:
        self._cloud.asked += 1
        if self._cloud.failure:
            raise CloudError(self._cloud.failure)
        return self._cloud
