"""The audit log as rows: written in the same transaction as the change that they describe, and never again."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db import models

from apps.accounts.models import Account


class AppendOnly(Exception):
    """Somebody tried to change or delete an entry of the audit log."""


def _refuse() -> NoReturn:
    raise AppendOnly("Entries of the audit log are never changed or deleted.")


class Entries(models.QuerySet["Entry"]):
    """Rows that may be read and added; triggers in the database say the same to everybody else."""

    def update(self, **_kwargs: Any) -> NoReturn:
        """Refused."""
        _refuse()

    def delete(self) -> NoReturn:
        """Refused."""
        _refuse()


class Entry(models.Model):
    """One change: who, what, before, after, why. Rows are only ever added.

    `version` is the object's after the change. `position`, `previous` and `digest` are the entry's link in the chain
    (chain.py), given a moment after the commit: positions have no gaps, a digest covers the entry and the one before.
    """

    at = models.DateTimeField(auto_now_add=True)
    actor = models.CharField(max_length=150)
    token = models.CharField(max_length=16, blank=True, default="")
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="audit_entries")
    request_id = models.CharField(max_length=64, blank=True)
    action = models.CharField(max_length=40)
    object_kind = models.CharField(max_length=40)
    object_id = models.BigIntegerField(null=True)
    object_label = models.CharField(max_length=400)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    version = models.PositiveIntegerField(null=True)
    reason = models.CharField(max_length=400, blank=True)
    commit = models.CharField(max_length=64, blank=True, default="")
    pipeline_url = models.CharField(max_length=400, blank=True, default="")
    position = models.BigIntegerField(null=True, unique=True)
    previous = models.CharField(max_length=64, blank=True, default="")
    digest = models.CharField(max_length=64, blank=True, default="")

    objects = Entries.as_manager()
    links = models.Manager["Entry"]()  # for chain.py alone, which fills in what is still empty

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "entries"
        indexes = (
            models.Index(fields=("object_kind", "object_id")),
            models.Index(fields=("at",)),
            models.Index(fields=("actor", "id")),
            models.Index(fields=("account", "id")),
            models.Index(fields=("request_id",)),
            models.Index(fields=("id",), condition=models.Q(position=None), name="audit_entry_unlinked"),
            models.Index(
                fields=("object_kind", "object_label"), condition=models.Q(action="delete"), name="audit_entry_deleted"
            ),
        )

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.object_label}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Add the row; one that is there already is refused."""
        if not self._state.adding:
            _refuse()
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refused."""
        _refuse()
