"""The one row by which a process finds out at once whether its key opens what is stored."""

from __future__ import annotations

from django.db import models


class KeyCheck(models.Model):
    """Sealed when the first process wrote, and again at the end of each `rotate_keys`; there is one row, number 1."""

    sealed = models.BinaryField()

    def __str__(self) -> str:
        return "what every process must be able to open"
