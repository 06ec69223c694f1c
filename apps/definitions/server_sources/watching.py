"""Watches the namespaces of Kubernetes that pools are served from: one watch each, however many pools there are.

1. By a lease one process watches, and another one goes on when it dies. Each namespace has a thread, which lists,
   follows what changes, and lists again where the cluster has forgotten its version.
2. Another thread stores what each source lists now, at most once a second, and wakes a worker (finding.py), which
   decides as for every other source. A burst of changes is one look, and so one push.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django import db
from django.conf import settings

from apps.core.clock import now
from apps.core.concurrency.backoff import pause_after
from apps.core.concurrency.leases import Lease, LeaseLost, take
from apps.core.queue import enqueue
from apps.definitions.models import ServerSource
from apps.definitions.server_sources.clusters import NotYours, cluster_of
from apps.definitions.server_sources.endpoint_slices import Unclear, servers_of
from apps.definitions.server_sources.following import FIND_TASK, WAKE_EXPIRES_S
from apps.definitions.server_sources.kubernetes import Cluster, Failed, Gone, Slice, Watch, list_slices
from apps.definitions.server_sources.models import SourceWatch
from apps.definitions.shapes.servers.source import Kind, Source, read_source

logger = logging.getLogger(__name__)
LEASE = timedelta(seconds=10)
ONCE_IN_S = 1.0
# What has not changed is said again after so long (heard.py believes it for longer).
AGAIN = timedelta(seconds=10)
FIRST, LATEST = timedelta(seconds=1), timedelta(seconds=30)
# Under this an answer names its source: another one may have been chosen meanwhile.
OF = "of"
Key = tuple[Cluster, str]  # where, and the namespace


class Namespace(threading.Thread):
    """What is known of one namespace: `slices` after the first list, `error` while the cluster fails."""

    def __init__(self, cluster: Cluster, namespace: str, changed: Callable[[], None]) -> None:
        super().__init__(daemon=True, name=f"watch {namespace}")
        self.error = ""
        self.dirty = False
        self.lists = 0
        self._where, self._changed = (cluster, namespace), changed
        self._slices: dict[str, Slice] | None = None
        self._version = ""
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._watch: Watch | None = None

    def run(self) -> None:
        """List and follow until the end; wait longer and longer while the cluster fails."""
        failures = 0
        while not self._ended.is_set():
            began = time.monotonic()
            try:
                if not self._version:
                    self._list()
                self._follow()
                failures = 0
            except Gone:
                self._version = ""
            except Failed as error:
                failures = failures + 1 if self.error else 1
                self._note(str(error))
            except Exception:
                logger.exception("a watch failed")
                failures, self._version = failures + 1, ""
                self._note("The cluster's answer cannot be read.")
            # A watch that ends after its minutes goes on at once; nothing makes us ask in a circle.
            pause = pause_after(failures, first=FIRST, longest=LATEST).total_seconds() if failures else 0.0
            pause *= random.uniform(0.8, 1.2)  # noqa: S311 - nothing secret
            self._ended.wait(max(pause, began + ONCE_IN_S - time.monotonic(), 0.0))

    def stop(self) -> None:
        """End soon; nobody waits for it."""
        self._ended.set()
        if self._watch is not None:
            self._watch.cut()

    def slices(self) -> list[Slice] | None:
        """What there is now, None before the first list; what changes from now on makes it dirty again."""
        with self._lock:
            self.dirty = False
            return None if self._slices is None else list(self._slices.values())

    def _list(self) -> None:
        found, self._version = list_slices(*self._where)
        with self._lock:
            self._slices, self.lists = found, self.lists + 1
        self._note("")

    def _follow(self) -> None:
        """Until the cluster ends the watch. What was heard before the connection broke is not asked for again."""
        self._watch = Watch(*self._where, self._version)
        for event in self._watch:
            self._version = event.version or self._version
            if event.kind != "BOOKMARK":
                self._take(event.kind, event.slice)
            elif self.error:
                self._note("")

    def _take(self, kind: str, changed: Slice) -> None:
        name = str(changed.get("metadata", {}).get("name", ""))
        with self._lock:
            known = self._slices if self._slices is not None else {}
            if kind == "DELETED":
                known.pop(name, None)
            else:
                known[name] = changed
        self._note("")

    def _note(self, error: str) -> None:
        self.error, self.dirty = error, True
        self._changed()


class Watching:
    """All watches of this process, while it holds the lease."""

    def __init__(self) -> None:
        self._lease: Lease[SourceWatch] | None = None
        self._watches: dict[Key, Namespace] = {}
        self._changed, self._ended = threading.Event(), threading.Event()
        self._publisher: threading.Thread | None = None

    def tick(self) -> None:
        """Hold the lease, and watch what pools name now. Raises django.db.Error."""
        if not settings.KUBERNETES_CLUSTERS:
            return
        try:
            if self._lease is not None:
                self._lease.renew()
        except LeaseLost:
            self._lease = None
        if self._lease is None:
            self._lease = take(SourceWatch, LEASE, name=str(Kind.KUBERNETES))
        self._keep({key for _, _, key in followed()} if self._lease is not None else set())
        if self._watches and (self._publisher is None or not self._publisher.is_alive()):
            self._publisher = threading.Thread(target=self._publish, daemon=True, name="publish sources")
            self._publisher.start()

    def stop(self) -> None:
        """Let another process begin at once."""
        self._ended.set()
        self._changed.set()
        self._keep(set())
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def _keep(self, wanted: set[Key]) -> None:
        for key in self._watches.keys() - wanted:
            self._watches.pop(key).stop()
        for key in wanted - self._watches.keys():
            self._watches[key] = Namespace(*key, self._changed.set)
            self._watches[key].start()

    def _publish(self) -> None:
        while not self._ended.is_set():
            self._changed.wait(ONCE_IN_S)
            self._changed.clear()
            began = time.monotonic()
            try:
                publish(dict(self._watches))
            except Exception:
                logger.exception("what sources list was not stored; it is tried again in a moment")
                db.connections.close_all()
            self._ended.wait(max(0.0, began + ONCE_IN_S - time.monotonic()))
        db.connections.close_all()


def followed() -> list[tuple[ServerSource, Source, Key]]:
    """The sources of Kubernetes that their accounts may use."""
    found = []
    rows = ServerSource.objects.filter(backend__servers_from__startswith=f"{Kind.KUBERNETES}://")
    for row in rows.select_related("backend__account"):
        try:
            source = read_source(row.backend.servers_from)
            found.append((row, source, (cluster_of(source, row.backend.account.name), source.name)))
        except NotYours:
            continue
    return found


def publish(watches: dict[Key, Namespace]) -> None:
    """Store what each source lists where that changed, or was said long ago; wake a worker where it changed."""
    moment, slices = now(), dict[Key, list[Slice] | None]()
    dirty = {key for key, watch in watches.items() if watch.dirty}
    woken = False
    for row, source, key in followed():
        old = row.heard_at is None or row.heard_at < moment - AGAIN
        if key not in watches or not (old or key in dirty or (row.listed or {}).get(OF) != row.backend.servers_from):
            continue
        if key not in slices:
            slices[key] = watches[key].slices()
        known = slices[key]
        if known is None and not watches[key].error:
            continue
        listed = said(known or [], source, watches[key].error) | {OF: row.backend.servers_from}
        woken |= store(row, listed)
    if woken:
        enqueue(FIND_TASK, expires_s=WAKE_EXPIRES_S)


def said(slices: list[Slice], source: Source, error: str) -> dict[str, Any]:
    """What is stored of a source: its servers, or why there are none to go by."""
    try:
        found = [] if error else servers_of(slices, source)
    except Unclear as unclear:
        found, error = [], str(unclear)
    return {"servers": [[s.address, s.port, s.weight, s.hint, s.leaving] for s in found], "error": error}


def store(row: ServerSource, listed: dict[str, Any]) -> bool:
    """Store it; whether it changed. A source whose short answers are counted is asked again at its own pace."""
    moment, rows = now(), ServerSource.objects.filter(pk=row.pk)
    if listed == row.listed:
        rows.update(heard_at=moment)
        return False
    rows.update(heard_at=moment, listed=listed)
    return bool(rows.filter(short=0).update(next_at=moment))
