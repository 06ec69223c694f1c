"""A local request over its region's limit finds the next region with room, in the same request.

How full another region is only that region knows. A local node asks the nearest; a refusal comes before any server saw
the request, is repeated one region further by the same request, and remembered for a tenth of a second, so that the
next ones do not knock in vain. Connections cannot be refused and repeated: for pools of tcp the nodes of all their
regions are peers, and a local node counts for itself.

Where requests went that did not simply stay is counted in the table `st_flow` under `<pool>/<verb>/<region>/<reason>`:

| verb | region | counted |
|---|---|---|
| `to` | that served it; the own one when all were full | when the answer comes (tcp: when it is sent) |
| `queue`, `refuse` | the own one | when it is queued, when it is answered with 503 |
| `from`, `bounce` | that sent it | by the region that admits or refuses it, see `remote_traffic.py` |

Reasons say why it could not stay: rate, connections, down (no server is up), drained; full when nobody had room.
"""

from __future__ import annotations

from itertools import permutations

from apps.compiler.model.fleet import Pool, Region, RegionNode, Snapshot
from apps.compiler.model.shared import Protocol, WhenFull
from apps.compiler.targets.haproxy.bypass_tokens import add_exemption
from apps.compiler.targets.haproxy.overflow import advance
from apps.compiler.targets.haproxy.overflow.admission import (
    FLOW_TABLE,
    FULL_TABLE,
    OWN_KEY,
    PEERS,
    Rules,
    Words,
    add_admission,
    add_closed,
    add_counts,
    add_refusal,
    equals,
    found,
    look_up,
    needs_of,
    no,
    variable,
)
from apps.compiler.targets.haproxy.overflow.kept_clients import add_kept_at_home, add_kept_last, add_kept_region
from apps.compiler.targets.haproxy.overflow.limits import ORDER_MAP, SPREAD_MAP
from apps.compiler.targets.haproxy.overflow.of_routes import (
    add_order_of_route,
    add_own_order,
    forget_closed,
    forget_limits,
    says_order,
)
from apps.compiler.targets.haproxy.servers.persistence import needs_client_address
from apps.compiler.targets.haproxy.settings import HTTP, REPEATABLE, TCP
from apps.compiler.targets.haproxy.writer import Document, Section

KEY_MAP = "secrets/overflow.map"
KEY = f"str(key),map_str({KEY_MAP})"
HEALTH_PATH = "/spillway-overflow"
ONCE = "-once"
QUEUE = "queue-"
_REFUSED = ("{", "res.hdr(x-spillway-refused)", "-m", "found", "}")


def own_region(snapshot: Snapshot) -> Region | None:
    """The fleet's own region with its nodes; None when the snapshot knows no nodes, and then nothing is counted."""
    return next((region for region in snapshot.regions if region.id == snapshot.region_id and region.nodes), None)


def other_regions(snapshot: Snapshot) -> list[Region]:
    """Regions that overflow can go to."""
    return [region for region in snapshot.regions if region.id != snapshot.region_id and region.nodes]


