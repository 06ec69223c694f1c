"""How far stacks have come: runs with their plans, states, the lock; what operators do with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.actors import Actor
from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import clouds as shown
from apps.api.v1.views import listed, only
from apps.api.v1.writes import no_dry_run
from apps.core.errors import FieldError, Invalid
from apps.fleet.models import Stack
from apps.fleet.selectors import stacks
from apps.stacks import selectors, services
from apps.stacks.cloud import health
from apps.stacks.models import StackRun
from apps.stacks.review.differences import Difference

Shape = dict[str, Any]
DECISIONS: Mapping[str, Callable[..., StackRun]] = {
    "approve": services.approve, "discard": services.discard, "cancel": services.cancel, "retry": services.retry,
}  # fmt: skip


def run_shape(row: StackRun) -> Shape:
    """One run that brings a revision to its cloud."""
    return shown.StackRun.of(row)


def _backend(row: health.BackendHealth) -> Shape:
    """The servers of a pool in one region, as the cloud's own checks and counts have them."""
    pool = f"{row.backend.pool.account.name}/{row.backend.pool.name}"
    return shown.CloudBackend.of(row, pool=pool, weight_reason=row.weight.reason if row.weight else "")


def _difference(found: Difference) -> Shape:
    """One resource of a plan, in our words."""
    return shown.PlannedDifference.of(found, sentences=[each.sentence for each in found.details])


def _word(sent: object, pointer: str, detail: str) -> str:
    """An id that we made ourselves and somebody sends back. Raises Invalid."""
    if not isinstance(sent, str) or not re.fullmatch(r"[A-Za-z0-9-]{1,64}", sent, re.ASCII):
        raise Invalid([FieldError(pointer, "id", detail)])
    return sent


def stack_of(request: Request, name: str) -> tuple[Actor, Stack]:
    """Who asks, and the stack that is asked about. Raises NotFound."""
    actor = requests.actor_of(request)
    return actor, only(stacks(actor).filter(name=name))


def _run(request: Request, pk: str) -> StackRun:
    return selectors.run(requests.actor_of(request), int(pk) if len(pk) < 19 else 0)


class State(APIView):
    """GET how a stack stands, and what its cloud says of it."""

    def get(self, request: Request, name: str) -> Response:
        """`status` as on its page; `unknown` is what a run made that nobody heard the end of and nobody wants."""
        actor, stack = stack_of(request, name)
        state, reading = selectors.stack_state(actor, stack.pk), health.reading_of(actor, stack.pk)
        sync = state.sync
        told = shown.StackState.of(
            state,
            outputs=sync.outputs if sync else {},
            unknown=[shown.Leftover.of(each) for each in sync.unknown] if sync else [],
            added_by_hand=[shown.Addition.of(each) for each in sync.added_by_hand] if sync else [],
            read_at=reading.read_at if reading else None,
            read_error=reading.error if reading else "",
            backends=[_backend(each) for each in health.backends_of(actor, stack.pk)],
        )
        return Response(told)


class Runs(APIView):
    """GET the runs of a stack, newest first."""

    def get(self, request: Request, name: str) -> Response:
        """`limit`, `cursor`."""
        actor, stack = stack_of(request, name)
        return listed(request, selectors.runs(actor, stack.pk), run_shape, newest_first=True)


class RunList(APIView):
    """GET the runs of all stacks, newest first."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`."""
        return listed(request, selectors.runs(requests.actor_of(request)), run_shape, newest_first=True)


class RunDetail(APIView):
    """GET a run with its plan in our words."""

    def get(self, request: Request, pk: str) -> Response:
        """The run; `changes` is what its plan does, `drift` what somebody else did to the cloud."""
        row = _run(request, pk)
        changes, drift = selectors.plan_of(requests.actor_of(request), row.pk)
        told = {"changes": [_difference(each) for each in changes], "drift": [_difference(each) for each in drift]}
        return Response(run_shape(row) | told)


