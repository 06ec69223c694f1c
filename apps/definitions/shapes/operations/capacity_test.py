"""The shape of a CapacityTest: what to load and how.

What a test may do is bounded here by sense and by its own guards; what it may do now is asked again before every run
(apps/capacity/run/checking.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.core.errors import FieldError
from apps.definitions.shapes.base.shape import About, Grammar, Shape
from apps.definitions.shapes.base.words import (
    HOSTNAME,
    Boolean,
    ByName,
    Path,
    Reference,
    one_of,
    real,
    text,
    whole,
)

KINDS = {
    "search": "Search: the highest rate that meets the objective",
    "constant": "Constant rate",
    "users": "Fixed concurrency",
    "ramp": "Ramp: step by step to a higher rate",
    "soak": "Soak: constant rate for a long time",
}
ARRIVALS = {"constant": "Evenly spaced", "poisson": "Random (Poisson)"}
# Methods that change nothing where they arrive: a test asks the same thing many thousand times.
METHODS = {"GET": "GET", "HEAD": "HEAD", "OPTIONS": "OPTIONS"}
PERCENTILES = {"95": "95th", "99": "99th"}
APPLY = {"by_hand": "Suggest a limit; a person sets it", "automatic": "Set the limit automatically"}
HIGHEST_RATE, MOST_CONNECTIONS, LONGEST_S = 1_000_000, 20_000, 24 * 3600
MOST_CHANGE = 0.2


def _plain_hostname(value: object) -> str:
    found = grammar.hostname(value)
    if found.startswith("*."):
        raise GrammarError("wildcard", "Name one host; load generators cannot request a wildcard.")
    return found


def _protocol(value: object) -> str:
    if value != "http1":
        detail = "Capacity tests speak HTTP/1.1 only: use http1, or leave protocol out."
        raise GrammarError("choice", detail if value == "http2" else "Use one of http1.")
    return "http1"


def _percentile(value: object) -> int:
    if type(value) is not int or value not in (95, 99):
        raise GrammarError("choice", "Use 95 or 99.")
    return value


Rate = Annotated[float, real(0, HIGHEST_RATE)]


@dataclass(frozen=True, slots=True)
class TargetSpec(Shape):
    """What is loaded: a pool in a region by the host and path that lead there, or one of its servers directly."""

    component: ClassVar[str] = "Target"

    pool: Annotated[
        Reference,
        About("The pool whose servers receive the load.", "Pool", "The servers of this pool receive the load.", "shop"),
    ]
    region: Annotated[ByName, About("The region of the servers.", "Region", "", "europe-west1")]
    hostname: Annotated[
        str,
        text(_plain_hostname, "a host name", 253, HOSTNAME),
        About(
            "The hostname to request.",
            "Hostname",
            "Only verified names that may be load-tested; a route of it has to lead to the pool.",
            "shop.example.com",
        ),
    ]
    path: Annotated[
        Path, About("The path to request.", "Path", "Requested repeatedly. Choose a path that changes no data.")
    ] = "/"
    server: Annotated[
        str,
        text(grammar.name, "a name", 63, blank=True),
        About(
            "Only this server receives the load. Default: load through the load balancer.",
            "One server only",
            "Server name. Leave empty to send the load through the load balancer. A customer's run "
            "against a public server needs an operator's approval.",
            note="Empty: through the load balancer.",
        ),
    ] = ""


@dataclass(frozen=True, slots=True)
class LoadSpec(Shape):
    """How load is made; rates in requests/s, times in s."""

    component: ClassVar[str] = "LoadOfTest"

    kind: Annotated[
        str,
        one_of(labels=KINDS),
        About(
            "`search` finds the highest rate that meets the objective, from `rate` on (0: the limit, else 1/s); "
            "`constant` and `soak` hold `rate`; `users` keeps `users` requests in flight; `ramp` goes from `rate` to "
            "`to_rate` by `step` every `duration_s`.",
            "Kind of load",
            "",
        ),
    ] = "search"
    rate: Annotated[
        Rate,
        About(
            "Requests/s; a search starts below this rate.",
            "Rate, requests/s",
            "A search starts below this rate. Default: the current limit.",
        ),
    ] = 0.0
    to_rate: Annotated[Rate, About("The last rate of a ramp.", "Maximum rate, requests/s", "")] = 0.0
    step: Annotated[Rate, About("The increase per step of a ramp.", "Step size, requests/s", "")] = 0.0
    users: Annotated[
        int,
        whole(0, MOST_CONNECTIONS),
        About(
            "Requests in flight at the same time.",
            "Users",
            "Requests in flight at the same time. Each user sends the next request as soon as it has a response.",
        ),
    ] = 0
    duration_s: Annotated[
        int,
        whole(1, LONGEST_S),
        About("How long each rate is held.", "Duration, s", "For a ramp: the duration of each step."),
    ] = 60
    arrivals: Annotated[str, one_of(labels=ARRIVALS), About("How requests are spaced.", "Arrivals", "")] = "poisson"
    protocol: Annotated[
        str, Grammar(_protocol, {"type": "string", "enum": ["http1"]}), About("The protocol of the load generator.")
    ] = "http1"
    tls: Annotated[Boolean, About("Whether requests use TLS.", "Over TLS", "")] = False
    keep_alive: Annotated[
        Boolean, About("Whether a connection carries many requests.", "Keep connections open", "")
    ] = True
    method: Annotated[str, one_of(labels=METHODS), About("The HTTP method of the requests.", "Method", "")] = "GET"


@dataclass(frozen=True, slots=True)
class ObjectiveSpec(Shape):
    """What still counts as good: a percentile of the latency, and the share of errors, both below."""

    component: ClassVar[str] = "Objective"

    percentile: Annotated[
        int,
        Grammar(_percentile, {"type": "integer", "enum": [95, 99]}, labels=PERCENTILES),
        About("The percentile that must meet the objective.", "Percentile", ""),
    ] = 95
    max_latency_ms: Annotated[
        int, whole(1, 600_000), About("Maximum latency at the percentile, in ms.", "Max. latency, ms", "")
    ] = 600
    max_error_rate: Annotated[
        float, real(0.0001, 1), About("Maximum share of failed requests.", "Max. error rate, %", "")
    ] = 0.01


@dataclass(frozen=True, slots=True)
class GuardSpec(Shape):
    """What no run of the test exceeds; `headroom` × the region's traffic must find room elsewhere."""

    component: ClassVar[str] = "Guards"

    max_rate: Annotated[int, whole(1, HIGHEST_RATE), About("Maximum requests/s.", "Maximum, requests/s", "")] = 100
    max_connections: Annotated[
        int, whole(1, MOST_CONNECTIONS), About("Maximum number of concurrent connections.", "Maximum, connections", "")
    ] = 200
    max_duration_s: Annotated[
        int, whole(5, LONGEST_S), About("Maximum duration of a run, in seconds.", "Max. duration, s", "")
    ] = 300
    headroom: Annotated[
        float,
        real(0, 10),
        About(
            "The share of the region's current traffic that other regions must have capacity for.",
            "Capacity elsewhere, %",
            "Share of the region's current traffic that other regions must have capacity for.",
        ),
    ] = 0.0