def reach(address: str, port: int) -> str:
    """`address:port` with brackets around IPv6."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def add_peers(document: Document, snapshot: Snapshot) -> None:
    """The region's nodes, and those of regions with which it shares a pool of tcp; never one without the other.

    `localpeer` in the agent's `node.cfg` says which of them this one is.
    """
    section = document.section("peers", PEERS)
    for node in _peers(snapshot):
        section.add("peer", node.id, reach(node.address, node.peer_port))


def counts_in_advance(snapshot: Snapshot) -> bool:
    """Whether a node has anybody to tell what it admits, and no limit asks how many requests are in flight.

    What is in flight is told with every request and answer, so there is nothing to save.
    """
    return len(_peers(snapshot)) > 1 and not needs_of(snapshot)["flight"]


def _peers(snapshot: Snapshot) -> list[RegionNode]:
    together = {share.region_id for pool in snapshot.pools if pool.protocol is Protocol.TCP for share in pool.elsewhere}
    regions = [region for region in snapshot.regions if region.id in {snapshot.region_id, *together}]
    return [node for region in regions for node in region.nodes]


def add_home_rules(rules: Rules, snapshot: Snapshot, own: Region) -> None:
    """For a request whose pool is in `txn.action`.

    1. Count against the own region's limit. Room, no limit at all, or a capacity test's own request
       (targets/haproxy/bypass_tokens.py): it stays, and no further rule is asked. Who has peers counts in advance
       where there is much room (advance.py), and most requests stay without a sum.
    2. Else find out which other regions have room, and take the first in the pool's order, and the one behind it for
       the case that the first refuses.
    3. Nobody has room: spread, queue or refuse, as the pool says.
    4. Count it where it stays; send it where it goes. Unless the pool refuses, the last region that will be asked is
       told so and takes it: others may have taken the room that we saw, and 503 would be worse than one too many.
    """
    others = other_regions(snapshot)
    rules.let("pool", "var(txn.action)")
    governed = look_up(rules, own)
    rules.stay(no(governed))
    narrows = bool(others) and add_order_of_route(rules, snapshot)
    add_kept_region(rules, snapshot, [(region, gate(region, rules.is_http)) for region in others])
    if narrows:
        forget_closed(rules, others)
    if counts_in_advance(snapshot):
        advance.add_use(rules, own)
    rules.let("why", "str(down)", (*no(found("why")), "{", "var(txn.pool),nbsrv", "-m", "int", "eq", "0", "}"))
    unlimited = ("{", f"var(txn.{variable('limit', own)})", "-m", "beg", "|||", "}")
    rules.stay((*unlimited, *no(found("why"))))
    add_counts(rules, own, local=True, remote=False)
    add_refusal(rules, own, "why")
    if rules.is_http:
        add_exemption(rules)
    add_kept_at_home(rules, snapshot, own)
    if counts_in_advance(snapshot):
        advance.add_counting(rules, own)
    add_admission(rules, own, OWN_KEY, no(found("why")))
    rules.stay(no(found("why")))
    if others:
        _add_choice(rules, others, narrows=narrows)
    rules.let("when_full", f"var(txn.pool),map_str({ORDER_MAP}),field(1,|)")
    _add_spread(rules, own, others, narrows=narrows)
    _add_last_resorts(rules, own)
    add_admission(rules, own, OWN_KEY, equals("to", own.id))
    keeps = no(equals("when_full", WhenFull.REFUSE))
    rules.say("last", "%[var(txn.to)];", (*found("to"), *keeps))
    rules.say("last", "%[var(txn.next)];", (*found("next"), *keeps))
    rules.say("last", "%[var(txn.to)];%[var(txn.next)];", found("both"))
    add_kept_last(rules, snapshot)
    _add_destination(rules, others)


def _add_choice(rules: Rules, others: list[Region], *, narrows: bool) -> None:
    """`to` is the first region of the pool's order that has room, `next` the first with room behind it."""
    for region in others:
        known = look_up(rules, region)
        full = variable("full", region)
        if rules.is_http:
            add_closed(rules, region, full)
            refused_lately = ("{", f"var(txn.pool),concat(/{region.id}),in_table({FULL_TABLE})", "}")
            rules.let(full, "str(full)", refused_lately)
        else:
            add_counts(rules, region, local=False, remote=True, given=known)
            add_refusal(rules, region, full)
        rules.let(full, "str(down)", ("{", f"nbsrv({gate(region, rules.is_http)})", "-m", "int", "eq", "0", "}"))
    rules.let("order", f"var(txn.pool),map_str({ORDER_MAP})")
    if narrows:
        add_own_order(rules)
        forget_limits(rules, others)
    for target in ("to", "next"):
        for position in range(2, len(others) + 2):
            rules.let("candidate", f"var(txn.order),field({position},|)", no(found(target)))
            for region in others:
                free = (*equals("candidate", region.id), *no(found(variable("full", region))))
                behind = no(equals("to", region.id)) if target == "next" else ()
                rules.let(target, f"str({region.id})", (*no(found(target)), *free, *behind))


