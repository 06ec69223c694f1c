"""The columns that every definition has."""

from __future__ import annotations

from enum import StrEnum

from django.db import models

from apps.accounts.models import Account


def choices(enum: type[StrEnum]) -> list[tuple[str, str]]:
    """The members of an enumeration as a column's choices."""
    return [(member.value, member.value) for member in enum]


class Definition(models.Model):
    """What every definition has: an owner, a name that is unique within the account, a version."""

    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    name = models.CharField(max_length=63)
    manager = models.CharField(max_length=63, blank=True, default="")
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("account", "name"), name="%(class)s_name_in_account"),)

    def __str__(self) -> str:
        return self.name
