"""What the first pages of operators and of customers have in common."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions import selectors as definitions
from apps.definitions.models import Certificate
from apps.observe import selectors as observe
from apps.observe.numbers import Series
from apps.web.kit.figures import figures_of, spark
from apps.web.load_balancers.certificates import SOON, validity
from apps.web.overview.incidents import SHOWN, Incident

POOLS_SHOWN = 12
# A pool of which nothing is known is no worse than a healthy one: its traffic decides.
WORST_FIRST = ("down", "degraded", "healthy", "unknown")


def attention(every: list[Incident]) -> dict[str, Any]:
    """The worst incidents, and how many more there are."""
    return {"incidents": every[:SHOWN], "more_incidents": max(len(every) - SHOWN, 0)}


def lines_of(series: Series) -> dict[str, str]:
    """Sparklines of the last half hour."""
    return {
        "requests": spark(series.requests),
        "errors": spark(series.errors),
        "p95": spark(series.p95_ms),
        "connections": spark(series.connections),
    }


def half_hour(actor: Actor) -> Series:
    """What the sparklines show."""
    return observe.overall_series(actor, minutes=30, points=60, latency=True)


def expiring_soon(actor: Actor) -> list[tuple[Certificate, str, str]]:
    """Certificates that expire within three weeks, soonest first, each with its state and words."""
    rows = definitions.certificates(actor).filter(not_after__lt=now() + timedelta(days=SOON)).order_by("not_after")
    return [(certificate, *validity(certificate, now())) for certificate in rows[:5]]


def pools_of_interest(actor: Actor) -> list[dict[str, Any]]:
    """The worst pools first, then the busiest."""
    every = definitions.pools(actor).prefetch_related(None)
    numbers = observe.pool_numbers(actor, every.values_list("pk", flat=True))

    def order(pk: int) -> tuple[int, float]:
        return WORST_FIRST.index(numbers[pk].health), -(numbers[pk].numbers.requests_rps or 0.0)

    shown = sorted(numbers, key=order)[:POOLS_SHOWN]
    rows = every.in_bulk(shown)
    return [{"pool": rows[pk], "now": numbers[pk], "figures": figures_of(numbers[pk].numbers)} for pk in shown]
