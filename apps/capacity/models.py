"""Rows: runs of tests with what they measured, second by second and step by step."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from apps.accounts.models import Account
from apps.definitions.models import CapacityTest, Pool
from apps.fleet.models import Region


class Comparison(models.Model):
    """Two tests in turn, A B A B, `rounds` times each; the result has the differences with their confidence."""

    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    first = models.ForeignKey(CapacityTest, on_delete=models.CASCADE, related_name="compared_as_first")
    second = models.ForeignKey(CapacityTest, on_delete=models.CASCADE, related_name="compared_as_second")
    rounds = models.PositiveIntegerField(default=3)
    actor = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    result = models.JSONField(null=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.first} against {self.second}"


class Run(models.Model):
    """One execution of a capacity test.

    `plan` is the test's document as it was when the run was asked for. `bypass_digest` is the SHA-256 (hex) of the
    token by which nodes know the run's requests while it is active (compiler.model.fleet.BypassToken). A worker holds
    the run until `lease_until` (database time) under its number of `attempt`. A waiting run that is not taken until
    `begin_by` is refused, never caught up; without that instant it waits for an operator's approval. Since `placed_at`
    it has its slot among the runs that may be at once, and keeps it until it is over. `phase` says in a sentence what
    it is at, `message` why it ended as it did. `direct_address` (host:port) is the server that an operator is asked to
    approve (run/targets.py), empty where none is. `result` is what it found (measure/results.py), None before.
    `generator` is what the generator stated as its maximum before the first packet (run/generator_capacity.py), None
    before or where it could not find out. `stopped_by` is who pressed the button.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        STARTING = "starting"
        RUNNING = "running"
        DONE = "done"
        STOPPED = "stopped"
        REFUSED = "refused"
        FAILED = "failed"

    ACTIVE = (State.STARTING, State.RUNNING)
    OPEN = (State.WAITING, *ACTIVE)

    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    test = models.ForeignKey(CapacityTest, on_delete=models.SET_NULL, null=True, related_name="runs")
    pool = models.ForeignKey(Pool, on_delete=models.SET_NULL, null=True, related_name="runs")
    region = models.ForeignKey(Region, on_delete=models.SET_NULL, null=True, related_name="runs")
    comparison = models.ForeignKey(Comparison, on_delete=models.SET_NULL, null=True, related_name="runs")
    label = models.CharField(max_length=200)
    plan = models.JSONField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.WAITING)
    actor = models.CharField(max_length=150)
    request_key = models.CharField(max_length=40, null=True, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    attempt = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    begin_by = models.DateTimeField(null=True)
    placed_at = models.DateTimeField(null=True)
    phase = models.CharField(max_length=400, blank=True, default="")
    stop_requested_at = models.DateTimeField(null=True)
    stopped_by = models.CharField(max_length=150, blank=True, default="")
    direct_address = models.CharField(max_length=60, blank=True, default="")
    approved_by = models.CharField(max_length=150, blank=True, default="")
    bypass_digest = models.CharField(max_length=64, blank=True, default="")
    message = models.CharField(max_length=400, blank=True, default="")
    generator = models.JSONField(null=True)
    result = models.JSONField(null=True)
    limit_set_at = models.DateTimeField(null=True)
    limit_set_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("account", "-id")),
            models.Index(fields=("test", "-id")),
            models.Index(fields=("lease_until",), condition=Q(state__in=("starting", "running")), name="runs_active"),
        )

    def __str__(self) -> str:
        return f"run {self.pk} of {self.label}"

    @property
    def name(self) -> str:
        """What `limit_measured_by` of a backend says: `run-17`."""
        return f"run-{self.pk}"


class Blackout(models.Model):
    """From when until when no test may load anything, whoever it belongs to; set by operators."""

    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.CharField(max_length=200)
    set_by = models.CharField(max_length=150)
    set_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("starts_at", "id")
        constraints = (
            models.CheckConstraint(
                condition=Q(ends_at__gt=models.F("starts_at")), name="blackout_ends_after_it_starts"
            ),
        )

    def __str__(self) -> str:
        return f"{self.starts_at:%Y-%m-%d %H:%M} to {self.ends_at:%Y-%m-%d %H:%M}: {self.reason}"


class Step(models.Model):
    """One rate (or number of users) that a run held: what was offered, what came of it.

    Rates in requests/s, latencies in ms from when a request should have been sent; `histogram` is HDR, base64,
    microseconds. `status` is good, bad or void (the generator could not keep up); `message` says it in a sentence.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="steps")
    ordinal = models.PositiveIntegerField()
    purpose = models.CharField(max_length=10)
    rate = models.FloatField()
    users = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField()
    seconds = models.FloatField()
    offered = models.FloatField()
    answered = models.FloatField()
    errors = models.JSONField(default=dict)
    error_rate = models.FloatField(default=0)
    p50_ms = models.FloatField(null=True)
    p95_ms = models.FloatField(null=True)
    p99_ms = models.FloatField(null=True)
    max_ms = models.FloatField(null=True)
    histogram = models.TextField(blank=True, default="")
    status = models.CharField(max_length=4)
    message = models.CharField(max_length=400, blank=True, default="")

    class Meta:
        ordering = ("run", "ordinal")
        constraints = (models.UniqueConstraint(fields=("run", "ordinal"), name="one_step_per_ordinal"),)

    def __str__(self) -> str:
        return f"{self.run}, step {self.ordinal}"


class Second(models.Model):
    """What one second of a run looked like: counts of that second, latencies in ms, None without an answer."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="seconds")
    at = models.DateTimeField()
    target = models.FloatField()
    offered = models.PositiveIntegerField()
    answered = models.PositiveIntegerField()
    errors = models.PositiveIntegerField()
    in_flight = models.PositiveIntegerField()
    p50_ms = models.FloatField(null=True)
    p95_ms = models.FloatField(null=True)
    p99_ms = models.FloatField(null=True)

    class Meta:
        ordering = ("run", "at")
        constraints = (models.UniqueConstraint(fields=("run", "at"), name="one_row_per_second_of_a_run"),)

    def __str__(self) -> str:
        return f"{self.run} at {self.at:%H:%M:%S}"
