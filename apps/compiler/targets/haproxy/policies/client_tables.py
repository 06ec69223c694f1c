"""The tables of limits per client: one for each period and each ban that any limit has."""

from __future__ import annotations

from apps.compiler.client_limits import WINDOW_S, ban_of, clients_of, is_held, per_of
from apps.compiler.model.fleet import Snapshot
from apps.compiler.policies import rules_followed
from apps.compiler.targets.haproxy.listeners.client_limit import connection_limits
from apps.compiler.targets.haproxy.overflow.admission import PEERS
from apps.compiler.targets.haproxy.overflow.local_traffic import own_region
from apps.compiler.targets.haproxy.policies import client_held
from apps.compiler.targets.haproxy.policies.client_limit import (
    HALF,
    NODE,
    banned_table,
    limits_in,
    over_table,
    table,
)
from apps.compiler.targets.haproxy.settings import HTTP
from apps.compiler.targets.haproxy.writer import Document, Expanded

_LEAST_TABLE = 1024


def add_tables(document: Document, snapshot: Snapshot) -> None:
    """One table for each period and ban that any limit has, as large as the limits together ask for."""
    limits = {said for front in snapshot.load_balancers for said in limits_in(rules_followed(front))}
    limits |= connection_limits(snapshot)
    if not limits:
        return
    own = own_region(snapshot)
    nodes = len(own.nodes) if own else 1
    _add_node_groups(document, has_peers=own is not None)
    for per in sorted({per_of(said) for said in limits}):
        clients = sum(clients_of(said) for said in limits if per_of(said) == per)
        stored = f"gpc0,gpc0_rate({WINDOW_S[per]}s),gpc1,gpc1_rate(1s)"
        _add_table(document, snapshot, table(per), clients * nodes, 3 * WINDOW_S[per], stored)
        if held := client_held.stored(limits, per):
            clients = sum(clients_of(said) for said in limits if per_of(said) == per and is_held(said))
            _add_table(document, snapshot, client_held.table(per), clients * nodes, max(60, 2 * WINDOW_S[per]), held)
    bans = {ban: said for said in limits if (ban := ban_of(said))}
    for within, ban in sorted({ban[0]: ban for ban in bans}.items()):
        clients = max(clients_of(said) for said in limits)
        _add_table(document, snapshot, over_table(ban), clients * nodes, 2 * within, f"gpc0,gpc0_rate({within}s)")
    for lasting, ban in sorted({ban[1]: ban for ban in bans}.items()):
        clients = max(clients_of(said) for said in limits)
        _add_table(document, snapshot, banned_table(ban), clients, lasting, "gpc0")


def _add_node_groups(document: Document, *, has_peers: bool) -> None:
    """`node-5` → `0:5`, the last two groups of the keys under which this node counts."""
    section = document.section("global")
    if not has_peers:
        section.add("set-var", NODE, "str(0:0)")
        return
    number = "str(${SPILLWAY_NODE}),field(2,-)"
    section.add("set-var-fmt", NODE, Expanded(f"%[{number},div({HALF})]:%[{number},mod({HALF})]"))


def _add_table(document: Document, snapshot: Snapshot, name: str, entries: int, expire_s: int, stored: str) -> None:
    """Its size is the next power of two, so that a few more limits or nodes need no larger one."""
    size = max(_LEAST_TABLE, 1 << (entries - 1).bit_length())
    peers = ("peers", PEERS) if own_region(snapshot) else ()
    section = document.section("backend", name, "from", HTTP)
    section.add("stick-table", "type", "ipv6", "size", str(size), "expire", f"{expire_s}s", *peers, "store", stored)
