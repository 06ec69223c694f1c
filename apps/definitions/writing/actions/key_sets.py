"""A key set is fetched now, because somebody changed something at its issuer and does not want to wait."""

from __future__ import annotations

from datetime import timedelta

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.errors import Conflict
from apps.core.queue import enqueue
from apps.definitions import selectors
from apps.definitions.key_sets.following import FETCH_TASK, url_of
from apps.definitions.models import KeySet, Policy, Route

# Whoever asks again and again does not make Spillway ask the issuer as often.
BETWEEN_FETCHES = timedelta(seconds=5)
NONE = "It names no key set: its own rules have no jwks_url."


def fetch_key_set_of_policy(*, actor: Actor, policy_id: int) -> Policy:
    """Have a worker fetch it in its turn. Raises NotFound, Forbidden, Conflict."""
    actor.may_write("policies")
    row = selectors.only(selectors.policies(actor), policy_id)
    _fetch(row)
    return row


def fetch_key_set_of_route(*, actor: Actor, route_id: int) -> Route:
    """The same for the rules of a route itself."""
    actor.may_write("routes")
    row = selectors.only(selectors.routes(actor), route_id)
    _fetch(row)
    return row


def _fetch(row: Policy | Route) -> None:
    found = KeySet.objects.filter(account=row.account_id, url=url_of(row.rules)).first()
    if found is None:
        raise Conflict(NONE)
    bring_forward(found)
    enqueue(FETCH_TASK)


def bring_forward(row: KeySet) -> None:
    """Have it fetched at once, unless it was fetched in the last five seconds."""
    moment = now()
    if row.next_at > moment and (row.tried_at is None or moment - row.tried_at >= BETWEEN_FETCHES):
        KeySet.objects.filter(pk=row.pk).update(next_at=moment)
