"""Requests that may be sent again, as rows: who gave which key to which request, and what was answered."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Account


class KeyedRequest(models.Model):
    """One `Idempotency-Key` of one caller, kept for a day.

    `fingerprint` is the SHA-256 of what was asked; `turn` names the attempt that works on it now, since `began_at`.
    `status` is null until there is an answer. The answer is sealed: it may hold what is shown only once.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    caller = models.CharField(max_length=64)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    turn = models.CharField(max_length=32)
    began_at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True)
    headers = models.JSONField(default=dict)
    sealed_body = models.BinaryField(default=bytes)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("account", "caller", "key"), name="one_request_per_key"),)

    def __str__(self) -> str:
        return f"{self.caller}: {self.status or 'in flight'}"
