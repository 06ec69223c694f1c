"""One service of Consul, as it is now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apps.definitions.server_sources.consul.client import Consul, Health
from apps.definitions.server_sources.consul.instances import servers_of
from apps.definitions.server_sources.deciding import FoundServer
from apps.definitions.server_sources.watched import Watched
from apps.definitions.shapes.servers.source import Source


class Service(Watched):
    """A service that is watched."""

    def __init__(self, consul: Consul, service: str, changed: Callable[[], None]) -> None:
        super().__init__(service, changed)
        self._health = Health(consul, service)
        self._instances: list[Any] = []
        self._index = 0

    def load(self) -> None:
        """Every instance of it."""
        self._take(0)

    def follow(self) -> None:
        """One question, which ends when something changed or after a while; after a failure it ends at once."""
        if self._take(0 if self.error else self._index):
            self.note("")

    def _take(self, index: int) -> bool:
        """Whether the answer is a newer one, or the first after a failure."""
        found, self._index = self._health.ask(index)
        with self._lock:
            changed, self._instances = found != self._instances, found
        return changed or bool(self.error)

    def cut(self) -> None:
        """End the connection."""
        self._health.cut()

    def servers_of(self, source: Source) -> list[FoundServer]:
        """The instances that are healthy, with the tag that the source asks for."""
        with self._lock:
            instances = self._instances
        return servers_of(instances, source.tag)
