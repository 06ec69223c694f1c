"""One at a time: a run is claimed with a lease by database time and an attempt number as a fence.

Several that are due at one instant are all claimed at once, each by its worker; where only one of them may go on is
decided afterwards, by who takes the slot first.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import F, Q, QuerySet

from apps.accounts.actors import platform_actor
from apps.audit import services as audit
from apps.capacity.models import Run
from apps.core.clock import database_now
from apps.core.concurrency.locks import lock_words
from apps.core.events import publish, publish_after_commit

# A worker that dies is missed after this long; the generator's own lease ends the load long before.
LEASE = timedelta(seconds=15)
T = TypeVar("T")


class ClaimLost(Exception):
    """The run is over or somebody else's: what this worker still wants to write is not written."""


def take(run_id: int) -> Run | None:
    """Claim a waiting run whose time has not passed; None when there is nothing to take. It is STARTING then."""
    instant = database_now()
    waiting = Run.objects.filter(pk=run_id, state=Run.State.WAITING, begin_by__gt=instant, stop_requested_at=None)
    claimed = {"state": Run.State.STARTING, "lease_until": instant + LEASE, "attempt": F("attempt") + 1}
    if not waiting.update(**claimed):
        return None
    publish("runs", run=run_id)
    return Run.objects.select_related("account", "test", "pool__account", "region").get(pk=run_id)


def renew(run: Run, **changes: Any) -> bool:
    """A full lease again, with what changed; whether nobody asked to stop. Raises ClaimLost when it is not ours."""
    until = database_now() + LEASE
    if not _ours(run).update(lease_until=until, **changes):
        raise ClaimLost(f"attempt {run.attempt} of {run.name} is over")
    for name, value in changes.items():
        setattr(run, name, value)
    return not Run.objects.filter(pk=run.pk, stop_requested_at__isnull=False).exists()


def take_slot(run: Run, hindrance: Callable[[], T | None]) -> T | None:
    """Let the run go on among others, for as long as it lasts; None then, else what `hindrance` says.

    One run at a time asks and takes, so of two that are due together one goes on and the other finds it there.
    Raises ClaimLost when it is not ours.
    """
    with transaction.atomic():
        lock_words(["slots of capacity tests"])
        found = hindrance()
        if found is None:
            renew(run, placed_at=database_now())
    return found


def placed() -> QuerySet[Run]:
    """The runs that have their slots: those that load, and those that are about to."""
    return Run.objects.filter(Q(state=Run.State.RUNNING) | Q(state=Run.State.STARTING, placed_at__isnull=False))


def finish(run: Run, state: str, message: str, result: dict[str, Any] | None) -> None:
    """The end of our attempt, once; raises ClaimLost when it is not ours any more."""
    with transaction.atomic():
        ended = {
            "state": state,
            "message": message[:400],
            "result": result,
            "ended_at": database_now(),
            "lease_until": None,
        }
        if not _ours(run).update(phase="", **ended):
            raise ClaimLost(f"attempt {run.attempt} of {run.name} is over")
        record_end(run, state, message)
    run.refresh_from_db()


def record_end(run: Run, state: str, message: str) -> None:
    """Inside the transaction of the end: the audit log has it, and open pages are told after commit."""
    audit.record(
        actor=platform_actor(),
        action="finish",
        kind="Run",
        object_id=run.pk,
        label=f"{run.label} {run.name}",
        account=run.account,
        after={"state": str(state), "message": message[:400]},
    )
    publish_after_commit("runs", run=run.pk)


def _ours(run: Run) -> Any:
    return Run.objects.filter(pk=run.pk, attempt=run.attempt, state__in=Run.ACTIVE)


def lost() -> Any:
    """Active runs whose worker let the lease end."""
    return Run.objects.filter(state__in=Run.ACTIVE).filter(Q(lease_until=None) | Q(lease_until__lt=database_now()))
