"""COMPILE for HAProxy: no account and no client takes all the connections of a node.

An account's ceiling is its share (a quota) of what a node can have. Half of it is divided among its pools: what a pool
has within its own part is neither counted nor refused. The other half is for whichever pool needs more, and counted by
account in `st_accounts`. So an account never has more in flight than its share, and one pool cannot take what the
account's others need. `maps/ceilings.map` says it in ten thousandths of a node: `pool-17` → `acc-3|250|1250`.

A stream has three counters and all can be taken. Where the pool's limit has the last one, the account takes that of the
latency: requests beyond their pool's own part are then served without being measured. A connection that waits for a
slot, or is spread over full regions, has none left and gets no more than its pool's own part.

What sends no request yet belongs to no account: of the last quarter of a node a client's address gets a little, and
connections do not idle after an answer where their listeners have many. HAProxy has no counter to spare for addresses
before that, so on a connection of the last quarter the account of a pool with a limit has none.
"""

from __future__ import annotations

from collections import Counter

from apps.compiler.model import Pool, Protocol, Region, Snapshot
from apps.compiler.routing import number_of
from apps.compiler.targets.haproxy.admission import FLOW_TABLE, Rules, Words, found, no, variable
from apps.compiler.targets.haproxy.maps import Entries
from apps.compiler.targets.haproxy.overflow import QUEUE, needs_queue, own_region
from apps.compiler.targets.haproxy.settings import HTTP, TCP
from apps.compiler.targets.haproxy.writer import Argument, Document, Expanded, Section

CEILINGS_MAP = "maps/ceilings.map"
ACCOUNT_TABLE = "st_accounts"
SOURCE_TABLE = "st_sources"
POOL_HTTP = "pool-http"
POOL_TCP = "pool-tcp"
WHOLE = 10_000
# What the agent knows (nodecfg.py); one that does not say it is so old that nothing is refused there.
NODE = "${SPILLWAY_CONNECTIONS-2000000}"
LAST_PERCENT = 75
SOURCE_PERCENT = 5
IDLE_PERCENT = 60
GATES_PERCENT = 10
FEW = 10  # so many at once harm nobody, whatever the shares say
CEILING = "The account of this service has as many requests under way as this node has room for.\n"


def defaults_of(pool: Pool, snapshot: Snapshot) -> str:
    """Which defaults a pool's backend takes."""
    if not _apply(snapshot):
        return TCP if pool.protocol is Protocol.TCP else HTTP
    return POOL_TCP if pool.protocol is Protocol.TCP else POOL_HTTP


def add_ceilings(document: Document, snapshot: Snapshot) -> None:
    """Two more sets of defaults with rules for all pools, so that they cost memory once, and the tables."""
    sources = document.section("backend", SOURCE_TABLE, "from", HTTP)
    sources.add("stick-table", "type", "ipv6", "size", "1m", "expire", "1m", "store", "conn_cur")
    own = own_region(snapshot)
    if own is None or not _apply(snapshot):
        return
    accounts = document.section("backend", ACCOUNT_TABLE, "from", HTTP)
    accounts.add("stick-table", "type", "string", "len", "32", "size", "100k", "store", "conn_cur")
    for name, parent in ((POOL_HTTP, HTTP), (POOL_TCP, TCP)):
        _add_pool_rules(Rules(document.section("defaults", name, "from", parent), is_http=parent == HTTP), own)


def _apply(snapshot: Snapshot) -> bool:
    return bool(snapshot.shares) and own_region(snapshot) is not None


def ceiling_map(snapshot: Snapshot) -> dict[str, Entries]:
    """Pool or queue → account, its own part, and what the account's pools share beyond their own parts."""
    if not _apply(snapshot):
        return {}
    shares = {share.account: share for share in snapshot.shares}
    names = [(pool.id, pool.account) for pool in snapshot.pools if pool.account in shares]
    twins = [pool for pool in snapshot.pools if needs_queue(pool) and pool.account in shares]
    names += [(pool.id.replace("pool-", QUEUE), pool.account) for pool in twins]
    backends = Counter(account for _, account in names)
    entries = {}
    for name, account in names:
        half = shares[account].percent * WHOLE // 200
        entries[name] = f"{shares[account].id}|{half // backends[account]}|{half}"
    return {CEILINGS_MAP: entries}


def _add_pool_rules(rules: Rules, own: Region) -> None:
    """For every request or connection that enters a pool, from clients or from another region."""
    ceiling, over = found("ceiling"), found("over")
    rules.let("ceiling", f"be_name,map_str({CEILINGS_MAP})", ("{", "be_conn", "gt", str(FEW), "}"))
    rules.let("part", _of_node(2), ceiling)
    rules.let("over", "str(yes)", (*ceiling, "{", "be_conn,sub(txn.part)", "-m", "int", "gt", "0", "}"))
    _add_verdict(rules, over)
    limit = variable("limit", own)
    uncounted = ("{", f"var(txn.{limit})", "-m", "beg", "|||", "}")
    taken = (*over, "{", "sc1_tracked", "}")
    rules.let("capped", "str(yes)", (*taken, *found(limit), *no(uncounted)))
    rules.let("capped", "str(yes)", (*taken, *found("from")))
    if rules.is_http:  # who sent a guest may ask the next region
        refusal = ("hdr", "x-spillway-refused", "ceiling", "hdr", "x-spillway-region", own.id)
        rules.add("return", "status", "425", *refusal, given=(*found("capped"), *found("from")))
    _add_refusal(rules, f"%[be_name]/refuse/{own.id}/ceiling")
    _track(rules, "sc2", (*over, *no(found(limit))))
    _track(rules, "sc2", (*over, *uncounted, *no(found("from"))))
    _track(rules, "sc1", (*over, *found(limit), *no(uncounted)))
    _track(rules, "sc1", (*over, *found("from")))  # of a guest every pool counts, limited or not


