"""How much one client may ask for, counted by all nodes of the region together.

A map says what holds for a route, so that numbers change without a reload and the rules are as many for one limit as
for a hundred:

    route-9 second|<scope>|<in 10 s>|<in 1 s>|reject|<retry after>|<ban>|<refusals before it>|<what is held>

What is held (client_held.py) are five words more: `<in flight>|<bytes out in 10 s>|<bytes in in 10 s>|<errors>|held`.
What a client is (`txn.client`) becomes six groups of an IPv6 address by SHA-1, the node's number the last two. So each
node counts under a key of its own, and whoever asks adds the keys of all nodes up, as for limits of pools (ADR 0010).

HAProxy has three counters for a stream, and routes, latencies and pools have them. `src_inc_gpc0` needs none: it counts
for the client's address. The rules put the key in the place of the address, count, and put the address back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from apps.compiler.client_limits import (
    ACCOUNT,
    ADDRESS,
    BANNED_TABLE,
    COOKIE,
    HEADER,
    HOSTNAME,
    IPV4_PREFIX,
    IPV6_PREFIX,
    REJECT,
    ban_of,
    has_rates,
    is_held,
    is_limit,
    numbers_of,
    per_of,
    rates_of,
)
from apps.compiler.model.fleet import Region
from apps.compiler.model.policy import ClientLimit, Rules
from apps.compiler.model.shared import LoadBalancer, Route
from apps.compiler.routing import number_of
from apps.compiler.targets.haproxy.policies import client_held
from apps.compiler.targets.haproxy.policies.lookup import Lookup, add_mark
from apps.compiler.targets.haproxy.writer import Argument, Call, Section, Value

LETTERS = "cl"
LOG = "log"
HEADER_FOR_SERVERS = "X-Client-Limit"
TOO_MANY = "Too many requests. Try again later.\n"
# What a connection is kept for before it gets the answer.
TARPIT_FOR = "5s"
_GROUPS = 6  # of an IPv6 address are the client's; two say who counts
_SHARED = ":0:0"
NODE = "proc.node_groups"
HALF = 10_000  # a group is four digits
_ANY = ("{", "var(txn.limit)", "-m", "found", "}")
_BANS = ("{", "var(txn.limit),field(7,|),length", "-m", "int", "gt", "0", "}")
_OVER = ("{", "var(txn.over)", "-m", "found", "}")
_NOT_OVER = ("!", *_OVER)
_of = client_held.of_period
_CLIENT = ("{", "var(txn.client)", "-m", "found", "}")
_PASSES = ("{", "var(txn.passes_limit)", "-m", "found", "}")
Ban = tuple[int, int]
"""Within how many seconds refusals are counted, for how many a client is banned."""


def what_a_client_is(said: ClientLimit) -> tuple[object, ...]:
    """All that is written into rules; the rest stands in the map."""
    shown = ("shown",) if shows_address(said) else ()
    return said.key, said.key_name, said.ipv4_prefix, said.ipv6_prefix, said.exempt, *shown


def shows_address(said: ClientLimit) -> bool:
    """Whether whom it bans can be read from the table: addresses can, of IPv6 the half that names a network."""
    return ban_of(said) is not None and said.key in (None, ADDRESS) and (said.ipv6_prefix or IPV6_PREFIX) <= IPV6_PREFIX


def add(section: Section, when: tuple[str, ...], said: ClientLimit) -> None:
    """`txn.client` is the client, `txn.passes_limit` says that it may ask for any number.

    Who sends no such header or cookie is counted by address; the first letter keeps the two apart.
    """
    add_mark(section, "txn.passes_limit", said.exempt or (), when)
    if said.key in (HEADER, COOKIE) and said.key_name:
        fetch = "req.fhdr(" if said.key == HEADER else "req.cook("
        value = Call((fetch, Value(said.key_name), ")"))
        section.add("http-request", "set-var(txn.client)", value, "if", *when)
        section.add("http-request", "set-var-fmt(txn.client)", "k%[var(txn.client)]", "if", *when, *_CLIENT)
    masks = (said.ipv4_prefix or IPV4_PREFIX, said.ipv6_prefix or IPV6_PREFIX)
    masked = f"a%[src,ipmask({masks[0]},{masks[1]})]"
    section.add("http-request", "set-var-fmt(txn.client)", masked, "if", *when, "!", *_CLIENT)
    if shows_address(said):
        section.add("http-request", "set-var(txn.shown)", f"src,ipmask({masks[0]},{masks[1]}),hex", "if", *when)


def limits_in(used: Iterable[Rules]) -> list[ClientLimit]:
    """What these rules bound."""
    return [said for rules in used if (said := rules.client_limit) is not None and is_limit(said)]


def limits_map(load_balancer: LoadBalancer, routes: Iterable[Route]) -> dict[str, str]:
    """Of these routes those that have a limit → its terms."""
    terms = {each.id: said for each in load_balancer.rule_sets for said in limits_in([each.rules])}
    return {route.id: _terms(route, terms[route.rule_set]) for route in routes if route.rule_set in terms}


def _terms(route: Route, said: ClientLimit) -> str:
    numbers, ban = numbers_of(said), ban_of(said)
    held = (said.in_flight, *rates_of(said))
    words = (
        per_of(said), _scope(route, said), str(numbers.long), str(numbers.short),
        LOG if said.log_only else said.action or REJECT, str(numbers.retry_after_s),
        "-".join(map(str, ban)) if ban else "", str(said.ban_after) if ban else "",
        *("" if each is None else str(each) for each in held), client_held.HELD if is_held(said) else "",
    )  # fmt: skip
    return "|".join(words)


def _scope(route: Route, said: ClientLimit) -> str:
    """One word for all routes that count together: those of the account, hostname or route with an equal limit."""
    holder = {ACCOUNT: "", HOSTNAME: route.hostname}.get(said.counted_for or ACCOUNT, route.id)
    text = repr((route.account, holder, said)).replace(", errors=None", "")  # younger than bans that an upgrade keeps
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def add_verdict(section: Section, own: Region | None, used: Iterable[Rules], lookup: Lookup, path: str) -> None:
    """Look the terms up, add up what all nodes counted, count the request or refuse it; `path` is that of the map."""
    limits = limits_in(used)
    if not limits:
        return
    limited = lookup.any_holds()
    _add(section, "set-var(txn.limit)", f"var(txn.route),map_str({path})", (*limited, "!", *_PASSES))
    _add_key(section)
    if any(said.log_only for said in limits):  # clients cannot say it of themselves
        section.add("http-request", "del-header", HEADER_FOR_SERVERS, "if", *_ANY)
    keys = keys_of(own)
    bans = sorted({ban for said in limits if (ban := ban_of(said))})
    if bans:
        _add_ban_key(section, shown=any(map(shows_address, limits)))
    for ban in bans:
        banned = f"var(txn.banned),in_table({banned_table(ban)})"
        section.add("http-request", "set-var(txn.over)", "str(ban)", "if", *_has_ban(ban), "{", banned, "}")
    periods = sorted({per_of(said) for said in limits})
    for per in periods:
        _add_windows(section, per, keys)
    client_held.add_sums(section, limits, keys, NODE)
    _add_counts(section, periods, bans, keys)
    client_held.add_counts(section, limits, NODE)
    _add_answers(section, limits)


def _add(section: Section, action: str, expression: Argument, given: Iterable[Argument]) -> None:
    section.add("http-request", action, expression, "if", *given)


def _add_key(section: Section) -> None:
    """`txn.client` becomes `0657:91DD:ABBA:39B5:6441:F7E3`, different for each scope."""
    _add(section, "set-var-fmt(txn.client)", "%[var(txn.limit),field(2,|)]%[var(txn.client)]", _ANY)
    _add(section, "set-var(txn.client)", "var(txn.client),sha1,hex", _ANY)
    _add(section, "set-var-fmt(txn.client)", groups_of("txn.client"), _ANY)


def _add_ban_key(section: Section, *, shown: bool) -> None:
    """`txn.banned` is the key of a ban: it names the limit, and a client that is an address (client_bans.py)."""
    scope = [f"%[var(txn.limit),field(2,|),bytes({index},4)]" for index in (0, 4, 8)]
    hashed = ":".join(("%[var(txn.client)]", *scope[1:]))
    _add(section, "set-var-fmt(txn.banned)", hashed, _BANS)
    if shown:
        first, second, third, fourth = (f"%[var(txn.shown),bytes({index},4)]" for index in (0, 4, 8, 12))
        for kind, size, groups in (("4", "8", (first, second, "0", "0")), ("6", "32", (first, second, third, fourth))):
            of_kind = ("{", "var(txn.shown)", "-m", "len", size, "}")
            _add(section, "set-var-fmt(txn.banned)", ":".join((*groups, kind, *scope)), (*_BANS, *of_kind))


def groups_of(variable: str) -> str:
    """A hash in hexadecimal as the first groups of an address."""
    return ":".join(f"%[var({variable}),bytes({4 * index},4)]" for index in range(_GROUPS))


def keys_of(own: Region | None) -> list[str]:
    """The last groups, one for each node that counts."""
    numbers = [number_of(node.id) for node in own.nodes] if own else []
    return [f":{number // HALF}:{number % HALF}" for number in numbers] or [_SHARED]


def _has_ban(ban: Ban) -> tuple[Argument, ...]:
    return ("{", "var(txn.limit),field(7,|)", "-m", "str", "-".join(map(str, ban)), "}")


def table(per: str) -> str:
    """Where requests are counted."""
    return f"st_clients_{per}"


def over_table(ban: Ban) -> str:
    """Where refusals are counted before a ban."""
    return f"st_over_{ban[0]}"


def banned_table(ban: Ban) -> str:
    """Who is banned; the entry's end is that of the ban."""
    return f"{BANNED_TABLE}{ban[1]}"


