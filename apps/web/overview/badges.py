"""Numbers beside links of the navigation: how many things behind them are in trouble; nothing where all is well."""

from __future__ import annotations

from django.db.models import Q
from django.http import HttpResponse

from apps.accounts.actors import Actor
from apps.alerts.selectors import own_alerts
from apps.core.clock import now
from apps.definitions import selectors as definitions
from apps.fleet import selectors as topology
from apps.observe import selectors as observe
from apps.rollouts import selectors as rollouts
from apps.web.kit.pages import PageRequest, page, show
from apps.web.overview.parts import expiring
from apps.web.schedules.rows import troubled

MOST = 99
STANDING_STILL = ("held", "refused")


@page
def badges(request: PageRequest) -> HttpResponse:
    """A part for each link that may have a number; an empty one takes away what was there."""
    rows = [(name, min(number, MOST), words) for name, number, words in _counted(request.actor)]
    return show(request, "pages/overview/badges.html", {"rows": rows})


def _counted(actor: Actor) -> list[tuple[str, int, str]]:
    """Name of the page, how many, and what they are."""
    sick = [pk for ids in observe.sick_pools().values() for pk in ids]
    found = [
        ("pools", definitions.pools(actor).filter(pk__in=sick).count() if sick else 0, "in trouble"),
        ("hostnames", definitions.hostnames(actor).filter(verification="", released_at=None).count(), "not verified"),
        ("certificates", expiring(actor, now()).count(), "expire soon"),
        ("schedules", len(troubled(actor)), "went wrong"),
        ("alerts", own_alerts(actor).filter(Q(resolved_at=None)).count(), "firing"),
    ]
    if actor.is_operator:
        still = sum(word in STANDING_STILL for word in rollouts.sync_statuses(actor).values())
        found += [
            ("regions", topology.regions(actor).filter(drained=True).count(), "drained"),
            ("rollouts", still, "fleets do not follow"),
            ("quarantine", rollouts.quarantined(actor).count(), "set apart"),
        ]
    return found
