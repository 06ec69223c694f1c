"""While there is much room, a busy node counts many requests in advance and tells its peers once for all of them.

A message to each peer for every request costs more than the request itself. So a local request that sees much room is
counted 16, 64 or 256 times, and those that follow on this node are counted already: they ask for no sum and send no
message. A sum is therefore never too low. Near the limit each request is counted by itself, and so it is on a node that
would be long in using up what it counted (ADR 0027).

`st_advance` is the node's own and has the same keys as the table that the peers share, so that one tracked counter
counts in both. `gpc0` counts requests. `gpt0` is above 0 while there are counted ones left; it is halved after every
sixteenth, which two threads can do at one moment without a number below 0. Who comes back after ten seconds finds
nothing.
"""

from __future__ import annotations

from apps.compiler.model.fleet import Region
from apps.compiler.targets.haproxy.overflow.admission import (
    LIMIT_TABLE,
    OWN_KEY,
    Rules,
    Words,
    equals,
    found,
    is_drained,
    no,
    variable,
)
from apps.compiler.targets.haproxy.settings import HTTP
from apps.compiler.targets.haproxy.writer import Document, Expanded

TABLE = "st_advance"
STEP = 16
COUNTS = (16, 64, 256)
# Much room is so many times what all nodes of the region may count in advance at one moment.
MUCH = 64
# So many times that, in ten seconds, is busy: what was counted is used up within a second.
BUSY = 10
PER_RULE = 48  # HAProxy takes no more than 64 words in a line
_KEY = f"var(txn.pool),concat({OWN_KEY})"
_TRACKED = ("{", "sc2_tracked", "}")
_ONCE = "once"


def add_table(document: Document) -> None:
    """How many requests of each pool this node has counted in advance."""
    section = document.section("backend", TABLE, "from", HTTP)
    section.add("stick-table", "type", "string", "len", "64", "size", "100k", "expire", "10s", "store", "gpt0,gpc0")


def add_use(rules: Rules, own: Region) -> None:
    """A request that has been counted in advance stays, unless its region takes nothing or has no server."""
    counted = ("{", Expanded(f"{_KEY},table_gpt0({TABLE})"), "-m", "int", "gt", "0", "}")
    up = ("{", "var(txn.pool),nbsrv", "-m", "int", "gt", "0", "}")
    given = (*counted, *up, *no(found("why")), *no(is_drained(own)))
    rules.add("track-sc2", Expanded(_KEY), "table", TABLE, given=given)
    _stay(rules)


def add_counting(rules: Rules, own: Region) -> None:
    """Count in advance, where this node is busy and the sums of both windows leave much room.

    `once` counts in both windows: its first half is never true, so that HAProxy asks for the second.
    """
    rules.section.add("acl", _ONCE, f"sc_inc_gpc0(2,{LIMIT_TABLE})", "-m", "int", "lt", "0")
    rules.section.add("acl", _ONCE, f"sc_inc_gpc1(2,{LIMIT_TABLE})", "-m", "int", "gt", "0")
    so_far = 0
    for count in COUNTS:
        fits = _fits(own, count)
        if not so_far:
            rules.add("track-sc2", Expanded(_KEY), "table", TABLE, given=(*no(found("why")), *fits))
        given = _TRACKED if not so_far else (*equals("ahead", str(so_far)), *fits)
        rules.let("ahead", f"str({count})", given)
        for begun in range(so_far, count, PER_RULE):
            once = (_ONCE,) * min(PER_RULE, count - begun)
            rules.let("ahead_more", "str(yes)", (*equals("ahead", str(count)), *once))
        so_far = count
    for count in COUNTS:
        rules.add("sc-set-gpt0(2)", f"int({2 ** (count // STEP - 1)})", given=equals("ahead", str(count)))
    _stay(rules)


def _fits(own: Region, count: int) -> Words:
    """Whether so many can be counted in advance."""
    given: Words = ()
    for total, bound in (("used", "long"), ("burst", "short")):
        room = MUCH * count * len(own.nodes)
        left = f"var(txn.{variable(total, own)}),add({room}),sub(txn.{variable(bound, own)})"
        given = (*given, "{", left, "-m", "int", "lt", "0", "}")
    admitted = Expanded(f"{_KEY},table_gpc0_rate({LIMIT_TABLE})")
    return (*given, "{", admitted, "-m", "int", "ge", str(BUSY * count), "}")


def _stay(rules: Rules) -> None:
    """What is tracked here stays, and every sixteenth halves what is left."""
    rules.stay((*_TRACKED, "{", f"sc_inc_gpc0(2),mod({STEP})", "-m", "int", "gt", "0", "}"))
    rules.add("sc-set-gpt0(2)", "sc_get_gpt0(2),div(2)", given=_TRACKED)
    rules.stay(_TRACKED)
