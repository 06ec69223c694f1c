"""The abort conditions: the seconds of a run go in, a reason to end it comes out, or nothing.

Evaluated after every second, whatever the load profile says. No condition is weighed against a
result: the load goes to zero, and what is known by then is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import median

ERRORS_SHARE, ERRORS_S = 0.05, 5
SLOWER_BY, SLOWER_S = 3.0, 10
BASELINE_S = 5
# Kinds of load that look for the breaking point: slowness is what they are for, and the objective ends their steps.
PROBING = ("search", "ramp")
MOST_USE = 0.8
BUSY_S = 3
SILENT_S = 6.0
# Of a neighbour: so few requests in the ten seconds of a window say nothing.
FEW = 10
WORSE_ERRORS, WORSE_BY, WORSE_MS = 0.05, 2.0, 50.0


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What somebody else's pool does on the same nodes: requests in the window, share of 5xx, p95 in ms."""

    requests: int
    error_rate: float
    p95_ms: float | None


@dataclass(frozen=True, slots=True)
class Environment:
    """What was seen around a run at one moment; None where nobody measures it.

    `silent_s` is how long ago the node that was read last of all was read. The shares (0–1) are of the busiest node.
    `forbidden`, `trouble` and `shortage` are sentences, empty while all is well: what the account may not do any
    more, what is under way in the region, where there is no headroom left.
    """

    silent_s: float | None = 0.0
    node_cpu: float | None = None
    node_connections: float | None = None
    neighbours: Mapping[str, Neighbour] = field(default_factory=dict)
    forbidden: str = ""
    trouble: str = ""
    shortage: str = ""


@dataclass(frozen=True, slots=True)
class SecondSample:
    """One second of a run: requests that ended and that failed in it, and what was seen environment.

    `probing` seconds belong to a step with which the run looks for the breaking point: there slowness is no accident.
    """

    ended: int
    failed: int
    p95_ms: float | None
    probing: bool = False
    environment: Environment = Environment()


@dataclass(frozen=True, slots=True)
class Abort:
    """Why the load goes to zero: a code for programs, a sentence for people."""

    reason: str
    message: str


def abort_for(samples: Sequence[SecondSample], before: Environment) -> Abort | None:
    """The first condition that is met after the last of these seconds; `before` was seen before the load began."""
    if not samples:
        return None
    last = samples[-1].environment
    found = [*_of_environment(last), *_of_nodes(samples), *_of_neighbours(before, last)]
    return next(iter([*found, *_of_errors(samples), *_of_latency(samples)]), None)


def baseline_ms(p95_ms: Iterable[float | None]) -> float | None:
    """The p95 of the beginning, when little was offered; None before anything was answered."""
    known = list(islice((each for each in p95_ms if each is not None), BASELINE_S))
    return median(known) if known else None


def _of_environment(environment: Environment) -> Iterator[Abort]:
    for reason, message in (
        ("forbidden", environment.forbidden),
        ("region", environment.trouble),
        ("headroom", environment.shortage),
    ):
        if message:
            yield Abort(reason, message)
    if environment.silent_s is None or environment.silent_s > SILENT_S:
        ago = "at all" if environment.silent_s is None else f"for {environment.silent_s:.0f} s"
        yield Abort("heartbeat", f"A node of the region was not read {ago}: the effect of the load is unknown.")


def _of_nodes(samples: Sequence[SecondSample]) -> Iterator[Abort]:
    """Three seconds in a row: a process that others kept from running for a moment looks busy as well."""
    recent = [sample.environment for sample in samples[-BUSY_S:]]
    used = {"CPU": [each.node_cpu for each in recent], "connections": [each.node_connections for each in recent]}
    for what, shares in used.items():
        least = min((share or 0.0 for share in shares), default=0.0)
        if len(shares) == BUSY_S and least > MOST_USE:
            yield Abort("node", f"A node uses {100 * least:.0f} % of its {what}; tests end at {100 * MOST_USE:.0f} %.")


def _of_neighbours(before: Environment, environment: Environment) -> Iterator[Abort]:
    for name, now in environment.neighbours.items():
        if now.requests < FEW:
            continue
        then = before.neighbours.get(name, Neighbour(0, 0.0, None))
        if now.error_rate > then.error_rate + WORSE_ERRORS:
            yield Abort("neighbour", f"Another pool on these nodes fails more: {100 * now.error_rate:.0f} % errors.")
        if then.p95_ms is None or now.p95_ms is None or then.requests < FEW:
            continue
        if now.p95_ms > WORSE_BY * then.p95_ms and now.p95_ms > then.p95_ms + WORSE_MS:
            slower = f"p95 {now.p95_ms:.0f} ms instead of {then.p95_ms:.0f}"
            yield Abort("neighbour", f"Another pool on these nodes gets slower: {slower}.")


def _of_errors(samples: Sequence[SecondSample]) -> Iterator[Abort]:
    """Of five seconds together, and of most of them: one bad second is no failing backend, one good one no healthy."""
    recent = samples[-ERRORS_S:]
    spoken = [sample for sample in recent if sample.ended]
    failing = sum(1 for sample in spoken if sample.failed)
    lasting = len(recent) == ERRORS_S and failing > len(spoken) / 2
    if lasting and _share(recent) > ERRORS_SHARE:
        yield Abort("errors", f"{100 * _share(recent):.0f} % of the requests failed for {ERRORS_S} s.")


def _of_latency(samples: Sequence[SecondSample]) -> Iterator[Abort]:
    base, recent = baseline_ms(sample.p95_ms for sample in samples), samples[-SLOWER_S:]
    if base is None or len(samples) < SLOWER_S + BASELINE_S or any(sample.probing for sample in recent):
        return
    spoken = [sample.p95_ms for sample in recent if sample.p95_ms is not None]
    if spoken and all(p95 > SLOWER_BY * base for p95 in spoken):
        yield Abort("latency", f"p95 was above {SLOWER_BY:g} × {base:.0f} ms for {SLOWER_S} s.")


def _share(samples: Sequence[SecondSample]) -> float:
    ended = sum(sample.ended for sample in samples)
    return sum(sample.failed for sample in samples) / ended if ended else 0.0
