"""Rows: alerts with their findings, who was told of them, every message, silences, and the state of channels."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Account
from apps.definitions.models import AlertChannel


class Alert(models.Model):
    """What is wrong for one cause, in the eyes of one account.

    `keys` are the causes that its findings share (evaluate/causes.py): what is found later and has one of them belongs
    to it. `weight` says how bad it is (severity and reach); channels are told again where it rises.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="alerts")
    keys = models.JSONField(default=list)
    title = models.CharField(max_length=200)
    severity = models.CharField(max_length=8)
    weight = models.PositiveSmallIntegerField(default=0)
    since = models.DateTimeField()
    opened_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("account", "-id")),
            models.Index(fields=("account",), condition=models.Q(resolved_at=None), name="alerts_open"),
            models.Index(fields=("resolved_at",)),
        )

    def __str__(self) -> str:
        return self.title


class Finding(models.Model):
    """One object that one rule of one account finds wrong; without an alert until it has been so for long enough.

    `gone_at` is since when the rule finds nothing any more; it ends at `ended_at`, some seconds later, so that what
    comes and goes is one finding.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="findings")
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, null=True, related_name="findings")
    rule = models.CharField(max_length=63)
    watches = models.CharField(max_length=30)
    object_kind = models.CharField(max_length=20)
    object_id = models.BigIntegerField()
    owner = models.CharField(max_length=63, blank=True, default="")
    name = models.CharField(max_length=80)
    title = models.CharField(max_length=200)
    detail = models.CharField(max_length=1000, blank=True, default="")
    page = models.CharField(max_length=200, blank=True, default="")
    keys = models.JSONField(default=list)
    severity = models.CharField(max_length=8)
    since = models.DateTimeField()
    due_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("account", "rule", "object_kind", "object_id"),
                condition=models.Q(ended_at=None),
                name="one_finding_at_a_time",
            ),
        )
        indexes = (models.Index(fields=("alert",)), models.Index(fields=("object_kind", "object_id")))

    def __str__(self) -> str:
        return self.title


class Evaluation(models.Model):
    """The one row by whose lease rules are evaluated, and when they were last."""

    name = models.CharField(max_length=20, unique=True)
    evaluated_at = models.DateTimeField(null=True)
    claimed_by = models.CharField(max_length=80, blank=True)
    claimed_until = models.DateTimeField(null=True)
    attempt = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return self.name


class ChannelState(models.Model):
    """How a channel does. `failures` counts attempts in a row; until `not_before` it is left alone after one."""

    channel = models.OneToOneField(AlertChannel, on_delete=models.CASCADE, related_name="state")
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    error = models.CharField(max_length=400, blank=True, default="")
    claimed_by = models.CharField(max_length=80, blank=True)
    claimed_until = models.DateTimeField(null=True)
    attempt = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"state of {self.channel_id}"


class Notification(models.Model):
    """One message for one channel; stored before it is sent. `content` is what it says, as it was then.

    Messages of one `thread` speak of the same alerts: begun, worse, resolved. One that was overtaken before it was
    delivered is dropped.
    """

    class Event(models.TextChoices):
        FIRING = "firing"
        RESOLVED = "resolved"
        TEST = "test"

    class State(models.TextChoices):
        WAITING = "waiting"
        DELIVERED = "delivered"
        FAILED = "failed"
        DROPPED = "dropped"

    channel = models.ForeignKey(AlertChannel, on_delete=models.CASCADE, related_name="notifications")
    thread = models.CharField(max_length=40)
    event = models.CharField(max_length=8, choices=Event.choices)
    content = models.JSONField()
    state = models.CharField(max_length=9, choices=State.choices, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    attempts = models.JSONField(default=list)
    next_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(
                fields=("channel", "next_at", "id"), condition=models.Q(state="waiting"), name="notifications_due"
            ),
            models.Index(fields=("channel", "event", "created_at")),
            models.Index(fields=("finished_at",)),
        )

    def __str__(self) -> str:
        return f"{self.event} to {self.channel_id}: {self.state}"


class Told(models.Model):
    """That a channel is told of an alert, in which thread, how bad it was then, and whether a message arrived.

    What got worse may be told in another thread; the `earlier` ones end with it.
    """

    channel = models.ForeignKey(AlertChannel, on_delete=models.CASCADE, related_name="told")
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="told")
    thread = models.CharField(max_length=40)
    earlier = models.JSONField(default=list, db_default=[])
    weight = models.PositiveSmallIntegerField()
    delivered_at = models.DateTimeField(null=True)
    closed = models.BooleanField(default=False)

    class Meta:
        ordering = ("id",)
        constraints = (models.UniqueConstraint(fields=("channel", "alert"), name="told_once_by_channel"),)
        indexes = (models.Index(fields=("channel", "thread")),)

    def __str__(self) -> str:
        return f"{self.alert_id} to {self.channel_id}"

    @property
    def threads(self) -> list[str]:
        """Every thread in which the channel heard of the alert, the present one first."""
        return [self.thread, *self.earlier]


class Silence(models.Model):
    """Nobody is told of what it covers until it ends. An empty `rule` or `objects` covers all of them."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="silences")
    rule = models.CharField(max_length=63, blank=True, default="")
    objects_named = models.CharField(max_length=127, blank=True, default="")
    reason = models.CharField(max_length=200)
    ends_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150)

    class Meta:
        ordering = ("ends_at", "id")

    def __str__(self) -> str:
        return self.reason
