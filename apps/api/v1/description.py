"""The OpenAPI document of the API, as openapi.py made it and it is checked in."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.views import APIView

CHECKED_IN = Path(__file__).parents[1] / "openapi.json"


class Description(APIView):
    """GET this document; it is no secret."""

    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> HttpResponse:
        """The document as it is checked in, or 304."""
        content, tag = checked_in()
        headers = {"ETag": tag, "Cache-Control": "public, max-age=300"}
        if tag in request.headers.get("If-None-Match", ""):
            return HttpResponse(status=304, headers=headers)
        return HttpResponse(content, content_type="application/json", headers=headers)


@cache
def checked_in() -> tuple[bytes, str]:
    """The text of the document and its tag."""
    content = CHECKED_IN.read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'
