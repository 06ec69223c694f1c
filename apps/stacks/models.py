"""Rows: revisions of a stack, their runs, Terraform's state with its history and its lock."""

from __future__ import annotations

import secrets

from django.db import models
from django.utils import timezone

from apps.fleet.models import Stack


def new_mark() -> str:
    """One that nobody else has."""
    return secrets.token_hex(8)


class StackRevision(models.Model):
    """A stored, numbered document of one stack; never changed after creation.

    `document` is the sealed, compressed JSON of the StackDocument, `secrets` the sealed values of its variables;
    `refused` and `warnings` are findings, `digest` that of document and secrets.
    """

    stack = models.ForeignKey(Stack, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    generation = models.PositiveBigIntegerField()
    digest = models.CharField(max_length=64)
    document = models.BinaryField()
    secrets = models.BinaryField()
    summary = models.CharField(max_length=400)
    actor = models.CharField(max_length=150)
    refused = models.JSONField(default=list)
    warnings = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-number",)
        constraints = (models.UniqueConstraint(fields=("stack", "number"), name="revision_number_in_stack"),)

    def __str__(self) -> str:
        return f"{self.stack} r{self.number}"


class StackSync(models.Model):
    """How far a stack has come; `claimed_until` is a lease by database time, `attempt` its fence.

    `compiled_generation` is the last desired generation that became a revision, `applied` the revision that the cloud
    has, `wait_until` holds planning back for some seconds so that changes travel together.

    `doubted` is the revision whose apply began and whose good end nobody heard: the cloud may have more than the state
    knows (run/orphans.py). `unknown` is what was then found and could not be taken over. `added_by_hand` is
    what the last look for drift found below things of ours (cloud/strangers.py). `mark` is in the tags of all that
    the stack makes, so that another installation's things in the same cloud are never taken for its own.
    """

    stack = models.OneToOneField(Stack, on_delete=models.CASCADE, related_name="sync")
    compiled_generation = models.PositiveBigIntegerField(default=0)
    wanted = models.ForeignKey(StackRevision, on_delete=models.SET_NULL, null=True, related_name="+")
    applied = models.ForeignKey(StackRevision, on_delete=models.SET_NULL, null=True, related_name="+")
    applied_at = models.DateTimeField(null=True)
    doubted = models.ForeignKey(StackRevision, on_delete=models.SET_NULL, null=True, related_name="+")
    unknown = models.JSONField(default=list)
    added_by_hand = models.JSONField(default=list)
    mark = models.CharField(max_length=16, default=new_mark)
    outputs = models.JSONField(default=dict)
    compile_error = models.CharField(max_length=2000, blank=True)
    wait_until = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)
    claimed_by = models.CharField(max_length=80, blank=True)
    claimed_until = models.DateTimeField(null=True)
    attempt = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"sync of {self.stack}"


class StackRun(models.Model):
    """One run that brings a revision to its cloud: plan, a decision, apply.

    waiting → planning → planned (waits for a person) → approved → applying → done; or unchanged (nothing to do),
    failed, discarded (a person said no), superseded (something newer is planned), stale (the state moved on: planned
    again).
    `plan` is the sealed JSON of the changes, `plan_file` the sealed bytes that alone may be applied; both are
    forgotten when the run ends. `to_*` count resources. `check` runs look for drift and apply nothing.
    """

    class Kind(models.TextChoices):
        CHANGE = "change"
        CHECK = "check"
        DESTROY = "destroy"

    class State(models.TextChoices):
        WAITING = "waiting"
        PLANNING = "planning"
        PLANNED = "planned"
        APPROVED = "approved"
        APPLYING = "applying"
        DONE = "done"
        UNCHANGED = "unchanged"
        FAILED = "failed"
        DISCARDED = "discarded"
        SUPERSEDED = "superseded"

    stack = models.ForeignKey(Stack, on_delete=models.CASCADE, related_name="runs")
    revision = models.ForeignKey(StackRevision, on_delete=models.CASCADE, related_name="runs")
    kind = models.CharField(max_length=7, choices=Kind.choices, default=Kind.CHANGE)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    actor = models.CharField(max_length=150)
    reason = models.CharField(max_length=400, blank=True)
    approved_by = models.CharField(max_length=150, blank=True)
    approved_at = models.DateTimeField(null=True)
    to_add = models.PositiveIntegerField(default=0)
    to_change = models.PositiveIntegerField(default=0)
    to_replace = models.PositiveIntegerField(default=0)
    to_delete = models.PositiveIntegerField(default=0)
    drifted = models.PositiveIntegerField(default=0)
    plan = models.BinaryField(default=b"")
    plan_file = models.BinaryField(default=b"")
    plan_digest = models.CharField(max_length=64, blank=True)
    password_digest = models.CharField(max_length=64, blank=True)
    cancelled_by = models.CharField(max_length=150, blank=True)
    message = models.CharField(max_length=2000, blank=True)
    object_label = models.CharField(max_length=400, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    planned_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("stack", "state")),)
        constraints = (
            models.UniqueConstraint(
                fields=("stack",), condition=models.Q(finished_at=None), name="one_open_run_per_stack"
            ),
        )

    def __str__(self) -> str:
        return f"run {self.pk} of {self.revision}"


