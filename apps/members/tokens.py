"""Tokens for programs, never with more rights than whoever makes them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from apps.accounts import roles
from apps.accounts.actors import Actor
from apps.accounts.models import Account, ApiToken, Membership
from apps.accounts.quotas import lock_quotas, refuse_over_quota
from apps.accounts.scopes import covers
from apps.accounts.selectors import only
from apps.accounts.tokens import new_token
from apps.audit import services as audit
from apps.core.clock import now
from apps.core.errors import MISSING, FieldError, Invalid, NotFound
from apps.members import reading, selectors

NOUN = "tokens"
USUAL_DAYS, MOST_DAYS = 90, 365
RANKS = (Membership.Role.VIEWER, Membership.Role.EDITOR, Membership.Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A token that was read: no `lifetime` never ends, no scopes narrow nothing, no networks are everywhere."""

    name: str
    role: Membership.Role
    scopes: tuple[str, ...]
    networks: tuple[str, ...]
    lifetime: timedelta | None


@transaction.atomic
def make_token(
    *,
    actor: Actor,
    name: object,
    role: object,
    account: object = None,
    scopes: object = (),
    networks: object = (),
    expires_in_days: object = USUAL_DAYS,
    reason: str = "",
) -> tuple[ApiToken, str]:
    """Make a token; returns its row and its text, which can be read this once.

    `expires_in_days` None never ends, for operator accounts only; `account` names another account, for operators.
    Raises Forbidden, Invalid.
    """
    actor.may_write(NOUN)
    target = reading.account_named(actor, account)
    actor.must_manage(target, "tokens", NOUN)
    field_errors: list[FieldError] = []
    wanted = Wanted(
        reading.name(name, field_errors),
        reading.role_named(target, role, field_errors),
        reading.scopes(scopes, field_errors),
        reading.networks(networks, field_errors),
        _lifetime(target, expires_in_days, field_errors),
    )
    field_errors += _more_than_own(actor, target, wanted)
    if not field_errors:
        lock_quotas(target)
        field_errors += _name_taken(target, wanted.name)
    if field_errors:
        raise Invalid(field_errors)
    refuse_over_quota(target, "tokens", selectors.live_tokens(target).count() + 1, "/name")
    row, text = new_token(
        account=target,
        name=wanted.name,
        role=wanted.role,
        lifetime=wanted.lifetime,
        scopes=wanted.scopes,
        networks=wanted.networks,
        created_by=actor.name,
    )
    _record(actor, "create", row, after=document(row), reason=reason)
    return row, text


@transaction.atomic
def revoke_token(*, actor: Actor, token_id: int, reason: str = "") -> ApiToken:
    """End a token: from now on it looks like one that never was. Raises NotFound, Forbidden."""
    row = only(selectors.tokens(actor), token_id)
    actor.must_manage(row.account, "tokens", NOUN)
    if not ApiToken.objects.filter(pk=row.pk, revoked_at=None).update(revoked_at=now()):
        raise NotFound(MISSING)
    _record(actor, "delete", row, before=document(row), reason=reason)
    return row


def document(row: ApiToken) -> dict[str, Any]:
    """What people and the audit log read of a token; never its text."""
    return {
        "name": row.name,
        "role": roles.word_of(row.account.kind, row.role),
        "scopes": row.scopes,
        "networks": row.networks,
        "expires_at": row.expires_at.isoformat() if row.expires_at else None,
    }


def _lifetime(account: Account, days: object, field_errors: list[FieldError]) -> timedelta | None:
    if days is None:
        if not account.is_operator:
            field_errors.append(FieldError("/expires_in_days", "out_of_range", f"Use 1 to {MOST_DAYS} days."))
        return None
    if type(days) is not int or not 1 <= days <= MOST_DAYS:
        never = ", or null for never" if account.is_operator else ""
        field_errors.append(FieldError("/expires_in_days", "out_of_range", f"Use 1 to {MOST_DAYS} days{never}."))
        return None
    return timedelta(days=days)


def _name_taken(account: Account, name: str) -> list[FieldError]:
    if not selectors.live_tokens(account).filter(name=name).exists():
        return []
    detail = f"A token named {name} already exists: choose another name, or revoke that token first."
    return [FieldError("/name", "taken", detail)]


def _more_than_own(actor: Actor, target: Account, wanted: Wanted) -> list[FieldError]:
    """What the new token could that its maker cannot."""
    field_errors = []
    if target.pk == actor.account.pk and RANKS.index(wanted.role) > RANKS.index(Membership.Role(actor.role)):
        field_errors.append(FieldError("/role", "more_than_own", "Choose a role that is not above your own."))
    if actor.scopes is not None and not (wanted.scopes and all(covers(actor.scopes, scope) for scope in wanted.scopes)):
        known = ", ".join(sorted(actor.scopes))
        field_errors.append(
            FieldError("/scopes", "more_than_own", f"Choose scopes within those of your token: {known}.")
        )
    if own := ApiToken.objects.filter(key_id=actor.token).first() if actor.token else None:
        field_errors += _wider_than(own, wanted)
    return field_errors


def _wider_than(own: ApiToken, wanted: Wanted) -> list[FieldError]:
    field_errors = []
    if own.networks and not (wanted.networks and all(_inside(network, own.networks) for network in wanted.networks)):
        detail = f"Choose networks within those of your token: {', '.join(own.networks)}."
        field_errors.append(FieldError("/networks", "more_than_own", detail))
    if own.expires_at and (wanted.lifetime is None or now() + wanted.lifetime > own.expires_at):
        detail = f"Your token expires at {own.expires_at:%Y-%m-%d %H:%M} UTC; create one that expires no later."
        field_errors.append(FieldError("/expires_in_days", "more_than_own", detail))
    return field_errors


def _inside(network: str, outer: list[str]) -> bool:
    found = ipaddress.ip_network(network)
    return any(
        other.version == found.version and found.subnet_of(other)  # type: ignore[arg-type] # the same version
        for other in map(ipaddress.ip_network, outer)
    )


def _record(actor: Actor, action: str, row: ApiToken, **fields: Any) -> None:
    label = f"{row.account.name}/{row.name}"
    audit.record(actor=actor, action=action, kind="Token", object_id=row.pk, label=label, account=row.account, **fields)
