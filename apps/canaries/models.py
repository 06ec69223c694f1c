"""Rows: canaries, each with how far it is."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from apps.accounts.models import Account
from apps.definitions.models import Route


class Canary(models.Model):
    """A pool of one route whose share of the requests grows step by step.

    `plan` is what was asked for (plan.py), `before` the weights by pool as they were then, `weights` as the canary set
    them last: others mean that somebody else did. `generations` has by fleet what its nodes must run for them to be
    live, and `live_at` when they were. `step` counts steps of the plan from 0. `turn` is higher after each step, so
    that of two workers one takes it. `message` says in a sentence what it waits for, or why it holds.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        HELD = "held"
        PROMOTED = "promoted"
        ABORTED = "aborted"
        ENDED = "ended"

    OPEN = (State.RUNNING, State.HELD)

    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    route = models.ForeignKey(Route, on_delete=models.SET_NULL, null=True, related_name="canaries")
    label = models.CharField(max_length=200)
    plan = models.JSONField()
    before = models.JSONField()
    weights = models.JSONField()
    generations = models.JSONField(default=dict)
    state = models.CharField(max_length=8, choices=State.choices, default=State.RUNNING)
    step = models.PositiveIntegerField(default=0)
    live_at = models.DateTimeField(null=True)
    turn = models.PositiveIntegerField(default=0)
    actor = models.CharField(max_length=150)
    manager = models.CharField(max_length=63, blank=True, default="")
    reason = models.CharField(max_length=400, blank=True, default="")
    message = models.CharField(max_length=400, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("route",), condition=Q(state__in=("running", "held")), name="one_open_canary_per_route"
            ),
        )
        indexes = (models.Index(fields=("account", "-id")),)

    def __str__(self) -> str:
        return f"canary {self.pk} of {self.label}"
