"""The shapes of bounds and retries: how many requests a server gets at once, and what is sent again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler.grammars.servers import MAX_CONNECTIONS, MOST_RETRIES
from apps.compiler.model.servers import HttpVersion, ProxyProtocol, RetryOn, Reuse
from apps.definitions.shapes.base.shape import About, Distinct, Shape
from apps.definitions.shapes.base.words import LISTED, whole, word

VERSIONS = {HttpVersion.HTTP1: "HTTP/1.1", HttpVersion.HTTP2: "HTTP/2"}
PROXY_PROTOCOLS = {
    ProxyProtocol.NONE: "No",
    ProxyProtocol.V1: "Version 1, text",
    ProxyProtocol.V2: "Version 2, binary",
}
REUSE = {
    Reuse.SAFE: "For requests that can be repeated",
    Reuse.ALWAYS: "For every request",
    Reuse.NEVER: "Only for the same client",
    Reuse.CLOSE: "Never: one connection for each request",
}
Count = Annotated[int, whole(1, MAX_CONNECTIONS)]


@dataclass(frozen=True, slots=True)
class Connections(Shape):
    """How many requests (tcp: connections) all nodes of a region together send one server at once; others wait."""

    max_per_server: Annotated[
        Count,
        About("The maximum number of concurrent requests for each server.", "At most", "at once for each server", 200),
    ]
    min_per_server: Annotated[
        Count | None,
        About("The maximum under low load; it grows to `max_per_server`.", "At least", ""),
    ] = None
    full_at: Annotated[
        Count | None, About("The load of the pool at which servers get `max_per_server`.", "Full at", "")
    ] = None
    max_queue: Annotated[
        Count | None,
        About(
            "The number of requests that may wait for one server; further ones go to another.",
            "Queue",
            "for each server",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class Retries(Shape):
    """How often a request is sent again, and after what.

    After anything but a failed connection only methods that may be repeated are sent again.
    """

    component: ClassVar[str] = "PoolRetries"

    attempts: Annotated[
        int, whole(0, MOST_RETRIES), About("The number of retries after the first attempt.", "Attempts", "", 2)
    ] = 3
    on: Annotated[
        tuple[Annotated[RetryOn, word(RetryOn)], ...],
        LISTED,
        Distinct(),
        About(
            "`connect`, `no_answer`, `timeout`, `junk` (not HTTP), or response statuses.",
            "After",
            f"Of {', '.join(RetryOn)}.",
        ),
    ] = (RetryOn.CONNECT, RetryOn.NO_ANSWER)
    budget_percent: Annotated[
        Annotated[int, whole(1, 100)] | None,
        About(
            "The maximum share of requests that are retried, in percent, counted by each node over ten seconds; ten "
            "retries are always allowed, and failed connections are always retried.",
            "Budget",
            "percent of requests. Default: no maximum.",
        ),
    ] = None
