"""Rows: how far each zone has come, what each push did, what drifted, what resolvers answer."""

from __future__ import annotations

from django.db import models

from apps.definitions.models import Record, Zone


class ZoneSync(models.Model):
    """How far a zone has come; `claimed_until` is a lease by database time, `attempt` its fence.

    `pushed_generation` is the last desired generation that the server took. `drift` are record sets that somebody
    changed on the server since (`{name, type, wanted, served}`), `in_the_way` those of others where ours should be;
    `unmanaged` are names and types there that nobody defined here, which are never touched. `refused` are
    record sets that the server does not take (`{name, type, message}`); they are tried again. `repair` is what somebody
    asked for: `{keys: [[name, type]] (empty for all), adopt_existing, actor, reason}`, until it is done. `writing` are
    record sets (`{name, type, ttl, values}`) that were sent and of which nobody knows whether the server took them:
    their worker still waits, or died, or heard no answer.
    """

    zone = models.OneToOneField(Zone, on_delete=models.CASCADE, related_name="sync")
    pushed_generation = models.PositiveBigIntegerField(default=0)
    pushed_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True)
    drift = models.JSONField(default=list)
    in_the_way = models.JSONField(default=list)
    unmanaged = models.JSONField(default=list)
    refused = models.JSONField(default=list)
    repair = models.JSONField(null=True)
    writing = models.JSONField(default=list, db_default=[])
    error = models.CharField(max_length=2000, blank=True)
    next_try_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    claimed_by = models.CharField(max_length=80, blank=True)
    claimed_until = models.DateTimeField(null=True)
    attempt = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"sync of {self.zone}"


class PushedRecord(models.Model):
    """A record set as the server last took it from here: what is in this table is ours to change or to remove there."""

    zone = models.ForeignKey(Zone, on_delete=models.CASCADE, related_name="pushed_records")
    name = models.CharField(max_length=253)
    type = models.CharField(max_length=5)
    ttl = models.PositiveIntegerField()
    values = models.JSONField(default=list)

    class Meta:
        ordering = ("name", "type")
        constraints = (models.UniqueConstraint(fields=("zone", "name", "type"), name="pushed_once"),)

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


class ZonePush(models.Model):
    """One write to a zone's server: its edits (`{name, type, before, after}`), and what became of it."""

    class State(models.TextChoices):
        DONE = "done"
        FAILED = "failed"

    zone = models.ForeignKey(Zone, on_delete=models.CASCADE, related_name="pushes")
    generation = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=6, default="change", choices=[("change", "change"), ("repair", "repair")])
    state = models.CharField(max_length=6, choices=State.choices)
    actor = models.CharField(max_length=150)
    reason = models.CharField(max_length=400, blank=True)
    edits = models.JSONField(default=list)
    message = models.CharField(max_length=2000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"push {self.pk} of {self.zone}"


class ServedRecord(models.Model):
    """What one resolver answered for a record when it was last asked; `values` are sorted, `error` in words."""

    record = models.ForeignKey(Record, on_delete=models.CASCADE, related_name="served")
    resolver = models.CharField(max_length=80)
    values = models.JSONField(default=list)
    as_wanted = models.BooleanField(default=False)
    error = models.CharField(max_length=400, blank=True)
    asked_at = models.DateTimeField()

    class Meta:
        ordering = ("resolver",)
        constraints = (models.UniqueConstraint(fields=("record", "resolver"), name="one_answer_per_resolver"),)

    def __str__(self) -> str:
        return f"{self.record} at {self.resolver}"
