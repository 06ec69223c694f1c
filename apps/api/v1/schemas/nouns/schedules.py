"""Schedules, their runs, their triggers and topics."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.api.v1.schemas.envelopes import Definition, Envelope
from apps.definitions.models import Schedule as Row
from apps.schedules.models import ScheduleRun as ScheduleRunRow
from apps.schedules.models import Trigger as TriggerRow

DAY_S = 86_400


class ScheduleWhen(serializers.Serializer[Any]):
    """When: exactly one of the four; `cron` has five fields or six, the first of which are seconds."""

    may_be_absent = ("cron", "every_s", "at", "trigger")

    cron = serializers.CharField(max_length=200, required=False, help_text="`30 2 * * *`, `*/10 * * * * *`, `@daily`.")
    every_s = words.whole(1, 366 * DAY_S, required=False, help_text="Seconds from one instant to the next.")
    at = serializers.CharField(max_length=19, required=False, help_text="Once: a local time, 2026-12-01T10:00:00.")
    trigger = serializers.BooleanField(required=False, help_text="true: only its triggers run it.")


class Timing(words.Sent):
    """A timing that somebody thinks about."""

    when = ScheduleWhen()
    zone = serializers.CharField(max_length=63, required=False)
    starts_at = words.instant(required=False, allow_null=True)
    ends_at = words.instant(required=False, allow_null=True)


class Preview(words.Shown):
    """What a timing would do: in a sentence, and its next ten instants; `ends` when there are no more."""

    sentence = serializers.CharField()
    instants = serializers.ListField(child=words.instant())
    ends = serializers.BooleanField()


class CatchUp(serializers.Serializer[Any]):
    """What becomes of instants that nobody was there for, if they are not older than the window."""

    policy = words.word(Row.CatchUp.values, required=False)
    window_s = words.whole(0, 7 * DAY_S, required=False)


class Retries(serializers.Serializer[Any]):
    """How often it is tried, and how long it waits after the first failure; the wait doubles, up to an hour."""

    attempts = words.whole(1, 20, required=False)
    backoff_s = words.whole(1, 3600, required=False)


class WebhookTarget(serializers.Serializer[Any]):
    """A signed POST to a public address."""

    url = serializers.CharField(max_length=2048)
    body = words.text(8192, required=False)


class TopicTarget(serializers.Serializer[Any]):
    """A message to subscribers of the account."""

    topic = words.name()
    message = words.text(8192, required=False)


class CapacityTestTarget(serializers.Serializer[Any]):
    """A run of a capacity test; a late one is never caught up."""

    name = words.name()


class RolloutTarget(serializers.Serializer[Any]):
    """Look at every node of a fleet and push what differs; for operators."""

    fleet = words.name()


class ChangeTarget(serializers.Serializer[Any]):
    """A change of an object (kind, name, account, spec), taken back after so many seconds if it says so."""

    object = serializers.DictField()
    restore_after_s = words.whole(1, 30 * DAY_S, required=False, allow_null=True)


class ScheduleTarget(serializers.Serializer[Any]):
    """What happens: exactly one of the five."""

    may_be_absent = ("webhook", "topic", "capacity_test", "rollout", "change")

    webhook = WebhookTarget(required=False)
    topic = TopicTarget(required=False)
    capacity_test = CapacityTestTarget(required=False)
    rollout = RolloutTarget(required=False)
    change = ChangeTarget(required=False)


class ScheduleSpec(serializers.Serializer[Any]):
    """When something happens, and what."""

    when = ScheduleWhen()
    zone = serializers.CharField(max_length=63, required=False, help_text="Such as Europe/Berlin; UTC if left out.")
    starts_at = words.instant(required=False, allow_null=True)
    ends_at = words.instant(required=False, allow_null=True, help_text="No instant at it or after it.")
    window_s = words.whole(0, DAY_S, required=False, help_text="It may come so much later, each time the same.")
    jitter_s = words.whole(0, DAY_S, required=False, help_text="It may come so much later, each time another.")
    overlap = words.word(Row.Overlap.values, required=False)
    catch_up = CatchUp(required=False)
    retries = Retries(required=False)
    timeout_s = words.whole(1, 300, required=False, help_text="How long a webhook may take to answer.")
    paused = serializers.BooleanField(required=False, help_text="Left out, it stays as it is.")
    target = ScheduleTarget()


class Schedule(Definition):
    """A schedule, with its next instant and how many it missed."""

    kind = words.word(["Schedule"])
    spec = ScheduleSpec()
    sentence = serializers.CharField(help_text="When, in words.")
    next_at = words.instant(allow_null=True)
    missed = words.count()


class ScheduleEnvelope(Envelope):
    """A new schedule."""

    kind = words.word(["Schedule"], required=False)
    name = words.name()
    spec = ScheduleSpec()


class ScheduleRun(words.Shown):
    """One occurrence: `waiting` and `running` go on, the other states are final (`dead` may be tried again by hand)."""

    id = words.ident()
    key = serializers.CharField(help_text="The idempotency key of its delivery, the same at every attempt.")
    url = serializers.CharField()
    schedule = words.name()
    schedule_id = words.ident()
    account = words.name()
    cause = words.word(ScheduleRunRow.Cause.values)
    state = words.word(ScheduleRunRow.State.values)
    scheduled_at = words.instant()
    due_at = words.instant()
    started_at = words.instant(allow_null=True)
    finished_at = words.instant(allow_null=True)
    next_try_at = words.instant(allow_null=True)
    attempt = words.count()
    actor = words.text(150)
    trigger = words.name(allow_null=True)
    message = words.text(400)
    result = words.Anything()


class SigningSecret(words.Shown):
    """What signs the webhooks of a schedule from now on, shown this once."""

    schedule_id = words.ident()
    secret = serializers.CharField()


class Trigger(words.Shown):
    """An inbound URL of a schedule: `hook`, below the address of this installation."""

    id = words.ident()
    name = words.name()
    account = words.name()
    schedule = words.name()
    schedule_id = words.ident()
    version = words.whole(1, 2**31)
    url = serializers.CharField(help_text="Where it is read and changed.")
    hook = serializers.CharField(help_text="Where it is called.")
    sender = words.word(TriggerRow.Sender.values)
    per_minute = words.whole(1, 600)
    created_at = words.instant()
    created_by = words.text(150)
    last_used_at = words.instant(allow_null=True)
    old_secret_until = words.instant(allow_null=True, help_text="Until when the secret before works as well.")


class TriggerSecret(Trigger):
    """A trigger with its secret, which is shown this once."""

    secret = serializers.CharField()


class CreateTrigger(words.Sent):
    """A new trigger."""

    schedule_id = words.ident()
    name = words.name()
    sender = words.word(TriggerRow.Sender.values, required=False)
    per_minute = words.whole(1, 600, required=False)


class TriggerRotation(words.Sent):
    """A new secret for a trigger."""

    grace_s = words.whole(0, 7 * DAY_S, required=False, help_text="How long the old secret works; a day if left out.")


class TriggerPatch(words.Sent):
    """What changes of a trigger."""

    name = words.name(required=False)
    per_minute = words.whole(1, 600, required=False)


class Message(words.Shown):
    """One message of a topic: `id` is its position, `key` is the same for every attempt of the run that sent it."""

    id = serializers.CharField()
    key = serializers.CharField()
    schedule = serializers.CharField()
    scheduled_at = serializers.CharField()
    message = words.text(8192)
    sent = serializers.CharField(help_text="What a trigger's caller sent.")


class Messages(words.Shown):
    """What was sent to a topic, oldest first."""

    topic = words.name()
    items = Message(many=True)
