"""Triggers: by them the outside runs a schedule; made, changed, given a new secret, used.

Who does not know the secret learns nothing: an unknown trigger and a wrong secret get the same answer after the same
work. Every call that is let in stands in the history of the schedule and in the audit log.
"""

from __future__ import annotations

import functools
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.accounts.quotas import lock_quotas, refuse_over_quota
from apps.audit import services as audit
from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.core.clock import now
from apps.core.errors import Conflict, FieldError, Invalid, NotFound, SpillwayError, Stale
from apps.core.secrets.sealing import seal, unseal
from apps.definitions.selectors import only, schedules
from apps.definitions.shapes.base.words import instant_text
from apps.members import reading
from apps.schedules import selectors
from apps.schedules.models import ScheduleRun, Trigger
from apps.schedules.services import run_by_trigger
from apps.schedules.triggers.authentication import Headers, authenticates, delivery_of, make_secret

NOUN = "triggers"
MOST_PER_MINUTE = 600
# How long a secret works after it was rotated, unless its owner names another time.
GRACE_S = 24 * 3600
MOST_GRACE_S = 7 * GRACE_S
MOST_BYTES = 64 * 1024
UNKNOWN = "There is no such trigger, or the secret is wrong."


class TooMany(SpillwayError):
    """The trigger was called more often than it may be."""

    status = 429
    title = "Too many calls"


@dataclass(frozen=True, slots=True)
class Call:
    """What came in: who says it comes from where, the headers and the body as it arrived."""

    address: str
    headers: Headers
    body: bytes


@transaction.atomic
def make_trigger(
    *,
    actor: Actor,
    schedule_id: int,
    name: object,
    sender: object = "secret",
    per_minute: object = 60,
    reason: str = "",
) -> tuple[Trigger, str]:
    """Make an inbound URL of a schedule; returns its row and its secret, which can be read this once.

    Raises NotFound for the schedule, Forbidden, Invalid, Conflict for a name that is taken.
    """
    actor.may_write(NOUN)
    schedule = only(schedules(actor), schedule_id)
    field_errors: list[FieldError] = []
    plain, rate, kind = reading.name(name, field_errors), _rate(per_minute, field_errors), _sender(sender, field_errors)
    if field_errors:
        raise Invalid(field_errors)
    lock_quotas(schedule.account)
    if Trigger.objects.filter(schedule=schedule, name=plain).exists():
        raise Conflict(f"Schedule {schedule.name} already has a trigger named {plain}.")
    refuse_over_quota(schedule.account, NOUN, Trigger.objects.filter(account=schedule.account).count() + 1, "/name")
    secret = make_secret(kind)
    row = Trigger.objects.create(
        schedule=schedule,
        account=schedule.account,
        name=plain,
        key_id=secrets.token_urlsafe(16),
        sealed_secret=seal(secret.encode()),
        sender=kind,
        per_minute=rate,
        created_by=actor.name[:150],
    )
    _record(actor, "create", row, after=document(row), reason=reason)
    return row, secret


@transaction.atomic
def change_trigger(
    *,
    actor: Actor,
    trigger_id: int,
    name: object = None,
    per_minute: object = None,
    expected_version: int | None = None,
    reason: str = "",
) -> Trigger:
    """Set the name and how often a minute it may run the schedule; None leaves it.

    Raises NotFound, Forbidden, Invalid, Stale.
    """
    row = _locked(actor, trigger_id, expected_version)
    before, field_errors = document(row), list[FieldError]()
    row.name = row.name if name is None else reading.name(name, field_errors)
    row.per_minute = row.per_minute if per_minute is None else _rate(per_minute, field_errors)
    if field_errors:
        raise Invalid(field_errors)
    if document(row) == before:
        return row
    if Trigger.objects.filter(schedule=row.schedule_id, name=row.name).exclude(pk=row.pk).exists():
        raise Conflict(f"Schedule {row.schedule.name} already has a trigger named {row.name}.")
    row.version += 1
    row.save(update_fields=("name", "per_minute", "version"))
    _record(actor, "update", row, before=before, after=document(row), reason=reason)
    return row


@transaction.atomic
def rotate_trigger(
    *,
    actor: Actor,
    trigger_id: int,
    grace_s: object = GRACE_S,
    expected_version: int | None = None,
    reason: str = "",
) -> str:
    """Make a new secret, returned this once; the one before works for `grace_s` more seconds, 0 to seven days.

    With 0 it is refused from now on, for it may have leaked. One that an earlier rotation left working ends at once:
    there are never more than two. Raises NotFound, Forbidden, Invalid, Stale.
    """
    row = _locked(actor, trigger_id, expected_version)
    field_errors: list[FieldError] = []
    grace = timedelta(seconds=_whole("grace_s", grace_s, 0, MOST_GRACE_S, field_errors))
    if field_errors:
        raise Invalid(field_errors)
    secret = make_secret(row.sender)
    row.previous_secret, row.previous_until = (row.sealed_secret, now() + grace) if grace else (None, None)
    row.sealed_secret, row.version = seal(secret.encode()), row.version + 1
    row.save(update_fields=("sealed_secret", "previous_secret", "previous_until", "version"))
    _record(actor, "rotate", row, after={"old_secret_until": instant_text(row.previous_until)}, reason=reason)
    return secret


