"""The rows of sources of servers."""

from __future__ import annotations

from django.db import models


class ServerSource(models.Model):
    """What is known of the source of a backend's servers: when it was asked last, and what was wrong with its answer.

    `answered_at` is the last answer that we took, `error` why the last one was not; `left_out` says which servers of
    it we may not call. `short` counts answers in a row that listed less than half of the servers. Of a source that is
    watched, `listed` is what was heard last, and `heard_at` when somebody watched last.
    """

    backend = models.OneToOneField("definitions.Backend", on_delete=models.CASCADE, related_name="source")
    next_at = models.DateTimeField(db_index=True)
    tried_at = models.DateTimeField(null=True)
    answered_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    short = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=400, blank=True, default="")
    left_out = models.CharField(max_length=400, blank=True, default="")
    listed = models.JSONField(null=True)
    heard_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"source of {self.backend}"


class Heartbeat(models.Model):
    """A server that has registered itself with a backend, until its lease ends."""

    backend = models.ForeignKey("definitions.Backend", on_delete=models.CASCADE, related_name="heartbeats")
    name = models.CharField(max_length=63)
    address = models.CharField(max_length=253)
    port = models.PositiveIntegerField()
    weight = models.PositiveIntegerField()
    until = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("backend", "name"), name="heartbeat_name_in_backend"),
            models.UniqueConstraint(fields=("backend", "address", "port"), name="heartbeat_address_in_backend"),
        )

    def __str__(self) -> str:
        return f"{self.name} of {self.backend}"


class SourceWatch(models.Model):
    """The one row by whose lease one process watches the sources that tell by themselves what changes."""

    name = models.CharField(max_length=20, unique=True)
    claimed_by = models.CharField(max_length=80, blank=True)
    claimed_until = models.DateTimeField(null=True)
    attempt = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return self.name