class RunEvent(models.Model):
    """One thing that Terraform said while it worked, as live progress; `address` is Terraform's, `label` ours."""

    run = models.ForeignKey(StackRun, on_delete=models.CASCADE, related_name="events")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=10)
    address = models.CharField(max_length=400, blank=True)
    label = models.CharField(max_length=400, blank=True)
    action = models.CharField(max_length=10, blank=True)
    seconds = models.FloatField(default=0.0)
    message = models.CharField(max_length=2000, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=("run", "number"), name="event_number_in_run"),)

    def __str__(self) -> str:
        return f"{self.run}: {self.kind} {self.address}"


class StateVersion(models.Model):
    """One state of a stack as Terraform wrote it, sealed; the newest counts. `md5` is that of the plain text."""

    stack = models.ForeignKey(Stack, on_delete=models.CASCADE, related_name="states")
    number = models.PositiveIntegerField()
    serial = models.PositiveBigIntegerField(default=0)
    lineage = models.CharField(max_length=64, blank=True)
    md5 = models.CharField(max_length=32)
    resources = models.PositiveIntegerField(default=0)
    content = models.BinaryField()
    run = models.ForeignKey(StackRun, on_delete=models.SET_NULL, null=True, related_name="states")
    written_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-number",)
        constraints = (models.UniqueConstraint(fields=("stack", "number"), name="state_number_in_stack"),)

    def __str__(self) -> str:
        return f"state {self.number} of {self.stack}"


class StateLock(models.Model):
    """Who may write a stack's state now; `info` is what Terraform said of itself, `lock_id` its id of the lock.

    `seen_at` is when it last said that it lives: an apply outlives its worker.
    """

    stack = models.OneToOneField(Stack, on_delete=models.CASCADE, related_name="state_lock")
    lock_id = models.CharField(max_length=64)
    info = models.JSONField(default=dict)
    run = models.ForeignKey(StackRun, on_delete=models.SET_NULL, null=True, related_name="+")
    held_by = models.CharField(max_length=150)
    seen_at = models.DateTimeField(default=timezone.now)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"lock of {self.stack}"


class CloudTarget(models.Model):
    """One server as the cloud's own check sees it now; `object_id` is our id of the backend, blank where unknown."""

    stack = models.ForeignKey(Stack, on_delete=models.CASCADE, related_name="targets")
    group = models.CharField(max_length=400)
    object_id = models.CharField(max_length=40, blank=True)
    address = models.CharField(max_length=253)
    port = models.PositiveIntegerField()
    state = models.CharField(max_length=40)
    reason = models.CharField(max_length=400, blank=True)
    since = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ("group", "address", "port")
        constraints = (
            models.UniqueConstraint(fields=("stack", "group", "address", "port"), name="target_once_in_group"),
        )

    def __str__(self) -> str:
        return f"{self.address}:{self.port} in {self.group}"


class CloudSample(models.Model):
    """What one group did in the minute that ends at `at`, as the cloud counted it; latencies in ms or null."""

    stack = models.ForeignKey(Stack, on_delete=models.CASCADE, related_name="samples")
    group = models.CharField(max_length=400)
    object_id = models.CharField(max_length=40, blank=True)
    at = models.DateTimeField()
    requests = models.PositiveBigIntegerField(default=0)
    status_2xx = models.PositiveBigIntegerField(default=0)
    status_3xx = models.PositiveBigIntegerField(default=0)
    status_4xx = models.PositiveBigIntegerField(default=0)
    status_5xx = models.PositiveBigIntegerField(default=0)
    connections = models.PositiveBigIntegerField(default=0)
    p50_ms = models.FloatField(null=True)
    p95_ms = models.FloatField(null=True)
    p99_ms = models.FloatField(null=True)

    class Meta:
        ordering = ("at",)
        constraints = (models.UniqueConstraint(fields=("stack", "group", "at"), name="one_cloud_sample_per_minute"),)

    def __str__(self) -> str:
        return f"{self.group} at {self.at:%H:%M}"


class BackendWeight(models.Model):
    """The part of a pool's traffic (0–1000) that a stack sends to one backend, where weights do the overflow.

    `reason` says from which samples it came; a row is replaced, its history is in the audit log.
    """

    stack = models.ForeignKey(Stack, on_delete=models.CASCADE, related_name="weights")
    backend_id = models.PositiveBigIntegerField()
    weight = models.PositiveSmallIntegerField(default=0)
    reason = models.CharField(max_length=400, blank=True)
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ("backend_id",)
        constraints = (models.UniqueConstraint(fields=("stack", "backend_id"), name="one_weight_per_backend"),)

    def __str__(self) -> str:
        return f"backend {self.backend_id} in {self.stack}: {self.weight}"


class StackReading(models.Model):
    """How the cloud is read: `read_at` the last look at its targets, `counted_until` the newest minute of its numbers.

    `error` says why the last look failed; `next_at` when the next one is due. `claimed_until` is a lease by database
    time, `attempt` its fence.
    """

    stack = models.OneToOneField(Stack, on_delete=models.CASCADE, related_name="reading")
    read_at = models.DateTimeField(null=True)
    counted_until = models.DateTimeField(null=True)
    error = models.CharField(max_length=1000, blank=True)
    failures = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(null=True)
    moved_at = models.DateTimeField(null=True)
    claimed_by = models.CharField(max_length=80, blank=True)
    claimed_until = models.DateTimeField(null=True)
    attempt = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"reading of {self.stack}"
