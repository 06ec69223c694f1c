"""SHOW to customers: what is left to do first, then the worst problem, the numbers, the overflow and what expires."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.definitions import selectors as definitions
from apps.observe import selectors as observe
from apps.overflow import selectors as overflow
from apps.web.capacity_now import tests_now
from apps.web.figures import figures_of
from apps.web.first_steps import first_steps
from apps.web.flow_parts import shown
from apps.web.flow_words import rate
from apps.web.overview_parts import expiring_soon, lines, pools_of_interest, problems_with_pages
from apps.web.schedules_rows import troubled

TEMPLATE = "pages/overview/home.html"
WAITING_SHOWN = 5


def context_of(actor: Actor) -> dict[str, Any]:
    """The context of a customer's first page."""
    problems = observe.problems(actor)
    flow = overflow.flow_overall(actor)
    waiting = definitions.hostnames(actor).filter(proof="", released_at=None)
    routes = definitions.routes(actor).filter(account=actor.account).count()
    return {
        "steps": first_steps(actor),
        "waiting": list(waiting[:WAITING_SHOWN]),
        **problems_with_pages(problems),
        "summary": f"{routes} route{'' if routes == 1 else 's'}.",
        "now": figures_of(observe.live_numbers(actor)),
        "lines": lines(actor),
        "flow": shown(flow, "traffic"),
        "over": rate(sum(use.out_per_s for use in flow.regions)) if flow.at else "",
        "pools": pools_of_interest(actor, problems),
        "expiring": expiring_soon(actor),
        **tests_now(actor),
        "troubled": troubled(actor),
    }
