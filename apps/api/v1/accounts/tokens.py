"""The tokens of an account, a new one whose text is in the answer once, and the end of one."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.v1.accounts import member_shapes
from apps.api.v1.accounts.people import check_version, created
from apps.api.v1.protocol import requests
from apps.api.v1.views import DetailView, ListView, one
from apps.api.v1.writes import no_dry_run
from apps.members import selectors, tokens

FIELDS = ("name", "role", "account", "scopes", "networks", "expires_in_days")


class TokenList(ListView):
    """GET tokens, POST a new one."""

    noun = "tokens"

    def post(self, request: Request) -> Response:
        """`{name, role, account?, scopes?, networks?, expires_in_days?}`; `token` in the answer is its text."""
        no_dry_run(request)
        data = {"name": None, "role": None} | requests.only(request, FIELDS)
        row, text = tokens.make_token(actor=requests.actor_of(request), reason=requests.reason(request), **data)
        shape = member_shapes.token(row, requests.actor_of(request)) | {"token": text}
        return created(shape, f"/api/v1/tokens/{row.pk}")


class TokenDetail(DetailView):
    """GET a token; DELETE revokes it."""

    noun = "tokens"

    def delete(self, request: Request, pk: str) -> Response:
        """Tokens are made and revoked, never changed, so `If-Match` may be left out: a leaked one must go quickly."""
        actor, row = requests.actor_of(request), one(selectors.tokens(requests.actor_of(request)), pk)
        no_dry_run(request)
        check_version(request)
        tokens.revoke_token(actor=actor, token_id=row.pk, reason=requests.reason(request))
        return Response(status=204)