def _add_spread(rules: Rules, own: Region, others: list[Region], *, narrows: bool) -> None:
    """By capacity over all regions; those that cannot be reached leave their share local, and a region without servers
    leaves its own to the others.

    Whoever is behind takes it, full or not, where the region that is asked turns out to have no server: the one that
    was drawn, or the only one that seemed to have room.
    """
    spread = (*equals("when_full", WhenFull.SPREAD), *no(found("to")))
    rules.let("shares", f"var(txn.pool),map_str({SPREAD_MAP})", (*spread, *(says_order(yes=False) if narrows else ())))
    if narrows:
        own_shares = f"var(txn.pool),concat(/,txn.rules),map_str({SPREAD_MAP})"
        rules.let("shares", own_shares, (*spread, *says_order(yes=True)))
    rules.let("drawn", "rand(1000)", found("shares"))
    for position in range(1, len(others) + 2):
        above = ("{", f"var(txn.shares),field({2 * position - 1},|),sub(txn.drawn)", "-m", "int", "gt", "0", "}")
        rules.let("to", f"var(txn.shares),field({2 * position},|)", (*found("shares"), *no(found("to")), *above))
    for region in others:
        gone = ("{", f"nbsrv({gate(region, rules.is_http)})", "-m", "int", "eq", "0", "}")
        rules.let("to", f"str({own.id})", (*found("shares"), *equals("to", region.id), *gone))
    empty = ("{", "var(txn.pool),nbsrv", "-m", "int", "eq", "0", "}")
    for region in others:
        there = ("{", f"nbsrv({gate(region, rules.is_http)})", "-m", "int", "gt", "0", "}")
        known = found(variable("limit", region))  # a region where the pool may go at all
        rules.let("to", f"str({region.id})", (*found("shares"), *equals("to", own.id), *empty, *there, *known))
    alone = (*equals("when_full", WhenFull.SPREAD), *found("to"), *no(found("next")))
    rules.let("both", "str(yes)", alone)
    for region in others:
        there = ("{", f"nbsrv({gate(region, rules.is_http)})", "-m", "int", "gt", "0", "}")
        behind = (*no(found("next")), *no(equals("to", own.id)), *no(equals("to", region.id)))
        open_to_all = no(equals(variable("full", region), "drained"))
        known = found(variable("limit", region))
        rules.let("next", f"str({region.id})", (*found("both"), *behind, *there, *open_to_all, *known))
    rules.let("why", "str(full)", (*found("shares"), *found("to")))
    stays = equals("to", own.id)
    rules.say("flow", f"%[var(txn.pool)]/to/{own.id}/full", stays)
    _count(rules, "sc1", stays)


def _add_last_resorts(rules: Rules, own: Region) -> None:
    """Queue locally, or answer 503; also where a pool spreads but no region takes anything."""
    nowhere = (*found("when_full"), *no(found("to")))
    queues = (*nowhere, *equals("when_full", WhenFull.QUEUE), *no(equals("why", "down")))
    rules.say("flow", f"%[var(txn.pool)]/queue/{own.id}/full", queues)
    rules.say("action", f"{QUEUE}%[var(txn.pool),field(2,-)]", queues)
    rules.let("to", f"str({own.id})", queues)
    _count(rules, "sc1", (*equals("to", own.id), "{", "var(txn.action)", "-m", "beg", QUEUE, "}"))
    # Without a local server and with nobody else, the pool itself says 503: that is an outage and no overflow.
    refused = (*nowhere, *no(equals("to", own.id)), *no(equals("why", "down")))
    rules.say("flow", f"%[var(txn.pool)]/refuse/{own.id}/full", refused)
    _count(rules, "sc2", refused)
    if rules.is_http:
        rules.add("return", "status", "503", "hdr", "retry-after", "1", given=refused)
    else:
        rules.add("reject", given=refused)


