"""What the command palette finds: actions, then a few of each noun that the actor may see."""

from __future__ import annotations

import re
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.urls import reverse

from apps.accounts.actors import Actor
from apps.accounts.selectors import accounts
from apps.core.errors import SpillwayError
from apps.definitions import selectors as definitions
from apps.definitions.filters import filter_routes
from apps.fleet import selectors as topology
from apps.logs import searching
from apps.web.kit.pages import PageRequest, page, show
from apps.web.overview.commands import OF_EACH, Command, commands, settings_named
from apps.web.overview.fields import fields_named

REQUEST_ID = re.compile(r"[0-9a-f]{32}")
ACCOUNTS_ASKED = 100
Group = tuple[str, list[Command]]


@page
def search(request: PageRequest) -> HttpResponse:
    """Lines for `?q=`, grouped; an empty answer for fewer than two characters."""
    text = request.GET.get("q", "").replace("\0", "").strip()[:100]
    groups = _found(request.actor, text) if len(text) > 1 else []
    found = [group for group in groups if group[1]]
    return show(request, "pages/search/results.html", {"groups": found, "nothing": groups and not found})


def _found(actor: Actor, text: str) -> list[Group]:
    if name := REQUEST_ID.fullmatch(text.lower().replace("-", "")):
        return [("Requests", _request(actor, name[0]))]
    return [
        ("Actions", commands(actor, text)),
        *_traffic(actor, text),
        *(_platform(actor, text) if actor.is_operator else []),
        ("Settings", settings_named(actor, text)),
        ("Fields", fields_named(actor, text) if len(text) > 2 else []),
    ]


def _request(actor: Actor, name: str) -> list[Command]:
    """The request of this id; operators look for it in every account, whose lines are kept apart."""
    owners = [actor.account] if not actor.is_operator else accounts(actor)[:ACCOUNTS_ASKED]
    for owner in owners:
        try:
            record = searching.one(actor, account=owner.name, record_id=name)
        except SpillwayError:
            return []
        if record:
            url = f"{reverse('web:request', args=[name])}?account={owner.name}"
            return [Command(f"{record.method} {record.host}{record.path}", url, note=f"{record.status}, {owner.title}")]
    return []


def _traffic(actor: Actor, text: str) -> list[Group]:
    routes = filter_routes(definitions.routes(actor).prefetch_related(None), {"q": text})[:OF_EACH]
    zones = definitions.zones(actor).filter(domain__icontains=text)[:OF_EACH]
    return [
        ("Routes", [_line("route", row.pk, f"{row.hostname.name}{row.path}") for row in routes]),
        ("Pools", _of_account("pool", definitions.pools(actor).prefetch_related(None), text)),
        ("Servers", _servers(actor, text)),
        ("Hostnames", _named("hostname", definitions.hostnames(actor), text)),
        ("Schedules", _named("schedule", definitions.schedules(actor), text)),
        ("Load balancers", _named("load-balancer", definitions.load_balancers(actor).prefetch_related(None), text)),
        ("Policies", _named("policy", definitions.policies(actor), text)),
        ("Zones", [_line("zone", row.pk, row.domain) for row in zones]),
        ("Capacity tests", _of_account("capacity-test", definitions.capacity_tests(actor), text)),
    ]


def _servers(actor: Actor, text: str) -> list[Command]:
    """By name, or by the whole address; they stand on the page of their pool."""
    rows = definitions.servers(actor).filter(Q(name__icontains=text) | Q(address=text)).order_by("name", "pk")
    return [
        Command(
            row.name,
            f"{reverse('web:pool', args=[row.backend.pool_id])}#servers",
            note=f"{row.address}:{row.port}, {row.backend.pool.name} in {row.backend.region.name}",
        )
        for row in rows[:OF_EACH]
    ]


def _named(page_name: str, rows: QuerySet[Any], text: str) -> list[Command]:
    return [_line(page_name, row.pk, row.name) for row in rows.filter(name__icontains=text)[:OF_EACH]]


def _of_account(page_name: str, rows: QuerySet[Any], text: str) -> list[Command]:
    found = rows.filter(name__icontains=text)[:OF_EACH]
    return [_line(page_name, row.pk, f"{row.account.name}/{row.name}") for row in found]


def _platform(actor: Actor, text: str) -> list[Group]:
    customers = accounts(actor).filter(Q(name__icontains=text) | Q(title__icontains=text))[:OF_EACH]
    regions = topology.regions(actor).filter(name__icontains=text)[:OF_EACH]
    return [
        ("Nodes", _named("node", topology.nodes(actor), text)),
        ("Regions", [Command(row.name, reverse("web:region", args=[row.name]), note=row.title) for row in regions]),
        ("Stacks", _named("stack", topology.stacks(actor), text)),
        ("Customers", [Command(each.title, reverse("web:account", args=[each.name])) for each in customers]),
    ]


def _line(page_name: str, pk: int, text: str) -> Command:
    return Command(text, reverse(f"web:{page_name}", args=[pk]))
