"""Carries canaries on: reads how both sides do, decides, and stores the step with the weights that it changes.

1. The sweep wakes a worker every few seconds for each canary that runs; without a broker it does the work itself.
2. What nodes run and request lines say is read outside of any transaction. Then the row is locked, if nobody made a
   step meanwhile (`turn`), and the route is saved only in the version that was read.
3. Weights and step are one transaction: a worker that dies left either both or neither, and the next one goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from django.db import transaction

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit import services as audit
from apps.canaries.deciding import Decision, Facts, Side, decide
from apps.canaries.models import Canary
from apps.canaries.plan import ALL, CanaryPlan, weights_at
from apps.core.clock import database_now
from apps.core.errors import SpillwayError, Stale
from apps.core.events import publish_after_commit
from apps.core.queue import enqueue
from apps.definitions.models import Route
from apps.definitions.selectors import describe, fleets_of, routes
from apps.definitions.services import managing, save_object
from apps.definitions.shapes.base.reading import read_or_raise
from apps.definitions.shapes.base.writing import reference
from apps.fleet.models import Fleet
from apps.logs import sides
from apps.logs.searching import NotAnswered
from apps.rollouts.selectors import conditions_of, is_live, sync_statuses

logger = logging.getLogger(__name__)
ADVANCE_TASK = "apps.canaries.tasks.advance"
WAKE_EXPIRES_S = 10.0
KEPT = timedelta(days=90)
State = Canary.State


def sweep() -> None:
    """Carry on what runs; an account that is suspended changes nothing, so its canaries wait."""
    running = Canary.objects.filter(state=State.RUNNING, account__suspended_at=None)
    for pk in running.values_list("pk", flat=True):
        if not enqueue(ADVANCE_TASK, pk, expires_s=WAKE_EXPIRES_S):
            advance(pk)


def prune(instant: datetime) -> None:
    """Forget canaries that were over long ago."""
    Canary.objects.filter(ended_at__lt=instant - KEPT).delete()


def advance(pk: int) -> None:
    """One step of a canary, if its time has come."""
    row = Canary.objects.select_related("account").filter(pk=pk, state=State.RUNNING).first()
    if row is None:
        return
    route = route_of(row)
    if over := why_over(row, route):
        _under_lock(row, lambda: finish(row, actor_of(row), State.ENDED, over))
    elif route is not None:
        live_at = row.live_at or (database_now() if _is_live(row) else None)
        decision = decide(facts_of(row, route, live_at))
        if (live_at, decision.message[:400]) != (row.live_at, row.message) or decision.goes_on or decision.holds:
            _carry_on(row, route, live_at, decision)


def _carry_on(row: Canary, route: Route, live_at: datetime | None, decision: Decision) -> None:
    row.live_at = live_at
    try:
        _under_lock(row, lambda: _store(row, route, decision))
    except Stale:  # somebody saves the route just now: look again in a moment
        logger.info("%s: its route was saved meanwhile", row)
    except SpillwayError as refusal:  # a rule of writes refuses the weights: nothing of the step is stored
        logger.info("%s: %s", row, refusal.detail)
        detail, again = refusal.detail, Canary.objects.select_related("account").get(pk=row.pk)
        _under_lock(again, lambda: hold(again, actor_of(again), detail))


def _under_lock(row: Canary, change: Callable[[], None]) -> None:
    """Change the row alone and store it, unless somebody did since it was read."""
    with transaction.atomic():
        mine = Canary.objects.select_for_update(skip_locked=True).filter(pk=row.pk, turn=row.turn, state=State.RUNNING)
        if mine.exists():
            change()
            save(row)


def _store(row: Canary, route: Route, decision: Decision) -> None:
    row.message = decision.message[:400]
    plan = plan_of(row)
    if decision.holds:
        hold(row, actor_of(row), decision.message)
    elif decision.goes_on and row.step + 1 < len(plan.steps):
        row.step += 1
        set_share(row, route, actor_of(row), plan.steps[row.step].percent)
    elif decision.goes_on:
        set_share(row, route, actor_of(row), ALL)
        finish(row, actor_of(row), State.PROMOTED)


def actor_of(row: Canary) -> Actor:
    """Who does what a canary does: an editor of its account."""
    return Actor(f"canary {row.pk}", row.account, Membership.Role.EDITOR)


def route_of(row: Canary) -> Route | None:
    """Its route with all that describes it, as long as there is one."""
    return routes(actor_of(row)).filter(pk=row.route_id).first() if row.route_id else None


def plan_of(row: Canary) -> CanaryPlan:
    """What was asked for."""
    return read_or_raise(CanaryPlan, row.plan)


def weights_of(route: Route) -> dict[str, int]:
    """The weights of the route's pools, by the names that its account has for them."""
    return {reference(share.pool, route.account_id): share.weight for share in route.shares}


