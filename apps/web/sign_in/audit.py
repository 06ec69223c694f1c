"""Writes into the audit log who signed in and what they changed about their own account."""

from __future__ import annotations

from typing import Any

from allauth.account import signals as account
from allauth.mfa import signals as mfa
from allauth.mfa.models import Authenticator
from allauth.socialaccount import signals as social
from django.contrib.auth.signals import user_logged_out

from apps.accounts.actors import actor_of_user
from apps.accounts.sign_in.sessions import end_sessions
from apps.audit.services import record

FACTORS = {
    Authenticator.Type.TOTP: "authenticator app",
    Authenticator.Type.WEBAUTHN: "passkey",
    Authenticator.Type.RECOVERY_CODES: "recovery codes",
}


def record_for(user: Any, action: str, *, after: dict[str, Any] | None = None) -> None:
    """Add an entry about a person to the audit log of their account; somebody without an account leaves none."""
    actor = actor_of_user(user) if user is not None and user.pk else None
    if actor is not None:
        record(actor=actor, action=action, kind="Person", object_id=user.pk, label=user.get_username(), after=after)


def _factor(authenticator: Authenticator) -> dict[str, Any]:
    said = {"factor": FACTORS[Authenticator.Type(authenticator.type)]}
    return said | ({"name": authenticator.data["name"]} if "name" in authenticator.data else {})


def _signed_in(user: Any, **_: Any) -> None:
    record_for(user, "sign_in")


def _signed_out(user: Any, **_: Any) -> None:
    record_for(user, "sign_out")


def _factor_added(user: Any, authenticator: Authenticator, **_: Any) -> None:
    record_for(user, "add_second_factor", after=_factor(authenticator))


def _factor_removed(user: Any, authenticator: Authenticator, **_: Any) -> None:
    record_for(user, "remove_second_factor", after=_factor(authenticator))


def _codes_renewed(user: Any, authenticator: Authenticator, **_: Any) -> None:
    record_for(user, "renew_recovery_codes", after=_factor(authenticator))


def _factor_failed(user: Any, authenticator: Authenticator, **_: Any) -> None:
    record_for(user, "fail_second_factor", after=_factor(authenticator))


def _password_changed(request: Any, user: Any, **_: Any) -> None:
    """Whoever knew the old password is out, in the list as well as in fact."""
    same_person = request.user.is_authenticated and request.user.pk == user.pk
    end_sessions(user=user, keep=(request.session.session_key or "") if same_person else "")
    record_for(user, "change_password")


def _provider_added(request: Any, sociallogin: Any, **_: Any) -> None:  # noqa: ARG001 - the signal's names
    record_for(sociallogin.user, "connect_provider", after={"provider": sociallogin.account.provider})


def _provider_removed(request: Any, socialaccount: Any, **_: Any) -> None:  # noqa: ARG001 - the signal's names
    record_for(socialaccount.user, "disconnect_provider", after={"provider": socialaccount.provider})


def listen() -> None:
    """Connect; called once when the app is ready."""
    account.user_logged_in.connect(_signed_in, dispatch_uid="record sign-in")
    user_logged_out.connect(_signed_out, dispatch_uid="record sign-out")
    mfa.authenticator_added.connect(_factor_added, dispatch_uid="record factor added")
    mfa.authenticator_removed.connect(_factor_removed, dispatch_uid="record factor removed")
    mfa.authenticator_reset.connect(_codes_renewed, dispatch_uid="record codes renewed")
    mfa.authentication_failed.connect(_factor_failed, dispatch_uid="record factor failed")
    for changed in (account.password_changed, account.password_set, account.password_reset):
        changed.connect(_password_changed, dispatch_uid="record password")
    social.social_account_added.connect(_provider_added, dispatch_uid="record provider added")
    social.social_account_removed.connect(_provider_removed, dispatch_uid="record provider removed")
