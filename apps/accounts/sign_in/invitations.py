"""Invitations: a link for one person, told to nobody else; opened often, accepted once."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.dispatch import Signal

from apps.accounts.models import Invitation, Membership, User
from apps.accounts.quotas import lock_quotas, refuse_over_quota
from apps.core.clock import now
from apps.core.errors import Conflict, NotFound, there

LIFETIME = timedelta(days=7)
GONE = "This invitation is not valid or no longer valid. Ask the person who invited you for a new one."
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")

# Sent inside the transaction of an acceptance: `membership` and `invitation`. Whoever keeps records listens.
accepted = Signal()


def new_secret() -> tuple[str, str]:
    """A secret for a link, and the digest that is stored of it."""
    secret = secrets.token_urlsafe(32)
    return secret, digest_of(secret)


def digest_of(secret: str) -> str:
    """What is stored of a secret: 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def open_ones() -> QuerySet[Invitation]:
    """Invitations that can be accepted now."""
    return Invitation.objects.filter(accepted_at=None, revoked_at=None, expires_at__gt=now())


def open_invitation(secret: str) -> Invitation | None:
    """The invitation behind a link; wrong, expired, revoked and used secrets are all None."""
    if not _SECRET.fullmatch(secret):
        return None
    return open_ones().select_related("account").filter(digest=digest_of(secret)).first()


@transaction.atomic
def accept_invitation(*, secret: str, user: User) -> Membership:
    """Let a person into the account; of many acceptances at once one succeeds.

    Raises NotFound for a secret that does not open, Conflict for a person who is in the account already (the
    invitation stays open), Invalid when the account is full.
    """
    found = there(open_invitation(secret), GONE)
    account = found.account
    lock_quotas(account)
    if Membership.objects.filter(account=account, user=user).exists():
        raise Conflict(f"You are already a member of {account.title}; this invitation is for someone else.")
    # The condition is part of the update: whoever comes second changes no row.
    if not open_ones().filter(pk=found.pk).update(accepted_at=now(), accepted_by=user):
        raise NotFound(GONE)
    refuse_over_quota(account, "people", account.memberships.count() + 1, "")
    membership = Membership.objects.create(account=account, user=user, role=found.role)
    accepted.send(Membership, membership=membership, invitation=found)
    return membership