def _add_windows(section: Section, per: str, keys: list[str]) -> None:
    for position, question in ((3, "table_gpc0_rate"), (4, "table_gpc1_rate")):
        _add_up(section, question, table(per), keys, _of(per))
        above = ("{", f"var(txn.limit),field({position},|),sub(txn.counted)", "-m", "int", "le", "0", "}")
        _add(section, "set-var(txn.over)", "str(rate)", (*_of(per), *_NOT_OVER, *above))


def _add_up(section: Section, question: str, table: str, keys: list[str], given: tuple[Argument, ...]) -> None:
    """`txn.counted` is the sum of all nodes."""
    for index, key in enumerate(keys):
        so_far = ",add(txn.counted)" if index else ""
        _add(section, "set-var(txn.counted)", f"var(txn.client),concat({key}),{question}({table}){so_far}", given)


def _add_counts(section: Section, periods: list[str], bans: list[Ban], keys: list[str]) -> None:
    """Count what is admitted, and of who can be banned the refusals; the client's address is put back at the end."""
    _add(section, "set-var(txn.address)", "src", _ANY)
    _add(section, "set-src", f"var(txn.client),concat(:,{NODE})", _ANY)
    for per in periods:
        for counter in ("gpc0", "gpc1"):
            _add(section, "set-var(txn.counted)", f"src_inc_{counter}({table(per)})", (*_of(per), *_NOT_OVER))
    for ban in bans:
        refused = ("{", "var(txn.over)", "-m", "str", "rate", "}", *_has_ban(ban))
        _add(section, "set-var(txn.counted)", f"src_inc_gpc0({over_table(ban)})", refused)
        _add_up(section, "table_gpc0_rate", over_table(ban), keys, refused)
        often = ("{", "var(txn.limit),field(8,|),sub(txn.counted)", "-m", "int", "le", "0", "}")
        _add(section, "set-src", "var(txn.banned)", (*refused, *often))
        _add(section, "set-var(txn.counted)", f"src_inc_gpc0({banned_table(ban)})", (*refused, *often))
    _add(section, "set-src", "var(txn.address)", ("{", "var(txn.address)", "-m", "found", "}"))


