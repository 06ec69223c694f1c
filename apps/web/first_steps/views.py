"""Loading and removing the example, each with one click on the first page."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect

from apps.web.first_steps import example
from apps.web.kit.pages import PageRequest, operators_only, post_page
from apps.web.kit.saving import telling


@post_page
def load(request: PageRequest) -> HttpResponse:
    """Have the example beside whatever there is."""
    operators_only(request.actor, "example")
    request.actor.may_write()
    with telling(request, "The example is loaded. It has no nodes, so it serves nothing; remove it on this page."):
        example.load(request.actor)
    return redirect("web:overview")


@post_page
def remove(request: PageRequest) -> HttpResponse:
    """Delete the example and nothing else."""
    operators_only(request.actor, "example")
    request.actor.may_write()
    with telling(request, "The example is removed."):
        example.remove(request.actor)
    return redirect("web:overview")
