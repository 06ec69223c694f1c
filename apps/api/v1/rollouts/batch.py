"""Many routes or pools in one call, all or none, or each with an answer of its own."""

from __future__ import annotations

from functools import partial
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1 import shapes
from apps.api.v1.protocol import requests
from apps.api.v1.protocol.problems import told
from apps.api.v1.writes import dry_run_answer
from apps.core.errors import FieldError, Invalid
from apps.definitions import services
from apps.definitions.services import ItemResult

DONE = {"create": 201, "update": 200, "delete": 204}


class Items(APIView):
    """POST up to 1000 items."""

    kind = ""

    def post(self, request: Request) -> Response:
        """`{items: [{action: create|update|delete, name or id, account?, version?, spec?}]}`.

        `atomic=true` (the default) does all or nothing and refuses with every error; `atomic=false` does what can be
        done, and says of each item its status with its ETag or its problem. `dry_run=true`, `wait=SECONDS`,
        `break_glass=true`.
        """
        change = partial(
            services.write_batch,
            actor=requests.actor_of(request),
            kind=self.kind,
            items=requests.only(request, ("items",)).get("items"),
            atomic=_atomic(request),
            reason=requests.reason(request),
        )
        if requests.dry_run(request):
            return dry_run_answer(request, change)
        done = change()
        results = [self._shape(request, result) for result in done.results]
        body: dict[str, Any] = {"results": results, "generations": done.generations}
        return Response(body)

    def _shape(self, request: Request, result: ItemResult) -> dict[str, Any]:
        if result.error is not None:
            body, headers = told(result.error, request.path)
            none = dict.fromkeys(("id", "account", "name", "url"))
            return (
                {"action": result.action, "status": body["status"]}
                | none
                | {
                    "etag": headers.get("ETag"),
                    "problem": body,
                }
            )
        row, gone = result.row, result.action == "delete"
        return {
            "action": result.action,
            "status": DONE[result.action],
            "id": row.pk,
            "account": row.account.name,
            "name": row.name,
            "url": None if gone else shapes.url_of(self.kind, row.pk),
            "etag": None if gone else requests.etag(row.version),
            "problem": None,
        }


def _atomic(request: Request) -> bool:
    text = request.query_params.get("atomic", "true")
    if text not in ("true", "false"):
        raise Invalid([FieldError("/atomic", "not_boolean", "Use atomic=true or atomic=false.")])
    return text == "true"
