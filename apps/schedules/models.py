"""Rows: every occurrence of a schedule, and the triggers through which the outside asks for one."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

from apps.accounts.models import Account
from apps.core.clock import now
from apps.definitions.models import Schedule


class ScheduleRun(models.Model):
    """One occurrence: schedule and instant are its key, so any number of schedulers book it once.

    `scheduled_at` is the instant of the calendar (or when somebody asked), `due_at` that plus window and jitter.
    A worker that has it holds it until `lease_until` (database time) under its number of `attempt`; whoever finishes
    with another number is too late. `next_try_at` is when a waiting run may be taken. `body` is what a trigger's
    caller sent, `delivery` the id that its sender gave it, `message` what came of it, `result` what pages link to.
    One of cause restore takes back a change, held in its `result`; it comes whatever else the schedule does.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        DEAD = "dead"
        SKIPPED = "skipped"
        MISSED = "missed"

    class Cause(models.TextChoices):
        TIME = "time"
        CATCH_UP = "catch_up"
        BY_HAND = "by_hand"
        TRIGGER = "trigger"
        RESTORE = "restore"

    OPEN = (State.WAITING, State.RUNNING)

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="runs")
    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    scheduled_at = models.DateTimeField()
    due_at = models.DateTimeField()
    cause = models.CharField(max_length=8, choices=Cause.choices, default=Cause.TIME)
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    attempt = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    actor = models.CharField(max_length=150, blank=True, default="")
    trigger = models.ForeignKey("Trigger", on_delete=models.SET_NULL, null=True, related_name="runs", db_index=False)
    delivery = models.CharField(max_length=100, blank=True, default="")
    body = models.TextField(blank=True, default="")
    message = models.CharField(max_length=400, blank=True, default="")
    result = models.JSONField(default=dict)

    class Meta:
        ordering = ("-scheduled_at", "-id")
        constraints = (
            models.UniqueConstraint(fields=("schedule", "scheduled_at"), name="one_schedule_run_per_instant"),
            models.UniqueConstraint(
                fields=("trigger", "delivery"), condition=~Q(delivery=""), name="one_schedule_run_per_delivery"
            ),
        )
        indexes = (
            models.Index(fields=("next_try_at",), condition=Q(state="waiting"), name="schedule_runs_waiting"),
            models.Index(
                fields=("schedule", "id"), condition=Q(state__in=("waiting", "running")), name="schedule_runs_open"
            ),
            models.Index(fields=("lease_until",), condition=Q(state="running"), name="schedule_runs_running"),
            models.Index(fields=("schedule", "-scheduled_at")),
            models.Index(
                fields=("trigger", "-scheduled_at"), condition=Q(trigger__isnull=False), name="schedule_runs_of_trigger"
            ),
            models.Index(
                fields=("schedule", "scheduled_at"), condition=Q(state__in=("dead", "missed")), name="schedule_runs_bad"
            ),
        )

    def __str__(self) -> str:
        return f"{self.schedule} at {self.scheduled_at:%Y-%m-%d %H:%M:%S}"

    @property
    def key(self) -> str:
        """The idempotency key of its delivery: the same for every attempt."""
        return f"schedule-run-{self.pk}"


class Trigger(models.Model):
    """An inbound URL of a schedule: `/hooks/<key_id>`, with a secret of its own or signatures of a known sender.

    Secrets are sealed, because signatures need them; the one before proves a caller as well until `previous_until`.
    `per_minute` bounds how often it runs.
    """

    class Sender(models.TextChoices):
        SECRET = "secret"  # noqa: S105 - a word for a way of proving who calls
        STANDARD_WEBHOOKS = "standard_webhooks"
        GITHUB = "github"
        GITLAB = "gitlab"

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="triggers")
    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    name = models.CharField(max_length=63)
    key_id = models.CharField(max_length=22, unique=True)
    sealed_secret = models.BinaryField()
    previous_secret = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True)
    sender = models.CharField(max_length=17, choices=Sender.choices, default=Sender.SECRET)
    per_minute = models.PositiveIntegerField(default=60)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150)
    last_used_at = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("schedule", "name"), name="trigger_name_in_schedule"),)

    def __str__(self) -> str:
        return self.name

    @property
    def old_secret_until(self) -> datetime | None:
        """Until when the secret before works as well; None when it does no more."""
        return self.previous_until if self.previous_until and self.previous_until > now() else None


class SigningSecret(models.Model):
    """What signs the webhooks of one schedule; the one before it signs as well until `previous_until`."""

    schedule = models.OneToOneField(Schedule, on_delete=models.CASCADE, related_name="signing_secret")
    sealed = models.BinaryField()
    previous = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"secret of {self.schedule}"
