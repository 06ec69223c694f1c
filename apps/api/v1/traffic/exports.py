"""Load balancers as archives that go on without us."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpResponse
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.exporting.folders import archive_of
from apps.exporting.services import export_by_request

ZIP = "application/zip"


class OwnFormat(DefaultContentNegotiation):
    """Here `format` is the word of the export; errors are JSON whatever it says."""

    def select_renderer(
        self, _request: Request, renderers: Iterable[BaseRenderer], _format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The first one."""
        first = next(iter(renderers))
        return first, str(first.media_type)


class LoadBalancerExport(APIView):
    """GET a load balancer in a format as a zip, without private keys; for operators."""

    content_negotiation_class = OwnFormat

    def get(self, request: Request, account: str, name: str) -> HttpResponse:
        """`format`, and `fleet` or `stack` where it is on several."""
        asked = request.query_params
        form = asked.get("format", "haproxy")
        within = asked.get("stack" if form == "terraform" else "fleet", "")
        found = export_by_request(requests.actor_of(request), f"{account}/{name}", form, within=within)
        headers = {"Content-Disposition": f'attachment; filename="{name}-{form}.zip"'}
        return HttpResponse(archive_of(found, f"{name}-{form}"), content_type=ZIP, headers=headers)
