"""The changes of one object, newest first, each with the version that it made and whether it can be taken back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from apps.accounts.actors import Actor
from apps.audit.selectors import entries
from apps.core.clock import now
from apps.definitions.models import Pool
from apps.definitions.reading.describing import KIND_OF_MODEL
from apps.web.changes.rows import ChangeRow, rows_of

SHOWN = 8
RECENT = timedelta(days=1)


def history_of(actor: Actor, row: Any) -> tuple[list[ChangeRow], bool]:
    """The newest changes of a row that the actor sees, and whether there are more. Two queries, one for operators.

    Those of a pool are those of its limits and servers as well, which have no page of their own.
    """
    found = list(entries(actor).filter(of_object(row))[: SHOWN + 1])
    return rows_of(actor, [[entry] for entry in found[:SHOWN]]), len(found) > SHOWN


def recent_change(actor: Actor, row: Any, before: datetime | None) -> ChangeRow | None:
    """The last change of a row within a day, which may be why it is as it is: the day before the instant, or now."""
    rows = entries(actor).filter(of_object(row), at__gt=(before or now()) - RECENT)
    found = (rows.filter(at__lte=before) if before else rows)[:1]
    return next(iter(rows_of(actor, [[entry] for entry in found])), None)


def of_object(row: Any) -> Q:
    """Entries on this row; of a pool also those on its limits and servers."""
    own = Q(object_kind=KIND_OF_MODEL[type(row)], object_id=row.pk)
    if not isinstance(row, Pool):
        return own
    backends = list(row.backends.all())
    servers = [server.pk for backend in backends for server in backend.servers.all()]
    of_limits = Q(object_kind="Backend", object_id__in=[backend.pk for backend in backends])
    return own | of_limits | Q(object_kind="Server", object_id__in=servers)
