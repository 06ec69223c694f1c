"""Another role for a person, or none; an account never loses the last one who manages it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from apps.accounts import roles
from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.accounts.quotas import lock_quotas
from apps.accounts.selectors import only
from apps.accounts.sign_in.invitations import open_ones
from apps.audit import services as audit
from apps.core.clock import now
from apps.core.errors import Conflict, FieldError, Invalid
from apps.members import reading, selectors

NOUN = "memberships"


@transaction.atomic
def change_role(
    *, actor: Actor, membership_id: int, role: object, expected_version: int | None = None, reason: str = ""
) -> Membership:
    """Give a person another role (a word of roles.py); invitations that go beyond it stop working.

    Raises NotFound, Forbidden, Invalid, Stale, Conflict.
    """
    row = _taken(actor, membership_id, expected_version)
    field_errors: list[FieldError] = []
    wanted = reading.role_named(row.account, role, field_errors)
    reading.not_above_own_scopes(actor, wanted, field_errors)
    if field_errors:
        raise Invalid(field_errors)
    before = _document(row)
    if wanted == row.role:
        return row
    if wanted != Membership.Role.ADMIN:
        _keep_an_admin(row)
    row.role, row.version = wanted, row.version + 1
    row.save(update_fields=["role", "version"])
    _end_links(row, wanted)
    _record(actor, "update", row, before, _document(row), reason)
    return row


@transaction.atomic
def remove_person(
    *, actor: Actor, membership_id: int, expected_version: int | None = None, reason: str = ""
) -> Membership:
    """Take a person out of an account, and back what they invited; everybody may leave. Returns the row that was.

    Raises NotFound, Forbidden, Stale, and Conflict for the last one who manages the account.
    """
    row = _taken(actor, membership_id, expected_version, may_leave=True)
    _keep_an_admin(row)
    before, pk = _document(row), row.pk
    row.delete()
    row.pk = pk
    _end_links(row, None)
    _record(actor, "delete", row, before, None, reason)
    return row


def _taken(actor: Actor, pk: int, expected_version: int | None, *, may_leave: bool = False) -> Membership:
    """The row, with changes of its account's people held off until the end of the transaction."""
    row = only(selectors.memberships(actor), pk)
    leaves = may_leave and actor.user_id == row.user_id and not actor.impersonating
    if not leaves:
        actor.must_manage(row.account, "people", NOUN)
    lock_quotas(row.account)
    fresh = only(selectors.memberships(actor), pk)
    reading.check_version(fresh.version, expected_version)
    return fresh


def _keep_an_admin(row: Membership) -> None:
    others = row.account.memberships.filter(role=Membership.Role.ADMIN, user__is_active=True).exclude(pk=row.pk)
    if row.role == Membership.Role.ADMIN and not others.exists():
        word = roles.word_of(row.account.kind, Membership.Role.ADMIN)
        raise Conflict(f"{row.user} is the last {word} of {row.account}: make someone else {word} first.")


def _end_links(row: Membership, role: Membership.Role | None) -> None:
    """Revoke what the person may not invite to in this role (None: has left): nobody comes back by their own link.

    Operators invite to every account; to one that they own themselves they still may when they are none any more.
    """
    if role == Membership.Role.ADMIN:
        return
    ended = Q(account=row.account)
    if row.account.is_operator and role != Membership.Role.EDITOR:
        owned = Membership.objects.filter(user=row.user, role=Membership.Role.ADMIN)
        ended |= ~Q(account__in=owned.values("account"))
    open_ones().filter(ended, invited_by=row.user.get_username()).update(revoked_at=now())


def _document(row: Membership) -> dict[str, str]:
    return {"person": row.user.get_username(), "role": roles.word_of(row.account.kind, row.role)}


def _record(
    actor: Actor,
    action: str,
    row: Membership,
    before: dict[str, str] | None,
    after: dict[str, str] | None,
    reason: str,
) -> None:
    audit.record(
        actor=actor,
        action=action,
        kind="Membership",
        object_id=row.pk,
        label=f"{row.account.name}/{row.user.get_username()}",
        account=row.account,
        before=before,
        after=after,
        version=row.version if after else None,
        reason=reason,
    )