def add_gate_ceilings(document: Document, snapshot: Snapshot) -> None:
    """For what leaves to another region: it holds a connection here while it is served there.

    All ways out together take a tenth of a node before anybody's account is looked at.
    """
    own = own_region(snapshot)
    if own is None or not _apply(snapshot):
        return
    gates = [each for each in document.sections if each.title.startswith(("backend to-rgn-", "backend tcp-rgn-"))]
    for section in gates:
        before, section.lines = section.lines, []
        is_http = section.title.startswith("backend to-")
        _add_gate_rules(Rules(section, is_http=is_http), own, GATES_PERCENT * WHOLE // 100 // len(gates))
        section.lines += before


def _add_gate_rules(rules: Rules, own: Region, part: int) -> None:
    many = ("{", _per_node("be_conn"), "gt", str(part), "}", "{", "be_conn", "gt", str(FEW), "}")
    rules.let("ceiling", f"var(txn.pool),map_str({CEILINGS_MAP})", many)
    _add_verdict(rules, found("ceiling"))
    _add_refusal(rules, f"%[var(txn.pool)]/refuse/{own.id}/ceiling-out")
    _track(rules, "sc1", found("ceiling"))


def _add_verdict(rules: Rules, given: Words) -> None:
    """`capped` when the account has as much as it may beyond the own parts of its pools."""
    rules.let("share", _of_node(3), given)
    rules.let("held", f"var(txn.ceiling),field(1,|),table_conn_cur({ACCOUNT_TABLE})", given)
    full = ("{", "var(txn.held),sub(txn.share)", "-m", "int", "ge", "0", "}")
    rules.let("capped", "str(yes)", (*given, *full))


def _of_node(field: int) -> Expanded:
    return Expanded(f"var(txn.ceiling),field({field},|),mul({NODE}),div({WHOLE})")


def _per_node(count: str) -> Expanded:
    return Expanded(f"{count},mul({WHOLE}),div({NODE})")


def _add_refusal(rules: Rules, flow: str) -> None:
    """503, or the end of the connection; counted as a flow unless the stream counts as another one already."""
    given = found("capped")
    rules.let("told", "str(yes)", (*given, *no(found("flow")), *no(found("from"))))
    rules.say("flow", flow, found("told"))
    rules.add("track-sc1", "var(txn.flow)", "table", FLOW_TABLE, given=found("told"))
    rules.add("sc-inc-gpc0(1)", given=found("told"))
    if not rules.is_http:
        rules.add("reject", given=given)
        return
    text: tuple[Argument, ...] = ("content-type", "text/plain; charset=utf-8", "string", CEILING)
    rules.add("return", "status", "503", *text, "hdr", "retry-after", "1", "hdr", "connection", "close", given=given)


def _track(rules: Rules, counter: str, given: Words) -> None:
    rules.add(f"track-{counter}", "var(txn.ceiling),field(1,|)", "table", ACCOUNT_TABLE, given=given)


def add_source_rules(section: Section, snapshot: Snapshot) -> None:
    """Before a byte of a client is read: where the node is nearly full, its address gets no more than a few.

    2.6 cannot say how many connections the process has, so those of the listeners are added up.
    """
    listeners = [each.id for front in snapshot.load_balancers for each in front.listeners]
    for index, listener_id in enumerate(sorted(listeners, key=number_of)):
        so_far = ",add(sess.all)" if index else ""
        section.add("tcp-request", "connection", "set-var(sess.all)", f"fe_conn({listener_id}){so_far}")
    nearly = ("{", _per_node("var(sess.all)"), "-m", "int", "gt", str(LAST_PERCENT * WHOLE // 100), "}")
    section.add("tcp-request", "connection", "track-sc1", "src", "table", SOURCE_TABLE, "if", *nearly)
    many = ("{", _per_node("sc1_conn_cur"), "gt", str(SOURCE_PERCENT * WHOLE // 100), "}")
    section.add("tcp-request", "connection", "reject", "if", *many, "{", "sc1_conn_cur", "gt", str(FEW), "}")


def add_idle_rule(section: Section, snapshot: Snapshot) -> None:
    """An answer is the last of its connection where the listener has more than its part of what may idle."""
    protocols = [each.protocol for front in snapshot.load_balancers for each in front.listeners]
    part = IDLE_PERCENT * WHOLE // 100 // max(1, sum(each is not Protocol.TCP for each in protocols))
    many = ("{", _per_node("fe_conn"), "gt", str(part), "}", "{", "fe_conn", "gt", str(FEW), "}")
    section.add("http-after-response", "set-header", "connection", "close", "if", *many)
