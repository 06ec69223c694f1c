"""SHOW to people: routes, from the list to the live preview of one."""

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
def new(request: PageRequest, **ids: Any) -> HttpResponse:
    """Not there yet."""
    raise NotFound("This page is being written.")


@page
def check(request: PageRequest, **ids: Any) -> HttpResponse:
    """Not there yet."""
    raise NotFound("This page is being written.")


@page
def detail(request: PageRequest, **ids: Any) -> HttpResponse:
    """Not there yet."""
    raise NotFound("This page is being written.")


@page
def edit(request: PageRequest, **ids: Any) -> HttpResponse:
    """Not there yet."""
    raise NotFound("This page is being written.")


@page
def delete(request: PageRequest, **ids: Any) -> HttpResponse:
    """Not there yet."""
    raise NotFound("This page is being written.")
