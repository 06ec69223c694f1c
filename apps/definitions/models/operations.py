"""Rows of what is done again and again: schedules and capacity tests."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from apps.definitions.definition import Definition
from apps.definitions.models.pools import Pool
from apps.fleet.models import Region


class Schedule(Definition):
    """When something should happen: at most one of `cron`, `every_s` and `at`; none of them waits for its trigger.

    `at` is a local time of `zone` without offset. `target` is the document of its kind, as its shape says. `next_at` is
    the next instant that no scheduler has booked yet (UTC, None for never); it and `missed` move without a new version.
    Times in whole seconds; `starts_at` and `ends_at` bound the instants, the end excluded.
    """

    class Overlap(models.TextChoices):
        SKIP = "skip"
        QUEUE = "queue"
        ALLOW = "allow"

    class CatchUp(models.TextChoices):
        SKIP = "skip"
        ONCE = "once"
        ALL = "all"

    class TargetKind(models.TextChoices):
        WEBHOOK = "webhook"
        TOPIC = "topic"
        CAPACITY_TEST = "capacity_test"
        ROLLOUT = "rollout"
        CHANGE = "change"

    cron = models.CharField(max_length=200, blank=True, default="")
    every_s = models.PositiveIntegerField(null=True)
    at = models.CharField(max_length=19, blank=True, default="")
    zone = models.CharField(max_length=63, default="UTC")
    starts_at = models.DateTimeField(null=True)
    ends_at = models.DateTimeField(null=True)
    window_s = models.PositiveIntegerField(default=0)
    jitter_s = models.PositiveIntegerField(default=0)
    overlap = models.CharField(max_length=5, choices=Overlap.choices, default=Overlap.SKIP)
    catch_up = models.CharField(max_length=4, choices=CatchUp.choices, default=CatchUp.ONCE)
    catch_up_window_s = models.PositiveIntegerField(default=300)
    attempts = models.PositiveIntegerField(default=3)
    backoff_s = models.PositiveIntegerField(default=5)
    timeout_s = models.PositiveIntegerField(default=30)
    paused = models.BooleanField(default=False)
    target_kind = models.CharField(max_length=13, choices=TargetKind.choices)
    target = models.JSONField(default=dict)
    next_at = models.DateTimeField(null=True)
    missed = models.PositiveIntegerField(default=0)

    class Meta(Definition.Meta):
        indexes = (models.Index(fields=("next_at",), condition=Q(paused=False), name="schedules_due"),)


class CapacityTest(Definition):
    """What to load and how: a pool in a region through its load balancer, or one of its servers directly.

    `hostname` and `path` are what the generators ask for; an empty `server` means through the load balancer. `load`,
    `objective`, `guards` and `policy` are documents (shapes/operations/capacity_test.py).
    """

    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="capacity_tests")
    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="capacity_tests")
    hostname = models.CharField(max_length=253)
    path = models.CharField(max_length=1024, default="/")
    server = models.CharField(max_length=63, blank=True, default="")
    load = models.JSONField(default=dict)
    objective = models.JSONField(default=dict)
    guards = models.JSONField(default=dict)
    policy = models.JSONField(default=dict)

    @property
    def target(self) -> CapacityTest:
        """What is loaded, as documents have it: pool, region, hostname, path, server."""
        return self
