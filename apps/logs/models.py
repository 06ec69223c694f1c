"""Rows: what an account wants of its request log, who collects, and how far each node's lines are stored."""

from __future__ import annotations

from datetime import datetime

from django.db import models

from apps.accounts.models import Account
from apps.fleet.models import Node
from apps.logs.collect.masking import SECRETS


def usual_secrets() -> list[str]:
    """Names of parameters and headers whose values nobody should find in a log."""
    return list(SECRETS)


class LogSettings(models.Model):
    """How long the lines of an account are kept and what of its clients' addresses; without a row, as a new one says.

    How much may be kept is the quota `log_megabytes`. `mask_values_of` are names (`token`) of parameters in queries,
    paths and headers, and of headers, whose values are not kept (collect/masking.py).
    """

    account = models.OneToOneField(Account, on_delete=models.CASCADE, related_name="log_settings")
    retention_days = models.PositiveSmallIntegerField(default=14)
    mask_addresses = models.BooleanField(default=False)
    mask_values_of = models.JSONField(default=usual_secrets, db_default=usual_secrets())
    version = models.PositiveIntegerField(default=1)

    class Meta:
        verbose_name_plural = "log settings"

    def __str__(self) -> str:
        return f"log settings of {self.account.name}"


class LogForward(models.Model):
    """A log system that an account's lines go to. The header's value is sealed.

    `positions` say how far it was sent what waits: file and offset; `lines_waiting` were that many when a collector
    last looked. `sent`, `refused` and `skipped` count lines: taken, refused for good by the receiver, and dropped here
    before they could be sent. What came before `forget_before` is not sent: somebody deleted those lines, perhaps on
    another machine than the one where they wait. `failures` counts attempts in a row that failed, `failing_since` when
    the first was, `error` why the last did; nobody is sent before `not_before`. `claimed_until` is a lease by database
    time, `turn` its fence.
    """

    class Sends(models.TextChoices):
        """What goes there: each line, or a span of each request that is sampled in a trace."""

        LINES = "lines", "Lines"
        SPANS = "spans", "Spans"

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="log_forwards")
    name = models.CharField(max_length=63)
    url = models.CharField(max_length=2048)
    sends = models.CharField(max_length=5, choices=Sends.choices, default=Sends.LINES)
    filter = models.CharField(max_length=2000, blank=True, default="")
    ca = models.TextField(blank=True, default="")
    header_name = models.CharField(max_length=80, blank=True, default="")
    header_value = models.BinaryField(null=True)
    enabled = models.BooleanField(default=True)
    positions = models.JSONField(default=dict)
    sent = models.PositiveBigIntegerField(default=0)
    refused = models.PositiveBigIntegerField(default=0)
    skipped = models.PositiveBigIntegerField(default=0)
    lines_waiting = models.PositiveBigIntegerField(default=0)
    forget_before = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    tested_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    error = models.CharField(max_length=400, blank=True, default="")
    not_before = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)
    turn = models.PositiveBigIntegerField(default=0)
    created_by = models.CharField(max_length=150, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ("account__name", "name")
        constraints = (models.UniqueConstraint(fields=("account", "name"), name="one_log_forward_per_name"),)

    def __str__(self) -> str:
        return f"{self.account.name}/{self.name}"


class LogCollector(models.Model):
    """A process that collects; it is alive until `until` by database time, so that several share the nodes."""

    holder = models.CharField(max_length=80, unique=True)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return self.holder


class NodeLog(models.Model):
    """How the lines of a node come in. `holder` collects them until `until` by database time.

    `stored` and `damaged` count lines since the row was made; `dropped` is what the node itself lost, `waiting_s`
    how old the oldest line was that still waited there at `read_at`, when it last said so; `dropped_at` is when it
    was last seen to lose more. `error` says what is wrong now.
    """

    node = models.OneToOneField(Node, on_delete=models.CASCADE, related_name="log")
    holder = models.CharField(max_length=80, blank=True, default="")
    until = models.DateTimeField(null=True)
    stored = models.PositiveBigIntegerField(default=0)
    damaged = models.PositiveBigIntegerField(default=0)
    dropped = models.PositiveBigIntegerField(default=0)
    dropped_at = models.DateTimeField(null=True)
    waiting_s = models.FloatField(default=0)
    read_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=400, blank=True, default="")

    def __str__(self) -> str:
        return f"log of {self.node.name}"

    def waits_s(self, instant: datetime) -> float:
        """How long the oldest line waits there, for all that anybody knows; nothing where nobody ever asked."""
        return 0.0 if self.read_at is None else self.waiting_s + max(0.0, (instant - self.read_at).total_seconds())


class SavedSearch(models.Model):
    """A filter under a name. With a `measure` it is a metric, measured up to `measured_until`.

    A percentile is one of the field `of`; a share is one among the lines that fit the filter `among`.
    """

    class Measure(models.TextChoices):
        """What is measured each minute."""

        COUNT = "count", "Count per minute"
        RATE = "rate", "Rate per second"
        SHARE = "share", "Share of requests"
        PERCENTILE = "percentile", "Percentile"

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="saved_searches")
    name = models.CharField(max_length=63)
    filter = models.TextField(blank=True)
    measure = models.CharField(max_length=10, choices=Measure.choices, blank=True, default="")
    of = models.CharField(max_length=20, blank=True, default="")
    percentile = models.PositiveSmallIntegerField(default=0)
    among = models.TextField(blank=True, default="")
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    measured_until = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "saved searches"
        constraints = (models.UniqueConstraint(fields=("account", "name"), name="saved_search_name_in_account"),)

    def __str__(self) -> str:
        return self.name


class CountedLines(models.Model):
    """Up to when the lines of an account are counted for the objectives of its routes; late lines move it back.

    `pending` is from when on what is counted was not stored yet; it stays where that came to nothing.
    """

    account = models.OneToOneField(Account, on_delete=models.CASCADE, related_name="counted_lines")
    until = models.DateTimeField(null=True)
    pending = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "counted lines"

    def __str__(self) -> str:
        return f"lines of {self.account.name}"


class MetricPoint(models.Model):
    """One minute of a metric; the value is null where nothing could be measured."""

    search = models.ForeignKey(SavedSearch, on_delete=models.CASCADE, related_name="points")
    minute = models.DateTimeField()
    lines = models.PositiveBigIntegerField()
    value = models.FloatField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("search", "minute"), name="metric_point_of_minute"),)

    def __str__(self) -> str:
        return f"{self.search.name} at {self.minute:%H:%M}"
