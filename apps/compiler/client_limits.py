"""Limits per client: what holds where nothing is said, and the numbers that a proxy counts against."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil

from apps.compiler.grammar import GrammarError
from apps.compiler.limits import LONG_WINDOW_S, short_bound
from apps.compiler.model.listener_options import ConnectionLimit
from apps.compiler.model.policy import ClientLimit

SECOND, MINUTE = "second", "minute"
ADDRESS, HEADER, COOKIE = "address", "header", "cookie"
ACCOUNT, HOSTNAME, ROUTE = "account", "hostname", "route"
REJECT, TARPIT, DROP = "reject", "tarpit", "silent_drop"
WORDS = {
    "per": frozenset({SECOND, MINUTE}),
    "key": frozenset({ADDRESS, HEADER, COOKIE}),
    "counted_for": frozenset({ACCOUNT, HOSTNAME, ROUTE}),
    "action": frozenset({REJECT, TARPIT, DROP}),
}

MOST_REQUESTS = 1_000_000
MOST_IN_FLIGHT = 100_000
# HAProxy counts bytes of a window in 32 bits: twice what ten seconds of this are.
LEAST_BYTES = 1_000
MOST_BYTES = 200_000_000
BOUNDLESS = 1_000_000_000
IPV4_PREFIX = 32
IPV6_PREFIX = 64
CLIENTS = 100_000
MOST_CLIENTS = 2_000_000
BANNED_TABLE = "st_banned_"  # and for how many seconds
BAN_WITHIN_S = 60
BAN_FOR_S = 600
# Measured on HAProxy 2.6: an entry of a table takes 209 bytes, and every node has one of its own for a client.
ENTRY_BYTES = 220
_KEY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
WINDOW_S = {SECOND: LONG_WINDOW_S, MINUTE: 60}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Most requests in the long window and in one second, and after how many seconds a client may try again."""

    long: int
    short: int
    retry_after_s: int


def key_name(value: object) -> str:
    """The name of a header or cookie by which clients are told apart. Raises GrammarError."""
    if isinstance(value, str) and _KEY_NAME.fullmatch(value):
        return value
    raise GrammarError("key_name", "Use 1 to 64 letters, digits, hyphens and underscores, with a letter first.")


def is_limit(said: ClientLimit | None) -> bool:
    """Whether anything is limited."""
    return said is not None and (said.requests is not None or is_held(said))


def has_bytes(said: ClientLimit) -> bool:
    """Whether bytes are limited, in either direction."""
    return said.bytes_out is not None or said.bytes_in is not None


def has_rates(said: ClientLimit) -> bool:
    """Whether it limits what is known only when a response ends: bytes, or errors."""
    return has_bytes(said) or said.errors is not None


def is_held(said: ClientLimit) -> bool:
    """Whether it limits what HAProxy counts only while a request holds a counter."""
    return said.in_flight is not None or has_rates(said)


def of_connections(said: ConnectionLimit) -> ClientLimit:
    """A limit of requests with the same numbers: a new connection counts as one."""
    return ClientLimit(
        requests=said.connections,
        per=said.per,
        burst=said.burst,
        ipv4_prefix=said.ipv4_prefix,
        ipv6_prefix=said.ipv6_prefix,
        log_only=said.log_only,
        exempt=said.exempt,
        clients=said.clients,
    )


def per_of(said: ClientLimit) -> str:
    """Second or minute."""
    return said.per or SECOND


def numbers_of(said: ClientLimit) -> Numbers:
    """A rate per second is kept over ten seconds, one per minute over a minute; `burst` bounds each single second.

    Where no burst is said, a rate per second has the one of pools (ADR 0010), and a minute's may all come at once.
    """
    if said.requests is None:
        return Numbers(BOUNDLESS, BOUNDLESS, 1)
    requests = said.requests
    if per_of(said) == MINUTE:
        return Numbers(requests, min(said.burst or requests, requests), max(1, ceil(60 / requests)))
    long = requests * LONG_WINDOW_S
    return Numbers(long, min(said.burst or short_bound(requests), long), 1)


def rates_of(said: ClientLimit) -> tuple[int | None, ...]:
    """Most bytes to a client and from it, and most errors, each over the whole window."""
    windows = LONG_WINDOW_S if per_of(said) == SECOND else 1
    return tuple(None if each is None else each * windows for each in (said.bytes_out, said.bytes_in, said.errors))


def clients_of(said: ClientLimit) -> int:
    """How many clients are counted at once."""
    return said.clients or CLIENTS


def memory_bytes(said: ClientLimit, nodes: int) -> int:
    """What the counts take on each node when that many clients come at once over all of the region's nodes."""
    return clients_of(said) * max(1, nodes) * ENTRY_BYTES * (2 if is_held(said) else 1)


def ban_of(said: ClientLimit) -> tuple[int, int] | None:
    """Within how many seconds refusals are counted, and for how many seconds a client is banned."""
    if said.ban_after is None or said.log_only:
        return None
    return said.ban_within_s or BAN_WITHIN_S, said.ban_for_s or BAN_FOR_S
