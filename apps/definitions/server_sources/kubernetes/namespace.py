"""The EndpointSlices of one namespace of Kubernetes, as they are now."""

from __future__ import annotations

from collections.abc import Callable

from apps.definitions.server_sources.deciding import FoundServer
from apps.definitions.server_sources.kubernetes.client import Cluster, Slice, Watch, list_slices
from apps.definitions.server_sources.kubernetes.endpoint_slices import servers_of
from apps.definitions.server_sources.watched import Watched
from apps.definitions.shapes.servers.source import Source


class Namespace(Watched):
    """A namespace that is watched."""

    def __init__(self, cluster: Cluster, namespace: str, changed: Callable[[], None]) -> None:
        super().__init__(namespace, changed)
        self._where = (cluster, namespace)
        self._slices: dict[str, Slice] = {}
        self._version = ""
        self._watch: Watch | None = None

    def load(self) -> None:
        """Every slice of it."""
        found, self._version = list_slices(*self._where)
        with self._lock:
            self._slices = found

    def follow(self) -> None:
        """Until the cluster ends the watch. What was heard before the connection broke is not asked for again."""
        self._watch = Watch(*self._where, self._version)
        for event in self._watch:
            self._version = event.version or self._version
            if event.kind != "BOOKMARK":
                self._take(event.kind, event.slice)
            elif not self.error:
                continue
            self.note("")

    def cut(self) -> None:
        """End the connection."""
        if self._watch is not None:
            self._watch.cut()

    def servers_of(self, source: Source) -> list[FoundServer]:
        """The servers of a Service."""
        with self._lock:
            slices = [*self._slices.values()]
        return servers_of(slices, source)

    def _take(self, kind: str, changed: Slice) -> None:
        name = str(changed.get("metadata", {}).get("name", ""))
        with self._lock:
            if kind == "DELETED":
                self._slices.pop(name, None)
            else:
                self._slices[name] = changed