def _count(rules: Rules, counter: str, given: Words) -> None:
    rules.add(f"track-{counter}", "var(txn.flow)", "table", FLOW_TABLE, given=given)
    rules.add(f"sc-inc-gpc0({counter[2:]})", given=given)


def _add_destination(rules: Rules, others: list[Region]) -> None:
    """`action` becomes the backend that leads to the other region."""
    for region in others:
        rules.say("action", gate(region, rules.is_http), equals("to", region.id))
        if not rules.is_http:
            rules.say("flow", f"%[var(txn.pool)]/to/{region.id}/%[var(txn.why)]", equals("to", region.id))
            _count(rules, "sc2", equals("to", region.id))
            continue
        behind = (*equals("to", region.id), *found("next"))
        rules.say("action", f"{gate(region)}-%[var(txn.next)]", behind)
        once = (*equals("to", region.id), "!", "{", "method", *REPEATABLE, "}")
        rules.say("action", f"%[var(txn.action)]{ONCE}", once)


def gate(region: Region, is_http: bool = True) -> str:
    """The backend of a region's nodes: `to-rgn-2` for http, `tcp-rgn-2` for tcp."""
    return f"{'to' if is_http else 'tcp'}-{region.id}"


def add_gates(document: Document, snapshot: Snapshot) -> None:
    """Backends to every other region, alone and with another one behind it for what the first refuses."""
    others = other_regions(snapshot)
    for region in others:
        section = _gate(document, snapshot, gate(region), behind=False)
        section.add("option", "httpchk")
        key = ("hdr", "x-spillway-key", f"%[{KEY}]")
        section.add("http-check", "send", "meth", "GET", "uri", HEALTH_PATH, *key)
        section.add("http-check", "expect", "status", "200")
        _add_checked_nodes(section, region)
        _add_tracking_nodes(_gate(document, snapshot, gate(region) + ONCE, behind=False), region, gate(region))
    for first, behind in permutations(others, 2):
        for once in ("", ONCE):
            section = _gate(document, snapshot, f"{gate(first)}-{behind.id}{once}", behind=True)
            _add_ordered_nodes(section, first, behind)
    if any(pool.protocol is Protocol.TCP for pool in snapshot.pools):
        for region in others:
            _add_tcp_gate(document, region)


def _gate(document: Document, snapshot: Snapshot, name: str, *, behind: bool) -> Section:
    """What every way out to another region says; `behind` when there is a second region to try.

    The answer 425 is the other region's refusal, given before any server saw the request: repeating it is always safe.
    A connection that broke off is repeated for methods that may be. A server's own 425 travels as a header.
    """
    section = document.section("backend", name, "from", HTTP)
    section.add("balance", "roundrobin")
    section.add("option", "redispatch", "1")
    section.add("http-reuse", "aggressive")
    if behind:
        section.add("option", "http-buffer-request")  # only what is whole in the buffer can be repeated
    broken = () if name.endswith(ONCE) else ("empty-response",)
    section.add("retry-on", "conn-failure", *broken, *(("425",) if behind else ()))
    section.add("http-request", "set-header", "x-spillway-key", f"%[{KEY}]")
    section.add("http-request", "set-header", "x-spillway-pool", "%[var(txn.pool)]")
    section.add("http-request", "set-header", "x-spillway-from", snapshot.region_id)
    section.add("http-request", "set-header", "x-spillway-last", "%[var(txn.last)]", "if", *found("last"))
    if any(map(needs_client_address, snapshot.pools)):
        section.add("http-request", "set-header", "x-spillway-client", "%[src]")
    section.add("http-response", "set-var(txn.served)", "res.hdr(x-spillway-region)")
    section.add("http-response", "set-var(txn.served_by)", "res.hdr(x-spillway-server)")
    section.add("http-response", "set-var-fmt(txn.flow)", "%[var(txn.pool)]/to/%[var(txn.served)]/%[var(txn.why)]")
    refusal = f"%[var(txn.pool)]/refuse/{snapshot.region_id}/full"
    section.add("http-response", "set-var-fmt(txn.flow)", refusal, "if", *_REFUSED)
    _add_lesson(section)
    section.add("http-response", "track-sc2", "var(txn.flow)", "table", FLOW_TABLE)
    section.add("http-response", "sc-inc-gpc0(2)")
    section.add("http-response", "set-header", "retry-after", "1", "if", *_REFUSED)
    section.add("http-response", "set-status", "503", "if", *_REFUSED)
    too_early = ("{", "res.hdr(x-spillway-status)", "-m", "str", "425", "}")
    section.add("http-response", "set-status", "425", "if", *too_early)
    section.add("http-response", "del-header", "x-spillway-", "-m", "beg")
    return section


