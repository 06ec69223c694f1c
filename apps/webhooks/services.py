"""Endpoints of an account, their secrets, tests, and sending something again."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from apps.accounts.actors import Actor
from apps.accounts.quotas import lock_quotas, refuse_over_quota
from apps.accounts.selectors import only
from apps.audit import services as audit
from apps.core import outbound
from apps.core.called_urls import Refused, read_url
from apps.core.clock import now
from apps.core.errors import Conflict, FieldError, Invalid
from apps.core.queue import enqueue_on_commit
from apps.core.secrets.sealing import seal, unseal
from apps.members import reading
from apps.webhooks import events, selectors
from apps.webhooks.models import Delivery, Webhook
from apps.webhooks.signing import new_secret

NOUN = "webhooks"
DELIVER_TASK = "apps.webhooks.tasks.deliver"
TWO_SECRETS_FOR = timedelta(hours=24)
_FIELDS = ("url", "event_types", "enabled")


def schemes() -> tuple[str, ...]:
    """What a URL may begin with: https, and on a developer's machine also http."""
    return ("https", "http") if settings.DEVELOPMENT else ("https",)


@transaction.atomic
def make_webhook(
    *, actor: Actor, name: object, spec: object, account: object = None, reason: str = ""
) -> tuple[Webhook, str]:
    """Make an endpoint; returns its row and its secret, which can be read this once.

    `spec` is `{url, event_types?, enabled?}`; `account` names another account, for operators. Raises Forbidden,
    Invalid, Conflict.
    """
    actor.may_write(NOUN)
    owner = reading.account_named(actor, account)
    field_errors: list[FieldError] = []
    plain, wanted = (
        reading.name(name, field_errors),
        _read(spec, {"event_types": [events.ALL], "enabled": True}, field_errors),
    )
    if field_errors:
        raise Invalid(field_errors)
    lock_quotas(owner)
    if Webhook.objects.filter(account=owner, name=plain).exists():
        raise Conflict(f"A webhook named {plain} already exists.")
    refuse_over_quota(owner, NOUN, Webhook.objects.filter(account=owner).count() + 1, "/name")
    secret = new_secret()
    row = Webhook.objects.create(
        account=owner, name=plain, secret=seal(secret.encode()), created_by=actor.name[:150], **wanted
    )
    _record(actor, "create", row, after=document(row), reason=reason)
    return row, secret


@transaction.atomic
def change_webhook(
    *, actor: Actor, webhook_id: int, spec: object, expected_version: int | None = None, reason: str = ""
) -> Webhook:
    """Set `{url?, event_types?, enabled?}`; what is left out stays. Switched on again, an endpoint starts afresh.

    Raises NotFound, Forbidden, Invalid, Stale.
    """
    actor.may_write(NOUN)
    row = _locked(actor, webhook_id, expected_version)
    before, field_errors = document(row), list[FieldError]()
    wanted = _read(spec, before, field_errors)
    if field_errors:
        raise Invalid(field_errors)
    if wanted == before:
        return row
    if wanted["enabled"] and not row.enabled:
        row.failures, row.failing_since, row.not_before, row.disabled_reason = 0, None, None, ""
    for field, value in wanted.items():
        setattr(row, field, value)
    if not row.enabled:
        end_waiting(row)
    _store(actor, "update", row, before, reason)
    return row


@transaction.atomic
def delete_webhook(*, actor: Actor, webhook_id: int, expected_version: int | None = None, reason: str = "") -> None:
    """Take an endpoint away with its log; what waits is not sent any more. Raises NotFound, Forbidden, Stale."""
    actor.may_write(NOUN)
    row = _locked(actor, webhook_id, expected_version)
    _record(actor, "delete", row, before=document(row), reason=reason)
    row.delete()


@transaction.atomic
def rotate_secret(*, actor: Actor, webhook_id: int, expected_version: int | None = None, reason: str = "") -> str:
    """Make a new secret, returned this once; the one before signs as well for another 24 hours."""
    actor.may_write(NOUN)
    row, secret = _locked(actor, webhook_id, expected_version), new_secret()
    row.previous_secret, row.previous_until = row.secret, now() + TWO_SECRETS_FOR
    row.secret = seal(secret.encode())
    _store(actor, "rotate", row, None, reason)
    return secret


