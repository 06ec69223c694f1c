"""The rows of key sets."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Account


class KeySet(models.Model):
    """The public keys that an account's policies and routes have from one URL (JWKS): the last good answer.

    `keys` are `[{algorithm, pem, kid, gone_at?}]`, those that left the set with the moment at which they did;
    `ignored` says what else was there, `error` why the last try failed, `next_at` when the next one is due.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    url = models.CharField(max_length=512)
    keys = models.JSONField(default=list)
    ignored = models.CharField(max_length=400, blank=True, default="")
    fetched_at = models.DateTimeField(null=True)
    tried_at = models.DateTimeField(null=True)
    next_at = models.DateTimeField(db_index=True)
    failures = models.PositiveIntegerField(default=0)
    error = models.CharField(max_length=400, blank=True, default="")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("account", "url"), name="keyset_url_in_account"),)

    def __str__(self) -> str:
        return self.url
