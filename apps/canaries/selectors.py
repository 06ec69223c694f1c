"""Canaries; foreign rows do not exist."""

from __future__ import annotations

from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.canaries.models import Canary
from apps.definitions.selectors import only


def canaries(actor: Actor) -> QuerySet[Canary]:
    """Canaries, newest first, with what names them."""
    return actor.visible(Canary.objects.select_related("account", "route"))


def canary(actor: Actor, pk: int) -> Canary:
    """One canary. Raises NotFound."""
    return only(canaries(actor), pk)


def open_on(actor: Actor, route_id: int) -> Canary | None:
    """The canary of a route that is not over."""
    return canaries(actor).filter(route=route_id, state__in=Canary.OPEN).first()
