"""Rows: endpoints, how far the audit log was followed, and every delivery with its attempts."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Account
from apps.audit.models import Entry


class Webhook(models.Model):
    """Where an account wants to be told what. Secrets are sealed; two are live for a day after a rotation.

    `failures` counts attempts in a row that failed, without a silence between them (`backoff.SILENCE`), `failing_since`
    when the first of them was; after one, nobody is sent before `not_before`. `claimed_until` is a lease by database
    time, `turn` its fence.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="webhooks")
    name = models.CharField(max_length=63)
    url = models.CharField(max_length=2048)
    event_types = models.JSONField(default=list)
    enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=400, blank=True, default="")
    secret = models.BinaryField()
    previous_secret = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)
    turn = models.PositiveBigIntegerField(default=0)
    created_by = models.CharField(max_length=150, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ("account__name", "name")
        constraints = (models.UniqueConstraint(fields=("account", "name"), name="one_webhook_per_name"),)

    def __str__(self) -> str:
        return f"{self.account.name}/{self.name}"


class Follower(models.Model):
    """The one row that says up to which position of the audit log deliveries were made."""

    position = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"followed to {self.position}"


class Delivery(models.Model):
    """One event for one endpoint; made in the same transaction that moves the follower on, so none is lost.

    `message_id` is the event's own and the same at every attempt. A test has no entry.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        DELIVERED = "delivered"
        FAILED = "failed"

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    entry = models.ForeignKey(Entry, on_delete=models.PROTECT, null=True, related_name="deliveries")
    message_id = models.CharField(max_length=64)
    type = models.CharField(max_length=80)
    state = models.CharField(max_length=9, choices=State.choices, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "deliveries"
        constraints = (models.UniqueConstraint(fields=("webhook", "entry"), name="one_delivery_per_event"),)
        indexes = (
            models.Index(fields=("webhook", "next_at", "id"), condition=models.Q(state="waiting"), name="webhooks_due"),
            models.Index(fields=("finished_at",)),
        )

    def __str__(self) -> str:
        return f"{self.type} to {self.webhook}: {self.state}"


class Attempt(models.Model):
    """One request and what came back: a status, or an error; the first kilobyte of the answer, printable."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="attempts")
    at = models.DateTimeField(auto_now_add=True)
    status = models.PositiveSmallIntegerField(null=True)
    milliseconds = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=400, blank=True, default="")
    answer = models.TextField(blank=True, default="")

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.delivery_id}: {self.status or self.error}"
