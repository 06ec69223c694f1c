"""The row of a plan that was shown and waits to be applied."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Account


class StoredPlan(models.Model):
    """A plan that was shown and may be applied exactly so, once: the sealed document, and what it was compared with.

    `base` is the digest of all that the plan was derived from; the document is forgotten once it was applied.
    """

    id = models.CharField(max_length=32, primary_key=True)
    account = models.ForeignKey(Account, on_delete=models.CASCADE)
    actor = models.CharField(max_length=150)
    manager = models.CharField(max_length=63, blank=True, default="")
    prune = models.BooleanField(default=False)
    sealed_objects = models.BinaryField()
    base = models.CharField(max_length=64)
    summary = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    applied_at = models.DateTimeField(null=True)
    applied_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ("-created_at", "id")

    def __str__(self) -> str:
        return self.id
