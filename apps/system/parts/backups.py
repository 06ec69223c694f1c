"""The newest backup: how old it is."""

from __future__ import annotations

from datetime import timedelta

from apps.core.clock import now
from apps.system.models import Backup
from apps.system.parts.part import Answer, State

OLD = timedelta(days=2)
MAKE = "Make one each day: spillway-admin backup --to <file>."


def newest() -> Backup | None:
    """The newest one that was written to its end."""
    return Backup.objects.filter(restored=False).order_by("-at").first()


def backups() -> Answer:
    """Whether there is one, and not too old."""
    row = newest()
    if row is None:
        return Answer(State.WARNING, "None was ever made.", MAKE)
    age = now() - row.at
    hours = age.total_seconds() / 3600
    old = f"{hours:.0f} hours" if hours < 72 else f"{hours / 24:.0f} days"
    said = f"The newest is {old} old: {row.path} on {row.host}, {row.bytes / 1e6:.1f} MB."
    return Answer(State.WARNING if age > OLD else State.OK, said, MAKE if age > OLD else "")
