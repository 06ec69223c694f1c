"""Before a change goes out: would a region be over its limit afterwards, at the traffic of now?"""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction

from apps.accounts.actors import Actor
from apps.overflow import reasons, selectors


def overloads(actor: Actor, change: Callable[[], object]) -> tuple[str, ...]:
    """What would not fit, in sentences; empty when everything fits or nothing was measured.

    The change is really made, in a transaction that is then rolled back, so that it is asked exactly what will be done;
    what it raises is raised here as well. Each pool is asked by itself: a limit is a pool's, and the room of one is of
    no use to another.
    """
    before = selectors.predicted_each(actor)
    if all(flow.at is None for _, flow in before.values()):
        return ()
    with transaction.atomic():
        change()
        after = selectors.predicted_each(actor)
        transaction.set_rollback(True)
    found: list[str] = []
    for pk, (name, flow) in after.items():
        earlier = before[pk][1].regions if pk in before else ()
        # With one pool there is no other that could be meant.
        found += reasons.overloads(earlier, flow.regions, pool="" if len(after) == 1 else name)
    return tuple(found)
