"""A run while it goes on: second by second, what it does now, how far every abort condition is away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from apps.capacity.models import Run, Second, Step
from apps.capacity.run.abort_conditions import (
    BASELINE_S,
    ERRORS_S,
    ERRORS_SHARE,
    PROBING,
    SLOWER_BY,
    SLOWER_S,
    baseline_ms,
)
from apps.core.clock import now
from apps.core.written.numbers import plain
from apps.web.capacity.words import PURPOSES, spoken
from apps.web.drawing.runs import Drawing, Held, SecondPoint, draw_seconds
from apps.web.kit.figures import amount, share

SHOWN = 240  # seconds of a run that goes on
WHOLE = 14_400  # seconds of one that is over
SILENT = timedelta(seconds=4)
NOT_WATCHED = "not an abort condition during a search: the objective ends each step"


@dataclass(frozen=True, slots=True)
class AbortCondition:
    """One thing that stops a run: how near it is, as a bar; `percent` is None where nothing is known."""

    id: str
    name: str
    percent: int | None
    text: str
    kind: str


def seconds_of(run: Run) -> list[Second]:
    """The seconds that a page draws: the last minutes of a run that goes on, all of one that is over."""
    most = SHOWN if run.state in Run.OPEN else WHOLE
    return list(run.seconds.order_by("-at")[:most])[::-1]


def timeline(run: Run, seconds: Sequence[Second], steps: Sequence[Step]) -> Drawing | None:
    """The chart of offered against achieved and of latency, None before the first second."""
    if not seconds:
        return None
    start = run.started_at or seconds[0].at
    below = (run.plan.get("objective") or {}).get("max_latency_ms", 600)
    moments = [_moment(second, start) for second in seconds]
    last = seconds[-1]
    sentence = (
        f"Run {run.pk}, second by second: last {plain(last.target)} requests/s targeted, {last.offered} offered,"
        f" {last.answered} answered, {last.errors} errors, p95 {words_of(last.p95_ms)}."
    )
    return draw_seconds(
        moments, [_held(step, start) for step in steps], max_latency_ms=below, prefix="live", sentence=sentence
    )


def _moment(second: Second, start: datetime) -> SecondPoint:
    return SecondPoint(
        at=(second.at - start).total_seconds(),
        target=second.target,
        offered=second.offered,
        answered=second.answered,
        errors=second.errors,
        in_flight=second.in_flight,
        p50=second.p50_ms,
        p95=second.p95_ms,
        p99=second.p99_ms,
    )


def _held(step: Step, start: datetime) -> Held:
    begin = (step.started_at - start).total_seconds()
    words = f"{PURPOSES.get(step.purpose, step.purpose)} at {asked(step)}: {step.status}"
    return Held(begin, begin + step.seconds, step.status, words)


def asked(step: Step) -> str:
    """What a step held: `12 requests/s` or `20 users`."""
    return f"{step.users:,} users" if step.users else f"{plain(step.rate)} requests/s"


def words_of(milliseconds: float | None) -> str:
    """A latency as text, `–` where nothing was answered."""
    if milliseconds is None:
        return "–"
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 10_000 else f"{amount(milliseconds)} ms"


def figures_now(run: Run, seconds: Sequence[Second]) -> dict[str, Any]:
    """The last second as text; `age` says how old it is once it should have been followed by another."""
    if not seconds:
        return {}
    last = seconds[-1]
    old = now() - last.at
    errors = last.errors / (last.answered + last.errors) if last.answered + last.errors else None
    return {
        "target": plain(last.target),
        "wanted": f"of {plain(last.target)}/s",
        "offered": amount(last.offered),
        "answered": amount(last.answered),
        "errors": share(errors),
        "in_flight": f"{last.in_flight:,}",
        "p50": words_of(last.p50_ms),
        "p95": words_of(last.p95_ms),
        "p99": words_of(last.p99_ms),
        "age": spoken(old.total_seconds()) if run.state in Run.OPEN and old > SILENT else "",
    }


def phase(run: Run, seconds: Sequence[Second], steps: Sequence[Step]) -> str:
    """What the run does at the moment, in a sentence."""
    if run.state == Run.State.WAITING:
        return run.phase or "The run waits for a free worker. No load has been sent yet."
    if run.state == Run.State.STARTING:
        return run.phase or "The nodes are being prepared and all checks run again. No load has been sent yet."
    if run.stop_requested_at:
        return f"Stopped by {run.stopped_by or 'somebody'}. The load drops to zero within two seconds."
    known = _known(steps)
    if run.phase:
        return f"{run.phase}{known}"
    if not seconds:
        return "The load generator is starting."
    rate = seconds[-1].target
    return (
        f"Holding {plain(rate)} requests/s.{known}" if rate else f"The queue of the previous step is draining.{known}"
    )


def _known(steps: Sequence[Step]) -> str:
    """What the steps so far say about where the capacity lies."""
    good = max((step.rate for step in steps if step.status == "good"), default=None)
    bad = min((step.rate for step in steps if step.status == "bad"), default=None)
    if good is not None and bad is not None and good < bad:
        return f" {plain(good)} met the objective and {plain(bad)} did not. The capacity is in between."
    if good is not None and bad is not None:
        return f" {plain(good)} met the objective, although one step at {plain(bad)} did not. More steps decide."
    if good is not None:
        return f" {plain(good)} met the objective. No rate has failed yet."
    return f" {plain(bad)} did not meet the objective." if bad is not None else ""


def abort_conditions(run: Run, seconds: Sequence[Second]) -> list[AbortCondition]:
    """Every abort condition that the numbers of the run itself can trigger, with its distance."""
    guards: Mapping[str, Any] = run.plan.get("guards") or {}
    last = seconds[-1] if seconds else None
    rate, connections = guards.get("max_rate", 100), guards.get("max_connections", 200)
    longest = guards.get("max_duration_s", 300)
    spent = ((run.ended_at or now()) - run.started_at).total_seconds() if run.started_at else 0.0
    flight = last.in_flight if last else 0
    return [
        _errors(seconds),
        _slow(run, seconds),
        _used("rate", "Rate", last.target if last else 0.0, rate, f"of {rate:,}/s"),
        _used("connections", "In flight", flight, connections, f"of {connections:,}"),
        _condition("time", "Time", spent / longest, f"{spoken(min(spent, longest))} of {spoken(longest)}"),
    ]


def _errors(seconds: Sequence[Second]) -> AbortCondition:
    recent = seconds[-ERRORS_S:]
    total = sum(second.answered + second.errors for second in recent)
    if not total:
        return AbortCondition("errors", "Errors", None, "no responses yet", "")
    found = sum(second.errors for second in recent) / total
    text = f"{share(found)}; stops above {100 * ERRORS_SHARE:g} % for {ERRORS_S} s"
    return _condition("errors", "Errors", found / ERRORS_SHARE, text)


def _slow(run: Run, seconds: Sequence[Second]) -> AbortCondition:
    """The last seconds' best p95 against three times that of the first ones, where that ends the load at all."""
    if (run.plan.get("load") or {}).get("kind", "search") in PROBING:
        return AbortCondition("slow", "Latency", None, NOT_WATCHED, "")
    base = baseline_ms(_first_p95(run) if len(seconds) == SHOWN else (second.p95_ms for second in seconds))
    recent = [second.p95_ms for second in seconds[-SLOWER_S:] if second.p95_ms is not None]
    if not base or not recent:
        return AbortCondition("slow", "Latency", None, "no responses yet", "")
    text = f"p95 {words_of(min(recent))}; stops above {words_of(SLOWER_BY * base)} for {SLOWER_S} s"
    return _condition("slow", "Latency", min(recent) / (SLOWER_BY * base), text)


def _first_p95(run: Run) -> Iterable[float | None]:
    """Of a run that goes on for longer than is drawn."""
    return run.seconds.exclude(p95_ms=None).order_by("at").values_list("p95_ms", flat=True)[:BASELINE_S]


def _used(id_: str, name: str, value: float, most: float, of: str) -> AbortCondition:
    return _condition(id_, name, value / most if most else 0.0, f"{plain(value)} {of}")


def _condition(id_: str, name: str, part: float, text: str) -> AbortCondition:
    kind = "bad" if part >= 1 else "warn" if part >= 0.8 else "good"
    return AbortCondition(id_, name, round(100 * part), text, kind)
