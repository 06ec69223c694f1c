"""People, invitations and tokens; an operator sees those of every account, a customer its own."""

from __future__ import annotations

from collections.abc import Mapping

from django.db.models import Q, QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Account, ApiToken, Invitation, Membership
from apps.core.clock import now


def memberships(actor: Actor) -> QuerySet[Membership]:
    """People and their roles, by account and name."""
    rows = Membership.objects.select_related("account", "user").order_by("account__name", "user__username")
    return actor.visible(rows)


def invitations(actor: Actor) -> QuerySet[Invitation]:
    """Invitations that were neither accepted nor taken back, the newest first; some may have expired."""
    return actor.visible(Invitation.objects.select_related("account").filter(accepted_at=None, revoked_at=None))


def tokens(actor: Actor) -> QuerySet[ApiToken]:
    """Tokens that were not revoked, by account and name; some may have expired."""
    rows = ApiToken.objects.select_related("account").filter(revoked_at=None)
    return actor.visible(rows).order_by("account__name", "name", "pk")


def live_tokens(account: Account) -> QuerySet[ApiToken]:
    """What counts against the quota of tokens: neither revoked nor expired."""
    return account.tokens.filter(Q(expires_at=None) | Q(expires_at__gt=now()), revoked_at=None)


def people_expected(account: Account) -> int:
    """What counts against the quota of people: those who are in the account and those who may still come."""
    coming = account.invitations.filter(accepted_at=None, revoked_at=None, expires_at__gt=now())
    return account.memberships.count() + coming.count()


def counts(account: Account) -> Mapping[str, int]:
    """How many of the quotas `tokens` and `people` are used."""
    return {"tokens": live_tokens(account).count(), "people": people_expected(account)}
