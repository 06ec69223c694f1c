"""The shape of a limit per client: how much, what a client is, what happens beyond it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler import client_limits as limits
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
KEY_NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"


@dataclass(frozen=True, slots=True)
class ClientLimit(model.ClientLimit, Shape):
    """How much one client may ask for, counted over all nodes of a region."""

    sparse: ClassVar = True

    requests: Annotated[
        Annotated[int, whole(1, limits.MOST_REQUESTS)] | None,
        About("The most requests of one client in that time.", "Requests", example=100),
    ] = None
    in_flight: Annotated[
        Annotated[int, whole(1, limits.MOST_IN_FLIGHT)] | None,
        About(
            "The most requests of one client under way at once. Latency is not measured on routes that say it.",
            "Requests in flight",
        ),
    ] = None
    per: Annotated[
        Annotated[str, one_of(labels=PERS)] | None, About("In which time; a second where nothing is said.", "Per")
    ] = None
    burst: Annotated[
        Annotated[int, whole(1, limits.MOST_REQUESTS)] | None,
        About(
            "The most requests in any one second. Where nothing is said: a little more than the rate per second, or "
            "all of a minute's.",
            "Burst",
        ),
    ] = None
    key: Annotated[
        Annotated[str, one_of(labels=KEYS)] | None,
        About("What a client is known by; without the header or cookie, by its address.", "A client is known by"),
    ] = None
    key_name: Annotated[
        Annotated[str, text(limits.key_name, "the name of a header or cookie", 64, KEY_NAME)] | None,
        About("Which header or cookie.", "Header or cookie"),
    ] = None
    ipv4_prefix: Annotated[
        Annotated[int, whole(8, 32)] | None,
        About("IPv4 addresses with the same first bits are one client; 32 where nothing is said.", "IPv4 prefix"),
    ] = None
    ipv6_prefix: Annotated[
        Annotated[int, whole(16, 128)] | None,
        About("IPv6 addresses with the same first bits are one client; 64 where nothing is said.", "IPv6 prefix"),
    ] = None
    counted_for: Annotated[
        Annotated[str, one_of(labels=COUNTED_FOR)] | None,
        About("Whose requests of a client are counted together; the account's where nothing is said.", "Counted for"),
    ] = None
    action: Annotated[
        Annotated[str, one_of(labels=ACTIONS)] | None,
        About("What happens beyond the limit; 429 with Retry-After where nothing is said.", "Beyond the limit"),
    ] = None
    log_only: Annotated[
        Boolean | None,
        About("Let requests beyond the limit through; servers get them with X-Client-Limit: exceeded.", "Log only"),
    ] = None
    exempt: Annotated[
        tuple[NetworkBlock, ...] | None,
        at_most(200, "networks"),
        Distinct(),
        SORTED,
        About("Networks whose clients have no limit.", "No limit for these networks"),
    ] = None
    clients: Annotated[
        Annotated[int, whole(100, limits.MOST_CLIENTS)] | None,
        About(
            "How many clients are counted at once; 100,000 where nothing is said. Each takes about "
            f"{limits.ENTRY_BYTES} bytes on each node for every node of the region; beyond them the oldest are "
            "forgotten.",
            "Clients counted at once",
        ),
    ] = None
    ban_after: Annotated[
        Annotated[int, whole(1, limits.MOST_REQUESTS)] | None,
        About("Ban a client that was over the limit so many times; without it nobody is banned.", "Ban after"),
    ] = None
    ban_within_s: Annotated[
        Annotated[int, whole(10, 3600)] | None,
        About("Within how many seconds; 60 where nothing is said.", "Ban within, seconds"),
    ] = None
    ban_for_s: Annotated[
        Annotated[int, whole(10, 86_400)] | None,
        About("For how many seconds; 600 where nothing is said.", "Ban for, seconds"),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """A key needs its name, and a burst below the rate per second would be the real limit."""
        if sent.get("key") in (limits.HEADER, limits.COOKIE) and sent.get("key_name") is None:
            yield FieldError("/key_name", "missing", f"Fill in the name of the {sent['key']}.")
        requests, burst = sent.get("requests"), sent.get("burst")
        per_second = sent.get("per") in (None, limits.SECOND)
        if type(requests) is int and type(burst) is int and per_second and burst < requests:
            yield FieldError("/burst", "too_small", f"Use {requests} or more, or lower the requests per second.")
