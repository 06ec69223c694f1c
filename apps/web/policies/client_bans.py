"""Clients that limits of policies and routes banned by themselves, and the end of such a ban."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.core.errors import Conflict, Invalid, NotFound
from apps.rollouts.bans.lifting import lift_client_ban
from apps.rollouts.bans.showing import bans
from apps.web.kit.pages import PageRequest, page, post_page, show


@page
def index(request: PageRequest) -> HttpResponse:
    """Whom limits ban now, as nodes answer; of customers' own routes."""
    return show(request, "pages/policies/client_bans.html", {"bans": bans(request.actor)})


@post_page
def lift(request: PageRequest) -> HttpResponse:
    """Let one client in again."""
    request.actor.may_write()
    region, ban = (request.POST.get(name, "") for name in ("region", "ban"))
    try:
        client = lift_client_ban(actor=request.actor, region=region, ban=ban)
    except (Conflict, Invalid, NotFound) as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, f"{client} is no longer banned. If it goes over its limit again, it may be again.")
    return redirect("web:client-bans")
