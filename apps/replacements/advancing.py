"""Carries replacements on: reads what nodes see, decides, and stores the step with all that it changes.

1. The sweep wakes a worker each second for each replacement that runs; without a broker it does the work itself.
2. What nodes see is read outside of any transaction. Then the row is locked, if nobody made a step meanwhile (`turn`).
3. States of servers, outcomes and the step are one transaction: a worker that dies left either all of it or nothing,
   and the next second goes on from there.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit import services as audit
from apps.core.clock import database_now
from apps.core.errors import SpillwayError
from apps.core.events import publish_after_commit
from apps.core.queue import enqueue
from apps.definitions.models import Pool, Server
from apps.definitions.services import managing, set_server
from apps.definitions.shapes.base.reading import read_or_raise
from apps.observe.selectors import server_rows
from apps.replacements.deciding import DRAIN, OUT, READY, WAITING, Decision, Facts, Member, Seen, decide
from apps.replacements.models import ReplacedServer, Replacement
from apps.replacements.plan import ReplacementPlan

logger = logging.getLogger(__name__)
ADVANCE_TASK = "apps.replacements.tasks.advance"
WAKE_EXPIRES_S = 3.0
KEPT = timedelta(days=90)
POOL_GONE = "The pool was deleted."
# Beyond the check itself: what a node needs to begin with it.
CHECK_MORE_S = 0.5


def sweep() -> None:
    """Carry on what runs; an account that is suspended changes nothing, so its replacements wait."""
    running = Replacement.objects.filter(state=Replacement.State.RUNNING, account__suspended_at=None)
    for pk in running.values_list("pk", flat=True):
        if not enqueue(ADVANCE_TASK, pk, expires_s=WAKE_EXPIRES_S):
            advance(pk)


def prune(instant: datetime) -> None:
    """Forget replacements that were over long ago."""
    Replacement.objects.filter(ended_at__lt=instant - KEPT).delete()


def advance(pk: int) -> None:
    """One step of a replacement, if its time has come."""
    row = Replacement.objects.select_related("account", "pool__health_check").filter(pk=pk).first()
    if row is None or row.state != Replacement.State.RUNNING:
        return
    facts = facts_of(row)
    decision = decide(facts) if facts else Decision(over=True, message=POOL_GONE)
    if not _differs(row, decision):
        return
    try:
        with transaction.atomic():
            if _locked(row):
                _store(row, decision)
    except SpillwayError as refusal:  # a rule of writes refuses a state: nothing of the step is stored
        logger.info("%s: %s", row, refusal.detail)
        with transaction.atomic():
            if _locked(row):
                _store(row, Decision(stops=True, message=refusal.detail))


def actor_of(row: Replacement) -> Actor:
    """Who does what a replacement does: an editor of its account."""
    return Actor(f"replacement {row.pk}", row.account, Membership.Role.EDITOR)


def facts_of(row: Replacement) -> Facts | None:
    """The replacement as it stands; None without its pool. Six queries and a look at Redis."""
    pool = row.pool
    if pool is None:
        return None
    seen = _seen(actor_of(row), pool)
    replaced = {each.server_id: each for each in row.servers.all()}
    servers = Server.objects.filter(backend__pool=pool).select_related("backend__region").order_by("backend", "pk")
    members = [_member(server, replaced.get(server.pk), seen) for server in servers]
    return Facts(
        plan=read_or_raise(ReplacementPlan, row.plan),
        step=row.step,
        in_step_s=(database_now() - row.step_since).total_seconds(),
        members=sorted(members, key=lambda each: (each.region, each.key)),
        settle_s=_settle_s(pool),
        slow_start_s=(pool.slow_start_ms or 0) / 1000,
    )


def _seen(actor: Actor, pool: Pool) -> Mapping[int, list[Seen]]:
    found: dict[int, list[Seen]] = defaultdict(list)
    for row in server_rows(actor, pool.pk):
        numbers = row.numbers
        seen = Seen(
            word=row.status if numbers.connections is not None else "unknown",  # a status with no number is no reading
            connections=numbers.connections or 0,
            responses=10 * (numbers.requests_rps or 0.0),
            errors=10 * (numbers.errors_rps or 0.0),
            age_s=numbers.age_s or 0.0,
        )
        found[row.server_id].append(seen)
    return found


def _member(server: Server, row: ReplacedServer | None, seen: Mapping[int, list[Seen]]) -> Member:
    return Member(
        key=server.pk,
        region=server.backend.region.name,
        name=server.name,
        stored=server.state,
        seen=tuple(seen.get(server.pk, ())),
        state=row.state if row else None,
        set_to=row.set_to if row else "",
        serves=bool(server.weight) and not server.backup,
        message=row.message if row else "",
    )


def _settle_s(pool: Pool) -> float:
    """How long nodes need to know whether a server is well: one check; none without checks."""
    check = getattr(pool, "health_check", None)
    return (check.interval_ms + check.timeout_ms) / 1000 + CHECK_MORE_S if check else 0.0


def _differs(row: Replacement, decision: Decision) -> bool:
    gone = row.servers.filter(server=None, state__in=(WAITING, OUT)).exists()
    told = decision.message and decision.message[:400] != row.message
    return bool(gone or told or decision.step or decision.outcomes or decision.over or decision.stops)


def _locked(row: Replacement) -> bool:
    """Whether the row is ours until the end of the transaction, as it was when the facts were read."""
    rows = Replacement.objects.select_for_update(skip_locked=True)
    return rows.filter(pk=row.pk, turn=row.turn, state=Replacement.State.RUNNING).exists()


def _store(row: Replacement, decision: Decision) -> None:
    row.servers.filter(server=None, state__in=(WAITING, OUT)).update(state=ReplacedServer.State.GONE)
    set_states(row, decision.states)
    stepped = decision.step is not None and decision.step != row.step
    if decision.step == Replacement.Step.DRAIN:
        row.batch += 1
    for key, (state, message) in decision.outcomes.items():
        changes = {"state": state, "message": message[:400]} | ({"batch": row.batch} if state == OUT else {})
        row.servers.filter(server=key).update(**changes)
    if stepped:
        row.step, row.step_since = str(decision.step), database_now()
    row.message = decision.message[:400] or ("" if stepped else row.message)
    if decision.step == Replacement.Step.REPLACE:
        _hand_over(row)
    if decision.over:
        finish(row, actor_of(row), Replacement.State.DONE)
    elif decision.stops:
        stop(row, actor_of(row), decision.message)
    save(row)


def save(row: Replacement) -> None:
    """Store the row with its next turn, and tell pages that show it."""
    row.turn += 1
    row.save()
    publish_after_commit("runs", replacement=row.pk)


def set_states(row: Replacement, states: Mapping[int, str]) -> None:
    """Give servers their administrative states, by the rules of every write, in the name of the replacement."""
    with managing(manager=row.manager):
        for key, state in states.items():
            set_server(actor=actor_of(row), server_id=key, state=state, reason=str(row))
            row.servers.filter(server=key).update(set_to=state)


def stop(row: Replacement, actor: Actor, message: str) -> None:
    """Nothing more happens until somebody decides. Servers that were only drained come back: nobody touched them."""
    if row.step in (Replacement.Step.DRAIN, Replacement.Step.TAKE_OUT):
        message = f"{message} {_give_back(row)}".strip()
        row.step = Replacement.Step.CHOOSE
    row.state, row.message, row.step_since = Replacement.State.STOPPED, message[:400], database_now()
    record(row, actor, "stop")


def _give_back(row: Replacement) -> str:
    """Set ready what was only drained; the names of servers that a rule of writes leaves as they are, in a sentence."""
    out = row.servers.filter(state=OUT).exclude(server=None).select_related("server")
    untouched = [
        each.server for each in out if not each.handed_over and each.server and each.server.state == each.set_to
    ]
    kept = ""
    try:
        with transaction.atomic():
            set_states(row, {each.pk: READY for each in untouched})
    except SpillwayError as refusal:  # a pipeline took the pool over, say: it stops all the same
        logger.info("%s: %s", row, refusal.detail)
        kept = f"Not set ready again: {', '.join(each.name for each in untouched)}."
    row.servers.filter(state=OUT).update(state=WAITING)
    return kept


def finish(row: Replacement, actor: Actor, state: str) -> None:
    """It is over, and says which servers stay out."""
    row.state, row.ended_at = state, database_now()
    ours = row.servers.exclude(server=None).exclude(set_to__in=("", READY))
    still = [each.name for each in ours.filter(server__state=F("set_to"))]
    if still:
        row.message = f"{row.message} Still out: {', '.join(still)}. Set them ready when they are well."[:400].strip()
    elif state == Replacement.State.DONE and row.message != POOL_GONE:
        row.message = ""
    record(row, actor, "finish")


def _hand_over(row: Replacement) -> None:
    """Tell the owner, by the audit log and so by webhooks, that the batch may be replaced."""
    row.servers.filter(state=OUT).update(handed_over=True)
    record(row, actor_of(row), "hand_over")


def record(row: Replacement, actor: Actor, action: str, reason: str = "") -> None:
    """An entry of the audit log; webhooks send it as `replacement.handed_over` and so on."""
    batch = row.servers.filter(state=OUT).select_related("server") if row.step != Replacement.Step.CHOOSE else ()
    audit.record(
        actor=actor,
        action=action,
        kind="Replacement",
        object_id=row.pk,
        label=row.label,
        account=row.account,
        after={
            "state": row.state,
            "direction": row.direction,
            "batch": row.batch,
            "message": row.message,
            "servers": [
                {"region": each.region, "name": each.name, "address": each.server.address, "port": each.server.port}
                for each in batch
                if each.server
            ],
        },
        reason=reason,
    )


def check_batch(row: Replacement) -> None:
    """The batch is replaced: nodes are to check it; a drained server gets no request."""
    keys = row.servers.filter(state=OUT).exclude(server=None).values_list("server", flat=True)
    set_states(row, dict.fromkeys(keys, DRAIN))
    row.step, row.step_since, row.message = Replacement.Step.ADMIT, database_now(), ""
