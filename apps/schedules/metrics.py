"""Schedule runs by state, how late they begin, what was missed, and how far behind the schedulers are."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count, Sum
from prometheus_client.core import GaugeMetricFamily, Metric

from apps.definitions.models import Schedule
from apps.schedules.models import ScheduleRun
from apps.schedules.selectors import behind_s

MOST_COUNTED = 1000


def families() -> Iterator[Metric]:
    """Five families; each is bounded by a number or an index, so that a million old runs cost nothing."""
    yield _open_and_dead()
    newest = ScheduleRun.objects.filter(cause=ScheduleRun.Cause.TIME).order_by("-pk")
    times = newest.values_list("attempt", "started_at", "due_at")[:MOST_COUNTED]
    lags = sorted((started - due).total_seconds() for attempt, started, due in times if attempt == 1 and started)
    lag = GaugeMetricFamily(
        "spillway_schedule_runs_lag_seconds",
        "Begin after the due instant, of the newest schedule runs.",
        labels=["quantile"],
    )
    for quantile in (0.5, 0.99):
        lag.add_metric([str(quantile)], lags[int(len(lags) * quantile)] if lags else 0.0)
    yield lag
    missed = Schedule.objects.aggregate(total=Sum("missed"))["total"] or 0
    yield GaugeMetricFamily("spillway_schedule_runs_missed", "Instants without a run, of all schedules.", missed)
    text = "Age of the oldest instant nobody booked."
    yield GaugeMetricFamily("spillway_schedules_behind_seconds", text, behind_s())


def _open_and_dead() -> Metric:
    family = GaugeMetricFamily("spillway_schedule_runs", "Schedule runs that wait, run, or are dead.", labels=["state"])
    states = (*ScheduleRun.OPEN, ScheduleRun.State.DEAD)
    rows = ScheduleRun.objects.filter(state__in=states).order_by().values_list("state")
    counted = dict(rows.annotate(count=Count("pk")))
    for state in states:
        family.add_metric([state.value], counted.get(state.value, 0))
    return family
