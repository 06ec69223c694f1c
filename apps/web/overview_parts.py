"""SHOW to people: what the first pages of operators and of customers have in common."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions import selectors as definitions
from apps.definitions.models import Certificate
from apps.observe import selectors as observe
from apps.observe.numbers import Problem
from apps.web.certificates import SOON, validity
from apps.web.figures import figures_of, spark

POOLS_SHOWN = 12
PAGES_OF_PROBLEMS = {"node": "web:node", "pool": "web:pool"}


def problems_with_pages(problems: list[Problem]) -> dict[str, Any]:
    """The worst five problems, each with the name of the page that shows it, and how many more there are."""
    worst = [(problem, PAGES_OF_PROBLEMS.get(problem.kind, "")) for problem in problems[:5]]
    return {"problems": worst, "more_problems": max(len(problems) - 5, 0)}


def lines(actor: Actor) -> dict[str, str]:
    """Sparklines of the last half hour."""
    series = observe.overall_series(actor, minutes=30, points=60, latency=True)
    return {
        "requests": spark(series.requests),
        "errors": spark(series.errors),
        "p95": spark(series.p95_ms),
        "connections": spark(series.connections),
    }


def expiring_soon(actor: Actor) -> list[tuple[Certificate, str, str]]:
    """Certificates that expire within three weeks, soonest first, each with its state and words."""
    rows = definitions.certificates(actor).filter(not_after__lt=now() + timedelta(days=SOON)).order_by("not_after")
    return [(certificate, *validity(certificate, now())) for certificate in rows[:5]]


def pools_of_interest(actor: Actor, problems: list[Problem]) -> list[dict[str, Any]]:
    """The busiest pools, sick ones first."""
    every = definitions.pools(actor).prefetch_related(None)
    numbers = observe.pool_numbers(actor, every.values_list("pk", flat=True))
    sick = {problem.object_id for problem in problems if problem.kind == "pool"}

    def order(pk: int) -> tuple[bool, float]:
        return pk not in sick, -(numbers[pk].numbers.requests_per_s or 0.0)

    shown = sorted(numbers, key=order)[:POOLS_SHOWN]
    rows = every.in_bulk(shown)
    return [{"pool": rows[pk], "now": numbers[pk], "figures": figures_of(numbers[pk].numbers)} for pk in shown]
