"""What only a customer's first page has: what is left to do, names that wait, and an operator that holds a fleet."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.definitions import selectors as definitions
from apps.fleet.models import Fleet
from apps.rollouts.selectors import sync_statuses
from apps.web.first_steps.customers import first_steps
from apps.web.overview.incidents import Incident, standing_still

TEMPLATE = "pages/overview/home.html"
WAITING_SHOWN = 5


def waiting_for(actor: Actor) -> list[Incident]:
    """Fleets of the account's own routes that an operator holds."""
    words = sync_statuses(actor)
    if "held" not in words.values():
        return []
    own = Fleet.objects.filter(load_balancers__routes__account=actor.account).values_list("pk", flat=True)
    return standing_still(words, own=own.distinct())


def context_of(actor: Actor, standing: list[Incident]) -> dict[str, Any]:
    """What a customer's first page has of its own."""
    unverified = definitions.hostnames(actor).filter(verification="", released_at=None)
    return {"steps": first_steps(actor), "waiting": list(unverified[:WAITING_SHOWN]), "standing": standing}
