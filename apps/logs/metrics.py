"""Request lines by node: stored, damaged, dropped, and how long they wait."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from apps.logs.models import NodeLog

_COUNTED = {
    "stored": "Request lines of the node that are stored.",
    "damaged": "Request lines of the node that could not be read.",
    "dropped": "Request lines that the node lost before anybody read them.",
}


def families() -> Iterator[Metric]:
    """Four families, a row for each node that was ever asked for its lines."""
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
