"""What stands in a cloud already, and what one of it would be here; nothing is written."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.actors import Actor
from apps.adoption import selectors as adoption
from apps.adoption.import_options import read_order
from apps.api.v1.protocol import requests
from apps.api.v1.schemas.nouns import adopting as shown
from apps.api.v1.views import only
from apps.fleet.models import CloudAccount
from apps.fleet.selectors import cloud_accounts


def _cloud_account(request: Request, name: str) -> tuple[Actor, CloudAccount]:
    """The caller, who must be an operator that may write: the cloud is asked with the account's credentials."""
    actor = requests.actor_of(request)
    row = only(cloud_accounts(actor).filter(name=name))
    actor.must_operate("cloud accounts")
    return actor, row


class LoadBalancers(APIView):
    """GET the load balancers that stand in a region of a cloud account and could be adopted."""

    def get(self, request: Request, name: str) -> Response:
        """`region`: the cloud's word for it, `global` on Google."""
        actor, row = _cloud_account(request, name)
        region = request.query_params.get("region", "")
        found = adoption.load_balancers_of(actor=actor, cloud_account_id=row.pk, region=region)
        items = [shown.FoundInCloud.of(each) for each in found]
        return Response({"region": region, "load_balancers": items})


class Adopt(APIView):
    """POST which one to read; the answer is a document for `PUT /apply`, with a line for everything that was found."""

    scope = "read"

    def post(self, request: Request, name: str) -> Response:
        """`{region, id, name, account?, regions?, certificates?, addresses?, stack?}`."""
        actor, row = _cloud_account(request, name)
        order = read_order(request.data, account=actor.account.name)
        made = adoption.adopt(actor=actor, cloud_account_id=row.pk, order=order)
        return Response(
            {**adoption.apply_document(made), "report": [shown.AdoptedLine.of(each) for each in made.report]}
        )
