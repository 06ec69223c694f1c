"""The reads: incidents, narrowed to the pages that the actor may see."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from apps.accounts.actors import Actor
from apps.definitions.models import StatusPage
from apps.definitions.selectors import only, status_pages
from apps.status.models import Incident


def page(actor: Actor, pk: int) -> StatusPage:
    """One status page. Raises NotFound."""
    return only(status_pages(actor), pk)


def public_page(name: str) -> StatusPage | None:
    """The page that everybody may read by this name; None for one that is not public, as for one that is not there."""
    rows = StatusPage.objects.select_related("account").filter(name=name, public=True, account__suspended_at=None)
    return rows.first()


def incidents(actor: Actor) -> QuerySet[Incident]:
    """Incidents with what was written, newest first; operators see those of customers too."""
    rows = Incident.objects.filter(page__in=actor.visible(StatusPage.objects.all()))
    return rows.select_related("page__account").prefetch_related("updates").order_by("-id")


def incident(actor: Actor, pk: int) -> Incident:
    """One incident. Raises NotFound."""
    return only(incidents(actor), pk)


def not_over(rows: QuerySet[Incident], instant: datetime) -> QuerySet[Incident]:
    """Those that are open, and maintenance that is still to come or in progress."""
    return rows.filter(Q(ends_at=None) | Q(ends_at__gt=instant), resolved_at=None)
