"""No account and no client takes all of a node.

An account's ceiling is its share (a quota) of what a node can have at once, and so many requests or connections per
second (another quota). Half of either is divided among its pools: what a pool has within its own part is neither
counted nor refused. The other half is for whichever pool needs more, and counted by account in `st_accounts`. So an
account never has more than its share, and one pool cannot take what the account's others need.
`maps/ceilings.map` says it in ten thousandths of a node and per second: `pool-17` → `acc-3|250|1250|500|2500`.

HAProxy knows how many come to a pool per second without counting them again. Of a pool that is asked for more than its
own part each request is beyond it by chance, in proportion; so it does not matter how many are refused.

A stream has three counters and all can be taken. Where the pool's limit has the last one, the account takes that of the
latency: requests beyond their pool's own part are then served without being measured. A connection that waits for a
slot, or is spread over full regions, has none left and gets no more than its pool's own part. One counter does for both
ceilings: what is beyond its part per second alone is tracked under `acc-3/rate`, so that it is none of those at once.

Accounts together could fill a node all the same. So in its last quarter nobody gets the other half, and of its own part
a pool gets a fifth: with shares of a quarter it takes thirteen accounts that all take what they can, not four.

What sends no request yet belongs to no account: of the last quarter of a node a client's address gets a little, and
connections do not idle after an answer where their listeners have many. HAProxy has no counter to spare for addresses
before that, so on a connection of the last quarter the account of a pool with a limit has none. What no pool answers
(redirects, fixed responses, 404) has no ceiling: a refusal would cost as much.
"""

from __future__ import annotations

from collections import Counter

from apps.compiler.model.fleet import AccountShare, Pool, Region, Snapshot
from apps.compiler.model.shared import Listener, Protocol
from apps.compiler.routing import number_of
from apps.compiler.targets.haproxy.listeners.client_address import (
    from_forwarder,
    from_proxy,
    has_proxies,
)
from apps.compiler.targets.haproxy.maps import Entries
from apps.compiler.targets.haproxy.overflow.admission import FLOW_TABLE, Rules, Words, equals, found, no, variable
from apps.compiler.targets.haproxy.overflow.local_traffic import QUEUE, needs_queue, own_region
from apps.compiler.targets.haproxy.settings import HTTP, TCP
from apps.compiler.targets.haproxy.writer import Argument, Document, Expanded, Section

CEILINGS_MAP = "maps/ceilings.map"
ACCOUNT_TABLE = "st_accounts"
SOURCE_TABLE = "st_sources"
POOL_HTTP = "pool-http"
POOL_TCP = "pool-tcp"
WHOLE = 10_000
ALL = 100  # percent of a node are no ceiling
NO_CEILING = 10 * WHOLE
SCARCE = 5  # in the last quarter of a node a pool gets one in so many of its own part
# What the agent knows (nodecfg.py); one that does not say it is so old that nothing is refused there.
NODE = "${SPILLWAY_CONNECTIONS-2000000}"
LAST_PERCENT = 75
SOURCE_PERCENT = 5
IDLE_PERCENT = 60
GATES_PERCENT = 10
FEW = 10  # so many at once harm nobody, whatever the shares say
SAMPLED = 8  # of what leaves for other regions one in so many is counted, so many times
RATE = "/rate"
AT_ONCE, PER_SECOND = "ceiling", "ceiling-rate"
OUT = "-out"
CEILING = "The account of this service has as many requests under way as this node has room for.\n"
TOO_FAST = "The account of this service is asked for more per second than its share of this node.\n"
_MANY = ("{", "be_conn", "gt", str(FEW), "}")
_OFTEN = ("{", "be_sess_rate", "gt", str(FEW), "}")


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
    stored = "conn_cur,gpc0,gpc0_rate(1s)"
    accounts.add("stick-table", "type", "string", "len", "32", "size", "100k", "store", stored)
    for name, parent in ((POOL_HTTP, HTTP), (POOL_TCP, TCP)):
        rules = Rules(document.section("defaults", name, "from", parent), is_http=parent == HTTP)
        _add_pool_rules(rules, own, _listeners(snapshot))


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
    entries = {name: _entry(shares[account], backends[account]) for name, account in names}
    return {CEILINGS_MAP: entries}


def _entry(share: AccountShare, backends: int) -> str:
    """The account, each backend's own part and what is for all of them: at once, and per second."""
    half = NO_CEILING if share.percent == ALL else share.percent * WHOLE // (2 * ALL)
    part = half if share.percent == ALL else half // backends
    part_rps = share.rps // (2 * backends)
    return f"{share.id}|{part}|{half}|{part_rps}|{share.rps - backends * part_rps}"


