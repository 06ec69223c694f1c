"""Clients whose cookie names a server of a region stay with that region, where their pool says so (`overflow: keeps`).

A cookie begins with the number of the region (servers/persistence.py). At home it stays although the limit is reached;
a client of another region goes there first and is taken although that one is full. What is down or drained keeps
nobody.
"""

from __future__ import annotations

from apps.compiler.model.fleet import Pool, Region, Snapshot
from apps.compiler.model.servers import OnOverflow, PersistBy
from apps.compiler.model.shared import Protocol
from apps.compiler.routing import number_of
from apps.compiler.targets.haproxy.maps import Entries
from apps.compiler.targets.haproxy.overflow.admission import Rules, Words, equals, found, look_up, variable
from apps.compiler.targets.haproxy.writer import Call, Value

COOKIE_MAP = "maps/persistence.map"
KEPT = "kept"


def _keeping(snapshot: Snapshot) -> list[Pool]:
    return [pool for pool in snapshot.pools if pool.protocol is not Protocol.TCP and _keeps(pool)]


def _keeps(pool: Pool) -> bool:
    known = pool.persistence
    return known is not None and known.by is PersistBy.COOKIE and known.overflow is OnOverflow.KEEPS


def cookie_map(snapshot: Snapshot) -> dict[str, Entries]:
    """Pool → the name of its cookie; no map where no pool keeps its clients."""
    entries = {pool.id: pool.persistence.cookie for pool in _keeping(snapshot) if pool.persistence}
    return {COOKIE_MAP: entries} if entries else {}


def add_kept_region(rules: Rules, snapshot: Snapshot, others: list[tuple[Region, str]]) -> None:
    """`kept` is the number of the region that the cookie names; `to` that region, where it is another that is there.

    `others` come with the backends that lead to them.
    """
    names = sorted({pool.persistence.cookie for pool in _keeping(snapshot) if pool.persistence})
    if not names or not rules.is_http:
        return
    rules.let("sticky", f"var(txn.pool),map_str({COOKIE_MAP})")
    for name in names:
        cookie = Call(("req.cook(", Value(name), "),field(1,-)"))
        rules.let(KEPT, cookie, ("{", "var(txn.sticky)", "-m", "str", Value(name), "}"))
    for region, gate in others:
        named = equals(KEPT, str(number_of(region.id)))
        takes = look_up(rules, region, named)
        drained: Words = ("!", "{", f"var(txn.{variable('limit', region)})", "-m", "beg", "0|0|0|", "}")
        there = ("{", f"nbsrv({gate})", "-m", "int", "gt", "0", "}")
        rules.let("to", f"str({region.id})", (*named, *takes, *drained, *there))
    rules.let("why", f"str({KEPT})", found("to"))


def add_kept_at_home(rules: Rules, snapshot: Snapshot, own: Region) -> None:
    """A client of this region's own forgets that the limit is reached, and nothing else."""
    if not _keeping(snapshot) or not rules.is_http:
        return
    for reason in ("rate", "connections"):
        rules.add("unset-var(txn.why)", given=(*equals(KEPT, str(number_of(own.id))), *equals("why", reason)))


def add_kept_last(rules: Rules, snapshot: Snapshot) -> None:
    """The region that a client is kept by is told to take it, and so is whoever is asked instead."""
    if _keeping(snapshot) and rules.is_http:
        rules.say("last", "%[var(txn.to)];%[var(txn.next)];", equals("why", KEPT))
