"""SHOW, before a change goes out: would a region be over its limit afterwards, at the traffic of now?"""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction

from apps.accounts.actors import Actor
from apps.overflow import reasons, selectors


def overloads(actor: Actor, change: Callable[[], object]) -> tuple[str, ...]:
    """What would not fit, in sentences; empty when everything fits or nothing was measured.

    The change is really made, in a transaction that is then rolled back, so that it is asked exactly what will be done;
    what it raises is raised here as well.
    """
    before = selectors.predicted(actor, None)
    if before.at is None:
        return ()
    with transaction.atomic():
        change()
        after = selectors.predicted(actor, None)
        transaction.set_rollback(True)
    return reasons.overloads(before.regions, after.regions)
