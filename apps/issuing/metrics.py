"""Automatic certificates by how they stand, and the failures in a row of each that has any."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count
from prometheus_client.core import GaugeMetricFamily, Metric

from apps.definitions.models import CertificateOrder


def families() -> Iterator[Metric]:
    """Two families, two queries."""
    states = GaugeMetricFamily(
        "spillway_certificate_orders", "Automatic certificates by what comes next.", labels=["state"]
    )
    counts = dict(CertificateOrder.objects.values_list("state").annotate(count=Count("pk")).order_by())
    for state in CertificateOrder.State:
        states.add_metric([state.value], counts.get(state.value, 0))
    yield states
    failures = GaugeMetricFamily(
        "spillway_certificate_order_failures",
        "Orders of an automatic certificate that failed in a row.",
        labels=["account", "name"],
    )
    rows = CertificateOrder.objects.exclude(failures=0).order_by("pk")
    for account, name, count in rows.values_list("certificate__account__name", "certificate__name", "failures"):
        failures.add_metric([account, name], count)
    yield failures