@transaction.atomic
def delete_trigger(*, actor: Actor, trigger_id: int, expected_version: int | None = None, reason: str = "") -> None:
    """Close the trigger at once; what it ran stays in the history. Raises NotFound, Forbidden, Stale."""
    row = _locked(actor, trigger_id, expected_version)
    _record(actor, "delete", row, before=document(row), reason=reason)
    row.delete()


def document(row: Trigger) -> dict[str, Any]:
    """What people and the audit log read of a trigger; never its secret."""
    return {"schedule": row.schedule.name, "name": row.name, "sender": str(row.sender), "per_minute": row.per_minute}


def call(*, key_id: str, call: Call) -> tuple[ScheduleRun, bool]:
    """Run the schedule of a trigger; the run, and whether this delivery had been here before.

    Raises NotFound for an unknown trigger and for a wrong secret alike; to those who know it Invalid (body), TooMany,
    Conflict (paused, suspended).
    """
    row = Trigger.objects.select_related("schedule", "account").filter(key_id=key_id).first()
    new, old = _proved(row, call)
    if not (new or old) or row is None:
        raise NotFound(UNKNOWN)
    body, delivery = _text(call.body), delivery_of(row.sender, call.headers)
    if row.account.suspended:
        raise Conflict(
            "The account of this trigger is suspended; no schedule run was made. Its people can ask an operator."
        )
    try:
        return _run(row, call.address, body, delivery, with_old_secret=not new)
    except IntegrityError:
        # The same delivery twice in this moment: the other one has made the run.
        return ScheduleRun.objects.get(trigger=row, delivery=delivery), True


def _proved(row: Trigger | None, call: Call) -> tuple[bool, bool]:
    """Whether the caller knows the secret, and the one before it; two are tried whether or not there are two."""
    moment, sender = now(), row.sender if row else Trigger.Sender.SECRET
    present = row.sealed_secret if row else _decoy(sender)
    before = row.previous_secret if row and row.old_secret_until else None
    new, old = (
        authenticates(sender, unseal(sealed).decode(), call.headers, call.body, moment)
        for sealed in (present, before or _decoy(sender))
    )
    return new, old


@transaction.atomic
def _run(row: Trigger, address: str, body: str, delivery: str, *, with_old_secret: bool) -> tuple[ScheduleRun, bool]:
    # One at a time per trigger: the count below and the run that follows must not pass each other.
    Trigger.objects.select_for_update().filter(pk=row.pk).first()
    if delivery and (known := ScheduleRun.objects.filter(trigger=row, delivery=delivery).first()):
        return known, True
    moment = now()
    recent = ScheduleRun.objects.filter(trigger=row, scheduled_at__gt=moment - timedelta(minutes=1)).count()
    if recent >= row.per_minute:
        raise TooMany(f"This trigger accepts at most {row.per_minute} calls per minute; wait and call again.")
    run = run_by_trigger(
        schedule_id=row.schedule_id,
        caller=f"trigger {row.name} from {address}",
        body=body,
        trigger=row,
        delivery=delivery,
    )
    Trigger.objects.filter(pk=row.pk).update(last_used_at=moment)
    caller = Actor(f"trigger {row.name} from {address}"[:150], row.account, Membership.Role.EDITOR)
    told = {"schedule_run": run.pk, "delivery": delivery, "state": str(run.state)}
    _record(caller, "call", row, after=told | ({"with_old_secret": True} if with_old_secret else {}))
    return run, False


@functools.cache
def _decoy(sender: str) -> bytes:
    """A secret that nobody has, so that an unknown trigger costs what a known one costs, whatever secrets it has."""
    return seal(make_secret(sender).encode())


def _text(body: bytes) -> str:
    """What was sent, as text. Raises Invalid."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text or len(body) > MOST_BYTES:
        raise Invalid([FieldError("", "body", f"Send text (UTF-8, without NUL) of at most {MOST_BYTES} bytes.")])
    return text


def _locked(actor: Actor, trigger_id: int, expected_version: int | None) -> Trigger:
    actor.may_write(NOUN)
    row = only(selectors.triggers(actor).defer(None).select_for_update(of=("self",)), trigger_id)
    if expected_version is not None and row.version != expected_version:
        raise Stale(
            f"Trigger {row.name} has changed since you read it; read it again before you change it.", row.version
        )
    return row


def _rate(value: object, field_errors: list[FieldError]) -> int:
    return _whole("per_minute", value, 1, MOST_PER_MINUTE, field_errors)


def _whole(field: str, value: object, lowest: int, highest: int, field_errors: list[FieldError]) -> int:
    try:
        return grammar.integer(value, lowest, highest)
    except GrammarError as error:
        field_errors.append(FieldError(f"/{field}", error.code, error.message))
        return lowest


def _sender(value: object, field_errors: list[FieldError]) -> str:
    if isinstance(value, str) and value in Trigger.Sender.values:
        return value
    field_errors.append(FieldError("/sender", "choice", f"Use one of {', '.join(Trigger.Sender.values)}."))
    return ""


def _record(actor: Actor, action: str, row: Trigger, **fields: Any) -> None:
    label = f"{row.account.name}/{row.schedule.name}/{row.name}"
    version = None if action == "delete" else row.version
    audit.record(
        actor=actor,
        action=action,
        kind="Trigger",
        object_id=row.pk,
        label=label,
        account=row.account,
        version=version,
        **fields,
    )
