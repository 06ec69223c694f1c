"""The shapes in which observed numbers reach pages, the API and metrics; plain data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Numbers:
    """What something does right now, measured over about ten seconds; None where nothing was measured.

    Rates are per second, `error_rate` is the share of 5xx among all responses (0–1), `p50_ms` and `p95_ms` are
    interpolated in the latency buckets, `age_s` the seconds since it was measured. `stale` numbers are too old to be
    shown as live: grey them and show the age. `partial` ones lack a node that may serve some of it and is silent while
    others were read: it is at least so much.
    """

    requests_rps: float | None = None
    errors_rps: float | None = None
    error_rate: float | None = None
    p50_ms: float | None = None
    p95_ms: float | None = None
    connections: int | None = None
    queue: int | None = None
    age_s: float | None = None
    stale: bool = True
    partial: bool = False


@dataclass(frozen=True, slots=True)
class PoolNumbers:
    """One pool: its numbers and its verdict; `health` is healthy, degraded, down or unknown.

    `servers_up` is None where of no server anybody knows whether it is up.
    """

    numbers: Numbers
    health: str = "unknown"
    message: str = ""
    since: datetime | None = None
    servers_up: int | None = None
    servers_total: int = 0


@dataclass(frozen=True, slots=True)
class NodeNumbers:
    """One node: its numbers and its last report; `reachable` is None when nobody looked for a while.

    `running_generation` and `running_digest` are facts; whether they are the wanted ones is rollouts' verdict.
    """

    numbers: Numbers
    reachable: bool | None = None
    serving: bool | None = None
    seen_at: datetime | None = None
    running_generation: int = 0
    running_digest: str = ""
    on_disk_digest: str = ""
    haproxy_version: str = ""
    features: tuple[str, ...] = ()
    tls_library: str = ""
    http3: bool = False
    agent_version: str = ""
    boot_id: str = ""
    workers: int = 0
    reloads: int = 0
    drift: tuple[str, ...] = ()
    error: str = ""
    contact_error: str = ""


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server as one node sees it; `status` is up, down, drain, maintenance, unchecked or unknown."""

    server_id: int
    node_id: int
    node: str
    region: str
    status: str
    check_text: str
    numbers: Numbers


@dataclass(frozen=True, slots=True)
class Series:
    """Points in time for one object: `x` Unix seconds, the others as long as `x`, None where nothing was measured.

    `requests` and `errors` (5xx) are per second, `connections` and `queue` the highest value seen, `p95_ms` is empty
    unless latency was asked for.
    """

    x: tuple[int, ...]
    requests: tuple[float | None, ...]
    errors: tuple[float | None, ...]
    connections: tuple[int | None, ...]
    queue: tuple[int | None, ...]
    p95_ms: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong, as a sentence; `kind` and `object_id` (primary key) say where.

    Kinds are node, pool, console, key_set, server_source, load_balancer and route. `severity` is 1 (down) to 3 (look
    at it); `label` is the object's name, `message` the verdict's own words; `at` are the servers of a pool whose check
    fails, as (region, address, port): other pools may have the very same.
    """

    severity: int
    kind: str
    object_id: int
    label: str
    sentence: str
    reason: str
    since: datetime
    message: str = ""
    at: frozenset[tuple[int, str, int]] = frozenset()
