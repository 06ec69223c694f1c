"""What is left to do first, then the worst problem, the numbers, the overflow and what expires."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.definitions import selectors as definitions
from apps.fleet.models import Fleet
from apps.observe import selectors as observe
from apps.overflow import selectors as overflow
from apps.rollouts.selectors import sync_statuses
from apps.web.capacity.upcoming import tests_now
from apps.web.kit.figures import figures_of
from apps.web.overflow.parts import shown
from apps.web.overflow.words import rate
from apps.web.overview.first_steps import first_steps
from apps.web.overview.incidents import Incident, incidents, slower, standing_still
from apps.web.overview.parts import attention, expiring_soon, half_hour, lines_of, pools_of_interest
from apps.web.schedules.rows import troubled

TEMPLATE = "pages/overview/home.html"
WAITING_SHOWN = 5


def context_of(actor: Actor) -> dict[str, Any]:
    """The context of a customer's first page."""
    problems = observe.problems(actor)
    flow = overflow.flow_overall(actor)
    numbers, series = observe.live_numbers(actor), half_hour(actor)
    standing = _waiting(actor)
    waiting = definitions.hostnames(actor).filter(verification="", released_at=None)
    routes = definitions.routes(actor).filter(account=actor.account).count()
    return {
        "steps": first_steps(actor),
        "waiting": list(waiting[:WAITING_SHOWN]),
        "standing": standing,
        **attention(incidents(problems, flow, standing, slower(numbers, series))),
        "summary": f"{routes} route{'' if routes == 1 else 's'}.",
        "now": figures_of(numbers),
        "lines": lines_of(series),
        "flow": shown(flow, "traffic"),
        "over": rate(sum(use.overflow_out_rps for use in flow.regions)) if flow.at else "",
        "pools": pools_of_interest(actor),
        "expiring": expiring_soon(actor),
        **tests_now(actor),
        "troubled": troubled(actor),
    }


def _waiting(actor: Actor) -> list[Incident]:
    """Fleets of the account's own routes that an operator holds."""
    words = sync_statuses(actor)
    if "held" not in words.values():
        return []
    own = Fleet.objects.filter(load_balancers__routes__account=actor.account).values_list("pk", flat=True)
    return standing_still(words, own=own.distinct())
