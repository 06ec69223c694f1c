"""Operators impersonate a viewer of an account, with a reason; both accounts read who did, and until when."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_out
from django.db import transaction
from django.http import HttpRequest

from apps.accounts.actors import Actor
from apps.accounts.choosing import IMPERSONATION, IMPERSONATION_LASTS
from apps.accounts.models import Account, User
from apps.audit import services as audit
from apps.core.clock import now
from apps.core.errors import FieldError, Forbidden, Invalid


@transaction.atomic
def begin(*, actor: Actor, account: Account, reason: str) -> dict[str, Any]:
    """Record it and return what the session keeps (choosing.py). Raises Forbidden, Invalid without a reason."""
    if not actor.is_operator or actor.user_id is None or account.is_operator:
        raise Forbidden("Only operators impersonate, and only customers.")
    if not reason.strip() or len(reason) > 400 or not reason.isprintable():
        raise Invalid(
            [FieldError("/reason", "reason", "Give a reason of at most 400 characters; the customer can read it.")]
        )
    until = now() + IMPERSONATION_LASTS
    _record(actor, "impersonate", account, reason=reason, after={"until": until.isoformat(timespec="seconds")})
    return {"account": account.pk, "until": until.timestamp(), "operator": actor.account.pk}


@transaction.atomic
def end(*, name: str, session: dict[str, Any]) -> None:
    """Record that the person with this name is themselves again: they stopped, signed out, or the hour was over."""
    operator = Account.objects.filter(pk=session["operator"]).first()
    account = Account.objects.filter(pk=session["account"]).first()
    if operator and account:
        _record(Actor(name, operator, "viewer"), "stop_impersonating", account)


def _record(actor: Actor, action: str, account: Account, **fields: Any) -> None:
    for told in (account, actor.account):
        audit.record(
            actor=actor, action=action, kind="Account", object_id=account.pk, label=account.name, account=told, **fields
        )


def listen() -> None:
    """Signing out ends the impersonation as well."""
    user_logged_out.connect(_at_sign_out, dispatch_uid="members")


def _at_sign_out(request: HttpRequest, user: User | None, **_: Any) -> None:
    session = getattr(request, "session", None)
    if user is not None and session is not None and (found := session.get(IMPERSONATION)):
        end(name=user.get_username(), session=found)
