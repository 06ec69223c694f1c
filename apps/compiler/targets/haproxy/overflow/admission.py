"""Has a region room for one more request? As rules that work in every frontend, http or tcp.

Each node counts under keys of its own in a table that the nodes of a region share as peers, `pool-17/node-5` for the
region's local traffic and `pool-17/node-5/guest` for remote traffic, the overflow that other regions sent; whoever asks
adds the keys up. Local traffic has room while it alone is below the limit, remote traffic while both together are, so
that it never pushes out local traffic.

Requests in flight are `conn_cur` on the node itself. Peers are not told of that counter (HAProxy keeps it local), so
every admission and every response publishes it as `gpt0`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.compiler.model.fleet import Region, Snapshot
from apps.compiler.model.shared import LimitKind, LimitScope
from apps.compiler.routing import number_of
from apps.compiler.targets.haproxy.overflow.limits import LIMITS_MAP
from apps.compiler.targets.haproxy.settings import HTTP
from apps.compiler.targets.haproxy.writer import Argument, Document, Expanded, Section

LIMIT_TABLE = "st_limits"
FLOW_TABLE = "st_flow"
FULL_TABLE = "st_full"
PEERS = "together"
# How long a region that refused remote traffic is taken for full, and then asked again. Measured on the second of three
# regions (tests/bench/overflow_split.py): with 500 ms it takes 1 to 3 % less than its limit, with 100 ms at most 0.6 %.
FULL_FOR = "100ms"
OWN_KEY = "/${SPILLWAY_NODE}"
# Peers tell each other keys that end so, and the collector reads them: nodes of two versions must agree on the word.
REMOTE_SUFFIX = "/guest"

# The bound, the sum that must stay below it, what each key is asked for, and the reason when it does not.
# Sums count upwards from 0: HAProxy 2.6 gets `add` and `sub` wrong where a negative number comes first.
_SUMS = (
    ("long", "used", "table_gpc0_rate", "rate"),
    ("short", "burst", "table_gpc1_rate", "rate"),
    ("slots", "busy", "table_gpt0", "connections"),
)

Words = tuple[Argument, ...]


def found(name: str) -> Words:
    """Condition: the variable has been set."""
    return ("{", f"var(txn.{name})", "-m", "found", "}")


def equals(name: str, text: str) -> Words:
    """Condition: the variable is this text."""
    return ("{", f"var(txn.{name})", "-m", "str", text, "}")


def no(condition: Words) -> Words:
    """The opposite of one condition."""
    return ("!", *condition)


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of one frontend: `http-request …`, or `tcp-request content …` where there are only connections.

    Every rule costs each request something, so what no pool of the fleet asks for is left out: `flight` says whether
    any limit counts requests in flight, `per_server` whether any holds for each server. The first such limit of a fleet
    is therefore a reload; every later change of a limit is an entry in a map.
    """

    section: Section
    is_http: bool = True
    flight: bool = True
    per_server: bool = True

    def add(self, action: str, *arguments: Argument, given: Words = ()) -> None:
        """One rule."""
        head = ("http-request",) if self.is_http else ("tcp-request", "content")
        condition = ("if", *given) if given else ()
        self.section.add(head[0], *head[1:], action, *arguments, *condition)

    def stay(self, given: Words) -> None:
        """No further rule is asked."""
        self.add("allow" if self.is_http else "accept", given=given)

    def let(self, name: str, expression: Argument, given: Words = ()) -> None:
        """Set a variable to an expression."""
        self.add(f"set-var(txn.{name})", expression, given=given)

    def say(self, name: str, text: Argument, given: Words = ()) -> None:
        """Set a variable to a text with expressions in it."""
        self.add(f"set-var-fmt(txn.{name})", text, given=given)


def variable(name: str, region: Region) -> str:
    """`left` of `rgn-2` → `left_2`."""
    return f"{name}_{number_of(region.id)}"


def add_tables(document: Document, *, flight: bool) -> None:
    """Admitted requests, shared with the peers; regions that were full a moment ago; where what was sent away went.

    With `conn_cur` in a shared table HAProxy tells the peers of every end of a request as well, twice the messages: it
    is there only where a limit counts requests in flight.
    """
    limits = document.section("backend", LIMIT_TABLE, "from", HTTP)
    stored = "gpc0,gpc0_rate(10s),gpc1,gpc1_rate(1s)" + (",gpt0,conn_cur" if flight else "")
    size = ("size", "100k", "expire", "1m", "peers", PEERS, "store", stored)
    limits.add("stick-table", "type", "string", "len", "64", *size)
    full = document.section("backend", FULL_TABLE, "from", HTTP)
    full.add("stick-table", "type", "string", "len", "64", "size", "100k", "expire", FULL_FOR, "store", "gpc0")
    flows = document.section("backend", FLOW_TABLE, "from", HTTP)
    flows.add("stick-table", "type", "string", "len", "80", "size", "100k", "store", "gpc0")


def needs_of(snapshot: Snapshot) -> dict[str, bool]:
    """What the limits of a fleet's pools ask of the rules: `flight` and `per_server` of :class:`Rules`."""
    limits = [pool.limit for pool in snapshot.pools]
    limits_elsewhere = [share.limit for pool in snapshot.pools for share in pool.elsewhere]
    return {
        "flight": any(limit.kind is LimitKind.CONNECTIONS for limit in (*limits, *limits_elsewhere)),
        "per_server": any(limit.scope is LimitScope.SERVER for limit in limits),
    }


