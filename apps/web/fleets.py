"""SHOW to people: fleets and nodes, running against wanted."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from apps.core.errors import NotFound
from apps.web.pages import PageRequest, page


@page
def index(request: PageRequest, **ids: Any) -> HttpResponse:
    """Not there yet."""
    raise NotFound("This page is being written.")


@page
def push_again(request: PageRequest, **ids: Any) -> HttpResponse:
    """Not there yet."""
    raise NotFound("This page is being written.")


@page
def resume(request: PageRequest, **ids: Any) -> HttpResponse:
    """Not there yet."""
    raise NotFound("This page is being written.")


@page
def node(request: PageRequest, **ids: Any) -> HttpResponse:
    """Not there yet."""
    raise NotFound("This page is being written.")
