"""The table, clouds and zones beyond their definitions: stacks' runs and states, addresses that move, zones' states."""

from __future__ import annotations

from apps.compiler.compile import Compilation
from apps.compiler.targets.terraform.document import StackDocument
from apps.core.clock import now
from apps.fleet.models import Stack
from apps.stacks.models import StackRevision, StackRun
from apps.stacks.state import revision_store
from tests.permissions.rows import Row, codes

OPERATORS = codes(404, 404, 200)
STACK, RUN = {"name": "aws-eu"}, {"pk": "$stackrun"}
ADDRESS, ZONE = {"name": "front"}, {"pk": "$zone"}
FRONT = {"account": "operator", "name": "front"}
WHY = {"X-Change-Reason": "asked by the table"}


def make_stack_rows() -> None:
    """A revision of the one, a run of another stack whose plan waits for somebody's word."""
    revision_store.store(
        stack_id=Stack.objects.get(name="aws-eu").pk,
        generation=1,
        compilation=Compilation(StackDocument(), (), ()),
        secrets={},
        labels={},
        summary="x",
        actor="x",
    )
    stack = Stack.objects.get(name="aws-us")
    revision = StackRevision.objects.create(
        stack=stack, number=1, generation=1, digest="0" * 64, document=b"", secrets=b"", summary="x", actor="x"
    )
    planned = {"state": "planned", "planned_at": now(), "plan_digest": "a"}
    StackRun.objects.create(stack=stack, revision=revision, actor="x", **planned)


def _decided(word: str, done: str) -> Row:
    return Row(f"api:stack-runs-{word}", "POST", codes(404, 404, f"403 {done} {done}"), RUN, "stackrun")


CLOUDS: tuple[Row, ...] = (
    Row("api:stacks-state", "GET", OPERATORS, STACK, "stack"),
    Row("api:stacks-runs", "GET", OPERATORS, STACK, "stack"),
    Row("api:stacks-states", "GET", OPERATORS, STACK, "stack"),
    Row("api:stacks-revisions", "GET", OPERATORS, STACK, "stack"),
    Row("api:stacks-revision", "GET", OPERATORS, STACK | {"number": "1"}, "stack"),
    Row("api:stacks-revision-differences", "GET", OPERATORS, STACK | {"number": "1"}, "stack"),
    # Nothing was applied here, so there is no state to read.
    Row("api:stacks-state-content", "GET", codes(404, 404, "403 404 404"), STACK | {"number": "1"}),
    Row("api:stacks-check", "POST", codes(404, 404, "403 409 409"), STACK, "stack"),
    Row("api:stacks-lock", "GET", OPERATORS, STACK, "stack"),
    # Nothing was ever made: it is compiled first, and there is nothing to destroy and no lock.
    Row("api:stacks-plan", "POST", codes(404, 404, "403 202 202"), STACK, "stack"),
    Row("api:stacks-destroy", "POST", codes(404, 404, "403 409 409"), STACK, "stack", headers=WHY),
    Row("api:stacks-force-unlock", "POST", codes(404, 404, "403 409 409"), STACK, "stack", {"id": "x"}, headers=WHY),
    Row("api:stack-runs-list", "GET", codes(200, 200, 200)),
    Row("api:stack-runs-detail", "GET", OPERATORS, RUN, "stackrun"),
    Row("api:stack-runs-events", "GET", OPERATORS, RUN, "stackrun"),
    Row("api:stack-runs-approve", "POST", codes(404, 404, "403 200 200"), RUN, "stackrun", {"plan_digest": "a"}),
    _decided("discard", "200"),
    _decided("cancel", "200"),
    _decided("retry", "409"),
    # It belongs to one region, the load balancer stands in two.
    Row("api:static-ips-move", "POST", codes(403, 403, "403 422 422"), ADDRESS, body={"load_balancer": "front"}),
    Row("api:static-ips-release", "POST", codes(403, 403, "403 200 200"), ADDRESS),
    Row("api:load-balancers-portability", "GET", codes(200, 200, 200), {"pk": "$loadbalancer"}),
    Row("api:load-balancers-named-export", "GET", codes(403, 403, 200), FRONT, query={"format": "documents"}),
    Row("api:zones-state", "GET", codes(404, 200, 200), ZONE, "zone"),
    Row("api:zones-differences", "GET", codes(404, 404, 200), ZONE, "zone"),
    Row("api:zones-repair", "POST", codes(404, "403 202 202", "403 202 202"), ZONE, "zone"),
)
