"""The columns of what has a name of its own on the whole platform."""

from __future__ import annotations

from django.db import models


class Named(models.Model):
    """What an operator names: unique by its name, with a version and the pipeline that manages it."""

    name = models.CharField(max_length=63, unique=True)
    manager = models.CharField(max_length=63, blank=True, default="")
    version = models.PositiveIntegerField(default=1)

    class Meta:
        abstract = True
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