def _add_lesson(section: Section) -> None:
    """Remember who is full: the region that was asked first when another one answered or it refused itself, else the
    one that says that it came over its limit.
    """
    moved_on = ("!", "{", "var(txn.served),strcmp(txn.to)", "-m", "int", "eq", "0", "}")
    section.add("http-response", "set-var(txn.refuser)", "var(txn.to)", "if", *moved_on)
    section.add("http-response", "set-var(txn.refuser)", "var(txn.to)", "if", *_REFUSED)
    over = ("{", "res.hdr(x-spillway-over)", "-m", "found", "}")
    section.add("http-response", "set-var(txn.refuser)", "var(txn.served)", "if", *over, *no(found("refuser")))
    key = "var(txn.pool),concat(/,txn.refuser)"
    section.add("http-response", "track-sc1", key, "table", FULL_TABLE, "if", *found("refuser"))


def _add_checked_nodes(section: Section, region: Region) -> None:
    # Nodes of ours accept connections as long as they live: three that fail in a row need no check to confirm it.
    section.add("default-server", "check", "inter", "1s", "fastinter", "200ms", "fall", "2", "rise", "1")
    section.add("default-server", "observe", "layer4", "error-limit", "3", "on-error", "mark-down")
    for node in region.nodes:
        section.add("server", node.id, reach(node.address, node.overflow_port), "weight", "100")


def _add_tracking_nodes(section: Section, region: Region, tracked: str, weight: int = 100) -> None:
    for node in region.nodes:
        section.add("server", *_tracking(node, tracked, weight))


def _add_ordered_nodes(section: Section, first: Region, behind: Region) -> None:
    """Nodes of the first region have weight 0, which `use-server` overrules and a second try does not."""
    for index, node in enumerate(first.nodes[:-1]):
        section.add("use-server", node.id, "if", "{", f"rand({len(first.nodes) - index})", "-m", "int", "0", "}")
    for node in reversed(first.nodes):
        section.add("use-server", node.id, "if", "TRUE")
    _add_tracking_nodes(section, first, gate(first), 0)
    _add_tracking_nodes(section, behind, gate(behind))


def _tracking(node: RegionNode, tracked: str, weight: int) -> tuple[str, ...]:
    address = reach(node.address, node.overflow_port)
    return (node.id, address, "weight", str(weight), "track", f"{tracked}/{node.id}")


def _add_tcp_gate(document: Document, region: Region) -> None:
    """Connections carry their pool, the key and where they come from in the unique id of the PROXY protocol."""
    section = document.section("backend", gate(region, is_http=False), "from", TCP)
    section.add("balance", "roundrobin")
    section.add("default-server", "check", "inter", "1s", "fastinter", "200ms", "fall", "2", "rise", "1")
    section.add("default-server", "send-proxy-v2", "proxy-v2-options", "unique-id")
    for node in region.nodes:
        section.add("server", node.id, reach(node.address, node.overflow_tcp_port), "weight", "100")


def needs_queue(pool: Pool) -> bool:
    """Whether the pool has a twin in which requests wait for a slot."""
    return pool.when_full is WhenFull.QUEUE and bool(pool.servers)
