"""Verdicts on where servers are looked up: a source that gave no answer that counts, several times in a row."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from apps.definitions.models import ServerSource
from apps.observe.evaluate.conditions import Reason, Type, Verdict

# At two, four and eight seconds, a quarter of a minute.
FAILURES = 4
ANSWERS = "The source answers."
STAY = "The servers stay as they were listed last."
NEVER = "It never answered, so this region has no server from it."


def existing() -> dict[str, Collection[int]]:
    """Primary keys of what may have verdicts."""
    return {"server_source": list(ServerSource.objects.values_list("pk", flat=True))}


def evaluate_all() -> Iterator[Verdict]:
    """One for each source.

    Not found: it failed several times in a row, or what it answers cannot be used at all. An answer that names too few
    servers is waited for.
    """
    for row in ServerSource.objects.only("pk", "failures", "short", "error", "answered_at"):
        bad = row.failures >= FAILURES or (bool(row.error) and row.failures == 0 and row.short == 0)
        message = f"{row.error} {STAY if row.answered_at else NEVER}" if bad else ANSWERS
        reason = Reason.SOURCE_FAILS if bad else Reason.SOURCE_ANSWERS
        yield Verdict("server_source", row.pk, Type.SERVERS_FOUND, not bad, reason, message)
