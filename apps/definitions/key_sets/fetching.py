"""Fetches key sets that are due, keeps the last good answer, and tells nodes when the keys that count change.

1. The sweep wakes a worker where one is due. Owners take turns on the seats that verifications of hostnames have too.
2. A worker claims a set by moving its next try ahead: one that dies is missed after `CLAIM`.
3. It asks outside of transactions, by the calls that reach no private address and end in time (core/outbound.py).
4. It stores the answer, or the error beside the last good answer. A key that left the set stays for its grace.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.accounts.actors import platform_actor
from apps.audit import services as audit
from apps.core.called_urls import Refused
from apps.core.clock import now
from apps.core.concurrency.backoff import pause_after
from apps.core.concurrency.fairness import Owners, in_turns
from apps.core.events import publish_after_commit
from apps.core.outbound import Unreachable, fetch
from apps.core.queue import enqueue
from apps.definitions.freezing.frozen_keys import GRACE_S, counting
from apps.definitions.key_sets.following import FETCH_TASK, followers, load_balancers_following
from apps.definitions.key_sets.reading import MAX_BYTES, BadKeySet, KeySetRead, read_key_set
from apps.definitions.models import KeySet
from apps.definitions.selectors import fleets_of_load_balancers
from apps.definitions.shapes.base.words import instant_text
from apps.definitions.shapes.traffic.authentication import MOST_GRACE_S
from apps.definitions.writing.kinds.hostnames import SEATS
from apps.fleet.services import request_push

TIMEOUT_S = 5.0
EVERY = timedelta(minutes=5)
# After a failure: a minute, two, four …, at most a quarter of an hour.
SOONEST, LATEST = timedelta(minutes=1), timedelta(minutes=15)
CLAIM = timedelta(minutes=1)
WAKE_EXPIRES_S = 30.0
# Of keys that left, the newest stay: a server that has other keys at each look does not fill nodes.
MOST_GONE = 8
Keys = list[dict[str, str]]


def sweep(moment: datetime) -> None:
    """Wake a worker where a set is due."""
    if KeySet.objects.filter(next_at__lte=moment).exists():
        enqueue(FETCH_TASK, expires_s=WAKE_EXPIRES_S)


def fetch_in_turns() -> int:
    """Fetch what is due, account by account, as long as there are seats; the number of sets."""

    def choose(accounts: Owners, done: frozenset[int]) -> tuple[Hashable, int] | None:
        due = KeySet.objects.filter(next_at__lte=now()).exclude(account__in=accounts).exclude(pk__in=done)
        return due.order_by("next_at", "pk").values_list("account", "pk").first()

    return in_turns(SEATS, choose, lambda pk: fetch_one(key_set_id=pk))


def fetch_one(*, key_set_id: int) -> None:
    """Fetch one set in its turn; one that somebody else has claimed, or that nobody names any more, is passed over."""
    moment = now()
    if not KeySet.objects.filter(pk=key_set_id, next_at__lte=moment).update(next_at=moment + CLAIM):
        return
    row = KeySet.objects.get(pk=key_set_id)
    if not any(rows.exists() for rows in followers(row)):
        row.delete()
        return
    try:
        found, error = ask(row.url), ""
    except (BadKeySet, Refused, Unreachable) as refusal:
        found, error = None, str(refusal)
    _store(row, found, error)


def ask(url: str) -> KeySetRead:
    """The key set at a URL. Raises Refused, Unreachable, BadKeySet with a sentence."""
    answer = fetch(url, headers={"Accept": "application/json"}, timeout=TIMEOUT_S, limit=MAX_BYTES + 1)
    if answer.status != 200:
        raise BadKeySet(f"The response is {answer.status}.")
    return read_key_set(answer.body)


def _store(asked: KeySet, found: KeySetRead | None, error: str) -> None:
    """Note the answer, and push where other keys count than at the last look."""
    moment = now()
    with transaction.atomic():
        row = KeySet.objects.select_for_update(of=("self",)).select_related("account").filter(pk=asked.pk).first()
        if row is None:
            return
        before, last = row.keys, row.tried_at or moment
        row.keys = _kept(before, found, moment)
        row.tried_at, row.error = moment, error[:400]
        row.failures = row.failures + 1 if found is None else 0
        if found is not None:
            row.fetched_at, row.ignored = moment, found.ignored
        row.next_at = moment + _pause(row.failures)
        row.save()
        if _names(before) != _names(row.keys):
            _record(row, before)
        if any(counting(before, grace, last) != counting(row.keys, grace, moment) for grace in _graces(row)):
            request_push(fleets_of_load_balancers(load_balancers_following(row)))
        publish_after_commit("definitions")


def _kept(before: Keys, found: KeySetRead | None, moment: datetime) -> Keys:
    """The keys of the answer (without one: as they were), then those that left it and may still count for somebody."""
    said = instant_text(moment) or ""
    fresh: Keys = [key for key in before if "gone_at" not in key]
    if found is not None:
        fresh = [{"algorithm": key.algorithm, "pem": key.pem, "kid": key.kid} for key in found.keys]
    gone = [{"gone_at": said} | key for key in before if _bare(key) not in fresh]
    oldest = instant_text(moment - timedelta(seconds=MOST_GRACE_S)) or ""
    gone = sorted((key for key in gone if key["gone_at"] > oldest), key=lambda key: key["gone_at"], reverse=True)
    return fresh + gone[:MOST_GONE]


def _bare(key: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in key.items() if name != "gone_at"}


def _pause(failures: int) -> timedelta:
    """Until the next try; a tenth more or less, so that many sets do not fall due together."""
    pause = pause_after(failures, first=SOONEST, longest=LATEST) if failures else EVERY
    return pause * random.uniform(0.9, 1.1)  # noqa: S311 - nothing secret


def _graces(row: KeySet) -> Iterable[int]:
    """How long keys that left count, for each who follows the set."""
    return {
        GRACE_S if grace is None else grace
        for rows in followers(row)
        for grace in rows.values_list("rules__jwt__jwks_grace_s", flat=True).distinct()
    }


def _names(keys: Keys) -> list[str]:
    return sorted(f"{key['algorithm']} {key['kid']} {key['pem']}" for key in keys if "gone_at" not in key)


def _record(row: KeySet, before: Keys) -> None:
    """An entry of the audit log: what may sign tokens changed, and no person did it."""
    sides: list[dict[str, Any]] = [
        {"keys": [f"{key['algorithm']} {key['kid']}".strip() for key in keys if "gone_at" not in key]}
        for keys in (before, row.keys)
    ]
    audit.record(
        actor=platform_actor(),
        action="rotate",
        kind="KeySet",
        object_id=row.pk,
        label=row.url,
        account=row.account,
        before=sides[0],
        after=sides[1],
    )
