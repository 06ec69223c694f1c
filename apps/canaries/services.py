"""A canary is begun, held, resumed, promoted and aborted by people and pipelines."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction

from apps.accounts.actors import Actor
from apps.accounts.selectors import only
from apps.canaries import selectors
from apps.canaries.advancing import (
    ADVANCE_TASK,
    finish,
    hold,
    record,
    route_of,
    save,
    set_share,
    weights_of,
    why_over,
)
from apps.canaries.models import Canary
from apps.canaries.plan import ALL, CanaryPlan
from apps.core.errors import Conflict, FieldError, Invalid
from apps.core.queue import enqueue_on_commit
from apps.definitions import selectors as definitions
from apps.definitions.models import Route
from apps.definitions.services import hold_object
from apps.definitions.shapes.base.reading import read_or_raise
from apps.definitions.shapes.base.writing import write
from apps.logs.sides import gap_of

NOUN = "routes"
# One account has no more of them open: each asks the store of request lines every few seconds.
MOST_OPEN = 20
State = Canary.State


def request_canary(*, actor: Actor, route_id: int, plan: object, reason: str = "") -> Canary:
    """Begin to move requests of a route to one of its pools, and give it the share of the first step.

    Raises NotFound, Invalid, Forbidden (viewers, foreign routes), Managed, Stale, and Conflict while another one of the
    route is open or the account has too many.
    """
    actor.may_write(NOUN)
    with transaction.atomic():
        route: Route = only(definitions.routes(actor), route_id)
        manager = hold_object(actor=actor, row=route)
        wanted, before = read_or_raise(CanaryPlan, plan), weights_of(route)
        _check(route, wanted, before)
        _refuse_another(route)
        row = Canary.objects.create(
            account=route.account,
            route=route,
            label=f"{route.account.name}/{route.name}",
            plan=write(CanaryPlan, wanted),
            before=before,
            weights=before,
            actor=actor.name[:150],
            manager=manager,
            reason=reason[:400],
        )
        set_share(row, route, actor, wanted.steps[0].percent)
        record(row, actor, "request", reason)
        save(row)
        enqueue_on_commit(ADVANCE_TASK, row.pk)
    return selectors.canary(actor, row.pk)


def hold_canary(*, actor: Actor, canary_id: int, reason: str = "") -> Canary:
    """Leave the share as it is until somebody decides; one that does not run stays so. Raises NotFound, Forbidden."""

    def change(row: Canary) -> None:
        if row.state == State.RUNNING:
            hold(row, actor, f"{actor.name} holds it. {reason}".strip())

    return _changed(actor, canary_id, change)


def resume_canary(*, actor: Actor, canary_id: int, reason: str = "") -> Canary:
    """Begin the step anew: it lasts its whole time, and only what comes from now on is judged.

    Raises NotFound, Forbidden, Conflict when over.
    """

    def change(row: Canary) -> None:
        _refuse_over(row)
        if row.state == State.HELD:
            row.state, row.live_at, row.message = State.RUNNING, None, ""
            record(row, actor, "resume", reason)

    return _changed(actor, canary_id, change)


def promote_canary(*, actor: Actor, canary_id: int, reason: str = "") -> Canary:
    """Send all requests to the pool now, whatever the numbers say. Raises as every change of its route."""
    return _decided(actor, canary_id, ALL, State.PROMOTED, reason)


def abort_canary(*, actor: Actor, canary_id: int, reason: str = "") -> Canary:
    """Send no request to the pool any more; the others share them as before. Raises as every change of its route."""
    return _decided(actor, canary_id, 0, State.ABORTED, reason)


def _decided(actor: Actor, pk: int, percent: int, state: str, reason: str) -> Canary:
    def change(row: Canary) -> None:
        _refuse_over(row)
        route = route_of(row)
        over = why_over(row, route)
        if over or route is None:
            finish(row, actor, State.ENDED, over)
            return
        set_share(row, route, actor, percent)
        finish(row, actor, state, reason=reason)

    return _changed(actor, pk, change)


def _changed(actor: Actor, pk: int, change: Callable[[Canary], None]) -> Canary:
    """Change a canary alone, by somebody who may change its route."""
    actor.may_write(NOUN)
    with transaction.atomic():
        row = only(selectors.canaries(actor).select_for_update(of=("self",)), pk)
        change(row)
        save(row)
        if row.state == State.RUNNING:
            enqueue_on_commit(ADVANCE_TASK, pk)
    return selectors.canary(actor, pk)


def _refuse_over(row: Canary) -> None:
    if row.state not in Canary.OPEN:
        raise Conflict(f"The canary is over: it is {row.state}. Begin another one.")


def _refuse_another(route: Route) -> None:
    open_ones = Canary.objects.filter(account=route.account, state__in=Canary.OPEN)
    other = open_ones.filter(route=route).first()
    if other:
        raise Conflict(f"Canary {other.pk} of this route is {other.state}; promote or abort it first.")
    if open_ones.count() >= MOST_OPEN:
        raise Conflict(f"This account has {MOST_OPEN} open canaries; promote or abort one first.")


def _check(route: Route, plan: CanaryPlan, before: dict[str, int]) -> None:
    """Raise Invalid where the route cannot have this canary, or nobody would see how it does."""
    others = sum(weight for name, weight in before.items() if name != plan.pool)
    now = 100 * before.get(plan.pool, 0) / (others + before[plan.pool]) if others and plan.pool in before else 0
    if plan.pool not in before:
        detail = f"The route does not send to {plan.pool}. Add the pool to the route, with weight 0."
        raise Invalid([FieldError("/pool", "unknown", detail)])
    if not others:
        raise Invalid([FieldError("/pool", "alone", f"{plan.pool} has all requests of the route already.")])
    if plan.steps[0].percent < now:
        detail = f"{plan.pool} has {now:.0f} % of the requests already; begin with at least as many."
        raise Invalid([FieldError("/steps/0/percent", "not_growing", detail)])
    if unknown := gap_of(route).unknown:
        raise Invalid([FieldError("", "unknown_numbers", f"Nobody would see how the canary does: {unknown}.")])
