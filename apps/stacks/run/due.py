"""The sweep's question: on which stacks is there something to do that nobody does?"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from apps.fleet.models import Stack
from apps.stacks.models import StackRun, StackSync
from apps.stacks.run.states import TERMINAL, S


def due_stacks(instant: datetime) -> list[int]:
    """Ids of stacks with uncompiled desires, a run that wants work, a failure to try again, a look for drift that is
    due; none that is claimed. `instant` is the database's present. Six queries whatever the number of stacks.
    """
    never = Q(sync=None, desired_generation__gt=0)
    rested = Q(sync__wait_until=None) | Q(sync__wait_until__lte=instant)
    behind = Q(desired_generation__gt=F("sync__compiled_generation")) & rested
    unseen = Q(sync__checked_at=None) | Q(sync__checked_at__lt=instant - timedelta(seconds=settings.STACK_CHECK_S))
    latest = wanted_runs().filter(stack=OuterRef("pk")).order_by("-id")
    rows = Stack.objects.annotate(
        last=Subquery(latest.values("state")[:1]), again=Subquery(latest.values("next_try_at")[:1])
    )
    quiet = Q(last=None) | ~Q(last=S.FAILED)
    failed = Q(last=S.FAILED, again__lte=instant)
    # What an apply left half done is no drift: against what was applied before, it would look like somebody's change.
    resting = Q(sync__applied__isnull=False, sync__doubted=None) & unseen & quiet
    busy = StackRun.objects.filter(finished_at=None)
    open_now = set(busy.values_list("stack_id", flat=True))
    working = busy.exclude(Q(state=S.PLANNED) & Q(cancelled_by="")).exclude(next_try_at__gt=instant)
    destroyed = set(busy.filter(kind=StackRun.Kind.DESTROY).values_list("stack_id", flat=True))
    due = set(rows.filter(never | behind).values_list("pk", flat=True)) - destroyed
    due |= set(rows.filter(failed | resting).values_list("pk", flat=True)) - open_now
    due |= set(working.values_list("stack_id", flat=True))
    claimed = set(StackSync.objects.filter(claimed_until__gte=instant).values_list("stack_id", flat=True))
    return sorted(due - claimed)


def wanted_runs() -> QuerySet[StackRun]:
    """Runs by which it is judged what is to be tried again: all but looks for drift that came to their end."""
    return StackRun.objects.exclude(kind=StackRun.Kind.CHECK, state__in=TERMINAL - {S.FAILED})
