"""The border: what every generator of test traffic promises.

A generator runs in a process of its own. It begins with a plan, answers with one record per second, takes a new rate
or number of users at any time, and stops within a second when told to. It lives on a lease: when nobody renews for
`LEASE_S`, it stops by itself, so that the load ends with the control plane that wanted it.

Latency counts from the instant at which a request should have been sent (coordinated omission), in HDR histograms.
Implementations: `registry.py`; `memory.py` is an honest fake with a queueing model. `tests/conformance/` runs one suite
against all of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

LEASE_S = 5.0

# A request that leaves later than this was held up by the generator, not by what is tested.
# So little does not matter beside an answer that takes long.
LATE_MS = 10.0
LATE_SHARE = 0.05
MOST_HELD_UP = 0.01


ERRORS = {
    "connect": "no connection was established",
    "tls": "the TLS handshake failed",
    "timeout": "no complete response in time",
    "reset": "the connection closed before the response was complete",
    "protocol": "the response was not HTTP",
    "too_big": "the response was larger than the plan allows",
    "refused": "all connections of the plan were busy",
    "generator": "the generator ran out of ports or files",
}


class Arrivals(StrEnum):
    """When requests of an open loop are due: evenly, or as independent callers would send them."""

    CONSTANT = "constant"
    POISSON = "poisson"


class LoadError(Exception):
    """The generator could not begin or go on; `message` is a sentence for people."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One pinned address; requests go to all endpoints of a plan in turn."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS to every endpoint: the name that is asked for, and the PEM file of who may sign it (empty: the system's).

    `verify` is False on fleets of local development only.
    """

    server_name: str
    ca_file: str = ""
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, again and again; the path with its query, headers besides Host."""

    host: str
    path: str = "/"
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a generator does from its start on.

    Open loop: `rate` requests/s, whether or not answers come back; closed loop: `users` requests in flight. One of
    them is above 0 when it begins, and the kind of loop stays. A change of the rate is spread over `ramp_s`, the
    beginning too; a pause is at once.

    What bounds it, whatever is asked later: never more than `max_rate` requests/s (0: `rate` is the highest), never
    more than `max_connections` open, no request waits longer than `timeout_s`, an answer longer than `max_answer_bytes`
    is cut off, and all ends after `duration_s`. Redirects are not followed and no name is looked up. `bounds.py` has
    the highest values that any plan may have.
    """

    endpoints: tuple[Endpoint, ...]
    request: Request
    rate: float = 0.0
    users: int = 0
    arrivals: Arrivals = Arrivals.POISSON
    ramp_s: float = 1.0
    duration_s: float = 300.0
    timeout_s: float = 30.0
    max_rate: float = 0.0
    max_connections: int = 200
    max_answer_bytes: int = 16 * 1024 * 1024
    keep_alive: bool = True
    tls: Tls | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Second:
    """What happened in one second, by when requests were answered; counts.

    `at` is its end (Unix time), `target` the rate that was wanted (mean of the second) or the number of users.
    `offered` were due in it, `sent` left; `statuses` by code, `errors` by kind (`ERRORS`). An answer with a status of
    500 or more is in `statuses` only. `answered` and `histogram` count all answers; it is HDR, base64, microseconds,
    3 digits, empty without any (`histogram.py` reads, merges and asks it). `in_flight` and `connections` are of its
    end. `late_ms` is how late the latest request left because of the generator itself. When more than 1 % of the
    requests left noticeably late (by more than 10 ms and 5 % of the median latency), or not at all for a reason of the
    generator's, the second is `generator_limited` and decides nothing.
    """

    at: float
    target: float
    offered: int
    sent: int
    answered: int
    statuses: Mapping[int, int]
    errors: Mapping[str, int]
    in_flight: int
    connections: int
    histogram: str
    late_ms: float = 0.0
    generator_limited: bool = False


@dataclass(frozen=True, slots=True)
class Maximum:
    """Up to which `rate` (requests/s) a generator offers what it is asked for within 1 %, as it found out itself.

    With so many `processes`, on a machine with so many `cores`. `measured_at` is Unix time, `load` the load average of
    the minute before: above the number of cores the machine was `busy`, and a calm one may do more.
    """

    rate: float
    processes: int
    measured_at: float
    cores: int
    load: float

    @property
    def busy(self) -> bool:
        """Whether others wanted the processors as well."""
        return self.load > self.cores


class Generator(Protocol):
    """One plan being carried out. Every method may raise LoadError."""

    async def maximum(self, plan: Plan) -> Maximum:
        """What it can offer of a plan like this one on this machine; found out when first asked (about two seconds).

        To be asked before `start`. Plans above it may be started all the same: their records say what was not kept.
        """
        ...

    async def start(self, plan: Plan) -> None:
        """Begin; returns once the generator is ready."""
        ...

    def seconds(self) -> AsyncIterator[Second]:
        """One record per second until the plan is over, `stop`, or the lease ran out; to be read once.

        The last record may be of less than a second: what was still answered. Raises LoadError when the generator
        was lost.
        """
        ...

    async def renew(self) -> None:
        """Keep it alive for another LEASE_S."""
        ...

    async def set_rate(self, rate: float) -> None:
        """From now on (within ramp_s) so many requests/s; 0 pauses at once."""
        ...

    async def set_users(self, users: int) -> None:
        """From now on so many requests in flight."""
        ...

    async def stop(self) -> None:
        """Send nothing more; returns when the last connection is closed, at the latest after a second."""
        ...
