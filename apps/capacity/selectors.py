"""Runs with what they measured, comparisons, blackouts; foreign rows do not exist."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.capacity.models import Blackout, Comparison, Run, Second, Step
from apps.definitions.selectors import only


def runs(actor: Actor) -> QuerySet[Run]:
    """Runs, newest first, with what names them."""
    return actor.visible(Run.objects.select_related("account", "test", "pool__account", "region"))


def run(actor: Actor, pk: int) -> Run:
    """One run. Raises NotFound."""
    return only(runs(actor), pk)


def comparisons(actor: Actor) -> QuerySet[Comparison]:
    """Comparisons, newest first, with the tests that they compare."""
    return actor.visible(Comparison.objects.select_related("account", "first", "second"))


def comparison(actor: Actor, pk: int) -> Comparison:
    """One comparison. Raises NotFound."""
    return only(comparisons(actor), pk)


def steps(actor: Actor, run_id: int) -> QuerySet[Step]:
    """The steps of a run in their order. Raises NotFound."""
    return Step.objects.filter(run=run(actor, run_id)).order_by("ordinal")


def seconds(actor: Actor, run_id: int, after: datetime | None = None) -> QuerySet[Second]:
    """The seconds of a run in their order, those after an instant where one is given. Raises NotFound."""
    rows = Second.objects.filter(run=run(actor, run_id)).order_by("at")
    return rows.filter(at__gt=after) if after else rows


def blackouts(_actor: Actor) -> QuerySet[Blackout]:
    """When no test may run: of everybody's concern, so everybody reads them."""
    return Blackout.objects.order_by("starts_at", "pk")
