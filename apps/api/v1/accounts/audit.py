"""The audit log, newest first, with the filters of the page."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.v1.protocol import requests
from apps.api.v1.views import one, page_by_id, page_response
from apps.audit.exporting import fields_of
from apps.audit.filters import NAMES, filter_entries
from apps.audit.models import Entry
from apps.audit.selectors import entries
from apps.core.errors import FieldError, Invalid

QUERY = NAMES | {"limit", "cursor"}


def shape(row: Entry) -> dict[str, Any]:
    """One entry; `position` and `digest` are null and empty for the moment until it has its link."""
    return {"id": row.pk, **fields_of(row)}


class EntryList(APIView):
    """GET entries of the audit log, newest first."""

    def get(self, request: Request) -> Response:
        """`limit`, `cursor`, and as filters whatever `NAMES` holds: `q`, `actor`, `kind`, `action`, `since`, …"""
        unknown = sorted(set(request.query_params) - QUERY)
        if unknown:
            detail = f"There is no such filter; use {', '.join(sorted(QUERY))}."
            raise Invalid(FieldError(f"/{name[:63]}", "unknown_parameter", detail) for name in unknown)
        rows = filter_entries(entries(requests.actor_of(request)), request.query_params)
        found, cursor = page_by_id(request, rows, newest_first=True)
        return page_response(request, [shape(row) for row in found], cursor)


class EntryDetail(APIView):
    """GET one entry of the audit log."""

    def get(self, request: Request, pk: str) -> Response:
        """The entry with before and after."""
        return Response(shape(one(entries(requests.actor_of(request)), pk)))
