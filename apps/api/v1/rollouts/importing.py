"""The configuration of another load balancer in, a report of every line and a plan out."""

from __future__ import annotations

from collections import Counter

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.schemas.operations import importing as shown
from apps.definitions.models import StoredPlan
from apps.importing.ordering import read_order
from apps.importing.services import PlannedImport, plan_import
from apps.importing.verdicts import Verdict


class Import(APIView):
    """POST a configuration with its files; nothing is stored but the plan, which `plans/{id}/apply` applies."""

    def post(self, request: Request) -> Response:
        """`{files: {name: text}, file?, format?, account?, fleets?, region?, prefix?, servers?, certificates?,
        addresses?, passwords?, environment?}`; for operators."""
        actor = requests.actor_of(request)
        actor.must_operate("imports")
        return Response(_shape(plan_import(actor=actor, order=read_order(request.data))))


def _shape(made: PlannedImport) -> dict[str, object]:
    counts = Counter(line.verdict for line in made.found.report)
    plan = made.plan
    return {
        "counts": {str(verdict): counts[verdict] for verdict in Verdict},
        "lines": [shown.ImportedLine.of(line) for line in made.found.report],
        "objects": [shown.ImportedObject.of(each, account=each.get("account")) for each in made.found.documents],
        "everywhere": list(made.everywhere),
        "needs": list(made.found.needs),
        "refusals": [shown.ImportRefusal.of(each) for each in made.refusals],
        "plan": _plan(plan) if plan else None,
    }


def _plan(plan: StoredPlan) -> dict[str, object]:
    """As `PUT /apply?dry_run=plan` shows it."""
    shown_there = {name: value for name, value in plan.summary.items() if name != "take_over"}
    return shown_there | {"plan_id": plan.pk, "expires_at": plan.expires_at}
