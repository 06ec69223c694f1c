"""Rows: processes that were heard of, the state of each part and since when, backups that were made."""

from __future__ import annotations

from django.db import models


class Process(models.Model):
    """A process of a console, as it last said of itself; `queues` are those that a worker takes from.

    `errors` are the newest ones that it logged: `[{"at": "2026-01-01T00:00:00+00:00", "text": "…"}]`, without secrets.
    """

    kind = models.CharField(max_length=20)
    host = models.CharField(max_length=80)
    pid = models.PositiveIntegerField()
    queues = models.CharField(max_length=200, blank=True)
    version = models.CharField(max_length=60)
    began_at = models.DateTimeField()
    heard_at = models.DateTimeField()
    errors = models.JSONField(default=list)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("kind", "host", "pid"), name="one_row_per_process"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.pid} on {self.host}"


class PartState(models.Model):
    """In which state a part is (ok, warning, failed, unknown) and since when; the scheduler keeps it."""

    name = models.CharField(max_length=40, unique=True)
    state = models.CharField(max_length=10)
    since = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}: {self.state}"


class Backup(models.Model):
    """A backup that was written to its end, or (`restored`) read back into this database."""

    at = models.DateTimeField()
    restored = models.BooleanField(default=False)
    host = models.CharField(max_length=80)
    path = models.CharField(max_length=400)
    bytes = models.PositiveBigIntegerField()
    seconds = models.FloatField()
    with_request_logs = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.path} of {self.at:%Y-%m-%d %H:%M}"
