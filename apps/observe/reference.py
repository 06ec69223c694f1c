"""The page of reference about metrics, from what the exposition says of itself."""

from __future__ import annotations

from prometheus_client.core import Metric

from apps.observe.metrics import Exposition

HEAD = """# Metrics

`manage.py describe_metrics` prints this page. `/metrics` tells Prometheus all of it; see
[monitoring](../operate/monitoring.md) for who may read it, alert rules and dashboards. Counters begin again at zero
when HAProxy reloads: take the rate first and the sum second.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def page() -> str:
    """Markdown with a row for each metric, in alphabetical order."""
    return HEAD + "".join(sorted(_row(family) for family in Exposition().collect()))


def _row(family: Metric) -> str:
    name, kind = family.name, family.type
    shown = f"{name}_total" if kind == "counter" else name
    labels = ", ".join(f"`{label}`" for label in getattr(family, "_labelnames", ()))
    return f"| `{shown}` | {kind} | {labels} | {family.documentation} |\n"
