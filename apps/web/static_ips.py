"""SHOW to people: addresses that stay."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from apps.core.errors import NotFound
from apps.web.pages import PageRequest, page


@page
def index(request: PageRequest, **ids: Any) -> HttpResponse:
    """Not there yet."""
    raise NotFound("This page is being written.")
