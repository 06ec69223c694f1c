"""The loop closed: what a run found becomes its pool's limit, by a person or within bounds that one set.

It is a normal change of the limit, with the run as where it comes from. By itself a run moves a limit that is there,
by at most `policy.max_change`, never below what the region's own clients asked for in the hour before, and only while
whoever set the policy may still write the pool. What was held back is said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any

from django.db import transaction

from apps.accounts.actors import Actor
from apps.capacity import selectors
from apps.capacity.measure.demand import busiest_minute
from apps.capacity.models import Run
from apps.capacity.use.authority import actor_behind
from apps.capacity.use.staleness import stale_words
from apps.compiler.model.shared import LimitKind, LimitScope, WhenFull
from apps.core.clock import now
from apps.core.errors import Conflict, FieldError, Invalid, SpillwayError
from apps.definitions.models import Backend
from apps.definitions.services import managing, set_limit
from apps.definitions.serving import usable_in

MOST_CHANGE = 0.2
LARGEST_MARGIN = 0.9
_ALMOST = 1e-9  # 10 × 0.9 is no less than 9
UNITS = {LimitKind.RATE: "requests/s", LimitKind.CONNECTIONS: "requests in flight"}


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a limit would become; `before` is the present limit in words, `refusal` why it may not (else empty).

    `capacity` is what the run found, in the unit of the limit; `value` is that less `margin` (0–0.9), 0 when refused.
    """

    kind: LimitKind
    scope: LimitScope
    value: int
    before: str
    margin: float
    capacity: float
    message: str
    refusal: str = ""


def proposal(actor: Actor, run_id: int, margin: object = None) -> Proposal:
    """What `set_as_limit` would do; writes nothing. Raises NotFound, Invalid for a margin that is none."""
    run = selectors.run(actor, run_id)
    return _proposal(run, _margin(run, margin))


def set_as_limit(
    *, actor: Actor, run_id: int, margin: object = None, expected_version: int | None = None, reason: str = ""
) -> Backend:
    """Make what the run found the limit of its pool in its region, less a margin (the policy's when None).

    `expected_version` is that of the pool. Raises NotFound for runs of others, Invalid (`/margin`), Conflict with a
    sentence for a run whose number must not be used, Forbidden for who may not write the pool, Stale.
    """
    run = selectors.run(actor, run_id)
    actor.may_write("pools")
    wanted = _proposal(run, _margin(run, margin))
    if wanted.refusal:
        raise Conflict(wanted.refusal)
    why = f"{wanted.message} {reason}".strip()
    return _store(actor, run, wanted, wanted.value, expected_version, why)


def apply_automatically(run: Run) -> str:
    """At the end of a run whose policy is automatic: move the limit within the policy's bounds; says what happened.

    Exactly once per run, whoever calls it again gets the same sentence. Never raises for what a definition says;
    empty where the policy is by hand.
    """
    policy = run.plan.get("policy") or {}
    if policy.get("apply") != "automatic":
        return ""
    with transaction.atomic():
        held = Run.objects.select_for_update().get(pk=run.pk)
        said = (held.result or {}).get("applied")
        if said:
            return str(said["message"])
        try:
            with transaction.atomic():
                message = _apply(held, policy)
        except SpillwayError as error:
            message = f"The limit is unchanged: {error.detail}"
        _remember(held, message)
    run.result = held.result
    return message


def _apply(run: Run, policy: dict[str, Any]) -> str:
    """The change itself; raises SpillwayError with the reason why there is none."""
    if run.limit_set_at is not None:
        raise Conflict(f"{run.limit_set_by} has already set it from this run.")
    wanted = _proposal(run, _margin(run, None))
    if wanted.refusal:
        raise Conflict(wanted.refusal)
    result = run.result or {}
    if result.get("limited_by") != "objective" or not result.get("confirmed"):
        raise Conflict(f"{run.name} did not confirm where the objective breaks; set the limit manually.")
    backend = _backend(run)
    if (backend.limit_kind, backend.limit_scope) != (str(wanted.kind), str(wanted.scope)):
        raise Conflict("There is no limit of this kind yet; set the first one manually.")
    value, notes = _bounded(run, backend, wanted.value, float(policy.get("max_change", MOST_CHANGE)))
    if value == backend.limit_value:
        return " ".join([f"The limit stays at {value} {UNITS[wanted.kind]}.", *notes])
    actor = actor_behind(run)
    found = f"{run.name} found {_number(wanted.capacity)} {UNITS[wanted.kind]}"
    why = " ".join([f"{found}: the limit goes from {backend.limit_value} to {value}.", *notes])
    with managing(manager=_manager_of(run)):
        _store(replace(actor, name=f"{run.name} for {actor.name}"), run, wanted, value, None, why)
    return why


def _manager_of(run: Run) -> str:
    """The pipeline that made both the test, which says that limits follow by themselves, and the pool; else blank."""
    test, pool = (row.manager if row else "" for row in (run.test, run.pool))
    return test if test == pool else ""


