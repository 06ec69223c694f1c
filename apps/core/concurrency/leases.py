"""One worker at a time works on a row, by a lease of database time and an attempt number as a fence.

Rows carry `claimed_by`, `claimed_until` and `attempt`. A worker that dies is missed when its lease ends; one that was
only slow finds that its attempt is over at its next write, which then does not happen.
"""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from django.db import models, transaction
from django.db.models import F, Q

from apps.core.clock import database_now

Row = TypeVar("Row", bound=models.Model)


class LeaseLost(Exception):
    """Another worker has the row now: what this one still wants to write is not written."""


@dataclass(frozen=True, slots=True)
class Lease(Generic[Row]):
    """The right to work on one row until it ends; `attempt` is never given twice for a row."""

    model: type[Row]
    pk: int
    attempt: int
    length: timedelta

    def renew(self) -> None:
        """The full time again; raises LeaseLost when another attempt was begun."""
        if not self._mine().update(claimed_until=database_now() + self.length):
            raise LeaseLost(self._over())

    def lock(self) -> Row:
        """The row, locked until the end of the transaction; raises LeaseLost when the attempt is no longer ours."""
        row = self._mine().select_for_update().first()
        if row is None:
            raise LeaseLost(self._over())
        return row

    def release(self) -> None:
        """Give the row back, unless it is another's already."""
        self._mine().update(claimed_by="", claimed_until=None)

    def _mine(self) -> models.QuerySet[Row]:
        return self.model._default_manager.filter(pk=self.pk, attempt=self.attempt)

    def _over(self) -> str:
        return f"attempt {self.attempt} on {self.model._meta.verbose_name} {self.pk} is over"


def take(model: type[Row], length: timedelta, **key: Any) -> Lease[Row] | None:
    """Claim the row with this key, made when there is none; None while somebody else has it."""
    holder = f"{socket.gethostname()[:40]}:{os.getpid()}:{threading.get_ident() % 10**9}"
    rows = model._default_manager
    with transaction.atomic():
        row, _ = rows.get_or_create(**key)
        instant = database_now()
        free = Q(claimed_until=None) | Q(claimed_until__lt=instant)
        taken = rows.filter(free, pk=row.pk).update(
            claimed_by=holder, claimed_until=instant + length, attempt=F("attempt") + 1
        )
        if not taken:
            return None
        return Lease(model, row.pk, rows.values_list("attempt", flat=True).get(pk=row.pk), length)
