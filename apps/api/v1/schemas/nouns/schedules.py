"""What schedules do next, their runs, their triggers and topics."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.definitions.shapes.operations.schedule import DAY_S
from apps.schedules.models import ScheduleRun as ScheduleRunRow
from apps.schedules.models import Trigger as TriggerRow


class Preview(words.Shown):
    """What a timing would do: in a sentence, and its next ten instants; `ends` when there are no more."""

    sentence = serializers.CharField()
    instants = serializers.ListField(child=words.instant())
    ends = serializers.BooleanField()


class ScheduleFacts(words.Shown):
    """Its timing in words, its next instant, and how many it missed."""

    sentence = serializers.CharField(help_text="The timing as a sentence.")
    next_at = words.instant(allow_null=True)
    missed = words.count()


class ScheduleRun(words.Shown):
    """One occurrence: `waiting` and `running` go on, the other states are final (`dead` may be tried again by hand)."""

    id = words.ident()
    key = serializers.CharField(help_text="The idempotency key of the delivery, the same for every attempt.")
    url = words.Url("schedule-runs")
    schedule = words.name(source="schedule.name")
    schedule_id = words.ident()
    account = words.name(source="schedule.account.name")
    cause = words.word(ScheduleRunRow.Cause.values)
    state = words.word(ScheduleRunRow.State.values)
    scheduled_at = words.instant()
    due_at = words.instant()
    started_at = words.instant(allow_null=True)
    finished_at = words.instant(allow_null=True)
    next_try_at = words.instant(allow_null=True)
    attempt = words.count()
    actor = words.text(150)
    trigger = words.name(allow_null=True, source="trigger.name")
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
    account = words.name(source="schedule.account.name")
    schedule = words.name(source="schedule.name")
    schedule_id = words.ident()
    version = words.whole(1, 2**31)
    url = words.Url("triggers", help_text="The URL of the trigger.")
    hook = serializers.CharField(help_text="The URL to call.")
    sender = words.word(TriggerRow.Sender.values)
    per_minute = words.whole(1, 600)
    created_at = words.instant()
    created_by = words.text(150)
    last_used_at = words.instant(allow_null=True)
    old_secret_until = words.instant(allow_null=True, help_text="Until when the previous secret also works.")


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

    grace_s = words.whole(
        0, 7 * DAY_S, required=False, help_text="How long the previous secret works. Default: one day."
    )


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
    sent = serializers.CharField(help_text="What the caller of a trigger sent.")


class Messages(words.Shown):
    """What was sent to a topic, oldest first."""

    topic = words.name()
    items = Message(many=True)
