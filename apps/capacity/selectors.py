"""CAPACITY, reads: runs and comparisons; the actor comes first, and rows of other accounts do not exist."""

from __future__ import annotations

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.capacity.models import Comparison, Run
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
