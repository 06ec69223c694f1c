"""Rollouts by state, the age of the oldest that is not over, and fleets that are behind."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count, F, Min
from prometheus_client.core import GaugeMetricFamily, Metric

from apps.core.clock import now
from apps.rollouts.models import FleetSync, Rollout, TicketSecrets
from apps.rollouts.push.states import TERMINAL, RolloutState


def families() -> Iterator[Metric]:
    """Four families, four queries."""
    states = GaugeMetricFamily("spillway_rollouts", "Rollouts by state, of all time.", labels=["state"])
    counted = dict(Rollout.objects.order_by().values_list("state").annotate(count=Count("pk")))
    for state in RolloutState:
        states.add_metric([state.value], counted.get(state.value, 0))
    yield states
    oldest = Rollout.objects.exclude(state__in=[state.value for state in TERMINAL]).aggregate(at=Min("created_at"))[
        "at"
    ]
    age = (now() - oldest).total_seconds() if oldest else 0.0
    yield GaugeMetricFamily(
        "spillway_rollouts_oldest_unfinished_seconds", "Age of the oldest rollout that is not over.", value=age
    )
    behind = FleetSync.objects.filter(fleet__desired_generation__gt=F("compiled_generation"), held_at=None).count()
    yield GaugeMetricFamily("spillway_fleets_behind", "Fleets whose newest definitions are not compiled.", value=behind)
    ages = GaugeMetricFamily(
        "spillway_ticket_secrets_age_seconds", "Age of a fleet's newest secret of session tickets.", labels=["fleet"]
    )
    for fleet, renewed_at in TicketSecrets.objects.order_by("fleet").values_list("fleet__name", "renewed_at"):
        ages.add_metric([fleet], (now() - renewed_at).total_seconds())
    yield ages