def _add_answers(section: Section, limits: list[ClientLimit]) -> None:
    actions = {LOG if said.log_only else said.action or REJECT for said in limits}

    def does(action: str) -> tuple[Argument, ...]:
        return (*_OVER, "{", "var(txn.limit),field(5,|)", "-m", "str", action, "}")

    if LOG in actions:
        _add_header(section, does(LOG))
    if "silent_drop" in actions:
        section.add("http-request", "silent-drop", "if", *does("silent_drop"))
    if "tarpit" in actions:
        section.add("timeout", "tarpit", TARPIT_FOR)
        section.add("http-request", "tarpit", "status", "429", "if", *does("tarpit"))
    if REJECT in actions:
        seconds = "var(txn.limit),field(6,|)"
        if any(map(has_rates, limits)):
            unknown = ("!", "{", "var(txn.again)", "-m", "found", "}")
            _add(section, "set-var(txn.again)", seconds, (*_OVER, *unknown))
            seconds = "var(txn.again)"
        again = ("hdr", "retry-after", f"%[{seconds}]")
        plain = ("content-type", "text/plain; charset=utf-8", "string", TOO_MANY)
        section.add("http-request", "return", "status", "429", *plain, *again, "if", *does(REJECT))


def _add_header(section: Section, given: tuple[Argument, ...]) -> None:
    section.add("http-request", "set-header", HEADER_FOR_SERVERS, "exceeded", "if", *given)
