"""Lists of networks: all of them, one with its entries and users, its form, its end."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.core.clock import now
from apps.core.errors import Conflict, Invalid, NotFound
from apps.definitions.models import Country, NetworkList
from apps.definitions.selectors import network_lists, only
from apps.definitions.services import ban_network, lift_ban
from apps.definitions.shapes.base.words import instant_text, read_instant
from apps.web.kit.object_forms import form_for
from apps.web.kit.pages import PageRequest, page, post_page, show
from apps.web.kit.saving import deleted_by_name, save_form, telling, version_shown
from apps.web.kit.undoing import url_with
from apps.web.kit.worst_first import first_of
from apps.web.policies.list_form import NetworkListForm

SHOWN = 200
# Seconds → words, in the order of the form.
LASTING = {"3600": "an hour", "86400": "a day", "604800": "a week", "2592000": "30 days"}


@page
def index(request: PageRequest) -> HttpResponse:
    """Every list that the actor sees, and how many networks it has."""
    rows, context = first_of(network_lists(request.actor), SHOWN)
    return show(request, "pages/network_lists/list.html", context | {"rows": rows})


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One list: its networks or countries, who uses it."""
    row = only(network_lists(request.actor), pk)
    moment = now()
    networks = [
        {**each, "until": until, "expired": until is not None and until <= moment}
        for each in row.entries[:SHOWN]
        for until in [read_instant(each["expires_at"]) if "expires_at" in each else None]
    ]
    context = {
        "network_list": row,
        "networks": networks,
        "countries": Country.objects.filter(code__in=row.countries).defer("networks").order_by("name"),
        "count": len(row.entries),
        "shown": SHOWN,
        "lasting": LASTING,
    }
    return show(request, "pages/network_lists/detail.html", context)


@page
def new(request: PageRequest) -> HttpResponse:
    """A list of the actor's account, or of one that an operator names."""
    return _form(request, None)


@page
def edit(request: PageRequest, pk: int) -> HttpResponse:
    """Change its networks."""
    return _form(request, only(network_lists(request.actor), pk))


def _form(request: PageRequest, stored: NetworkList | None) -> HttpResponse:
    request.actor.may_write()
    form = form_for(request, stored, network_lists(request.actor), partial(NetworkListForm, actor=request.actor))
    if saved := save_form(request, form, "NetworkList", stored, form.spec, _saved):
        return redirect("web:network-list", saved.pk)
    context: dict[str, Any] = {
        "form": form,
        "stored": stored,
        "version": version_shown(request, stored),
    }
    return show(request, "pages/network_lists/form.html", context, status=422 if form.is_bound else 200)


def _saved(row: NetworkList) -> str:
    return f"List {row.name} is saved. Nodes apply it within moments, without a reload."


@post_page
def ban(request: PageRequest, pk: int) -> HttpResponse:
    """Put one network into the list, for a while or for good."""
    request.actor.may_write()
    row = only(network_lists(request.actor), pk)
    lasting = request.POST.get("lasting", "")
    until = now() + timedelta(seconds=int(lasting)) if lasting in LASTING else None
    network = request.POST.get("network", "").strip()
    said = f"{network} is in {row.name}. Nodes follow moments later, without a reload."
    with telling(request, said, url_with("web:network-list-lift", pk, network=network)):
        ban_network(
            actor=request.actor,
            list_id=row.pk,
            network=network,
            expires_at=instant_text(until),
            why=request.POST.get("reason", "").strip(),
        )
    return redirect("web:network-list", pk)


@post_page
def lift(request: PageRequest, pk: int) -> HttpResponse:
    """Take one network out of the list."""
    request.actor.may_write()
    row = only(network_lists(request.actor), pk)
    network = request.POST.get("network", "")
    try:
        lift_ban(actor=request.actor, list_id=row.pk, network=network)
    except (Conflict, Invalid, NotFound) as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, f"{network} is no longer in {row.name}.")
    return redirect("web:network-list", pk)


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Delete a list that no policy and no route names any more, once its name was typed."""
    request.actor.may_write()
    row = only(network_lists(request.actor), pk)
    gone = deleted_by_name(request, "NetworkList", row, f"List {row.name} is deleted.")
    return redirect("web:network-lists") if gone else redirect("web:network-list", pk)
