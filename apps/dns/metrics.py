"""Zones by how far they have come, records that drifted, stand in the way, or are not served."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import F
from prometheus_client.core import GaugeMetricFamily, Metric

from apps.definitions.models import Zone
from apps.dns.models import ServedRecord, ZoneSync


def families() -> Iterator[Metric]:
    """Three families, three queries."""
    behind = Zone.objects.exclude(driver=Zone.Driver.ROUTE53).exclude(
        sync__pushed_generation__gte=F("desired_generation")
    )
    yield GaugeMetricFamily("spillway_zones_behind", "Zones whose server lacks a change.", value=behind.count())
    wrong = GaugeMetricFamily("spillway_zone_records", "Record sets that are not as wanted.", labels=["zone", "why"])
    for domain, drift, blocked, refused in ZoneSync.objects.values_list(
        "zone__domain", "drift", "in_the_way", "refused"
    ).order_by("zone__domain"):
        for why, entries in (("drifted", drift), ("in_the_way", blocked), ("refused", refused)):
            wrong.add_metric([domain, why], len(entries))
    yield wrong
    unserved = ServedRecord.objects.filter(as_wanted=False).values("record").distinct().count()
    yield GaugeMetricFamily("spillway_records_not_served", "Records that a resolver answers otherwise.", value=unserved)