@transaction.atomic
def send_test(*, actor: Actor, webhook_id: int) -> Delivery:
    """Send an event that says it is a test. Raises NotFound, Forbidden, Conflict for an endpoint that is off."""
    actor.may_write(NOUN)
    row = _locked(actor, webhook_id, None)
    _must_be_on(row)
    made = Delivery.objects.create(
        webhook=row, message_id=f"msg_test_{secrets.token_hex(12)}", type=events.TEST, next_at=now()
    )
    _at_once(row)
    return made


@transaction.atomic
def redeliver(*, actor: Actor, webhook_id: int, delivery_id: int) -> Delivery:
    """Send one event again, with the same id, whatever came of it before. Raises NotFound, Forbidden, Conflict."""
    actor.may_write(NOUN)
    row = _locked(actor, webhook_id, None)
    found = selectors.delivery(actor, webhook_id, delivery_id)
    _must_be_on(row)
    found.state, found.tries, found.next_at, found.finished_at = Delivery.State.WAITING, 0, now(), None
    found.save(update_fields=("state", "tries", "next_at", "finished_at"))
    _at_once(row)
    return found


def document(row: Webhook) -> dict[str, Any]:
    """What people and the audit log read of an endpoint; never a secret."""
    return {"url": row.url, "event_types": list(row.event_types), "enabled": row.enabled}


def live_secrets(row: Webhook) -> list[str]:
    """Every secret that signs at present, the newest first."""
    sealed = [row.secret]
    if row.previous_secret and row.previous_until and row.previous_until > now():
        sealed.append(row.previous_secret)
    return [unseal(bytes(each)).decode() for each in sealed]


def end_waiting(row: Webhook) -> None:
    """What waits for an endpoint that was switched off is over; each can be sent again by hand."""
    Delivery.objects.filter(webhook=row, state=Delivery.State.WAITING).update(
        state=Delivery.State.FAILED, next_at=None, finished_at=now()
    )


def record_change(actor: Actor, action: str, row: Webhook, before: dict[str, Any], reason: str) -> None:
    """Keep in the audit log what was done to an endpoint."""
    _record(actor, action, row, before=before, after=document(row), reason=reason)


def _locked(actor: Actor, webhook_id: int, expected_version: int | None) -> Webhook:
    row = only(selectors.webhooks(actor).defer(None).select_for_update(of=("self",)), webhook_id)
    reading.check_version(row.version, expected_version, f"Webhook {row.name}")
    return row


def _store(actor: Actor, action: str, row: Webhook, before: dict[str, Any] | None, reason: str) -> None:
    row.version += 1
    row.save()
    after = document(row) if before else None
    _record(actor, action, row, before=before, after=after, reason=reason)


def _must_be_on(row: Webhook) -> None:
    if not row.enabled:
        raise Conflict(f"Webhook {row.name} is disabled; enable it first.")


def _at_once(row: Webhook) -> None:
    """A person waits for it: the pause after failures does not hold it back."""
    Webhook.objects.filter(pk=row.pk).update(not_before=None)
    enqueue_on_commit(DELIVER_TASK, row.pk)


def _read(spec: object, present: dict[str, Any], field_errors: list[FieldError]) -> dict[str, Any]:
    """The fields of a specification over those that are there."""
    if not isinstance(spec, dict):
        field_errors.append(FieldError("/spec", "not_object", "Send spec as an object: {url, event_types, enabled}."))
        return {}
    reading.only_known(spec, _FIELDS, "/spec", field_errors)
    wanted = {field: present.get(field) for field in _FIELDS} | {key: spec[key] for key in _FIELDS if key in spec}
    return {
        "url": _url(wanted["url"], field_errors),
        "event_types": events.read_types(wanted["event_types"], "/spec/event_types", field_errors),
        "enabled": _flag(wanted["enabled"], field_errors),
    }


def _url(value: object, field_errors: list[FieldError]) -> str:
    try:
        text = value if isinstance(value, str) else ""
        outbound.check_target(read_url(text, schemes=schemes()))
    except Refused as refusal:
        field_errors.append(FieldError("/spec/url", "url", str(refusal)))
        return ""
    return text


def _flag(value: object, field_errors: list[FieldError]) -> bool:
    if not isinstance(value, bool):
        field_errors.append(FieldError("/spec/enabled", "not_boolean", "Use true or false."))
    return value is True


def _record(actor: Actor, action: str, row: Webhook, **fields: Any) -> None:
    label = f"{row.account.name}/{row.name}"
    version = None if action == "delete" else row.version
    audit.record(
        actor=actor,
        action=action,
        kind="Webhook",
        object_id=row.pk,
        label=label,
        account=row.account,
        version=version,
        **fields,
    )
