"""Selected pools: the state of their servers in one region, or their end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from django.http import HttpResponse

from apps.core.errors import FieldError, Invalid
from apps.definitions import selectors
from apps.definitions.models import Pool, Server
from apps.definitions.services import set_servers
from apps.fleet.models import Region
from apps.fleet.selectors import regions
from apps.observe.selectors import pool_numbers
from apps.web.bulk.asking import Question, ask, delete_selected, now_of
from apps.web.bulk.selecting import Noun, each_selected, reason_of, rejected, selected
from apps.web.kit.figures import figures_of
from apps.web.kit.pages import PageRequest, post_page
from apps.web.pools.views import ACTIONS

POOLS = Noun("pool", "web:pool", "web:pools")
MOST_SERVERS = 500
TITLES = {
    "drain": "Drain all servers of these pools",
    "maintenance": "Set all servers of these pools to maintenance",
}
BUTTONS = {"drain": "Drain servers", "maintenance": "Set maintenance"}


@post_page
def change_pools(request: PageRequest) -> HttpResponse:
    """Do to the selected pools what the pressed button says; servers leave once somebody saw whose they are."""
    request.actor.may_write()
    do, rows = request.POST.get("do", ""), request.actor.visible(selectors.pools(request.actor))
    if do == "delete":
        text = "Their servers are deleted too. A pool that a route or a listener uses stays, and is named."
        heads = ("Servers", "Requests/s")
        return delete_selected(request, POOLS, "Pool", rows, text=text, heads=heads, cells=partial(_lost, request))
    region = regions(request.actor).filter(name=request.POST.get("region", "")[:63]).first()
    if do not in ACTIONS or region is None:
        return rejected(request, POOLS, "Choose a region and an action.")
    try:
        found = list(rows.filter(pk__in=selected(request.POST, POOLS)))
    except Invalid as error:
        return rejected(request, POOLS, error.detail)
    count = sum(len(_servers(pool, region)) for pool in found)
    if count > MOST_SERVERS:
        detail = f"These pools have {count:,} servers in {region.name}; at most {MOST_SERVERS} change at a time."
        return rejected(request, POOLS, f"{detail} Select fewer pools.")
    if do in BUTTONS and request.POST.get("confirmed") != "yes":
        return ask(request, POOLS, found, _leaving(do, region))
    return each_selected(request, POOLS, rows, partial(_set, request, region, do), f"{ACTIONS[do]} in {region.name}")


def _servers(pool: Pool, region: Region) -> list[Server]:
    return [server for each in pool.backends.all() if each.region_id == region.pk for server in each.servers.all()]


def _set(request: PageRequest, region: Region, state: str, pool: Pool) -> None:
    ids = [server.pk for server in _servers(pool, region)]
    if not ids:
        raise Invalid([FieldError("", "no_servers", f"It has no servers in {region.name}.")])
    set_servers(actor=request.actor, server_ids=ids, state=state, reason=reason_of(request))


def _leaving(state: str, region: Region) -> Question:
    def cells(rows: list[Any]) -> Iterator[Sequence[str]]:
        for pool in rows:
            taking = [each.backend.region_id for each in _all_servers(pool) if each.usable]
            elsewhere = sum(1 for each in taking if each != region.pk)
            yield str(len(_servers(pool, region))), str(elsewhere) if elsewhere else "none: requests get 503"

    return Question(
        title=f"{TITLES[state]} in {region.name}?",
        text=f"Requests to these pools in {region.name} go to servers of other regions, if there are any.",
        button=BUTTONS[state],
        heads=(f"Servers in {region.name}", "Ready servers elsewhere"),
        cells=cells,
        sent={"do": state, "region": region.name, "confirmed": "yes"},
    )


def _all_servers(pool: Pool) -> list[Server]:
    return [server for each in pool.backends.all() for server in each.servers.all()]


def _lost(request: PageRequest, rows: list[Any]) -> Iterator[Sequence[str]]:
    numbers = pool_numbers(request.actor, [pool.pk for pool in rows])
    for pool in rows:
        seen = numbers.get(pool.pk)
        yield str(len(_all_servers(pool))), now_of(figures_of(seen.numbers if seen else None))
