"""Verdicts on what clients are verified by: key sets that can no longer be fetched."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from apps.definitions.models import KeySet
from apps.observe.evaluate.conditions import Reason, Type, Verdict

# Three tries take some three minutes of the hour for which a key that left counts where nobody says otherwise.
FAILURES = 3
FETCHED = "It was fetched when it was due."
KEPT = "The keys of the last successful fetch stay valid; tokens signed with newer keys are rejected."
NEVER = "It was never fetched: without written keys, every token is rejected."
REMEDY = "Check that the URL answers over the internet, then choose Fetch now on the page of a policy that names it."


def existing() -> dict[str, Collection[int]]:
    """Primary keys of what may have verdicts."""
    return {"key_set": list(KeySet.objects.values_list("pk", flat=True))}


def evaluate_all() -> Iterator[Verdict]:
    """Of each key set; one that failed once or twice is given time."""
    for row in KeySet.objects.only("pk", "failures", "error", "fetched_at"):
        failing = row.failures >= FAILURES
        message = f"{row.error} {KEPT if row.fetched_at else NEVER} {REMEDY}" if failing else FETCHED
        reason = Reason.KEY_SET_FAILS if failing else Reason.KEY_SET_FETCHED
        yield Verdict("key_set", row.pk, Type.KEYS_FETCHED, not failing, reason, message)
