"""Addresses that stay: where each stands, whose it is, and how it moves to another load balancer."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect

from apps.definitions.models import LoadBalancer
from apps.definitions.selectors import load_balancers, only
from apps.definitions.services import move_static_ip, release_static_ip
from apps.definitions.shapes.clouds.static_ip import KINDS
from apps.fleet import selectors as topology
from apps.observe.show.address_locations import address_locations
from apps.rollouts.held_addresses import left_behind
from apps.web.kit.pages import PageRequest, operators_only, page, post_page, show
from apps.web.kit.saving import deleted, deleted_by_name, telling
from apps.web.kit.worst_first import first_of

SHOWN = 500
# What a node says of an address → state and word of components/status.html.
WHERE = {
    "held": ("healthy", "Held here"),
    "standby": ("waiting", "Standing by"),
    "announced": ("healthy", "Announced"),
    "withdrawn": ("down", "Withdrawn"),
    "unknown": ("unknown", "Unknown"),
}
WORDS: dict[str, str] = {kind: words.partition(":")[2].strip() or words for kind, words in KINDS.items()}


@page
def index(request: PageRequest) -> HttpResponse:
    """Every static IP by name; operators have few, so there is one page, which says when there are more."""
    operators_only(request.actor, "static IPs")
    rows = topology.static_ips(request.actor).select_related("pool", "stack", "owner")
    found, context = first_of(rows.prefetch_related("listeners__load_balancer", "records__zone"), SHOWN)
    context |= {
        "rows": [(row, WORDS[row.kind]) for row in found],
        "pools": topology.address_pools(request.actor),
        "left": left_behind(),
    }
    return show(request, "pages/static_ips/list.html", context)


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One address: where it stands, who follows it, and where it may go."""
    operators_only(request.actor, "static IPs")
    row = only(topology.static_ips(request.actor).select_related("pool", "stack", "owner"), pk)
    listeners, targets = list(row.listeners.select_related("load_balancer").order_by("name")), _targets(request, pk)
    concerned = [*(each.load_balancer for each in listeners), *targets]
    context: dict[str, Any] = {
        "row": row,
        "words": WORDS[row.kind],
        "listeners": listeners,
        "nodes": [(each, WHERE[each.status]) for each in address_locations(request.actor).get(row.address or "", ())],
        "targets": [(each.name, each.name) for each in targets],
        "managed": next((each for each in concerned if each.manager), None),
    }
    return show(request, "pages/static_ips/detail.html", context)


def _targets(request: PageRequest, pk: int) -> list[LoadBalancer]:
    """Load balancers that have listeners and do not bind this address yet, by name."""
    rows = load_balancers(request.actor).filter(listeners__isnull=False).exclude(listeners__static_ip=pk).distinct()
    return list(rows[:SHOWN])


@post_page
def move(request: PageRequest, pk: int) -> HttpResponse:
    """Attach the address to another load balancer, as one change."""
    operators_only(request.actor, "static IPs")
    request.actor.may_write()
    row = only(topology.static_ips(request.actor), pk)
    with telling(request, f"{row.name} is moving. See the rollouts and stack runs for progress."):
        move_static_ip(
            actor=request.actor,
            name=row.name,
            load_balancer=request.POST.get("load_balancer", ""),
            reason=request.POST.get("reason", "").strip()[:400],
        )
    return redirect("web:static-ip", pk)


@post_page
def release(request: PageRequest, pk: int) -> HttpResponse:
    """Detach the address from whatever binds it; it stays ours."""
    operators_only(request.actor, "static IPs")
    request.actor.may_write()
    row = only(topology.static_ips(request.actor), pk)
    with telling(request, f"{row.name} is detached. You keep the address."):
        release_static_ip(actor=request.actor, name=row.name, reason=request.POST.get("reason", "").strip()[:400])
    return redirect("web:static-ip", pk)


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Give the address back, once its name was typed; a protected one stays."""
    operators_only(request.actor, "static IPs")
    request.actor.may_write()
    row = only(topology.static_ips(request.actor), pk)
    gone = deleted_by_name(request, "StaticIP", row, f"{row.name} is released.", "release it")
    return redirect("web:static-ips") if gone else redirect("web:static-ip", pk)


@post_page
def delete_pool(request: PageRequest, pk: int) -> HttpResponse:
    """Delete an address pool from which no static IP comes."""
    operators_only(request.actor, "address pools")
    request.actor.may_write()
    row = only(topology.address_pools(request.actor), pk)
    deleted(request, "AddressPool", row, f"Address pool {row.name} is deleted.")
    return redirect("web:static-ips")