def look_up(rules: Rules, region: Region, given: Words = ()) -> Words:
    """What the region's limit for `txn.pool` says, if it is in the map; returns the condition that it is."""
    bounds = variable("limit", region)
    rules.let(bounds, f"var(txn.pool),concat(/{region.id}),map_str({LIMITS_MAP})", given)
    return found(bounds)


def add_counts(rules: Rules, region: Region, *, local: bool, remote: bool, given: Words = ()) -> None:
    """Count against the bounds that were looked up; `remote` adds what others sent.

    Sets `used`, `burst` and `busy` of the region, each only where there is such a bound. `local` says that this node
    is one of the region's. `given` is a condition for all of it.
    """
    sums = _SUMS if rules.flight else _SUMS[:2]
    names = ("long", "short", "slots")[: len(sums)]
    for position, name in enumerate(names, 1):
        rules.let(variable(name, region), f"var(txn.{variable('limit', region)}),field({position},|),add(0)", given)
    if local and rules.per_server:
        _multiply_by_servers(rules, region, names)
    keys = [node.id for node in region.nodes]
    keys += [f"{node.id}{REMOTE_SUFFIX}" for node in region.nodes] if remote else []
    for bound, total, question, _ in sums:
        # With rates alone every limit has both bounds, and nobody needs to ask.
        there = found(variable(bound, region)) if rules.flight else given
        _add_up(rules, variable(total, region), question, keys, there)
    if local and rules.flight:
        _correct_own_part(rules, region, remote=remote)


def _multiply_by_servers(rules: Rules, region: Region, names: Sequence[str]) -> None:
    """A bound per server counts for as many servers as are up right now."""
    each_server = ("{", f"var(txn.{variable('limit', region)})", "-m", "end", "server", "}")
    for name in names:
        bound = variable(name, region)
        rules.let(bound, f"var(txn.pool),nbsrv,mul(txn.{bound})", (*found(bound), *each_server))


def _add_up(rules: Rules, total: str, question: str, keys: list[str], given: Words) -> None:
    rules.let(total, f"var(txn.pool),concat(/{keys[0]}),{question}({LIMIT_TABLE})", given)
    for key in keys[1:]:
        rules.let(total, f"var(txn.pool),concat(/{key}),{question}({LIMIT_TABLE}),add(txn.{total})", given)


def _correct_own_part(rules: Rules, region: Region, *, remote: bool) -> None:
    """What this node has in flight it knows exactly; what it published last may be old."""
    slots, busy = variable("slots", region), variable("busy", region)
    for key in (OWN_KEY, OWN_KEY + REMOTE_SUFFIX) if remote else (OWN_KEY,):
        rules.let("published", _own(key, "table_gpt0"), found(slots))
        rules.let(busy, f"var(txn.{busy}),sub(txn.published)", found(slots))
        rules.let(busy, _own(key, "table_conn_cur", f",add(txn.{busy})"), found(slots))


def _own(key: str, question: str, then: str = "") -> Expanded:
    return Expanded(f"var(txn.pool),concat({key}),{question}({LIMIT_TABLE}){then}")


def add_refusal(rules: Rules, region: Region, reason: str) -> None:
    """Set the variable `reason` to rate, connections or drained when the region has no room; else leave it unset."""
    add_closed(rules, region, reason)
    for bound, total, _, word in _SUMS if rules.flight else _SUMS[:2]:
        above = f"var(txn.{variable(total, region)}),sub(txn.{variable(bound, region)})"
        bounded = found(variable(bound, region)) if rules.flight else ()
        full = (*bounded, "{", above, "-m", "int", "ge", "0", "}")
        rules.let(reason, f"str({word})", (*no(found(reason)), *full))


def add_closed(rules: Rules, region: Region, reason: str) -> None:
    """Set the variable `reason` to drained when the region takes nothing at all."""
    rules.let(reason, "str(drained)", (*no(found(reason)), *is_drained(region)))


def is_drained(region: Region) -> Words:
    """Condition: the region takes nothing at all."""
    return ("{", f"var(txn.{variable('limit', region)})", "-m", "beg", "0|0|0|", "}")


def add_admission(rules: Rules, region: Region, key: str, given: Words) -> None:
    """Count the request under this node's key (for remote traffic with its suffix) and publish what is in flight."""
    rules.add("track-sc2", Expanded(f"var(txn.pool),concat({key})"), "table", LIMIT_TABLE, given=given)
    rules.add("sc-inc-gpc0(2)", given=given)
    rules.add("sc-inc-gpc1(2)", given=given)
    if rules.flight:
        rules.add("sc-set-gpt0(2)", "sc2_conn_cur", given=(*given, *found(variable("slots", region))))


def add_release(rules: Rules, region: Region) -> None:
    """When the answer comes, the request no longer counts as in flight for the peers."""
    if rules.flight:
        rules.section.add(
            "http-response", "sc-set-gpt0(2)", "sc2_conn_cur,sub(1)", "if", *found(variable("slots", region))
        )
