"""The frozen specification of every kind of object, as reading a document gives it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.definitions.shapes.base.shape import Shape


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


Spec = Shape | ScheduleSpec | CapacityTestSpec
