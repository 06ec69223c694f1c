"""Rows: incidents with what was written about them, and what was measured of pools day by day."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models

from apps.alerts.models import Alert
from apps.definitions.models import Pool, StatusPage
from apps.definitions.shapes.base.words import instant_text
from apps.status.states import COMPLETED, IN_PROGRESS, PLANNED, SCHEDULED, STATUSES


class Incident(models.Model):
    """What people, or a rule, tell visitors of a page; planned maintenance is one with `ends_at`.

    `number` counts the incidents of its page: visitors see no other. `impacts` says how it leaves components, by their
    names as they were then. `resolved_at` is when it was over, by a person or a rule; maintenance ends by the clock as
    well. One that a rule opened is `automatic` until a person writes about it: then the person closes it.
    """

    page = models.ForeignKey(StatusPage, on_delete=models.CASCADE, related_name="incidents")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=120)
    impacts = models.JSONField(default=dict)
    status = models.CharField(max_length=13)
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)
    automatic = models.BooleanField(default=False)
    alert = models.ForeignKey(Alert, on_delete=models.SET_NULL, null=True, related_name="incidents")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=("page", "number"), name="incident_number_on_page"),
            models.UniqueConstraint(fields=("page", "alert"), name="one_incident_of_an_alert"),
        )
        indexes = (models.Index(fields=("page", "begins_at")),)

    def __str__(self) -> str:
        return self.title

    def over_at(self, instant: datetime) -> datetime | None:
        """When it was over, None while it is not."""
        if self.resolved_at is not None:
            return self.resolved_at
        return self.ends_at if self.ends_at is not None and self.ends_at <= instant else None

    def word_at(self, instant: datetime) -> str:
        """What it is at, in a word of visitors."""
        if self.ends_at is None:
            return STATUSES[self.status]
        if self.over_at(instant):
            return PLANNED[COMPLETED]
        return PLANNED[SCHEDULED if instant < self.begins_at else IN_PROGRESS]

    def document(self) -> dict[str, Any]:
        """What the audit log keeps of it."""
        fields = ("title", "impacts", "status", "begins_at", "ends_at", "resolved_at")
        values = {name: getattr(self, name) for name in fields}
        return {name: instant_text(each) if isinstance(each, datetime) else each for name, each in values.items()}


class DeletedIncident(models.Model):
    """An alert whose incident somebody took off the page, so that it opens none there again."""

    page = models.ForeignKey(StatusPage, on_delete=models.CASCADE, related_name="deleted_incidents")
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("page", "alert"), name="deleted_incident_once"),)

    def __str__(self) -> str:
        return f"{self.alert} on {self.page}"


class IncidentUpdate(models.Model):
    """What was written about an incident, as plain text; nobody's name stands beside what a rule wrote."""

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="updates")
    at = models.DateTimeField()
    word = models.CharField(max_length=20)
    text = models.TextField()
    written_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ("-at", "-id")

    def __str__(self) -> str:
        return self.text[:60]


class PoolDay(models.Model):
    """What was measured of a pool on a day (UTC), counted up to `counted_until`; kept when its samples are gone.

    `minutes` are those in which somebody looked; in `down` of them it took no request, in `failing` it failed many.
    """

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="days")
    day = models.DateField()
    minutes = models.PositiveIntegerField(default=0)
    down = models.PositiveIntegerField(default=0)
    failing = models.PositiveIntegerField(default=0)
    counted_until = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("pool", "day"), name="one_row_of_a_pool_and_day"),)
        indexes = (models.Index(fields=("day",)),)

    def __str__(self) -> str:
        return f"{self.pool_id} on {self.day}"
