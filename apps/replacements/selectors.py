"""Replacements with their servers; foreign rows do not exist."""

from __future__ import annotations

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.definitions.selectors import only
from apps.replacements.models import Replacement


def replacements(actor: Actor) -> QuerySet[Replacement]:
    """Replacements, newest first, with what names them."""
    rows = Replacement.objects.select_related("account", "pool__account").prefetch_related("servers")
    return actor.visible(rows)


def replacement(actor: Actor, pk: int) -> Replacement:
    """One replacement. Raises NotFound."""
    return only(replacements(actor), pk)


def open_in(actor: Actor, pool_id: int) -> Replacement | None:
    """The replacement of a pool that is not over."""
    return replacements(actor).filter(pool=pool_id, state__in=Replacement.OPEN).first()