def _add_pool_rules(rules: Rules, own: Region, listeners: list[str]) -> None:
    """For every request or connection that enters a pool, from clients or from another region."""
    above, beyond = found("above"), found("beyond")
    rules.let("pace", "be_sess_rate", _OFTEN)
    rules.let("ceiling", f"be_name,map_str({CEILINGS_MAP})", (*_MANY, "or", *found("pace")))
    rules.let("part", _of_node(2), (*found("ceiling"), *_MANY))
    rules.let("above", f"str({AT_ONCE})", (*found("part"), "{", "be_conn,sub(txn.part)", "-m", "int", "gt", "0", "}"))
    some = ("{", f"be_conn,mul({SCARCE}),sub(txn.part)", "-m", "int", "gt", "0", "}")
    _add_scarcity(rules, listeners, (*found("part"), *some))
    rules.let("own_rps", "var(txn.ceiling),field(4,|),add(0)", found("pace"))
    chance = ("{", "rand,mod(txn.pace),sub(txn.own_rps)", "-m", "int", "ge", "0", "}")
    rules.let("beyond", f"str({PER_SECOND})", (*found("own_rps"), *chance))
    _add_verdict(rules)
    _name_account(rules, beyond)
    limit = variable("limit", own)
    uncounted = ("{", f"var(txn.{limit})", "-m", "beg", "|||", "}")
    counts = (*found("account"), *found(limit), *no(uncounted))
    remote = (*found("account"), *found("from"))  # of remote traffic every pool counts, limited or not
    rules.let("narrow", "str(yes)", (*counts, "or", *remote))
    taken = (*found("narrow"), "{", "sc1_tracked", "}")
    rules.let("capped", "var(txn.beyond)", (*taken, *beyond))
    rules.let("capped", "var(txn.above)", (*taken, *above))
    if rules.is_http:  # who sent it here may ask the next region
        refusal = ("hdr", "x-spillway-refused", "%[var(txn.capped)]", "hdr", "x-spillway-region", own.id)
        rules.add("return", "status", "425", *refusal, given=(*found("capped"), *found("from")))
    _add_refusal(rules, f"%[be_name]/refuse/{own.id}/%[var(txn.capped)]")
    for counter, given in (("1", found("narrow")), ("2", no(found("narrow")))):
        _track(rules, counter, (*found("account"), *given))
        rules.add(f"sc-inc-gpc0({counter})", given=(*beyond, *given))


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
        part = GATES_PERCENT * WHOLE // 100 // len(gates)
        _add_gate_rules(Rules(section, is_http=is_http), own, part, _listeners(snapshot))
        section.lines += before


def _add_gate_rules(rules: Rules, own: Region, part: int, listeners: list[str]) -> None:
    """The counter is the one by which a region is remembered as full: per second, a sample of the requests has it."""
    many = ("{", _per_node("be_conn"), "gt", str(part), "}", *_MANY)
    rules.let("ceiling", f"var(txn.pool),map_str({CEILINGS_MAP})", many)
    rules.let("above", f"str({AT_ONCE})", found("ceiling"))
    boundless = ("{", "var(txn.ceiling),field(3,|)", "-m", "int", "ge", str(NO_CEILING), "}")
    _add_scarcity(rules, listeners, (*found("above"), *no(boundless)))
    rules.let("ceiling", f"var(txn.pool),map_str({CEILINGS_MAP})", _OFTEN)
    rules.let("beyond", f"str({PER_SECOND})", (*found("ceiling"), *_OFTEN))
    _add_verdict(rules)
    _add_refusal(rules, f"%[var(txn.pool)]/refuse/{own.id}/%[var(txn.capped)]{OUT}")
    rules.let("drawn", "str(yes)", (*found("beyond"), "{", f"rand({SAMPLED})", "0", "}"))
    _name_account(rules, found("drawn"))
    _track(rules, "1", found("account"))
    for _ in range(SAMPLED):
        rules.add("sc-inc-gpc0(1)", given=found("drawn"))


