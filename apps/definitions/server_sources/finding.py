"""Asks the sources that are due, and gives their backends the servers that they list.

1. The sweep wakes a worker where one is due. Owners take turns on the seats that verifications of hostnames have too.
2. A worker claims a source by moving its next try ahead: one that dies is missed after `CLAIM`.
3. It asks outside of transactions (asking.py), and decides what follows (deciding.py).
4. What differs is stored by the rules of every write, and pushed; a source that fails or is refused changes nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from apps.accounts.actors import platform_actor
from apps.audit import services as audit
from apps.compiler import grammar
from apps.core.called_urls import Refused
from apps.core.clock import now
from apps.core.concurrency.backoff import pause_after
from apps.core.concurrency.fairness import Owners, in_turns
from apps.core.errors import SpillwayError
from apps.core.outbound import Unreachable
from apps.core.queue import enqueue
from apps.definitions.models import Backend, Server, ServerSource
from apps.definitions.server_sources.asking import BadAnswer, ask, ask_cloud, ask_file
from apps.definitions.server_sources.deciding import DEFAULT_WEIGHT, FoundServer, decide
from apps.definitions.server_sources.following import FIND_TASK, WAKE_EXPIRES_S, due
from apps.definitions.server_sources.heard import heard
from apps.definitions.server_sources.heartbeats import living
from apps.definitions.server_sources.registries import NotYours
from apps.definitions.shapes.servers.source import AT_CLOUDS, WATCHED, Kind, read_source
from apps.definitions.writing.kinds.hostnames import SEATS
from apps.definitions.writing.kinds.traffic import refused_addresses
from apps.definitions.writing.rules.quotas import expect_servers
from apps.definitions.writing.transactions import change_set

EVERY = timedelta(seconds=2)
# Clouds refuse whoever asks more often.
EVERY_AT_CLOUDS = timedelta(seconds=10)
# After a failure: two seconds, four, …, at most a minute.
LATEST = timedelta(minutes=1)
CLAIM = timedelta(seconds=30)
Said = dict[str, str]
# What needs more than the source to be asked; all others are asked as they are.
KNOWN = {
    Kind.HEARTBEAT: living,
    Kind.FILE: ask_file,
    **dict.fromkeys(WATCHED, heard),
    **dict.fromkeys(AT_CLOUDS, ask_cloud),
}


def sweep(moment: datetime) -> None:
    """Wake a worker where a source is due."""
    if due(moment):
        enqueue(FIND_TASK, expires_s=WAKE_EXPIRES_S)


def find_in_turns() -> int:
    """Ask what is due, account by account, as long as there are seats; the number of sources."""

    def choose(accounts: Owners, done: frozenset[int]) -> tuple[Hashable, int] | None:
        rows = ServerSource.objects.filter(next_at__lte=now()).exclude(backend__account__in=accounts)
        return rows.exclude(pk__in=done).order_by("next_at", "pk").values_list("backend__account", "pk").first()

    return in_turns(SEATS, choose, lambda pk: find(source_id=pk))


def find(*, source_id: int) -> None:
    """Ask one source in its turn; one that somebody else has claimed is passed over."""
    moment = now()
    if not ServerSource.objects.filter(pk=source_id, next_at__lte=moment).update(next_at=moment + CLAIM):
        return
    row = ServerSource.objects.select_related("backend__account").get(pk=source_id)
    try:
        source = read_source(row.backend.servers_from)
        known = KNOWN.get(source.kind)
        found = known(row, source) if known is not None else ask(source)
    except (BadAnswer, NotYours, Refused, Unreachable) as refusal:
        _failed(row, str(refusal))
        return
    try:
        _store(row, found)
    except SpillwayError as error:
        _failed(row, error.detail)


def _failed(row: ServerSource, error: str) -> None:
    """The servers stay as they are. A source that was changed while the former one was asked is not to blame."""
    failures, moment = row.failures + 1, now()
    pause = pause_after(failures, first=EVERY, longest=LATEST)
    ServerSource.objects.filter(pk=row.pk, backend__servers_from=row.backend.servers_from).update(
        failures=failures, error=error[:400], tried_at=moment, next_at=moment + pause
    )


def _store(asked: ServerSource, found: Sequence[FoundServer]) -> None:
    """Give the backend what was found, in one write. Raises SpillwayError where the rules of writes refuse it."""
    with change_set(platform_actor()) as changes:
        rows = ServerSource.objects.select_for_update(of=("self",)).select_related(
            "backend__pool", "backend__region", "backend__account"
        )
        row = rows.filter(pk=asked.pk).first()
        if row is None or row.backend.servers_from != asked.backend.servers_from:  # changed while it was asked
            return
        backend, moment = row.backend, now()
        if row.listed != asked.listed:  # heard meanwhile: what was read before must not come after it
            row.next_at = moment
            row.save(update_fields=("next_at",))
            return
        refused = dict(refused_addresses(changes, backend.region, [each.address for each in found]))
        servers = backend.servers.all()
        names = {(server.address, server.port): server.name for server in servers}
        leaving = [(server.address, server.port) for server in servers if server.leaving]
        usable = [_spelled(each) for position, each in enumerate(found) if position not in refused]
        decision = decide(names, usable, row.short, leaving)
        row.tried_at, row.next_at, row.short, row.failures = moment, moment + _every(backend), decision.short, 0
        row.error, row.left_out = decision.held[:400], _left_out(backend, found, refused)[:400]
        if decision.servers is not None:
            expect_servers(changes, backend.account)
            row.answered_at = moment
            before, after = _apply(backend, decision.servers)
            if before != after:
                changes.mark_affected(backend.pool)
                _record(backend, before, after)
        row.save()


def _every(backend: Backend) -> timedelta:
    return EVERY_AT_CLOUDS if read_source(backend.servers_from).kind in AT_CLOUDS else EVERY


def _spelled(server: FoundServer) -> FoundServer:
    """With its address as definitions spell it."""
    return replace(server, address=grammar.server_address(server.address, local_development=True))


def _apply(backend: Backend, wanted: Mapping[str, FoundServer]) -> tuple[Said, Said]:
    """Store the servers; how they were and are. One that stays keeps its state, and a weight that nobody says."""
    rows = {server.name: server for server in backend.servers.all()}
    before = _said(rows.values())
    Server.objects.filter(backend=backend).exclude(name__in=wanted).delete()
    stored = [_stored(backend, rows.get(name), name, each) for name, each in wanted.items()]
    return before, _said(stored)


def _stored(backend: Backend, row: Server | None, name: str, found: FoundServer) -> Server:
    server = row or Server(account=backend.account, backend=backend, name=name, weight=DEFAULT_WEIGHT)
    if row is not None and (found.address, found.port) != (row.address, row.port):
        # Another machine under the old name: nodes are told of it as of a new one, which needs no reload.
        row.delete()
        server = Server(account=backend.account, backend=backend, name=name, weight=row.weight, state=row.state)
    weight = server.weight if found.weight is None else found.weight
    wanted = (found.address, found.port, weight, found.backup, found.leaving)
    if server.pk is None or row is None or wanted != (row.address, row.port, row.weight, row.backup, row.leaving):
        server.address, server.port, server.weight, server.backup, server.leaving = wanted
        server.save()
    return server


def _said(servers: Iterable[Server]) -> Said:
    return {
        each.name: f"{each.address}:{each.port}, weight {each.weight}"
        f"{', backup' if each.backup else ''}{', leaving' if each.leaving else ''}"
        for each in sorted(servers, key=lambda server: server.name)
    }


def _left_out(backend: Backend, found: Sequence[FoundServer], refused: Mapping[int, grammar.GrammarError]) -> str:
    """Which servers of an answer we may not call, and why.

    What our resolver says of a name is no business of customers, who may name any: they get the number.
    """
    if refused and read_source(backend.servers_from).kind in (Kind.DNS, Kind.SRV) and not backend.account.is_operator:
        return (
            f"{len(refused)} of the {len(found)} servers that the name leads to have addresses that no server of "
            f"{backend.region.name} may have; publish others, or ask an operator."
        )
    return " ".join(f"{found[position].address}: {error.message}" for position, error in sorted(refused.items()))


def _record(backend: Backend, before: Said, after: Said) -> None:
    """An entry of the audit log: the servers changed, and no person did it."""
    audit.record(
        actor=platform_actor(),
        action="update",
        kind="Backend",
        object_id=backend.pk,
        label=f"{backend.account.name}/{backend.pool.name}/{backend.region.name}",
        account=backend.account,
        before={"servers": before},
        after={"servers": after},
        reason=f"found by {backend.servers_from}",
    )
