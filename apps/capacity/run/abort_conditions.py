"""The brakes: the seconds of a run go in, a reason to end it comes out, or nothing.

Evaluated after every second, whatever the course of the run thinks of it. A brake is never weighed against a result:
the load goes to zero, and what is known by then is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
class Surroundings:
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
class Moment:
    """One second of a run: requests that ended and that failed in it, and what was seen around.

    `probing` seconds belong to a step with which the run looks for the breaking point: there slowness is no accident.
    """

    ended: int
    failed: int
    p95_ms: float | None
    probing: bool = False
    around: Surroundings = Surroundings()


@dataclass(frozen=True, slots=True)
class Brake:
    """Why the load goes to zero: a code for programs, a sentence for people."""

    reason: str
    message: str


def brake(moments: Sequence[Moment], before: Surroundings) -> Brake | None:
    """The first brake that acts after the last of these seconds; `before` is what was seen before the load began."""
    if not moments:
        return None
    last = moments[-1].around
    found = [*_of_place(last), *_of_nodes(moments), *_of_neighbours(before, last)]
    return next(iter([*found, *_of_errors(moments), *_of_latency(moments)]), None)


def distances(moments: Sequence[Moment]) -> Mapping[str, tuple[float, float]]:
    """How far each measured brake is from acting: reason → (value now, value at which it acts), for pages."""
    if not moments:
        return {}
    last, base = moments[-1], baseline_ms(moments)
    found = {"errors": (_share(moments[-ERRORS_S:]), ERRORS_SHARE)}
    if base is not None and last.p95_ms is not None:
        found["latency"] = (last.p95_ms, SLOWER_BY * base)
    if last.around.silent_s is not None:
        found["heartbeat"] = (last.around.silent_s, SILENT_S)
    return found


def baseline_ms(moments: Sequence[Moment]) -> float | None:
    """The p95 of the beginning, when little was offered; None before anything was answered."""
    known = [moment.p95_ms for moment in moments if moment.p95_ms is not None]
    return median(known[:BASELINE_S]) if known else None


def _of_place(around: Surroundings) -> Iterator[Brake]:
    for reason, message in (
        ("forbidden", around.forbidden),
        ("region", around.trouble),
        ("headroom", around.shortage),
    ):
        if message:
            yield Brake(reason, message)
    if around.silent_s is None or around.silent_s > SILENT_S:
        ago = "at all" if around.silent_s is None else f"for {around.silent_s:.0f} s"
        yield Brake("heartbeat", f"A node of the region was not read {ago}: the effect of the load is unknown.")


def _of_nodes(moments: Sequence[Moment]) -> Iterator[Brake]:
    """Three seconds in a row: a process that others kept from running for a moment looks busy as well."""
    recent = [moment.around for moment in moments[-BUSY_S:]]
    used = {"CPU": [each.node_cpu for each in recent], "connections": [each.node_connections for each in recent]}
    for what, shares in used.items():
        least = min((share or 0.0 for share in shares), default=0.0)
        if len(shares) == BUSY_S and least > MOST_USE:
            yield Brake("node", f"A node uses {least:.0%} of its {what}; tests end at {MOST_USE:.0%}.")


def _of_neighbours(before: Surroundings, around: Surroundings) -> Iterator[Brake]:
    for name, now in around.neighbours.items():
        if now.requests < FEW:
            continue
        then = before.neighbours.get(name, Neighbour(0, 0.0, None))
        if now.error_rate > then.error_rate + WORSE_ERRORS:
            yield Brake("neighbour", f"Another pool on these nodes fails more: {now.error_rate:.0%} errors.")
        if then.p95_ms is None or now.p95_ms is None or then.requests < FEW:
            continue
        if now.p95_ms > WORSE_BY * then.p95_ms and now.p95_ms > then.p95_ms + WORSE_MS:
            slower = f"p95 {now.p95_ms:.0f} ms instead of {then.p95_ms:.0f}"
            yield Brake("neighbour", f"Another pool on these nodes gets slower: {slower}.")


def _of_errors(moments: Sequence[Moment]) -> Iterator[Brake]:
    """Of five seconds together, and of most of them: one bad second is no failing backend, one good one no healthy."""
    recent = moments[-ERRORS_S:]
    spoken = [moment for moment in recent if moment.ended]
    failing = sum(1 for moment in spoken if moment.failed)
    lasting = len(recent) == ERRORS_S and failing > len(spoken) / 2
    if lasting and _share(recent) > ERRORS_SHARE:
        yield Brake("errors", f"{_share(recent):.0%} of the requests failed for {ERRORS_S} s.")


def _of_latency(moments: Sequence[Moment]) -> Iterator[Brake]:
    base, recent = baseline_ms(moments), moments[-SLOWER_S:]
    if base is None or len(moments) < SLOWER_S + BASELINE_S or any(moment.probing for moment in recent):
        return
    spoken = [moment.p95_ms for moment in recent if moment.p95_ms is not None]
    if spoken and all(p95 > SLOWER_BY * base for p95 in spoken):
        yield Brake("latency", f"p95 was above {SLOWER_BY:g} × {base:.0f} ms for {SLOWER_S} s.")


def _share(moments: Sequence[Moment]) -> float:
    ended = sum(moment.ended for moment in moments)
    return sum(moment.failed for moment in moments) / ended if ended else 0.0
