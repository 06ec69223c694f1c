"""Verdicts on what clients are verified by: key sets that can no longer be fetched, revocation lists that end."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from apps.definitions.models import KeySet, Listener
from apps.definitions.values.authorities import terms_of_revocation_lists
from apps.observe.evaluate.conditions import Reason, Type, Verdict

# Three tries take some three minutes of the hour for which a key that left counts where nobody says otherwise.
FAILURES = 3
FETCHED = "It was fetched when it was due."
KEPT = "The keys of the last successful fetch stay valid; tokens signed with newer keys are rejected."
NEVER = "It was never fetched: without written keys, every token is rejected."
REMEDY = "Check that the URL answers over the internet, then choose Fetch now on the page of a policy that names it."

EARLIEST = timedelta(days=7)
CURRENT = "No revocation list of its listeners ends soon."
RENEW = "Get the authority's new list and replace crl in client_certificates."


def existing() -> dict[str, Collection[int]]:
    """Primary keys of what may have verdicts."""
    balancers = _with_lists().values_list("load_balancer_id", flat=True).distinct()
    return {"key_set": list(KeySet.objects.values_list("pk", flat=True)), "load_balancer": list(balancers)}


def evaluate_all(instant: datetime) -> Iterator[Verdict]:
    """Of each key set, and of each load balancer whose listeners verify clients."""
    yield from _of_key_sets()
    yield from _of_load_balancers(instant)


def _of_key_sets() -> Iterator[Verdict]:
    """One that failed once or twice is given time."""
    for row in KeySet.objects.only("pk", "failures", "error", "fetched_at"):
        failing = row.failures >= FAILURES
        message = f"{row.error} {KEPT if row.fetched_at else NEVER} {REMEDY}" if failing else FETCHED
        reason = Reason.KEY_SET_FAILS if failing else Reason.KEY_SET_FETCHED
        yield Verdict("key_set", row.pk, Type.KEYS_FETCHED, not failing, reason, message)


@dataclass(frozen=True, slots=True)
class EndingList:
    """A revocation list that ended, or ends soon; `sentence` says what to do."""

    sentence: str
    ended: bool


def ending_lists(listeners: Iterable[Listener], instant: datetime) -> list[EndingList]:
    """Those of these listeners, the first to end first.

    The warning comes when a quarter of the time is left for which the authority meant a list to hold, but no earlier
    than a week before its end.
    """
    found = {
        (end, issuer, listener.name)
        for listener in listeners
        for entry in listener.client_certificates or ()
        for issuer, begin, end in _terms(entry.get("crl") or "")
        if instant >= end - min((end - begin) / 4, EARLIEST)
    }
    return [_ending(*each, ended=each[0] <= instant) for each in sorted(found)]


def _ending(end: datetime, issuer: str, listener: str, *, ended: bool) -> EndingList:
    when = f"{end:%Y-%m-%d %H:%M} UTC"
    if ended:
        said = f"The revocation list of {issuer} ended on {when}, so listener {listener} accepts none of its clients."
    else:
        said = f"The revocation list of {issuer} ends on {when}; then listener {listener} accepts none of its clients."
    return EndingList(f"{said} {RENEW}", ended)


# Large lists are read once, not each minute.
_terms = functools.lru_cache(maxsize=256)(terms_of_revocation_lists)


def _with_lists() -> QuerySet[Listener]:
    return Listener.objects.exclude(client_certificates=None).order_by("load_balancer_id", "pk")


def _of_load_balancers(instant: datetime) -> Iterator[Verdict]:
    fields = ("pk", "name", "load_balancer_id", "client_certificates")
    for pk, own in itertools.groupby(_with_lists().only(*fields), lambda each: each.load_balancer_id):
        ending = ending_lists(own, instant)
        reason = Reason.REVOCATION_LISTS_CURRENT
        if ending:
            reason = Reason.REVOCATION_LIST_ENDED if ending[0].ended else Reason.REVOCATION_LIST_ENDS
        message = " ".join(each.sentence for each in ending) or CURRENT
        yield Verdict("load_balancer", pk, Type.REVOCATION_LISTS_CURRENT, not ending, reason, message)
