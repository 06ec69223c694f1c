"""What people, invitations and tokens look like; no secret and no digest is among the fields."""

from __future__ import annotations

from typing import Any

from apps.accounts import roles
from apps.accounts.actors import Actor
from apps.accounts.models import ApiToken, Invitation, Membership

Shape = dict[str, Any]
ONLY_VERSION = 1  # of what is made and ended, but never changed


def membership(row: Membership, _: Actor) -> Shape:
    """A person in an account."""
    return {
        "id": row.pk,
        "account": row.account.name,
        "person": row.user.get_username(),
        "email": row.user.email,
        "role": roles.word_of(row.account.kind, row.role),
        "created_at": row.created_at,
        "last_signed_in_at": row.user.last_login,
        "version": row.version,
    }


def invitation(row: Invitation, _: Actor) -> Shape:
    """Somebody who may come in; the link is not here."""
    return {
        "id": row.pk,
        "account": row.account.name,
        "email": row.email,
        "role": roles.word_of(row.account.kind, row.role),
        "invited_by": row.invited_by,
        "mailed": row.mailed,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "version": ONLY_VERSION,
    }


def token(row: ApiToken, _: Actor) -> Shape:
    """A token without its text."""
    return {
        "id": row.pk,
        "account": row.account.name,
        "name": row.name,
        "key_id": row.key_id,
        "role": roles.word_of(row.account.kind, row.role),
        "scopes": row.scopes,
        "networks": row.networks,
        "created_by": row.created_by,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "last_used_at": row.last_used_at,
        "last_used_from": row.last_used_from,
        "version": ONLY_VERSION,
    }
