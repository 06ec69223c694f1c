"""Request lines by node: stored, damaged, dropped, and how long they wait; metrics of saved searches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from apps.logs.models import NodeLog, SavedSearch
from apps.logs.saved import measured

# More series than this are not for Prometheus.
MOST_SERIES = 1000

_COUNTED = {
    "stored": "Request lines of the node that are stored.",
    "damaged": "Request lines of the node that could not be read.",
    "dropped": "Request lines that the node lost before anybody read them.",
}


def families() -> Iterator[Metric]:
    """Four families with a row for each node that was ever asked for its lines, one with a row for each metric."""
    rows = list(NodeLog.objects.select_related("node"))
    for name, text in _COUNTED.items():
        family = CounterMetricFamily(f"spillway_request_log_{name}_lines", text, labels=["node"])
        for row in rows:
            family.add_metric([row.node.name], getattr(row, name))
        yield family
    waiting = GaugeMetricFamily(
        "spillway_request_log_waiting_seconds", "Age of the oldest line that waits on the node.", labels=["node"]
    )
    for row in rows:
        waiting.add_metric([row.node.name], row.waiting_s)
    yield waiting
    yield _metrics()


def _metrics() -> GaugeMetricFamily:
    """The last minute of each saved search that is measured; a bounded number of them, as accounts are many."""
    text = "Last minute of a saved search: requests, requests per second, percent, milliseconds or bytes."
    family = GaugeMetricFamily("spillway_saved_search_value", text, labels=["account", "search"])
    rows = SavedSearch.objects.select_related("account").order_by("pk")
    known = ((row, value) for row, value, _ in measured(rows) if value is not None)
    for row, value in islice(known, MOST_SERIES):
        family.add_metric([row.account.name, row.name], value)
    return family