class RunEvents(APIView):
    """GET what Terraform said during a run, oldest first."""

    def get(self, request: Request, pk: str) -> Response:
        """`limit`, `cursor`; `after` the last number that one has, while the run works."""
        row, after = _run(request, pk), requests.number(request, "after", 0, 0, requests.HIGHEST)
        return listed(request, selectors.events(requests.actor_of(request), row.pk, after), shown.StackRunEvent.of)


class States(APIView):
    """GET the versions of a stack's Terraform state, newest first, without what is in them."""

    def get(self, request: Request, name: str) -> Response:
        """`limit`, `cursor`."""
        actor, stack = stack_of(request, name)
        return listed(request, selectors.states(actor, stack.pk), shown.StateVersion.of, newest_first=True)


class Lock(APIView):
    """GET who may write the state now."""

    def get(self, request: Request, name: str) -> Response:
        """`held` false when nobody does."""
        actor, stack = stack_of(request, name)
        row = selectors.lock_of(actor, stack.pk)
        free = {"held": False, "id": None, "held_by": None, "run": None, "since": None}
        return Response(shown.StateLock.of(row, held=True) if row else free)


class ForceUnlock(APIView):
    """POST: take the lock away from whoever holds it; the reason (X-Change-Reason) is required."""

    def post(self, request: Request, name: str) -> Response:
        """`{id}`: the lock that was seen. 204."""
        no_dry_run(request)
        actor, stack = stack_of(request, name)
        lock_id = _word(requests.only(request, ("id",)).get("id"), "/id", "Send the ID of the lock that you read.")
        with requests.required_reason(request) as reason:
            services.force_unlock(actor=actor, stack_id=stack.pk, lock_id=lock_id, reason=reason)
        return Response(status=204)


class Plan(APIView):
    """POST: plan what is wanted, now."""

    def post(self, request: Request, name: str) -> Response:
        """No body; 202 with the run, or without a body where it has to be compiled first."""
        no_dry_run(request)
        actor, stack = stack_of(request, name)
        begun = services.plan_now(actor=actor, stack_id=stack.pk, reason=requests.reason(request))
        return _begun(actor, begun)


class Check(APIView):
    """POST: look for what somebody changed in the cloud."""

    def post(self, request: Request, name: str) -> Response:
        """No body; 202 with the run that looks."""
        no_dry_run(request)
        actor, stack = stack_of(request, name)
        return _begun(actor, services.check_drift(actor=actor, stack_id=stack.pk))


class Destroy(APIView):
    """POST: plan to delete everything that stands in the stack; the plan waits for its approval."""

    def post(self, request: Request, name: str) -> Response:
        """No body; say why in `X-Change-Reason`. 202 with the run."""
        no_dry_run(request)
        actor, stack = stack_of(request, name)
        with requests.required_reason(request) as reason:
            begun = services.destroy(actor=actor, stack_id=stack.pk, reason=reason)
        return _begun(actor, begun)


def _begun(actor: Actor, begun: StackRun | None) -> Response:
    if begun is None:
        return Response(status=202)
    headers = {"Location": f"/api/v1/stack-runs/{begun.pk}"}
    return Response(run_shape(selectors.run(actor, begun.pk)), status=202, headers=headers)


class Decide(APIView):
    """POST: something that is decided about a run; 200 with the run after it, which is another one for a retry."""

    act = ""

    def post(self, request: Request, pk: str) -> Response:
        """No body; with `approve` `{plan_digest}` of the plan that was looked at, 409 when it is another one by now."""
        no_dry_run(request)
        row = _run(request, pk)
        actor, more = requests.actor_of(request), {}
        if self.act == "approve":
            sent = requests.only(request, ("plan_digest",)).get("plan_digest") if request.data else None
            more["plan_digest"] = _word(sent, "/plan_digest", "Send plan_digest of the run that you reviewed.")
        after = DECISIONS[self.act](actor=actor, run_id=row.pk, reason=requests.reason(request), **more)
        return Response(run_shape(selectors.run(actor, after.pk)))