def _bounded(run: Run, backend: Backend, wanted: int, max_change: float) -> tuple[int, list[str]]:
    """The value within the bounds, and a sentence for each that held it back."""
    was, most = backend.limit_value, min(max_change, MOST_CHANGE)
    value = min(max(wanted, ceil(was * (1 - most) - _ALMOST)), floor(was * (1 + most) + _ALMOST))
    notes = []
    if value != wanted:
        notes.append(f"One run changes a limit by at most {100 * most:.0f} %, so the limit does not become {wanted}.")
    if value < was and run.started_at is not None and run.pool and run.region:
        asked = busiest_minute(run.pool, run.region, run.started_at)
        servers = usable_in(backend.pk) if backend.limit_scope == LimitScope.SERVER else 1
        if backend.limit_kind != LimitKind.RATE or asked is None:
            return was, [*notes, "The limit is not lowered, because there is no demand data."]
        floor_of = min(was, ceil(asked / max(1, servers) - _ALMOST))
        if value < floor_of:
            notes.append(f"The limit is not lowered further: demand was {asked:.1f} requests/s in the previous hour.")
            value = floor_of
    return value, notes


def _proposal(run: Run, margin: float) -> Proposal:
    refusal = _refusal(run)
    backend = None if refusal else _backend_or_none(run)
    if backend is None:
        refusal = refusal or "The pool no longer has servers in the run's region, so there is no limit to set."
        return Proposal(LimitKind.RATE, LimitScope.BACKEND, 0, "", margin, _capacity(run), refusal, refusal)
    kind, found = _measure(run, backend)
    direct = bool(run.plan.get("target", {}).get("server"))
    per_server = direct or backend.limit_scope == LimitScope.SERVER
    share = 1 if direct or not per_server else max(1, usable_in(backend.pk))
    value = floor(found * (1 - margin) / share + _ALMOST)
    unit = UNITS[kind] + (" per server" if per_server else "")
    scope = LimitScope.SERVER if per_server else LimitScope.BACKEND
    before = _words(backend)
    if value < 1:
        refusal = f"The margin leaves less than 1 {unit}, and a limit of 0 rejects everything. Choose a smaller margin."
        return Proposal(kind, scope, 0, before, margin, found, refusal, refusal)
    label = f"{run.pool} in {run.region}"
    same = (backend.limit_kind, backend.limit_scope, backend.limit_value) == (str(kind), str(scope), value)
    becomes = f"is {value} {unit} already" if same else f"becomes {value} {unit} ({before} now)"
    message = f"The limit of {label} {becomes}: {run.name} found {_number(found)}, less {100 * margin:.0f} %."
    return Proposal(kind, scope, value, before, margin, found, message)


def _refusal(run: Run) -> str:
    """Why the run's number must not become a limit, in a sentence; empty when it may."""
    if run.state != Run.State.DONE:
        return f"{run.name} is {run.state}: only a completed run gives a limit."
    if not _capacity(run):
        return f"{run.name} found no capacity: only a search or a ramp gives a limit."
    return stale_words(run)


def _capacity(run: Run) -> float:
    return float((run.result or {}).get("capacity") or 0.0)


def _measure(run: Run, backend: Backend) -> tuple[LimitKind, float]:
    """What is limited, and what the run found of it: in flight where the pool says so already, or must."""
    in_flight = (run.result or {}).get("in_flight_limit")
    by_flight = backend.limit_kind == LimitKind.CONNECTIONS or backend.pool.when_full == WhenFull.QUEUE
    if by_flight and in_flight:
        return LimitKind.CONNECTIONS, float(in_flight)
    return LimitKind.RATE, _capacity(run)


def _backend_or_none(run: Run) -> Backend | None:
    rows = Backend.objects.select_related("pool__account", "region")
    return rows.filter(pool=run.pool_id, region=run.region_id).first()


def _backend(run: Run) -> Backend:
    found = _backend_or_none(run)
    if found is None:
        raise Conflict("The pool no longer has servers in the run's region.")
    return found


def _number(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


def _words(backend: Backend) -> str:
    kind = LimitKind(backend.limit_kind)
    if kind is LimitKind.NONE:
        return "no limit"
    return f"{backend.limit_value} {UNITS[kind]}" + (" per server" if backend.limit_scope == LimitScope.SERVER else "")


def _margin(run: Run, margin: object) -> float:
    """The margin that was sent, else the policy's."""
    if margin is None:
        margin = (run.plan.get("policy") or {}).get("margin", 0.1)
    if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin <= LARGEST_MARGIN:
        raise Invalid(
            [
                FieldError(
                    "/margin", "range", "Use a margin from 0 to 0.9: the share of the measured capacity to subtract."
                )
            ]
        )
    return float(margin)


def _store(actor: Actor, run: Run, wanted: Proposal, value: int, expected_version: int | None, reason: str) -> Backend:
    """The change of the limit and the note on the run, together."""
    with transaction.atomic():
        backend = set_limit(
            actor=actor,
            pool_id=run.pool_id or 0,
            region=run.region.name if run.region else "",
            kind=str(wanted.kind),
            value=value,
            scope=str(wanted.scope),
            measured_by=run.name,
            expected_version=expected_version,
            of_run=True,
            reason=reason[:400],
        )
        run.limit_set_at, run.limit_set_by = now(), actor.name[:150]
        run.save(update_fields=("limit_set_at", "limit_set_by"))
    return backend


def _remember(run: Run, message: str) -> None:
    run.result = {**(run.result or {}), "applied": {"message": message, "at": now().isoformat()}}
    run.save(update_fields=("result",))
