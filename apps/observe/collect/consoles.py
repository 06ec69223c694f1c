"""The machines of the control plane tell by how much their clocks are off, each by its own collector."""

from __future__ import annotations

from datetime import timedelta

from apps.core.clock import ahead_of_database_s, database_now
from apps.observe import services
from apps.observe.collect.fitness import evaluate_clock
from apps.observe.models import Console

EVERY = timedelta(seconds=10)
# A console of which nothing was heard for so long is not judged any more.
FORGOTTEN = timedelta(minutes=1)


def note_clock(name: str) -> None:
    """Store how this machine's clock stands, and the verdict where it changed. Raises django.db.Error."""
    instant, ahead_s = database_now(), ahead_of_database_s()
    if ahead_s is None:
        return
    row, _ = Console.objects.update_or_create(
        name=name[:80], defaults={"clock_ahead_ms": round(ahead_s * 1000), "heard_at": instant}
    )
    services.store_verdicts([evaluate_clock("console", row.pk, ahead_s)], instant)


def heard_of() -> dict[int, str]:
    """Names of the consoles that were heard of lately, by primary key."""
    return dict(Console.objects.filter(heard_at__gte=database_now() - FORGOTTEN).values_list("pk", "name"))
