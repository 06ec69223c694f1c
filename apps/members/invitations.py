"""Inviting by link or mail, taking back, and coming in as a new person."""

from __future__ import annotations

import logging
from datetime import timedelta
from smtplib import SMTPException
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.db import IntegrityError, transaction

from apps.accounts import roles
from apps.accounts.actors import Actor
from apps.accounts.models import Invitation, Membership, User
from apps.accounts.quotas import lock_quotas, refuse_over_quota
from apps.accounts.selectors import only
from apps.accounts.sign_in import invitations
from apps.audit import services as audit
from apps.core.clock import now
from apps.core.errors import MISSING, Conflict, FieldError, Invalid, NotFound, there
from apps.members import reading, selectors

NOUN = "invitations"
# Mails to one address, whoever invites, and mails of one account to anybody.
MOST_TO_ONE, MOST_BY_ONE, MAILED_WITHIN = 3, 30, timedelta(minutes=15)
MAIL = """\
{by} invites you to {account} in Spillway.

Open this link to join. It works once and expires on {until:%-d %B %Y, %H:%M} UTC:

{link}

If you did not expect this invitation, ignore it.
"""
logger = logging.getLogger(__name__)


@transaction.atomic
def invite(
    *, actor: Actor, email: object, role: object, account: object = None, reason: str = ""
) -> tuple[Invitation, str]:
    """Make an invitation; returns it and its secret, which is stored nowhere.

    `account` names another account than the actor's own, for operators. Raises Forbidden, Invalid, Conflict.
    """
    actor.may_write(NOUN)
    target = reading.account_named(actor, account)
    actor.must_manage(target, "people", NOUN)
    field_errors: list[FieldError] = []
    address, wanted = reading.email(email, field_errors), reading.role_named(target, role, field_errors)
    reading.not_above_own_scopes(actor, wanted, field_errors)
    if field_errors:
        raise Invalid(field_errors)
    lock_quotas(target)
    if invitations.open_ones().filter(account=target, email__iexact=address).exists():
        raise Conflict(f"{address} is already invited. If the link is lost, revoke that invitation first.")
    refuse_over_quota(target, "people", selectors.people_expected(target) + 1, "/email")
    secret, digest = invitations.new_secret()
    row = Invitation.objects.create(
        account=target,
        email=address,
        role=wanted,
        digest=digest,
        invited_by=actor.name,
        expires_at=now() + invitations.LIFETIME,
    )
    _record(actor, "create", row, after=_document(row), reason=reason)
    return row, secret


def mail_works() -> bool:
    """Whether this installation can send mail."""
    return bool(settings.MAILS)


def mail_link(*, invitation: Invitation, link: str) -> bool:
    """Send the link to the invited address; False when it could not be sent: then show it to who invites."""
    if _too_many(invitation):
        logger.warning(
            "an invitation was not mailed: too many were, to %s or by %s", invitation.email, invitation.account
        )
        return False
    text = MAIL.format(
        by=invitation.invited_by, account=invitation.account.title, until=invitation.expires_at, link=link
    )
    try:
        send_mail(f"Join {invitation.account.title} in Spillway", text, None, [invitation.email])
    except (OSError, SMTPException) as error:
        logger.warning("an invitation could not be mailed: %s", error)
        return False
    Invitation.objects.filter(pk=invitation.pk).update(mailed=True)
    invitation.mailed = True
    return True


def _too_many(row: Invitation) -> bool:
    """Whether a stranger gets mail after mail, or an account sends it to many: who takes back may invite again."""
    lately = Invitation.objects.filter(mailed=True, created_at__gt=now() - MAILED_WITHIN)
    to_them, by_account = lately.filter(email__iexact=row.email), lately.filter(account=row.account)
    return to_them.count() >= MOST_TO_ONE or by_account.count() >= MOST_BY_ONE


@transaction.atomic
def take_back(*, actor: Actor, invitation_id: int, reason: str = "") -> Invitation:
    """Revoke an invitation: its link does not work any more. Raises NotFound, Forbidden."""
    row = only(selectors.invitations(actor), invitation_id)
    actor.must_manage(row.account, "people", NOUN)
    if not selectors.invitations(actor).filter(pk=invitation_id).update(revoked_at=now()):
        raise NotFound(MISSING)
    _record(actor, "delete", row, before=_document(row), reason=reason)
    return row


def come_in_as_new(*, secret: str, username: str, password: str) -> User:
    """Make a person with this name and password and let them in.

    The address is theirs only when the link was mailed to it. Raises NotFound for a secret that does not open,
    Invalid with `/username` and `/password`.
    """
    found = there(invitations.open_invitation(secret), invitations.GONE)
    user = User(username=username, email=found.email if found.mailed else "")
    _check(user, password)
    user.password = make_password(password)  # slow on purpose, so before the transaction
    try:
        with transaction.atomic():
            user.save()
            invitations.accept_invitation(secret=secret, user=user)
    except IntegrityError as error:
        raise Invalid([_taken_name()]) from error
    return user


def _check(user: User, password: str) -> None:
    field_errors = []
    try:
        User.username_validator(user.username)
        if not 1 <= len(user.username) <= 150:
            raise ValidationError("Use at most 150 characters.")
    except ValidationError as error:
        field_errors.append(FieldError("/username", "username", str(error.messages[0])))
    else:
        if User.objects.filter(username__iexact=user.username).exists():
            field_errors.append(_taken_name())
    try:
        validate_password(password, user)
    except ValidationError as error:
        field_errors += [FieldError("/password", "password", str(message)) for message in error.messages]
    if field_errors:
        raise Invalid(field_errors)


def _taken_name() -> FieldError:
    return FieldError("/username", "taken", "This username is taken; choose another.")


def listen() -> None:
    """Record every acceptance, whichever page it came through."""
    invitations.accepted.connect(_record_acceptance, dispatch_uid="members")


def _record_acceptance(membership: Membership, invitation: Invitation, **_: Any) -> None:
    user, account = membership.user, membership.account
    actor = Actor(user.get_username(), account, membership.role, user_id=user.pk)
    role = roles.word_of(account.kind, membership.role)
    audit.record(
        actor=actor,
        action="accept",
        kind="Membership",
        object_id=membership.pk,
        label=f"{account.name}/{user.get_username()}",
        account=account,
        after={"person": user.get_username(), "role": role, "invited_by": invitation.invited_by},
        version=membership.version,
    )


def _document(row: Invitation) -> dict[str, str]:
    return {"email": row.email, "role": roles.word_of(row.account.kind, row.role)}


def _record(actor: Actor, action: str, row: Invitation, **fields: Any) -> None:
    label = f"{row.account.name}/{row.email}"
    audit.record(
        actor=actor, action=action, kind="Invitation", object_id=row.pk, label=label, account=row.account, **fields
    )
