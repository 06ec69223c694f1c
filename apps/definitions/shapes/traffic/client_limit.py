"""The shapes of limits per client, for policies and listeners: how much, what a client is, what happens beyond it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler import client_limits as limits
from apps.compiler.model import listener_options as listener_model
from apps.compiler.model import policy as model
from apps.core.errors import FieldError
from apps.definitions.shapes.base.networks import NetworkBlock
from apps.definitions.shapes.base.shape import SORTED, About, Data, Distinct, Shape
from apps.definitions.shapes.base.words import Boolean, at_most, one_of, text, whole

PERS = {limits.SECOND: "Per second", limits.MINUTE: "Per minute"}
KEYS = {limits.ADDRESS: "Its address", limits.HEADER: "A header", limits.COOKIE: "A cookie"}
COUNTED_FOR = {
    limits.ACCOUNT: "All routes of the account with this limit",
    limits.HOSTNAME: "Each hostname",
    limits.ROUTE: "Each route",
}
ACTIONS = {
    limits.REJECT: "Answer 429",
    limits.TARPIT: "Answer 429 after five seconds",
    limits.DROP: "Close the connection without an answer",
}
# What limits of requests and of connections say alike.
Ipv4Prefix = Annotated[
    Annotated[int, whole(8, 32)] | None,
    About("IPv4 addresses with this prefix length in common are one client. Default: 32.", "IPv4 prefix"),
]
Ipv6Prefix = Annotated[
    Annotated[int, whole(16, 128)] | None,
    About("IPv6 addresses with this prefix length in common are one client. Default: 64.", "IPv6 prefix"),
]
MOST_EXEMPT = 200
Exempt = Annotated[
    tuple[NetworkBlock, ...] | None,
    at_most(MOST_EXEMPT, "networks"),
    Distinct(),
    SORTED,
    About("Networks whose clients have no limit.", "No limit for these networks"),
]
CountedClients = Annotated[
    Annotated[int, whole(100, limits.MOST_CLIENTS)] | None,
    About(
        "The maximum number of clients counted at once. Default: 100,000. Each uses about "
        f"{limits.ENTRY_BYTES} bytes on each node for every node of the region; beyond the maximum, the oldest "
        "are forgotten.",
        "Clients counted at once",
    ),
]
KEY_NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"


def _burst_below(sent: Data, counted: str) -> Iterable[FieldError]:
    rate, burst = sent.get(counted), sent.get("burst")
    per_second = sent.get("per") in (None, limits.SECOND)
    if type(rate) is int and type(burst) is int and per_second and burst < rate:
        yield FieldError("/burst", "too_small", f"Use {rate} or more, or lower the {counted} per second.")


@dataclass(frozen=True, slots=True)
class ClientLimit(model.ClientLimit, Shape):
    """How many requests, bytes and errors one client may have, counted over all nodes of a region."""

    sparse: ClassVar = True
    elsewhere: ClassVar = {
        "connections": "No route is known when a client connects: limit new connections in client_limit of a listener."
    }

    requests: Annotated[
        Annotated[int, whole(1, limits.MOST_REQUESTS)] | None,
        About("The maximum number of requests per client in that time.", "Requests", example=100),
    ] = None
    in_flight: Annotated[
        Annotated[int, whole(1, limits.MOST_IN_FLIGHT)] | None,
        About(
            "The maximum number of concurrent requests per client. Routes that set this do not measure latency.",
            "Requests in flight",
        ),
    ] = None
    bytes_out: Annotated[
        Annotated[int, whole(limits.LEAST_BYTES, limits.MOST_BYTES)] | None,
        About(
            "The maximum number of bytes of responses per client in that time, headers included. A response counts "
            "when it ends and is never cut off. Routes that set this do not measure latency.",
            "Bytes of responses",
        ),
    ] = None
    bytes_in: Annotated[
        Annotated[int, whole(limits.LEAST_BYTES, limits.MOST_BYTES)] | None,
        About("The same for bytes of requests.", "Bytes of requests"),
    ] = None
    errors: Annotated[
        Annotated[int, whole(1, limits.MOST_REQUESTS)] | None,
        About(
            "The maximum number of errors per client in that time: responses of servers with a status of 400 to 499, "
            "and requests that are no HTTP. Routes that set this do not measure latency.",
            "Errors",
        ),
    ] = None
    per: Annotated[
        Annotated[str, one_of(labels=PERS)] | None,
        About("The time that requests, bytes and errors are counted in. Default: second.", "Per"),
    ] = None
    burst: Annotated[
        Annotated[int, whole(1, limits.MOST_REQUESTS)] | None,
        About(
            "The maximum number of requests in any one second. Default: slightly more than the rate per second, or "
            "all requests of a minute.",
            "Burst",
        ),
    ] = None
    key: Annotated[
        Annotated[str, one_of(labels=KEYS)] | None,
        About("What identifies a client; its address if it sends no such header or cookie.", "Identify clients by"),
    ] = None
    key_name: Annotated[
        Annotated[str, text(limits.key_name, "the name of a header or cookie", 64, KEY_NAME)] | None,
        About("The name of the header or cookie.", "Header or cookie"),
    ] = None
    ipv4_prefix: Ipv4Prefix = None
    ipv6_prefix: Ipv6Prefix = None
    counted_for: Annotated[
        Annotated[str, one_of(labels=COUNTED_FOR)] | None,
        About("Where requests of a client are counted together. Default: account.", "Counted for"),
    ] = None
    action: Annotated[
        Annotated[str, one_of(labels=ACTIONS)] | None,
        About("What happens beyond the limit. Default: 429 with Retry-After.", "Beyond the limit"),
    ] = None
    log_only: Annotated[
        Boolean | None,
        About("Let requests beyond the limit through; servers get X-Client-Limit: exceeded.", "Log only"),
    ] = None
    exempt: Exempt = None
    clients: CountedClients = None
    ban_after: Annotated[
        Annotated[int, whole(1, limits.MOST_REQUESTS)] | None,
        About("Ban a client that exceeds the limit this many times. Default: no bans.", "Ban after"),
    ] = None
    ban_within_s: Annotated[
        Annotated[int, whole(10, 3600)] | None,
        About("The seconds in which a client must exceed the limit that often. Default: 60.", "Ban within, seconds"),
    ] = None
    ban_for_s: Annotated[
        Annotated[int, whole(10, 86_400)] | None,
        About("How long a ban lasts, in seconds. Default: 600.", "Ban for, seconds"),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """A key needs its name, and a burst below the rate per second would be the real limit."""
        if sent.get("key") in (limits.HEADER, limits.COOKIE) and sent.get("key_name") is None:
            yield FieldError("/key_name", "missing", f"Fill in the name of the {sent['key']}.")
        yield from _burst_below(sent, "requests")


_OF_REQUESTS = (
    "A connection is counted before anything of it is read, so its client is an address or a network. Limit this in "
    "client_limit of a policy."
)


@dataclass(frozen=True, slots=True)
class ConnectionLimitSpec(listener_model.ConnectionLimit, Shape):
    """How many connections one client may open, counted over all nodes of a region; further ones are closed unread."""

    component: ClassVar[str] = "ListenerClientLimit"
    sparse: ClassVar = True
    elsewhere: ClassVar = dict.fromkeys(
        ("key", "key_name", "requests", "in_flight", "bytes_out", "bytes_in", "errors", "counted_for", "action"),
        _OF_REQUESTS,
    )

    connections: Annotated[
        Annotated[int, whole(1, limits.MOST_REQUESTS)] | None,
        About("The maximum number of new connections per client in that time.", "New connections", example=20),
    ] = None
    per: Annotated[
        Annotated[str, one_of(labels=PERS)] | None,
        About("The time that new connections are counted in. Default: second.", "Per"),
    ] = None
    burst: Annotated[
        Annotated[int, whole(1, limits.MOST_REQUESTS)] | None,
        About(
            "The maximum number of new connections in any one second. Default: slightly more than the rate per "
            "second, or all connections of a minute.",
            "Burst",
        ),
    ] = None
    ipv4_prefix: Ipv4Prefix = None
    ipv6_prefix: Ipv6Prefix = None
    log_only: Annotated[
        Boolean | None,
        About(
            "Let connections beyond the limit in; servers get X-Client-Limit: exceeded with each of their requests.",
            "Log only",
        ),
    ] = None
    exempt: Exempt = None
    clients: CountedClients = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """It limits something, and a burst below the rate per second would be the real limit."""
        if sent.get("connections") is None:
            yield FieldError("/connections", "missing", "Say how many connections, or leave client_limit out.")
        yield from _burst_below(sent, "connections")
