"""Watches the sources that tell by themselves what changes: one watch each, however many pools there are.

1. By a lease one process watches, and another one goes on when it dies. Each namespace of Kubernetes, each prefix of
   etcd and each service of Consul has a thread (watched.py), which lists, follows what changes, and lists again where
   its version is forgotten.
2. Another thread stores what each source lists now, at most once a second, and wakes a worker (finding.py), which
   decides as for every other source. A burst of changes is one look, and so one push.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django import db
from django.conf import settings
from django.db.models import Q

from apps.core.clock import now
from apps.core.concurrency.leases import Lease, LeaseLost, take
from apps.core.queue import enqueue
from apps.definitions.models import ServerSource
from apps.definitions.server_sources.consul.service import Service
from apps.definitions.server_sources.etcd.prefix import Prefix
from apps.definitions.server_sources.following import FIND_TASK, WAKE_EXPIRES_S
from apps.definitions.server_sources.kubernetes.namespace import Namespace
from apps.definitions.server_sources.models import SourceWatch
from apps.definitions.server_sources.registries import NotYours, Registry, registry_of
from apps.definitions.server_sources.watched import ONCE_IN_S, Unclear, Watched
from apps.definitions.shapes.servers.source import WATCHED, Kind, Source, read_source

logger = logging.getLogger(__name__)
LEASE = timedelta(seconds=10)
# What has not changed is said again after so long (heard.py believes it for longer).
AGAIN = timedelta(seconds=10)
# Under this an answer names its source: another one may have been chosen meanwhile.
OF = "of"
Key = tuple[Kind, Registry, str]  # where, and the namespace, the prefix or the service
WATCHES: Mapping[Kind, Callable[[Any, str, Callable[[], None]], Watched]] = {
    Kind.KUBERNETES: Namespace,
    Kind.ETCD: Prefix,
    Kind.CONSUL: Service,
}


class Watching:
    """All watches of this process, while it holds the lease."""

    def __init__(self) -> None:
        self._lease: Lease[SourceWatch] | None = None
        self._watches: dict[Key, Watched] = {}
        self._changed, self._ended = threading.Event(), threading.Event()
        self._publisher: threading.Thread | None = None

    def tick(self) -> None:
        """Hold the lease, and watch what pools name now. Raises django.db.Error."""
        if not settings.REGISTRIES:
            return
        try:
            if self._lease is not None:
                self._lease.renew()
        except LeaseLost:
            self._lease = None
        if self._lease is None:
            self._lease = take(SourceWatch, LEASE, name="sources")
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
            kind, registry, name = key
            self._watches[key] = WATCHES[kind](registry, name, self._changed.set)
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
    """The sources to watch that their accounts may use."""
    found = []
    named = Q()
    for kind in WATCHED:
        named |= Q(backend__servers_from__startswith=f"{kind}://")
    for row in ServerSource.objects.filter(named).select_related("backend__account"):
        try:
            source = read_source(row.backend.servers_from)
            registry = registry_of(source, row.backend.account.name)
            found.append((row, source, (source.kind, registry, source.name)))
        except NotYours:
            continue
    return found


def publish(watches: Mapping[Key, Watched]) -> None:
    """Store what each source lists where that changed, or was said long ago; wake a worker where it changed."""
    moment = now()
    dirty = {key for key, watch in watches.items() if watch.taken()}
    woken = False
    for row, source, key in followed():
        old = row.heard_at is None or row.heard_at < moment - AGAIN
        if key not in watches or not (old or key in dirty or (row.listed or {}).get(OF) != row.backend.servers_from):
            continue
        watch = watches[key]
        if not watch.known and not watch.error:
            continue
        try:
            woken |= store(row, said(watch, source) | {OF: row.backend.servers_from})
        except db.OperationalError:
            raise
        except Exception:
            logger.exception("what %s lists was not stored; the other sources go on", row.backend.servers_from)
    if woken:
        enqueue(FIND_TASK, expires_s=WAKE_EXPIRES_S)


def said(watch: Watched, source: Source) -> dict[str, Any]:
    """What is stored of a source: its servers, or why there are none to go by."""
    error = watch.error
    try:
        found = [] if error else watch.servers_of(source)
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
