"""Request lines by node and by log forward, and how long they wait; saved searches; error budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from apps.core.clock import now
from apps.definitions.models import Pool, Route
from apps.logs.models import LogForward, NodeLog, SavedSearch
from apps.logs.objectives.standing import route_standings
from apps.logs.saved import measured
from apps.observe.show.objectives import WHOLE, Standing, standings

# More series than this are not for Prometheus.
MOST_SERIES = 1000

# Three days are many slots; alert rules here look at them, Prometheus has a history of its own.
_BURNS = ("5m", "30m", "1h", "6h")
_COUNTED = {
    "stored": "Request lines of the node that are stored.",
    "damaged": "Request lines of the node that could not be read.",
    "dropped": "Request lines that the node lost before anybody read them.",
}

_OF_FORWARD = ("account", "forward")
_FORWARDED = {
    "sent": "Lines or spans that the receiver of the log forward took.",
    "refused": "Lines or spans that the receiver of the log forward refused for good.",
    "skipped": "Lines of the log forward that were never sent: too old, or too many waited.",
}

_MEASURED: dict[str, tuple[str, Callable[[LogForward], int | datetime | None]]] = {
    "waiting_lines": ("Lines that wait to be sent, counted every half minute.", lambda row: row.lines_waiting),
    "failing_seconds": ("For how long no attempt arrived; 0 after one that did.", lambda row: row.failing_since),
    "since_success_seconds": (
        "Since the receiver last took something, or since the log forward was made.",
        lambda row: row.sent_at or row.created_at,
    ),
}


def families() -> Iterator[Metric]:
    """Families with a row for each node that was ever asked for its lines, and those of what is counted."""
    rows = list(NodeLog.objects.select_related("node"))
    for name, text in _COUNTED.items():
        family = CounterMetricFamily(f"spillway_request_log_{name}_lines", text, labels=["node"])
        for row in rows:
            family.add_metric([row.node.name], getattr(row, name))
        yield family
    waiting = GaugeMetricFamily(
        "spillway_request_log_waiting_seconds", "Age of the oldest line that waits on the node.", labels=["node"]
    )
    instant = now()
    for row in rows:
        waiting.add_metric([row.node.name], row.waits_s(instant))
    yield waiting
    yield from _forwards()
    yield _metrics()
    yield from _objectives()


def _forwards() -> Iterator[Metric]:
    """How each log forward that is on does; a bounded number of them, as accounts are many."""
    rows = list(LogForward.objects.filter(enabled=True).select_related("account").order_by("pk")[:MOST_SERIES])
    instant = now()
    for name, text in _FORWARDED.items():
        counter = CounterMetricFamily(f"spillway_log_forward_{name}_lines", text, labels=_OF_FORWARD)
        for row in rows:
            counter.add_metric([row.account.name, row.name], getattr(row, name))
        yield counter
    for name, (text, value) in _MEASURED.items():
        gauge = GaugeMetricFamily(f"spillway_log_forward_{name}", text, labels=_OF_FORWARD)
        for row in rows:
            gauge.add_metric([row.account.name, row.name], _number(value(row), instant))
        yield gauge


def _number(value: int | datetime | None, instant: datetime) -> float:
    """A time is how many seconds ago it was, none is zero."""
    return max(0.0, (instant - value).total_seconds()) if isinstance(value, datetime) else float(value or 0)


def _metrics() -> GaugeMetricFamily:
    """The last minute of each saved search that is measured; a bounded number of them, as accounts are many."""
    text = "Last minute of a saved search: requests, requests per second, percent, milliseconds or bytes."
    family = GaugeMetricFamily("spillway_saved_search_value", text, labels=["account", "search"])
    rows = SavedSearch.objects.select_related("account").order_by("pk")
    known = ((row, value) for row, value, _ in measured(rows) if value is not None)
    for row, value in islice(known, MOST_SERIES):
        family.add_metric([row.account.name, row.name], value)
    return family


def _objectives() -> Iterator[GaugeMetricFamily]:
    """What is left of each error budget, and how fast it goes; what nobody knows has no row."""
    labels = ["account", "kind", "name", "objective"]
    left = GaugeMetricFamily(
        "spillway_objective_budget_remaining_ratio",
        "What is left of the error budget of 28 days, 1 for all of it; below 0 it is overspent.",
        labels=labels,
    )
    burns = GaugeMetricFamily(
        "spillway_objective_burn_rate",
        "How fast the error budget was used in a window; at 1 it lasts exactly 28 days.",
        labels=[*labels, "window"],
    )
    for row, kind, standing in islice(_standings(), MOST_SERIES):
        for aim in standing.aims:
            named = [row.account.name, kind, row.name, aim.word]
            if (percent := aim.shares[WHOLE].left) is not None:
                left.add_metric(named, percent / 100)
            for window in _BURNS:
                if (rate := aim.shares[window].burn) is not None:
                    burns.add_metric([*named, window], rate)
    yield left
    yield burns


def _standings() -> Iterator[tuple[Pool | Route, str, Standing]]:
    windows = (*_BURNS, WHOLE)
    pools: dict[int, Pool] = _with_objective(Pool)
    for pk, standing in standings(pools.values(), windows=windows).items():
        yield pools[pk], "pool", standing
    routes: dict[int, Route] = _with_objective(Route)
    for pk, standing in route_standings(list(routes.values()), windows=windows).items():
        yield routes[pk], "route", standing


def _with_objective(model: Any) -> dict[int, Any]:
    rows = model.objects.filter(objective__isnull=False).select_related("account").order_by("pk")
    return {each.pk: each for each in rows[:MOST_SERIES]}
