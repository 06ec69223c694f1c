"""A replacement is asked for, carried on by its owner, stopped, resumed, reversed and ended."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from django.db import transaction

from apps.accounts.actors import Actor
from apps.core.clock import database_now
from apps.core.errors import Conflict, FieldError, Invalid
from apps.core.queue import enqueue_on_commit
from apps.definitions import selectors as definitions
from apps.definitions.models import Pool, Server
from apps.definitions.services import hold_object
from apps.definitions.shapes.base.reading import read_or_raise
from apps.definitions.shapes.base.writing import write
from apps.definitions.sharing import must_own
from apps.fleet.models import Node
from apps.replacements import selectors
from apps.replacements.advancing import ADVANCE_TASK, check_batch, finish, record, save, stop
from apps.replacements.deciding import FAILED, LEFT, OUT, READY, WAITING
from apps.replacements.models import ReplacedServer, Replacement
from apps.replacements.plan import ReplacementPlan

NOUN = "pools"
# One account has no more of them open: each is looked at every second.
MOST_OPEN = 20
State, Direction, Step = Replacement.State, Replacement.Direction, Replacement.Step


def request_replacement(*, actor: Actor, pool_id: int, plan: object, reason: str = "") -> Replacement:
    """Begin to replace servers of a pool.

    Raises NotFound, Invalid, Forbidden (viewers, pools that are only shared), Managed, and Conflict while another one
    of the pool is open or the account has too many.
    """
    actor.may_write(NOUN)
    with transaction.atomic():
        pool: Pool = definitions.only(definitions.pools(actor), pool_id)
        must_own(actor, pool)
        manager = hold_object(actor=actor, row=pool)
        wanted = read_or_raise(ReplacementPlan, plan)
        servers = _servers(pool, wanted)
        _refuse_another(pool)
        row = Replacement.objects.create(
            account=pool.account,
            pool=pool,
            label=f"{pool.account.name}/{pool.name}",
            plan=write(ReplacementPlan, wanted),
            step_since=database_now(),
            actor=actor.name[:150],
            manager=manager,
            reason=reason[:400],
        )
        rows = [
            ReplacedServer(replacement=row, server=each, region=each.backend.region.name, name=each.name)
            for each in servers
        ]
        ReplacedServer.objects.bulk_create(rows)
        record(row, actor, "request", reason)
        enqueue_on_commit(ADVANCE_TASK, row.pk)
    return selectors.replacement(actor, row.pk)


def continue_replacement(
    *, actor: Actor, replacement_id: int, batch: object, failed: object = (), reason: str = ""
) -> Replacement:
    """The owner has replaced the servers of this batch, all but the `failed` names; once is as good as twice.

    Raises NotFound, Forbidden, Invalid, and Conflict for a batch that was not handed over yet.
    """

    def carry_on(row: Replacement) -> None:
        number, names = _read_continue(row, batch, failed)
        if number < row.batch or (number == row.batch and row.step in _AFTER):
            return
        if number > row.batch or row.step != Step.REPLACE or row.state != State.RUNNING:
            raise Conflict(f"Batch {number} is not handed over: the replacement is {row.state}, at batch {row.batch}.")
        row.servers.filter(state=OUT, name__in=names).update(state=FAILED, message="Its owner says so.")
        check_batch(row)
        record(row, actor, "continue", reason)

    return _changed(actor, replacement_id, carry_on)


_AFTER = (Step.ADMIT, Step.CHECK, Step.REST, Step.RETURN, Step.WATCH, Step.CHOOSE)


def stop_replacement(*, actor: Actor, replacement_id: int, reason: str = "") -> Replacement:
    """Do nothing more until somebody decides; one that is stopped or over stays so. Raises NotFound, Forbidden."""

    def change(row: Replacement) -> None:
        if row.state == State.RUNNING:
            stop(row, actor, f"{actor.name} stopped it. {reason}".strip())

    return _changed(actor, replacement_id, change)


def resume_replacement(*, actor: Actor, replacement_id: int, reason: str = "") -> Replacement:
    """Go on where it stopped; servers that failed are tried again. Raises NotFound, Forbidden, Conflict when over."""

    def change(row: Replacement) -> None:
        _refuse_over(row)
        if row.state == State.STOPPED:
            row.servers.filter(state=FAILED).update(state=WAITING, message="")
            _run(row, actor, "resume", reason)

    return _changed(actor, replacement_id, change)


def reverse_replacement(*, actor: Actor, replacement_id: int, reason: str = "") -> Replacement:
    """Have the servers that were handed over replaced again, by what they were before; the others stay.

    Their owner is told `direction: back`. Raises NotFound, Forbidden, Conflict for one that has not stopped.
    """

    def change(row: Replacement) -> None:
        _refuse_over(row)
        if row.state != State.STOPPED:
            raise Conflict("Stop the replacement first.")
        if row.direction == Direction.BACK:
            raise Conflict("The replacement is going back already: resume it.")
        row.servers.filter(handed_over=True).exclude(server=None).update(state=WAITING, message="")
        untouched = row.servers.filter(handed_over=False, state__in=(WAITING, FAILED))
        untouched.update(state=LEFT, message="It was not replaced.")
        row.direction, row.step = Direction.BACK, Step.CHOOSE
        _run(row, actor, "reverse", reason)

    return _changed(actor, replacement_id, change)


def end_replacement(*, actor: Actor, replacement_id: int, reason: str = "") -> Replacement:
    """Give it up: servers stay as they are now, and the pool may have another one. Raises NotFound, Forbidden."""

    def change(row: Replacement) -> None:
        if row.state not in Replacement.OPEN:
            return
        if row.state == State.RUNNING:
            stop(row, actor, f"{actor.name} ended it. {reason}".strip())
        row.servers.filter(state=WAITING).update(state=LEFT)
        finish(row, actor, State.ENDED)

    return _changed(actor, replacement_id, change)


def _changed(actor: Actor, pk: int, change: Callable[[Replacement], None]) -> Replacement:
    """Change a replacement alone, by somebody who may change its pool."""
    actor.may_write(NOUN)
    selectors.replacement(actor, pk)
    with transaction.atomic():
        rows = Replacement.objects.select_for_update(of=("self",)).select_related("account", "pool")
        row = rows.get(pk=pk)
        if row.pool:
            must_own(actor, row.pool)
        change(row)
        save(row)
        if row.state == State.RUNNING:
            enqueue_on_commit(ADVANCE_TASK, pk)
    return selectors.replacement(actor, pk)


def _run(row: Replacement, actor: Actor, action: str, reason: str) -> None:
    row.state, row.step_since, row.message = State.RUNNING, database_now(), ""
    record(row, actor, action, reason)


def _refuse_over(row: Replacement) -> None:
    if row.state not in Replacement.OPEN:
        raise Conflict(f"The replacement is over: it is {row.state}. Begin another one.")


def _refuse_another(pool: Pool) -> None:
    open_ones = Replacement.objects.filter(account=pool.account, state__in=Replacement.OPEN)
    other = open_ones.filter(pool=pool).first()
    if other:
        raise Conflict(f"Replacement {other.pk} of this pool is {other.state}; finish or end it first.")
    if open_ones.count() >= MOST_OPEN:
        raise Conflict(f"This account has {MOST_OPEN} open replacements; finish or end one first.")


def _servers(pool: Pool, plan: ReplacementPlan) -> list[Server]:
    """The servers that the plan means. Raises Invalid where it means none, or one that cannot be replaced."""
    rows = Server.objects.filter(backend__pool=pool).select_related("backend__region").order_by("backend", "pk")
    here = [each for each in rows if plan.region in (None, each.backend.region.name)]
    field_errors = []
    for position, name in enumerate(plan.servers):
        named = [each for each in here if each.name == name]
        if not named:
            field_errors.append(FieldError(f"/servers/{position}", "unknown", f"The pool has no server {name} here."))
        for each in named:
            if each.state != READY:
                detail = f"{name} is in {each.state}; set it ready, or leave it out."
                field_errors.append(FieldError(f"/servers/{position}", "not_ready", detail))
    found = [each for each in here if each.state == READY and (not plan.servers or each.name in plan.servers)]
    if not found and not field_errors:
        field_errors.append(FieldError("/servers", "none", "There is no ready server to replace."))
    for region in sorted({each.backend.region.name for each in found} - _with_nodes()):
        detail = f"No node of ours serves {region}, so nobody would see whether servers are drained."
        field_errors.append(FieldError("/region", "no_nodes", detail))
    if field_errors:
        raise Invalid(field_errors)
    return found


def _with_nodes() -> set[str]:
    return set(Node.objects.values_list("fleet__region__name", flat=True).distinct())


def _read_continue(row: Replacement, batch: object, failed: object) -> tuple[int, Collection[str]]:
    field_errors = []
    if type(batch) is not int or batch < 1:
        field_errors.append(FieldError("/batch", "not_number", "Say which batch is replaced: its number."))
    known = set(row.servers.values_list("name", flat=True))
    names: list[Any] = list(failed) if isinstance(failed, list | tuple) else [failed]
    for position, name in enumerate(names):
        if not isinstance(name, str) or name not in known:
            detail = "Name servers of this replacement."
            field_errors.append(FieldError(f"/failed/{position}", "unknown", detail))
    if field_errors or type(batch) is not int:
        raise Invalid(field_errors)
    return batch, names
