"""Rows: how far each sink has come where definitions are published."""

from __future__ import annotations

from django.db import models


class Publication(models.Model):
    """The definitions of an account as keys of an etcd, under one prefix of it (publishing/services.py).

    `known` has, for each key below the prefix, digests of what we wrote or may have written there: of several, nobody
    knows yet which one is there. `conflicts` are keys that somebody else changed (`{key, revision, what}`), `overwrite`
    those that an operator gave up to us, by the revision that was seen. `position` of the audit log is the last whose
    changes were looked at. `claimed_until` is a lease by database time, `attempt` its fence.
    """

    registry = models.CharField(max_length=63)
    prefix = models.CharField(max_length=400)
    account = models.CharField(max_length=63, blank=True)
    revision = models.PositiveBigIntegerField(default=0)
    objects_count = models.PositiveIntegerField(default=0)
    known = models.JSONField(default=dict)
    conflicts = models.JSONField(default=list)
    overwrite = models.JSONField(default=dict)
    error = models.CharField(max_length=400, blank=True)
    failures = models.PositiveIntegerField(default=0)
    position = models.BigIntegerField(default=0)
    tried_at = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True)
    published_at = models.DateTimeField(null=True)
    next_at = models.DateTimeField(null=True)
    claimed_by = models.CharField(max_length=80, blank=True)
    claimed_until = models.DateTimeField(null=True)
    attempt = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ("registry", "prefix")
        constraints = (models.UniqueConstraint(fields=("registry", "prefix"), name="one_publication_per_prefix"),)

    def __str__(self) -> str:
        return f"{self.registry} {self.prefix}"
