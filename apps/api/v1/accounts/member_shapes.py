"""What people, invitations and tokens look like; no secret and no digest is among the fields."""

from __future__ import annotations

from typing import Any

from apps.accounts import roles
from apps.accounts.actors import Actor
from apps.accounts.models import ApiToken, Invitation, Membership
from apps.api.v1.schemas.nouns import people as shown

Shape = dict[str, Any]
ONLY_VERSION = 1  # of what is made and ended, but never changed


def membership(row: Membership, _: Actor) -> Shape:
    """A person in an account."""
    return shown.Membership.of(row, role=roles.word_of(row.account.kind, row.role))


def invitation(row: Invitation, _: Actor) -> Shape:
    """Somebody who may come in; the link is not here."""
    return shown.Invitation.of(row, role=roles.word_of(row.account.kind, row.role), version=ONLY_VERSION)


def token(row: ApiToken, _: Actor) -> Shape:
    """A token without its text."""
    return shown.Token.of(row, role=roles.word_of(row.account.kind, row.role), version=ONLY_VERSION)
