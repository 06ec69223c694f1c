"""The keys under one prefix of etcd, as they are now."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from apps.definitions.server_sources.deciding import FoundServer
from apps.definitions.server_sources.etcd.client import Change, Etcd, Watch, read_keys
from apps.definitions.server_sources.etcd.keys import servers_of
from apps.definitions.server_sources.watched import Failed, Gone, Watched
from apps.definitions.shapes.servers.source import Source


class Prefix(Watched):
    """A prefix that is watched."""

    def __init__(self, etcd: Etcd, prefix: str, changed: Callable[[], None]) -> None:
        super().__init__(prefix, changed)
        self._where = (etcd, prefix)
        self._keys: dict[str, str] = {}
        self._revision = 0
        self._watch: Watch | None = None

    def load(self) -> None:
        """Every key of it."""
        found, self._revision = read_keys(*self._where)
        with self._lock:
            self._keys = found

    def follow(self) -> None:
        """Until the watch ends, fails or is silent; then everything is read anew, which says what was wrong.

        A cluster that was restored may have smaller revisions than we know, of which no watch would ever tell.
        """
        self._watch = Watch(*self._where, self._revision + 1)
        with suppress(Failed):
            for change in self._watch:
                self._take(change)
                self.note("")
        raise Gone

    def _take(self, change: Change) -> None:
        with self._lock:
            if change.value is None:
                self._keys.pop(change.key, None)
            else:
                self._keys[change.key] = change.value

    def cut(self) -> None:
        """End the connection."""
        if self._watch is not None:
            self._watch.cut()

    def servers_of(self, source: Source) -> list[FoundServer]:  # noqa: ARG002 - the prefix is all that it names
        """The server of each key."""
        with self._lock:
            keys = dict(self._keys)
        return servers_of(keys)
