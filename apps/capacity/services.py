"""A run is asked for, approved, stopped, and given up; blackouts are set and ended.

A request that is wrong in itself is refused (Invalid, Forbidden, NotFound). A test that may not run as things are now
becomes a run that is REFUSED, with the message, so that whoever looks at the history of a schedule sees it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.accounts.quotas import lock_quotas
from apps.audit import services as audit
from apps.capacity import selectors
from apps.capacity.models import Blackout, Comparison, Run
from apps.capacity.run import bypass_tokens, claims
from apps.capacity.run.checking import checks, refusal
from apps.capacity.run.targets import target_of
from apps.capacity.use import limits
from apps.core.clock import database_now, now
from apps.core.errors import Conflict, FieldError, Forbidden, Invalid
from apps.core.events import publish_after_commit
from apps.core.queue import enqueue, enqueue_on_commit
from apps.definitions.models import CapacityTest
from apps.definitions.reading.describing import describe
from apps.definitions.selectors import capacity_tests, only

RUN_TASK = "apps.capacity.tasks.carry_out"
# A run that nobody began within this time after it was due or approved is refused, never caught up.
BEGIN_WITHIN = timedelta(seconds=60)
APPROVE_WITHIN = timedelta(hours=24)
LONGEST_BLACKOUT = timedelta(days=366)
# A worker that lives has set a limit by then; a number that is older is set by people.
AFTER, APPLY_WITHIN = timedelta(seconds=15), timedelta(minutes=10)
LOST = "The worker of this run exited unexpectedly. The load generator stopped when its lease expired."
LATE = "No worker started it within a minute, and late tests do not catch up. Start it again."


def request_run(
    *,
    actor: Actor,
    test_id: int,
    request_key: str | None = None,
    scheduled_at: datetime | None = None,
    approve: bool = False,
    comparison: Comparison | None = None,
    reason: str = "",
) -> Run:
    """Ask for one run of a test; it begins within a minute or is refused.

    1. The same `request_key` (a schedule's run) gives the same run, however often it is asked for.
    2. More than a minute after `scheduled_at`: refused, never caught up.
    3. Every check is asked now; a no that does not pass refuses the run. The worker asks all of them again.
    4. Above the approval rate, and where a customer asks a public server directly, it waits for an operator, or is
       approved by the one who asks with `approve`.
    Raises NotFound, Forbidden (viewers; `approve` by others than operators).
    """
    actor.may_write("capacity-tests")
    if approve:
        actor.must_operate("who approves capacity tests")
    test = only(capacity_tests(actor), test_id)
    try:
        with transaction.atomic():
            lock_quotas(test.account)
            known = Run.objects.filter(request_key=request_key).first() if request_key else None
            return known or _request(actor, test, request_key, scheduled_at, approve, comparison, reason)
    except IntegrityError:
        # Somebody else asked with the same key in this moment: theirs is the run.
        return Run.objects.get(request_key=request_key)


def _request(
    actor: Actor,
    test: CapacityTest,
    request_key: str | None,
    scheduled_at: datetime | None,
    approve: bool,
    comparison: Comparison | None,
    reason: str,
) -> Run:
    run = Run(
        account=test.account,
        test=test,
        pool=test.pool,
        region=test.region,
        comparison=comparison,
        label=f"{test.account.name}/{test.name}",
        plan=describe(test),
        actor=actor.name[:150],
        request_key=request_key,
        approved_by=actor.name[:150] if approve else "",
    )
    instant = database_now()
    why = _refused(test, instant, scheduled_at)
    try:
        needed = "" if why else _approval(run, test)
    except Conflict as gone:  # since the checks were asked
        why, needed = gone.detail, ""
    if why:
        run.state, run.message, run.ended_at = Run.State.REFUSED, why[:400], instant
    elif needed and not approve:
        run.phase = f"Waiting for an operator to approve it: {needed}"[:400]
    else:
        run.begin_by = instant + BEGIN_WITHIN
    run.save()
    _record(actor, "request", run, {"state": run.state, "message": run.message}, reason)
    if run.begin_by:
        enqueue_on_commit(RUN_TASK, run.pk)
    return run


def _refused(test: CapacityTest, instant: datetime, scheduled_at: datetime | None) -> str:
    if scheduled_at is not None and instant - scheduled_at > BEGIN_WITHIN:
        late = round((instant - scheduled_at).total_seconds())
        return f"It is {late} s late, and late tests do not catch up."
    found = refusal(checks(test, instant))
    return found.message if found and not found.passing else ""


def _approval(run: Run, test: CapacityTest) -> str:
    """Why an operator's word is needed, as the rest of a sentence, empty where it is not; the run has the address."""
    target = target_of(test)
    run.direct_address = target.unverified
    fast = run.plan["guards"]["max_rate"] > settings.TEST_APPROVAL_RATE
    above = f"above {settings.TEST_APPROVAL_RATE:,} requests/s a test needs approval." if fast else ""
    return " And ".join(why for why in (above, target.approval) if why)


def approve_run(*, actor: Actor, run_id: int, reason: str = "") -> Run:
    """An operator lets a run begin that waits for it. Raises NotFound, Forbidden, Conflict when it does not wait."""
    run = selectors.run(actor, run_id)
    actor.must_operate("who approves capacity tests")
    with transaction.atomic():
        until = database_now() + BEGIN_WITHIN
        waiting = Run.objects.filter(pk=run.pk, state=Run.State.WAITING, begin_by=None, stop_requested_at=None)
        if not waiting.update(begin_by=until, approved_by=actor.name[:150], phase=""):
            raise Conflict(f"{run.name} is not waiting for approval: it is {run.state}.")
        _record(actor, "approve", run, {"approved_by": actor.name}, reason)
        enqueue_on_commit(RUN_TASK, run.pk)
    run.refresh_from_db()
    return run


def stop_run(*, actor: Actor, run_id: int, reason: str = "") -> Run:
    """End a run: everybody who sees it may, viewers too. Load is at zero within two seconds.

    A run that waits is over at once. Whoever stops a run that is over changes nothing. Raises NotFound; Forbidden for
    a token that may not even read tests.
    """
    run = selectors.run(actor, run_id)
    if not actor.has_scope("capacity-tests", "read"):
        raise Forbidden("This token does not have the scope capacity-tests:read; create a token with this scope.")
    with transaction.atomic():
        wanted = {"stop_requested_at": database_now(), "stopped_by": actor.name[:150]}
        first = Run.objects.filter(pk=run.pk, state__in=Run.OPEN, stop_requested_at=None).update(**wanted)
        over = {"state": Run.State.STOPPED, "ended_at": database_now(), "message": f"{actor.name} stopped it."[:400]}
        Run.objects.filter(pk=run.pk, state=Run.State.WAITING).update(**over, phase="")
        if first:
            _record(actor, "stop", run, {"stopped_by": actor.name}, reason)
    run.refresh_from_db()
    return run


def sweep() -> None:
    """Give up what nobody carries out: lost workers, late starts, forgotten approvals; wake workers for the rest.

    What a worker leaves that dies in the last moments of a run is done here: its token, and the limit that follows.
    """
    for run in claims.lost().select_related("account", "pool"):
        _give_up(run)
    instant = database_now()
    for run in Run.objects.exclude(state__in=Run.ACTIVE).exclude(bypass_digest="").select_related("pool"):
        bypass_tokens.deactivate(run)
    for run in _not_applied(instant):
        limits.apply_automatically(run)
    waiting = Run.objects.filter(state=Run.State.WAITING)
    over = {"state": Run.State.REFUSED, "ended_at": instant, "phase": ""}
    late = waiting.filter(begin_by__lt=instant).update(**over, message=LATE)
    forgotten = waiting.filter(begin_by=None, created_at__lt=instant - APPROVE_WITHIN)
    late += forgotten.update(**over, message="It was not approved within a day.")
    if late:
        publish_after_commit("runs")
    for pk in waiting.filter(begin_by__gte=instant).values_list("pk", flat=True):
        enqueue(RUN_TASK, pk)


def _not_applied(instant: datetime) -> QuerySet[Run]:
    """Runs that ended lately, whose policy sets a limit, and of which nobody said what became of it."""
    lately = Run.objects.filter(state=Run.State.DONE, ended_at__gt=instant - APPLY_WITHIN, ended_at__lt=instant - AFTER)
    return lately.filter(plan__policy__apply="automatic", result__isnull=False).exclude(result__has_key="applied")


def _give_up(run: Run) -> None:
    """A higher attempt fences the lost worker out, should it come back; the bypass token goes with it."""
    fence = Run.objects.filter(pk=run.pk, attempt=run.attempt, state__in=Run.ACTIVE)
    over: dict[str, Any] = {"state": Run.State.FAILED, "message": LOST, "phase": "", "lease_until": None}
    with transaction.atomic():
        if fence.update(**over, ended_at=database_now(), attempt=run.attempt + 1):
            claims.record_end(run, Run.State.FAILED, LOST)
    bypass_tokens.deactivate(run)


def set_blackout(*, actor: Actor, starts_at: datetime, ends_at: datetime, reason: str) -> Blackout:
    """No test may run from then until then, whoever it belongs to. Raises Invalid; Forbidden but for operators."""
    actor.must_operate("blackouts of capacity tests")
    field_errors = []
    if ends_at <= starts_at or ends_at <= now():
        field_errors.append(
            FieldError("/ends_at", "order", "Let the blackout end after its start, and not in the past.")
        )
    elif ends_at - starts_at > LONGEST_BLACKOUT:
        field_errors.append(
            FieldError("/ends_at", "too_long", "A blackout lasts at most a year; set another one later.")
        )
    if not 0 < len(reason.strip()) <= 200 or not reason.isprintable():
        field_errors.append(
            FieldError(
                "/reason",
                "missing",
                "Give a reason of at most 200 characters; it is shown to anyone whose test is rejected.",
            )
        )
    if field_errors:
        raise Invalid(field_errors)
    with transaction.atomic():
        made = Blackout.objects.create(
            starts_at=starts_at, ends_at=ends_at, reason=reason.strip(), set_by=actor.name[:150]
        )
        _record_blackout(actor, "create", made)
    return made


def end_blackout(*, actor: Actor, blackout_id: int) -> None:
    """Forget a blackout. Raises NotFound; Forbidden but for operators."""
    actor.must_operate("blackouts of capacity tests")
    row = only(selectors.blackouts(actor), blackout_id)
    with transaction.atomic():
        _record_blackout(actor, "delete", row)
        row.delete()


def _record(actor: Actor, action: str, run: Run, after: dict[str, Any], reason: str) -> None:
    audit.record(
        actor=actor,
        action=action,
        kind="Run",
        object_id=run.pk,
        label=f"{run.label} {run.name}",
        account=run.account,
        after=after,
        reason=reason,
    )
    publish_after_commit("runs", run=run.pk)


def _record_blackout(actor: Actor, action: str, row: Blackout) -> None:
    shown = {"starts_at": row.starts_at.isoformat(), "ends_at": row.ends_at.isoformat(), "reason": row.reason}
    audit.record(
        actor=actor,
        action=action,
        kind="Blackout",
        object_id=row.pk,
        label=str(row)[:400],
        before=shown if action == "delete" else None,
        after=shown if action == "create" else None,
    )
