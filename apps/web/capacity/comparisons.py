"""Two runs side by side, and comparisons of two tests in turn, with a plain verdict."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.capacity import selectors
from apps.capacity.measure.comparisons import request_comparison
from apps.capacity.models import Run
from apps.core.errors import Invalid
from apps.core.written.numbers import plain
from apps.web.capacity.live import words_of
from apps.web.capacity.result import capacity_of, confidence_of
from apps.web.capacity.words import address_of, load_words, mark_of, objective_words, through
from apps.web.kit.figures import share
from apps.web.kit.pages import PageRequest, page, post_page, show

FIELDS = {
    "throughput": "Answered",
    "capacity": "Capacity",
    "p50_ms": "p50",
    "p95_ms": "p95",
    "p99_ms": "p99",
    "error_rate": "Errors",
}


@page
def runs(request: PageRequest) -> HttpResponse:
    """Two finished runs side by side: `?run=3&run=7`."""
    chosen = [int(text) for text in request.GET.getlist("run")[:3] if text.isascii() and text.isdecimal()]
    if len(set(chosen)) != 2 or len(request.GET.getlist("run")) != 2:
        messages.error(request, "Choose exactly two runs that found a capacity.")
        return redirect("web:capacity-tests")
    first, second = (selectors.run(request.actor, pk) for pk in sorted(chosen))
    context = {"first": side_of(first), "second": side_of(second), "verdict": verdict_of(first, second)}
    return show(request, "pages/comparisons/runs.html", context | {"rows": _rows(first, second)})


def side_of(run: Run) -> dict[str, Any]:
    """One column: what was loaded, how, and what came of it."""
    target, load = run.plan.get("target", {}), run.plan.get("load", {})
    return {
        "run": run,
        "mark": mark_of(run),
        "address": address_of(target, load),
        "through": through(target),
        "load": load_words(load),
        "objective": objective_words(run.plan.get("objective", {})),
    }


def verdict_of(first: Run, second: Run) -> tuple[str, str]:
    """A kind of banner and the verdict: a difference is one only where the spans of both do not meet."""
    one, two = capacity_of(first), capacity_of(second)
    if one is None or two is None:
        return "", "One of these runs found no capacity, so there is nothing to compare."
    if first.plan.get("objective") != second.plan.get("objective"):
        return "warn", "These runs have different objectives, so their capacities are not comparable."
    spans = [(run.result or {}).get(name) for run in (first, second) for name in ("low", "high")]
    change = f"{abs(two - one) / one * 100:.0f} % {'more' if two > one else 'less'}" if one else "more"
    if None in spans:
        return "", f"Run {second.pk} takes {change} than run {first.pk}; the confidence is unknown."
    low_one, high_one, low_two, high_two = (float(value or 0) for value in spans)
    if low_one <= high_two and low_two <= high_one:
        return "", f"No difference can be shown: the ranges around {plain(one)} and {plain(two)} requests/s overlap."
    return (
        "good" if two > one else "warn",
        f"Run {second.pk} takes {change} than run {first.pk}: their ranges do not overlap.",
    )


def _rows(first: Run, second: Run) -> list[tuple[str, str, str]]:
    """The numbers of both, by name."""
    both = [run.result or {} for run in (first, second)]
    knees = [result.get("knee") or {} for result in both]

    def pair(name: str, one: str, two: str) -> tuple[str, str, str]:
        return name, one or "–", two or "–"

    capacities = [f"{plain(value)}/s" if (value := capacity_of(run)) is not None else "" for run in (first, second)]
    flights = [str(result.get("in_flight_limit") or "") for result in both]
    rows = [pair("Capacity", *capacities), pair("Confidence", confidence_of(first), confidence_of(second))]
    rows += [
        pair(f"{name} there", *(words_of(knee.get(f"{name}_ms")) for knee in knees)) for name in ("p50", "p95", "p99")
    ]
    rows.append(pair("Errors at capacity", *(share(knee.get("error_rate")) for knee in knees)))
    rows.append(pair("In flight at capacity", *flights))
    builds = [str((result.get("build") or {}).get("digest", "")) for result in both]
    return [*rows, pair("Build", *builds)]


@post_page
def start(request: PageRequest, pk: int) -> HttpResponse:
    """Compare a test with `second`, in turn, `rounds` times each."""
    second, rounds = request.POST.get("second", ""), request.POST.get("rounds", "3")
    try:
        made = request_comparison(
            actor=request.actor,
            first_id=pk,
            second_id=int(second) if second.isascii() and second.isdecimal() and len(second) < 19 else 0,
            rounds=int(rounds) if rounds.isascii() and rounds.isdecimal() and len(rounds) < 4 else 0,
        )
    except Invalid as error:
        messages.error(request, " ".join(field_error.detail for field_error in error.field_errors))
        return redirect("web:capacity-test", pk=pk)
    return redirect("web:capacity-comparison", pk=made.pk)


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One comparison: its verdict and differences once all rounds are over, its runs by round."""
    comparison = selectors.comparison(request.actor, pk)
    rows = list(comparison.runs.select_related("test").order_by("pk"))
    context = {
        "comparison": comparison,
        "going": comparison.result is None,
        "done": sum(run.state not in Run.OPEN for run in rows),
        "total": 2 * comparison.rounds,
        "runs": [_run(run) for run in rows],
        "verdict": (comparison.result or {}).get("message", ""),
        "differences": [_difference(each) for each in (comparison.result or {}).get("differences", ())],
    }
    return show(request, "pages/comparisons/detail.html", context)


def _run(run: Run) -> dict[str, Any]:
    capacity = capacity_of(run)
    return {
        "run": run,
        "mark": mark_of(run),
        "capacity": f"{plain(capacity)}/s" if capacity is not None else "–",
        "confidence": confidence_of(run),
    }


def _difference(each: dict[str, Any]) -> dict[str, Any]:
    """One number of both tests with what can be said of it."""
    field, half = each["field"], each.get("plus_minus")
    scale, unit = (100, "points") if field == "error_rate" else (100, "%")
    return {
        "name": FIELDS.get(field, field),
        "first": _amount(field, each["first"]),
        "second": _amount(field, each["second"]),
        "change": f"{scale * each['change']:+.1f} {unit}",
        "spread": f"± {scale * half:.1f}" if half is not None else "unknown",
        "shown": each["shown"],
        "message": each["message"],
    }


def _amount(field: str, value: float) -> str:
    if field == "error_rate":
        return share(value)
    return words_of(value) if field.endswith("_ms") else f"{plain(value)}/s"
