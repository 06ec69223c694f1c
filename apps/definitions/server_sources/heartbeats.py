"""Servers that register themselves: each says where it is, and says so again before its lease ends.

A heartbeat only renews a row. The source of the backend lists those whose lease has not ended, every two seconds like
any other source, so that all that holds for sources holds here: nothing empties a backend, and what may not be called
is left out. While nobody looked, leases do not end: servers are not to blame for a console that was away. Nor do they
end while the account is suspended: its servers are refused then, and its traffic goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from django.db import transaction
from django.db.models import F, Q

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.errors import Conflict, FieldError, Invalid, NotFound
from apps.definitions import selectors
from apps.definitions.models import Backend, Heartbeat, ServerSource
from apps.definitions.server_sources.asking import MOST
from apps.definitions.server_sources.deciding import DEFAULT_WEIGHT, FoundServer
from apps.definitions.shapes.base.reading import read_or_raise
from apps.definitions.shapes.base.shape import About, Shape
from apps.definitions.shapes.base.words import Port, ServerAddress, whole
from apps.definitions.shapes.servers.source import Kind, Source, read_source
from apps.definitions.sharing import must_own
from apps.definitions.writing.change_set import ChangeSet
from apps.definitions.writing.kinds.traffic import refused_addresses

NOUN = "servers"
# A source that was not asked for so long was not asked by anybody.
ABSENT = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class HeartbeatSpec(Shape):
    """Where a server is that registers itself."""

    address: Annotated[ServerAddress, About("An IPv4 or IPv6 address, or a name that resolves to one.")]
    port: Annotated[Port, About("The port of the server.")]
    weight: Annotated[int, whole(0, 256), About("Its share of requests, relative to the sum of all weights.")] = (
        DEFAULT_WEIGHT
    )


def beat(*, actor: Actor, pool_id: int, region: str, name: str, server: object) -> Heartbeat:
    """Register a server, or renew its lease.

    Raises NotFound, Forbidden, Invalid, and Conflict where the backend takes none, has too many, or another server has
    this address.
    """
    wanted = read_or_raise(HeartbeatSpec, server)
    fields = {"address": wanted.address, "port": wanted.port, "weight": wanted.weight}
    with _backend(actor, pool_id, region) as (backend, source):
        until = now() + timedelta(seconds=source.lease_s)
        if not Heartbeat.objects.filter(backend=backend, name=name, **fields).update(until=until):
            _refuse(actor, backend, name, wanted)
            Heartbeat.objects.update_or_create(backend=backend, name=name, defaults={**fields, "until": until})
        return Heartbeat.objects.select_related("backend__region").get(backend=backend, name=name)


def leave(*, actor: Actor, pool_id: int, region: str, name: str) -> None:
    """End a server's lease now; one that has none stays so. Raises NotFound, Forbidden, Conflict as above."""
    with _backend(actor, pool_id, region) as (backend, _):
        Heartbeat.objects.filter(backend=backend, name=name).delete()


def living(row: ServerSource, source: Source) -> list[FoundServer]:
    """The servers of the backend whose leases have not ended; those that ended long ago are forgotten."""
    moment, rows = now(), Heartbeat.objects.filter(backend=row.backend_id)
    lease = timedelta(seconds=source.lease_s)
    if row.tried_at is None or moment - row.tried_at > ABSENT or row.backend.account.suspended:
        rows.filter(until__lt=moment + lease, until__gte=_seen(row, moment)).update(until=moment + lease)
    rows.filter(until__lt=moment - 10 * lease).delete()
    return [
        FoundServer(each.address, each.port, each.weight, hint=each.name)
        for each in rows.filter(until__gte=moment).order_by("name")
    ]


def _seen(row: ServerSource, moment: datetime) -> datetime:
    """When the source was asked last: what lived then gets another lease."""
    return row.tried_at or moment


@contextmanager
def _backend(actor: Actor, pool_id: int, region: str) -> Iterator[tuple[Backend, Source]]:
    """The backend whose servers register themselves, in a transaction."""
    actor.may_write(NOUN)
    pool = selectors.only(selectors.pools(actor), pool_id)
    must_own(actor, pool)
    backend = next((each for each in pool.backends.all() if each.region.name == region), None)
    if backend is None:
        raise NotFound("The pool has no servers in this region.")
    source = read_source(backend.servers_from) if backend.servers_from else None
    if source is None or source.kind is not Kind.HEARTBEAT:
        raise Conflict("Servers of this region do not register themselves: set its servers_from to heartbeat://30.")
    with transaction.atomic():
        yield backend, source


def _refuse(actor: Actor, backend: Backend, name: str, wanted: HeartbeatSpec) -> None:
    """What a new place may not be. Who is not listed any more keeps nobody out: its address passes to who is there."""
    for _, error in refused_addresses(ChangeSet(actor), backend.region, [wanted.address]):
        raise Invalid([FieldError("/address", error.code, error.message)])
    others = Heartbeat.objects.filter(backend=backend).exclude(name=name)
    there = others.filter(address=wanted.address, port=wanted.port)
    # Its lease had ended when the source was asked last; what ended while nobody looked goes on.
    ended = Q(until__lt=F("backend__source__tried_at"))
    there.filter(ended).delete()
    if taken := there.first():
        raise Conflict(f"{taken.name} has registered this address and port.")
    if others.count() - others.filter(ended).count() >= MOST:
        raise Conflict(f"{MOST} servers have registered here; no more are taken.")