def why_over(row: Canary, route: Route | None) -> str:
    """Why the weights are no longer the canary's to change; blank while they are."""
    if route is None:
        return "The route was deleted."
    if route.manager not in ("", row.manager):
        return f"The route is managed by {route.manager} now."
    return "Somebody changed the weights of the route." if weights_of(route) != row.weights else ""


def _is_live(row: Canary) -> bool:
    """Whether all nodes run the weights, as they confirmed; a fleet that the load balancer left has nothing to say."""
    there = set(Fleet.objects.filter(pk__in=row.generations).values_list("pk", flat=True))
    return all(is_live(int(fleet), generation) for fleet, generation in row.generations.items() if int(fleet) in there)


def facts_of(row: Canary, route: Route, live_at: datetime | None) -> Facts:
    """The canary as it stands."""
    plan = plan_of(row)
    for_s = plan.steps[row.step].for_s
    if live_at is None:
        return Facts(plan, None, for_s, stopped=_stopped(row, route))
    in_step_s = (database_now() - live_at).total_seconds()
    gap = sides.gap_of(route)
    if gap.unknown or gap.late:
        return Facts(plan, in_step_s, for_s, unknown=f"How it does is unknown. {gap.unknown or gap.late}".strip())
    try:
        found = _sides(route, sides.sides_of(route, since=live_at))
    except NotAnswered as error:
        return Facts(plan, in_step_s, for_s, unknown=f"How it does is unknown. {error.detail}")
    others = [side for name, side in found.items() if name != plan.pool]
    return Facts(plan, in_step_s, for_s, found.get(plan.pool, Side()), others)


def _sides(route: Route, found: Mapping[int, sides.Side]) -> dict[str, Side]:
    named = {reference(share.pool, route.account_id): found[share.pool_id] for share in route.shares}
    return {
        name: Side(side.lines, None if side.failed_percent is None else side.failed_percent / 100, side.p95_ms)
        for name, side in named.items()
    }


def _stopped(row: Canary, route: Route) -> str:
    """Why the weights do not come to the nodes, where somebody must act first."""
    if refused := conditions_of("Route", [route.pk])[route.pk]:
        return f"Nodes of {refused[0].fleet} refuse the route: {refused[0].message}"
    statuses = sync_statuses(actor_of(row))
    for fleet in fleets_of(route):
        if statuses.get(fleet.pk) in ("held", "refused"):
            return f"Fleet {fleet.name} takes no changes now: its rollouts are {statuses[fleet.pk]}."
    return ""


def set_share(row: Canary, route: Route, actor: Actor, percent: int) -> None:
    """Give the pool so many percent of the route, by the rules of every write. Raises what those raise."""
    weights = weights_at(row.before, plan_of(row).pool, percent)
    spec = describe(route)
    spec["action"]["pools"] = [each | {"weight": weights[each["pool"]]} for each in spec["action"]["pools"]]
    with managing(manager=row.manager):
        save_object(
            actor=actor,
            kind="Route",
            name=route.name,
            account=route.account.name,
            spec=spec,
            expected_version=route.version,
            reason=f"{row}: {percent} %",
        )
    row.weights, row.live_at = weights, None
    row.generations = {str(pk): generation for pk, generation in _wanted(route)}


def _wanted(route: Route) -> list[tuple[int, int]]:
    fleets = Fleet.objects.filter(pk__in=[fleet.pk for fleet in fleets_of(route)])
    return list(fleets.values_list("pk", "desired_generation"))


def hold(row: Canary, actor: Actor, message: str) -> None:
    """The share stays as it is until somebody decides."""
    row.state, row.message = State.HELD, message[:400]
    record(row, actor, "hold")


def finish(row: Canary, actor: Actor, state: str, message: str = "", reason: str = "") -> None:
    """It is over."""
    row.state, row.ended_at, row.message = state, database_now(), message[:400]
    record(row, actor, _VERBS[state], reason)


_VERBS: Mapping[str, str] = {State.PROMOTED: "promote", State.ABORTED: "abort", State.ENDED: "end"}


def save(row: Canary) -> None:
    """Store the row with its next turn, and tell pages that show it."""
    row.turn += 1
    row.save()
    publish_after_commit("runs", canary=row.pk)


def record(row: Canary, actor: Actor, action: str, reason: str = "") -> None:
    """An entry of the audit log; webhooks send it as `canary.held` and so on."""
    audit.record(
        actor=actor,
        action=action,
        kind="Canary",
        object_id=row.pk,
        label=row.label,
        account=row.account,
        after={"state": row.state, "step": row.step, "weights": row.weights, "message": row.message},
        reason=reason,
    )
