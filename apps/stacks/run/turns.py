"""Whose turn it is: in a process so many stacks at once, and of each cloud account one.

Terraform takes minutes and its clouds take longer, so whoever has a free seat works on the account that waits longest
for its turn. Two processes know of each other by the leases in the database.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable

from django.conf import settings

from apps.core.clock import database_now
from apps.core.concurrency.fairness import Owners, Seats, in_turns
from apps.fleet.models import Stack
from apps.stacks import services
from apps.stacks.models import StackSync
from apps.stacks.run.due import due_stacks


def seats() -> int:
    """How many stacks this process works on side by side."""
    return max(1, int(settings.STACK_RUNS_AT_ONCE))


SEATS: Seats[int] = Seats(seats, lambda _shared: 1, slow_s=900.0)
_count = itertools.count(1)
# Cloud account → when it last had a turn here.
_turns: dict[Hashable, int] = {}


def reconcile_in_turns() -> int:
    """Bring due stacks to what the definitions say, account by account, as long as there are seats; their number."""
    return in_turns(SEATS, choose, lambda stack_id: services.reconcile_stack(stack_id=stack_id))


def choose(accounts: Owners, done: frozenset[int]) -> tuple[Hashable, int] | None:
    """A stack of the account whose last turn is longest ago, of none of these and none that somebody works on."""
    instant = database_now()
    busy = StackSync.objects.filter(claimed_until__gte=instant).values("stack__cloud_account")
    due = Stack.objects.filter(pk__in=due_stacks(instant)).exclude(pk__in=done)
    free = due.exclude(cloud_account__in=busy).exclude(cloud_account__in=accounts)
    found = min(
        free.values_list("cloud_account", "pk"), key=lambda each: (_turns.get(each[0], 0), each[1]), default=None
    )
    if found is not None:
        _turns[found[0]] = next(_count)
    return found
