"""Rows: replacements of servers, and how far each server is."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from apps.accounts.models import Account
from apps.definitions.models import Pool, Server


class Replacement(models.Model):
    """Servers of one pool that are replaced batch by batch; all servers of a batch are at the same `step`.

    `plan` is what was asked for (plan.py). `batch` counts batches from 1, also those of the way back. `turn` is higher
    after each step, so that of two workers one takes it. `manager` is whose pipeline asked, blank for none.
    `message` says in a sentence what it waits for, or why it stopped.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        STOPPED = "stopped"
        DONE = "done"
        ENDED = "ended"

    class Direction(models.TextChoices):
        FORWARD = "forward"
        BACK = "back"

    class Step(models.TextChoices):
        CHOOSE = "choose", "Choosing servers"
        DRAIN = "drain", "Draining"
        TAKE_OUT = "take_out", "Taking out"
        REPLACE = "replace", "Replacing"
        ADMIT = "admit", "Starting health checks"
        CHECK = "check", "Checking health"
        REST = "rest", "Preparing slow start"
        RETURN = "return", "Bringing back"
        WATCH = "watch", "Watching"

    OPEN = (State.RUNNING, State.STOPPED)

    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    pool = models.ForeignKey(Pool, on_delete=models.SET_NULL, null=True, related_name="replacements")
    label = models.CharField(max_length=200)
    plan = models.JSONField()
    state = models.CharField(max_length=7, choices=State.choices, default=State.RUNNING)
    direction = models.CharField(max_length=7, choices=Direction.choices, default=Direction.FORWARD)
    step = models.CharField(max_length=8, choices=Step.choices, default=Step.CHOOSE)
    step_since = models.DateTimeField()
    batch = models.PositiveIntegerField(default=0)
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
                fields=("pool",), condition=Q(state__in=("running", "stopped")), name="one_open_replacement_per_pool"
            ),
        )
        indexes = (models.Index(fields=("account", "-id")),)

    def __str__(self) -> str:
        return f"replacement {self.pk} in {self.label}"


class ReplacedServer(models.Model):
    """One server of a replacement.

    `set_to` is the administrative state that the replacement gave it last, blank while it gave none; `handed_over`
    says that its owner was asked to replace it, so that it may run another build than before.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        OUT = "out"
        DONE = "done"
        FAILED = "failed"
        LEFT = "left", "Left as it was"
        GONE = "gone", "No longer in the pool"

    replacement = models.ForeignKey(Replacement, on_delete=models.CASCADE, related_name="servers")
    server = models.ForeignKey(Server, on_delete=models.SET_NULL, null=True, related_name="+")
    region = models.CharField(max_length=63)
    name = models.CharField(max_length=63)
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    set_to = models.CharField(max_length=11, blank=True, default="")
    handed_over = models.BooleanField(default=False)
    batch = models.PositiveIntegerField(null=True)
    message = models.CharField(max_length=400, blank=True, default="")

    class Meta:
        ordering = ("region", "id")
        constraints = (
            models.UniqueConstraint(fields=("replacement", "region", "name"), name="server_once_in_replacement"),
        )

    def __str__(self) -> str:
        return f"{self.name} in {self.region}"
