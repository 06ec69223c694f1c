"""The rows of countries."""

from __future__ import annotations

from django.db import models


class Country(models.Model):
    """A country and its networks, one on each line, as the database of `built_at` had them; the same on every worker.

    A country that a later database lacks keeps the networks it had: a list that denies it stays closed.
    """

    code = models.CharField(primary_key=True, max_length=2)
    name = models.CharField(max_length=80)
    networks = models.TextField()
    count = models.PositiveIntegerField()
    built_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
