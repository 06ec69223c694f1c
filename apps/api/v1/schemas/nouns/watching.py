"""The audit log, webhooks with what they delivered, and alerts with whom they are told."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.alerts.models import Notification as NotificationRow
from apps.api.v1.schemas import words
from apps.definitions.shapes.operations.alert_watches import SEVERITIES
from apps.webhooks.models import Delivery as DeliveryRow


class AuditEntry(words.Shown):
    """One change: who, what, from what, to what, why; `digest` covers this entry and all before it."""

    id = words.ident()
    position = words.whole(1, 2**53, allow_null=True)
    at = words.instant()
    account = words.name()
    actor = words.text(150)
    token = words.text(16)
    action = words.text(40)
    kind = words.text(40)
    object_id = words.whole(1, 2**53, allow_null=True)
    object = words.text(400)
    version = words.whole(1, 2**31, allow_null=True)
    reason = words.text(400)
    before = words.Anything()
    after = words.Anything()
    request_id = words.text(64)
    commit = words.text(64)
    pipeline_url = words.text(400)
    digest = words.text(64)


class WebhookSpec(serializers.Serializer[Any]):
    """Where events go, and which; changed, what is left out of a PATCH stays."""

    url = serializers.CharField(max_length=2000)
    event_types = serializers.ListField(child=serializers.CharField(max_length=80), required=False)
    enabled = serializers.BooleanField(required=False)


class WebhookPatchSpec(serializers.Serializer[Any]):
    """What is changed of an endpoint."""

    url = serializers.CharField(max_length=2000, required=False)
    event_types = serializers.ListField(child=serializers.CharField(max_length=80), required=False)
    enabled = serializers.BooleanField(required=False)


class Webhook(words.Shown):
    """An endpoint that is told what happens; its secret is shown when it is made or rotated, and never again."""

    kind = words.word(["Webhook"])
    id = words.ident()
    name = words.name()
    account = words.name(source="account.name")
    version = words.whole(1, 2**31)
    url = words.Url("webhooks", help_text="The URL of the webhook.")
    spec = WebhookSpec()
    disabled_reason = words.text(400)
    failing_since = words.instant(allow_null=True)
    previous_secret_until = words.instant(allow_null=True, source="previous_until")
    created_at = words.instant()
    created_by = words.text(150)


class WebhookSecret(Webhook):
    """An endpoint with its secret, which is shown this once."""

    secret = serializers.CharField()


class WebhookEnvelope(words.Sent):
    """A new endpoint."""

    kind = words.word(["Webhook"], required=False)
    name = words.name()
    account = words.name(required=False)
    spec = WebhookSpec()


class WebhookReplacement(WebhookEnvelope):
    """The whole endpoint anew."""

    name = words.name(required=False)


class WebhookPatch(words.Sent):
    """Some of the endpoint anew."""

    kind = words.word(["Webhook"], required=False)
    name = words.name(required=False)
    account = words.name(required=False)
    spec = WebhookPatchSpec()


class Attempt(words.Shown):
    """One request and what came back: a status, or an error."""

    at = words.instant()
    status = words.whole(100, 599, allow_null=True)
    milliseconds = words.count()
    error = words.text(400)
    answer = words.text(10_000)


class Delivery(words.Shown):
    """One event for one endpoint, with every attempt."""

    id = words.ident()
    message_id = serializers.CharField()
    type = serializers.CharField()
    state = words.word(DeliveryRow.State.values)
    entry_id = words.whole(1, 2**53, allow_null=True)
    position = words.whole(1, 2**53, allow_null=True, source="entry.position")
    object = words.text(400, allow_null=True, source="entry.object_label")
    created_at = words.instant()
    next_at = words.instant(allow_null=True)
    finished_at = words.instant(allow_null=True)
    attempts = Attempt(many=True)


class AlertFinding(words.Shown):
    """One object that one rule finds wrong."""

    rule = words.name()
    watches = serializers.CharField()
    severity = words.word(list(SEVERITIES))
    object_kind = serializers.CharField()
    object = words.text(80, source="name")
    title = words.text(200)
    detail = words.text(1000)
    since = words.instant()
    ended_at = words.instant(allow_null=True)


class Alert(words.Shown):
    """What is wrong for one cause, with every object that it affects."""

    id = words.ident()
    account = words.name(source="account.name")
    title = words.text(200)
    severity = words.word(list(SEVERITIES))
    state = words.word(["firing", "resolved"])
    silenced = serializers.BooleanField()
    since = words.instant()
    opened_at = words.instant()
    resolved_at = words.instant(allow_null=True)
    acknowledged_at = words.instant(allow_null=True)
    acknowledged_by = words.text(150)
    findings = AlertFinding(many=True)


class AlertMessage(words.Shown):
    """One message for one channel, with every attempt."""

    id = words.ident()
    event = words.word(NotificationRow.Event.values)
    thread = words.text(40)
    title = words.text(200, source="content.title")
    state = words.word(NotificationRow.State.values)
    created_at = words.instant()
    next_at = words.instant(allow_null=True)
    finished_at = words.instant(allow_null=True)
    attempts = Attempt(many=True)


class SilenceSpec(serializers.Serializer[Any]):
    """What is covered, and until when; an empty rule or objects covers all of them."""

    rule = words.name(required=False)
    objects = words.text(127, required=False)
    ends_at = words.instant()


class Silence(words.Shown):
    """Nobody is told of what it covers until it ends."""

    id = words.ident()
    account = words.name(source="account.name")
    spec = SilenceSpec()
    reason = words.text(200)
    created_at = words.instant()
    created_by = words.text(150)


class CreateSilence(words.Sent):
    """A new silence of the own account."""

    spec = SilenceSpec()
    reason = words.text(200)
