"""The frozen specification of every kind of object, as reading a document gives it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.compiler.addresses import ALL_PRIVATE
from apps.compiler.model.fleet import Protocol
from apps.definitions.shapes.base.shape import Shape


@dataclass(frozen=True, slots=True)
class AccountSpec:
    """A tenant. What is None of `quotas` and `suspended` stays as it is; quotas hold what differs from the usual."""

    title: str
    kind: str
    quotas: tuple[tuple[str, int], ...] | None = None
    suspended: bool | None = None


@dataclass(frozen=True, slots=True)
class LatencySpec:
    """The round trip to another region, ms."""

    to: str
    ms: float


@dataclass(frozen=True, slots=True)
class RegionSpec:
    """A place; degrees. What is None of `drained` and `latency` stays as it is: people set both by hand as well."""

    title: str
    latitude: float | None = None
    longitude: float | None = None
    drained: bool | None = None
    latency: tuple[LatencySpec, ...] | None = None


@dataclass(frozen=True, slots=True)
class FleetSpec:
    """The nodes of a region that run the same; the ports are those of the nodes among themselves.

    Of private networks its servers may only be in `private_networks`.
    """

    region: str
    local_development: bool = False
    private_networks: tuple[str, ...] = ALL_PRIVATE
    peer_port: int = 9700
    overflow_port: int = 9800
    overflow_tcp_port: int = 9900


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One HAProxy with its agent."""

    fleet: str
    url: str
    address: str = "127.0.0.1"
    port_offset: int = 0


@dataclass(frozen=True, slots=True)
class GrantSpec:
    """What an operator lets an account use: a hostname (`*.` for all below) or a tag (`key=value`), never both."""

    account: str
    hostname: str | None = None
    tag: str | None = None
    may_load_test: bool = True
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ListenerSpec:
    """Where clients connect."""

    name: str
    protocol: Protocol
    port: int
    static_ip: str | None = None
    certificates: tuple[str, ...] = ()
    default_pool: str | None = None


@dataclass(frozen=True, slots=True)
class LoadBalancerSpec:
    """The front."""

    fleets: tuple[str, ...] = ()
    listeners: tuple[ListenerSpec, ...] = ()
    stacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """What a schedule does, by its kind (models.Schedule.TargetKind), as the document says it.

    webhook `{url, body}`, topic `{topic, message}`, capacity_test `{name}`, rollout `{fleet}`, change
    `{object: {kind, name, spec}, restore_after_s}`.
    """

    kind: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """When something should happen, and what; fields as in models.Schedule. None of `paused` leaves it as it is."""

    target: TargetSpec
    cron: str = ""
    every_s: int | None = None
    at: str = ""
    zone: str = "UTC"
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    window_s: int = 0
    jitter_s: int = 0
    overlap: str = "skip"
    catch_up: str = "once"
    catch_up_window_s: int = 300
    attempts: int = 3
    backoff_s: int = 5
    timeout_s: int = 30
    paused: bool | None = None


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """How load is made. Rates in requests/s, times in s.

    `kind` search finds the highest rate that meets the objective, from `rate` on (0: the limit, else 1/s); constant
    holds `rate`, users keeps `users` requests in flight, ramp goes from `rate` to `to_rate` by `step` every
    `duration_s`, soak holds `rate` for long.
    """

    kind: str = "search"
    rate: float = 0.0
    to_rate: float = 0.0
    step: float = 0.0
    users: int = 0
    duration_s: int = 60
    arrivals: str = "poisson"
    protocol: str = "http1"
    tls: bool = False
    keep_alive: bool = True
    method: str = "GET"


@dataclass(frozen=True, slots=True)
class ObjectiveSpec:
    """What still counts as good: a percentile (95 or 99) of the latency in ms, and the share of errors, both below."""

    percentile: int = 95
    max_latency_ms: int = 600
    max_error_rate: float = 0.01


@dataclass(frozen=True, slots=True)
class GuardSpec:
    """What no run of the test may exceed, whatever the quotas allow; and what must be free where overflow would go.

    `headroom` is the share of the present traffic of the region that the others must be able to take.
    """

    max_rate: int = 100
    max_connections: int = 200
    max_duration_s: int = 300
    headroom: float = 0.0


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """What becomes of a measured capacity: `apply` by_hand or automatic; `margin` (0–1) is taken off first.

    An automatic change moves the limit by at most `max_change` (0–0.2) of itself, and never below observed traffic.
    """

    apply: str = "by_hand"
    margin: float = 0.1
    max_change: float = 0.2


@dataclass(frozen=True, slots=True)
class CapacityTestSpec:
    """What to load and how; `pool` is a reference, an empty `server` means through the load balancer."""

    pool: str
    region: str
    hostname: str
    path: str = "/"
    server: str = ""
    load: LoadSpec = LoadSpec()
    objective: ObjectiveSpec = ObjectiveSpec()
    guards: GuardSpec = GuardSpec()
    policy: PolicySpec = PolicySpec()


Spec = (
    Shape
    | AccountSpec
    | RegionSpec
    | FleetSpec
    | NodeSpec
    | GrantSpec
    | LoadBalancerSpec
    | ScheduleSpec
    | CapacityTestSpec
)
