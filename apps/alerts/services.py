"""What people do about alerts: acknowledge, silence, try a channel."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.accounts.selectors import only
from apps.alerts import selectors
from apps.alerts.models import Alert, ChannelState, Notification, Silence
from apps.alerts.telling.messages import test_content
from apps.audit import services as audit
from apps.compiler import grammar
from apps.core.clock import now
from apps.core.errors import Conflict, FieldError, Invalid
from apps.definitions.shapes.base.words import instant_text, read_instant
from apps.definitions.shapes.operations.alert_rule import read_pattern
from apps.members.reading import only_known

NOUN, SILENCES, CHANNELS = "alerts", "silences", "alert-channels"
LONGEST_SILENCE = timedelta(days=30)
MOST_SILENCES = 100
MAX_REASON = 200
# A channel that is tried again and again would be a way to fill somebody's mailbox.
BETWEEN_TESTS = timedelta(seconds=10)
_FIELDS = ("rule", "objects", "ends_at")


@transaction.atomic
def acknowledge(*, actor: Actor, alert_id: int, reason: str = "") -> Alert:
    """Say that somebody is at it: channels that wait are not told. Raises NotFound, Forbidden, Conflict."""
    actor.may_write(NOUN)
    row = only(selectors.alerts(actor).select_for_update(of=("self",)), alert_id)
    if row.resolved_at is not None:
        raise Conflict("This alert is resolved; there is nothing to acknowledge.")
    if row.acknowledged_at is not None:
        return row
    row.acknowledged_at, row.acknowledged_by = now(), actor.name[:150]
    row.save(update_fields=("acknowledged_at", "acknowledged_by"))
    _record(actor, "acknowledge", "Alert", row.pk, f"{row.account.name}/{row.title}", row.account, reason=reason)
    return row


@transaction.atomic
def make_silence(*, actor: Actor, spec: object, reason: object) -> Silence:
    """Tell nobody of what it covers until it ends. `spec` is `{rule?, objects?, ends_at}`, a reason is needed.

    It is of the actor's own account. Raises Forbidden, Invalid.
    """
    actor.may_write(SILENCES)
    moment, field_errors = now(), list[FieldError]()
    fields = _read(spec, moment, field_errors)
    why = _reason(reason, field_errors)
    if field_errors:
        raise Invalid(field_errors)
    if Silence.objects.filter(account=actor.account, ends_at__gt=moment).count() >= MOST_SILENCES:
        raise Invalid([FieldError("", "quota", f"{MOST_SILENCES} silences are in force; end some of them first.")])
    row = Silence.objects.create(account=actor.account, reason=why, created_by=actor.name[:150], **fields)
    _record(actor, "create", "Silence", row.pk, _label(row), row.account, after=document(row), reason=why)
    return row


@transaction.atomic
def end_silence(*, actor: Actor, silence_id: int, reason: str = "") -> None:
    """End a silence now: what is still firing is told. Raises NotFound, Forbidden."""
    actor.may_write(SILENCES)
    row = selectors.silence(actor, silence_id)
    Silence.objects.filter(pk=row.pk).update(ends_at=now())
    _record(actor, "delete", "Silence", row.pk, _label(row), row.account, before=document(row), reason=reason)


@transaction.atomic
def send_test(*, actor: Actor, channel_id: int) -> Notification:
    """Send a message that says it is a test. Raises NotFound, Forbidden, Conflict for a channel that is off."""
    actor.may_write(CHANNELS)
    row = selectors.channel(actor, channel_id)
    moment = now()
    if not row.enabled:
        raise Conflict(f"Channel {row.name} is disabled; enable it first.")
    recent = Notification.objects.filter(channel=row, event=Notification.Event.TEST)
    if recent.filter(created_at__gt=moment - BETWEEN_TESTS).exists():
        raise Conflict("A test was sent a moment ago; wait ten seconds.")
    # Whoever asks has perhaps just mended what failed; the pause after a failure ends.
    ChannelState.objects.filter(channel=row).update(not_before=None)
    content = test_content(row.account.name, row.name, f"/alerts/channels/{row.pk}", moment)
    return Notification.objects.create(
        channel=row, event=Notification.Event.TEST, thread="test", content=content, next_at=moment, created_at=moment
    )


def document(row: Silence) -> dict[str, Any]:
    """What people and the audit log read of a silence."""
    return {"rule": row.rule, "objects": row.objects_named, "ends_at": instant_text(row.ends_at)}


def _read(spec: object, moment: datetime, field_errors: list[FieldError]) -> dict[str, Any]:
    if not isinstance(spec, dict):
        field_errors.append(FieldError("/spec", "not_object", "Send spec as an object: {rule, objects, ends_at}."))
        return {}
    only_known(spec, _FIELDS, "/spec", field_errors)
    found: dict[str, Any] = {}
    for name, column, read in (("rule", "rule", grammar.name), ("objects", "objects_named", read_pattern)):
        try:
            found[column] = read(spec[name]) if spec.get(name) not in (None, "") else ""
        except grammar.GrammarError as error:
            field_errors.append(FieldError(f"/spec/{name}", error.code, error.message))
    try:
        found["ends_at"] = read_instant(spec.get("ends_at"))
    except grammar.GrammarError as error:
        field_errors.append(FieldError("/spec/ends_at", error.code, error.message))
    else:
        if not moment < found["ends_at"] <= moment + LONGEST_SILENCE:
            detail = f"End the silence within the next {LONGEST_SILENCE.days} days."
            field_errors.append(FieldError("/spec/ends_at", "out_of_range", detail))
    return found


def _reason(value: object, field_errors: list[FieldError]) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if not text or not text.isprintable() or len(text) > MAX_REASON:
        detail = f"Say why, in at most {MAX_REASON} printable characters."
        field_errors.append(FieldError("/reason", "reason", detail))
    return text


def _label(row: Silence) -> str:
    return f"{row.account.name}/{row.objects_named or row.rule or 'everything'}"


def _record(actor: Actor, action: str, kind: str, pk: int, label: str, account: Account, **fields: Any) -> None:
    audit.record(actor=actor, action=action, kind=kind, object_id=pk, label=label, account=account, **fields)