@dataclass(frozen=True, slots=True)
class PolicySpec(Shape):
    """What becomes of a measured capacity; an automatic change never goes below observed traffic."""

    component: ClassVar[str] = "LimitPolicy"

    apply: Annotated[str, one_of(labels=APPLY), About("Who sets the limit after the run.", "After the run", "")] = (
        "by_hand"
    )
    margin: Annotated[
        float,
        real(0, 0.9),
        About(
            "The share subtracted from the measured capacity.", "Margin, %", "Subtracted from the measured capacity."
        ),
    ] = 0.1
    max_change: Annotated[
        float,
        real(0, MOST_CHANGE),
        About(
            "The largest automatic change, as a share of the current limit.",
            "Max. change, %",
            "Largest automatic change, in percent of the current limit; at most 20.",
        ),
    ] = MOST_CHANGE


@dataclass(frozen=True, slots=True)
class CapacityTestSpec(Shape):
    """What to load and how."""

    target: Annotated[
        TargetSpec, About("What receives the load.", missing="Set target to {pool, region, hostname, path}.")
    ]
    load: Annotated[LoadSpec, About("The load profile.")] = LoadSpec()
    objective: Annotated[ObjectiveSpec, About("The objective that a good step must meet.")] = ObjectiveSpec()
    guards: Annotated[GuardSpec, About("Bounds that no run exceeds.")] = GuardSpec()
    policy: Annotated[PolicySpec, About("What happens with the measured capacity.")] = PolicySpec()

    def contradictions(self) -> Iterator[FieldError]:
        """What does not fit together; nothing that is sent is ignored silently."""
        for wrong, field, code, detail in (*_beyond_guards(self.load, self.guards), *_of_other_kinds(self)):
            if wrong:
                yield FieldError(f"/load/{field}", code, detail)


Rule = tuple[bool, str, str, str]  # whether it is broken, field of the load, code, what to do


def _beyond_guards(load: LoadSpec, guards: GuardSpec) -> Iterator[Rule]:
    within = "Stay within guards.{} ({} {}), or raise that."
    rate = within.format("max_rate", guards.max_rate, "requests/s")
    yield load.rate > guards.max_rate, "rate", "guard", rate
    yield load.to_rate > guards.max_rate, "to_rate", "guard", rate
    connections = within.format("max_connections", guards.max_connections, "connections")
    yield load.users > guards.max_connections, "users", "guard", connections
    longer = load.kind != "search" and load.duration_s > guards.max_duration_s
    yield longer, "duration_s", "guard", within.format("max_duration_s", guards.max_duration_s, "s")


def _of_other_kinds(spec: CapacityTestSpec) -> Iterator[Rule]:
    load, kind = spec.load, spec.load.kind
    needs_rate = kind in ("constant", "soak", "ramp") and not load.rate
    yield needs_rate, "rate", "missing", f"Fill in the rate (requests/s) of a load of kind {kind}."
    few = kind == "users" and not load.users
    yield few, "users", "missing", "Fill in the number of users (concurrent requests)."
    flat = kind == "ramp" and (load.to_rate <= load.rate or not load.step)
    yield flat, "to_rate", "ramp", "A ramp goes from rate up to a higher to_rate by a step above 0."
    ramped = kind != "ramp" and bool(load.to_rate or load.step)
    yield ramped, "to_rate", "kind", "Only a ramp has to_rate and step; leave them out."
    used = kind != "users" and bool(load.users)
    yield used, "users", "kind", "Only a load of kind users has users; leave them out."
    rated = kind == "users" and bool(load.rate)
    yield rated, "rate", "kind", "A load of kind users has no rate; leave it out."
    direct = bool(spec.target.server) and load.tls
    yield direct, "tls", "server", "Requests to a single server are sent without TLS; leave out tls or server."