def _add_scarcity(rules: Rules, listeners: list[str], given: Words) -> None:
    """`capped` for who has that much, where all listeners together have three quarters of what the node can have."""
    rules.let("near", "str(yes)", given)
    for index, listener in enumerate(listeners):
        rules.let("crowd", f"fe_conn({listener})" + (",add(txn.crowd)" if index else ""), found("near"))
    full = ("{", _per_node("var(txn.crowd)"), "-m", "int", "gt", str(LAST_PERCENT * WHOLE // ALL), "}")
    rules.let("capped", f"str({AT_ONCE})", (*found("near"), *full))


def _add_verdict(rules: Rules) -> None:
    """`capped` says why when the account has as much as it may beyond the own parts of its pools."""
    above, beyond = found("above"), found("beyond")
    account, rate = "var(txn.ceiling),field(1,|)", f"table_gpc0_rate({ACCOUNT_TABLE})"
    rules.let("shared_rps", "var(txn.ceiling),field(5,|),add(0)", beyond)
    rules.let("rps", f"{account},{rate}", beyond)
    total = f"{account},concat({RATE}),{rate},add(txn.rps)"
    fast = ("{", f"{total},sub(txn.shared_rps)", "-m", "int", "ge", "0", "}")
    rules.let("capped", "var(txn.beyond)", (*beyond, *fast))
    rules.let("share", _of_node(3), above)
    full = ("{", f"{account},table_conn_cur({ACCOUNT_TABLE}),sub(txn.share)", "-m", "int", "ge", "0", "}")
    rules.let("capped", "var(txn.above)", (*above, *full))


def _of_node(field: int) -> Expanded:
    return Expanded(f"var(txn.ceiling),field({field},|),mul({NODE}),div({WHOLE})")


def _per_node(count: str) -> Expanded:
    return Expanded(f"{count},mul({WHOLE}),div({NODE})")


def _add_refusal(rules: Rules, flow: str) -> None:
    """503 or 429, or the end of the connection; counted as a flow unless the stream counts as another one already.

    Who is too fast keeps the connection: a new one would cost the node more.
    """
    given = found("capped")
    rules.let("told", "str(yes)", (*given, *no(found("flow")), *no(found("from"))))
    rules.say("flow", flow, found("told"))
    rules.add("track-sc1", "var(txn.flow)", "table", FLOW_TABLE, given=found("told"))
    rules.add("sc-inc-gpc0(1)", given=found("told"))
    if not rules.is_http:
        rules.add("reject", given=given)
        return
    plain: tuple[Argument, ...] = ("content-type", "text/plain; charset=utf-8", "string")
    again = ("hdr", "retry-after", "1")
    rules.add("return", "status", "429", *plain, TOO_FAST, *again, given=equals("capped", PER_SECOND))
    rules.add("return", "status", "503", *plain, CEILING, *again, "hdr", "connection", "close", given=given)


def _name_account(rules: Rules, counted: Words) -> None:
    """`account` is the key under which a request is tracked that is beyond a part at once, or `counted` per second."""
    rules.let("account", "var(txn.ceiling),field(1,|)", found("above"))
    rules.let("account", f"var(txn.ceiling),field(1,|),concat({RATE})", (*counted, *no(found("above"))))


def _track(rules: Rules, counter: str, given: Words) -> None:
    rules.add(f"track-sc{counter}", "var(txn.account)", "table", ACCOUNT_TABLE, given=given)


def _listeners(snapshot: Snapshot) -> list[str]:
    return sorted((each.id for front in snapshot.load_balancers for each in front.listeners), key=number_of)


def add_source_rules(section: Section, snapshot: Snapshot, listener: Listener) -> None:
    """Before a byte of a client is read: where the node is nearly full, its address gets no more than a few.

    2.6 cannot say how many connections the process has, so those of the listeners are added up. What comes through a
    balancer is counted by the address that the PROXY protocol names, which is known a step later. Who forwards for
    many clients is spared.
    """
    for index, listener_id in enumerate(_listeners(snapshot)):
        so_far = ",add(sess.all)" if index else ""
        section.add("tcp-request", "connection", "set-var(sess.all)", f"fe_conn({listener_id}){so_far}")
    nearly = ("{", _per_node("var(sess.all)"), "-m", "int", "gt", str(LAST_PERCENT * WHOLE // 100), "}")
    spared = no(from_forwarder(listener)) if listener.has_forwarders else ()
    relayed = no(from_proxy(listener)) if has_proxies(listener) else ()
    track = ("track-sc1", "src", "table", SOURCE_TABLE, "if", *nearly, *spared)
    section.add("tcp-request", "connection", *track, *relayed)
    many = ("{", _per_node("sc1_conn_cur"), "gt", str(SOURCE_PERCENT * WHOLE // 100), "}")
    refused = ("reject", "if", *many, "{", "sc1_conn_cur", "gt", str(FEW), "}")
    section.add("tcp-request", "connection", *refused)
    if relayed:
        section.add("tcp-request", "session", *track)
        section.add("tcp-request", "session", *refused)


def add_idle_rule(section: Section, snapshot: Snapshot) -> None:
    """An answer is the last of its connection where the listener has more than its part of what may idle."""
    protocols = [each.protocol for front in snapshot.load_balancers for each in front.listeners]
    part = IDLE_PERCENT * WHOLE // 100 // max(1, sum(each is not Protocol.TCP for each in protocols))
    many = ("{", _per_node("fe_conn"), "gt", str(part), "}", "{", "fe_conn", "gt", str(FEW), "}")
    section.add("http-after-response", "set-header", "connection", "close", "if", *many)
