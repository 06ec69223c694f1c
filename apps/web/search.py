"""SHOW to people: what the command palette finds."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from apps.core.errors import NotFound
from apps.web.pages import PageRequest, page


@page
def search(request: PageRequest, **ids: Any) -> HttpResponse:
    """Not there yet."""
    raise NotFound("This page is being written.")
