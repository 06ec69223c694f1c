"""An object as its definition in YAML, as the call of the API that makes it, and as what it generates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse

from apps.accounts.actors import Actor
from apps.core.errors import there
from apps.definitions.models import Listener, LoadBalancer, Pool, Route
from apps.definitions.previewing.calls import call_of, is_described, yaml_of
from apps.definitions.selectors import fleets_of, only
from apps.fleet.models import Fleet, Stack, StaticIP
from apps.rollouts.own_lines import OwnLines, own_lines
from apps.stacks.review.resources import Resource, resources_of
from apps.web.finding.kinds import kind_named, kind_of
from apps.web.kit.pages import PageRequest, page, show

YAML, API, GENERATED = "yaml", "api", "generated"
TABS = {YAML: "YAML", API: "API call", GENERATED: "Generated configuration"}
ON_TARGETS = (LoadBalancer, Route, Pool)
FLEETS_OFFERED = 50


@dataclass(frozen=True, slots=True)
class Card:
    """What components/definition.html shows; `tabs` are (key, label). Of the chosen `tab` alone anything is filled."""

    url_name: str
    pk: int
    url: str
    tab: str
    tabs: tuple[tuple[str, str], ...]
    file_name: str
    text: str = ""
    call: Any = None
    fleets: tuple[Fleet, ...] = ()
    fleet: Fleet | None = None
    lines: OwnLines | None = None
    resources: tuple[tuple[Stack, tuple[Resource, ...]], ...] = ()


def card_of(actor: Actor, row: Any, tab: str = YAML, fleet: str = "") -> Card | None:
    """The card of a row that a selector has read; None where it is somebody else's, or no object of the API."""
    if not is_described(row) or not actor.owns(row):
        return None
    name, kind = kind_of(row)
    offered = tuple(each for each in TABS.items() if each[0] != GENERATED or isinstance(row, (*ON_TARGETS, StaticIP)))
    chosen = tab if tab in dict(offered) else YAML
    filled: dict[str, Any] = {}
    if chosen == YAML:
        filled["text"] = yaml_of(row)
    elif chosen == API:
        filled["call"] = call_of(row)
    else:
        filled = {**_on_fleets(row, fleet), "resources": tuple(_on_stacks(actor, row))}
    return Card(name, row.pk, kind.url(row), chosen, offered, f"{row.name}.yaml", **filled)


def _on_fleets(row: Any, name: str) -> dict[str, Any]:
    """The lines of one fleet, the first where none is named."""
    if not isinstance(row, ON_TARGETS):
        return {}
    fleets = sorted(fleets_of(row), key=lambda each: each.name)[:FLEETS_OFFERED]
    fleet = next((each for each in fleets if each.name == name), next(iter(fleets), None))
    lines = own_lines(fleet.pk, _ids(row), values=isinstance(row, Route)) if fleet else None
    return {"fleets": tuple(fleets), "fleet": fleet, "lines": lines}


def _ids(row: Any) -> set[str]:
    """What the compiler calls an object, and what stands in it."""
    match row:
        case Route():
            return {f"route-{row.pk}"}
        case Pool():
            servers = (server for backend in row.backends.all() for server in backend.servers.all())
            backends = {f"bkd-{backend.pk}" for backend in row.backends.all()}
            return {f"pool-{row.pk}", *backends, *(f"srv-{server.pk}" for server in servers)}
        case StaticIP():
            return {f"ip-{row.pk}"}
    listeners = Listener.objects.filter(load_balancer=row.pk).values_list("pk", flat=True)
    return {f"lb-{row.pk}", *(f"lst-{pk}" for pk in listeners)}


def _on_stacks(actor: Actor, row: Any) -> Iterator[tuple[Stack, tuple[Resource, ...]]]:
    """Stacks with the resources that exist because of it; operators alone see documents of stacks."""
    stacks = Stack.objects.none()
    if isinstance(row, LoadBalancer):
        stacks = Stack.objects.filter(load_balancers=row)
    elif isinstance(row, Route):
        stacks = Stack.objects.filter(load_balancers=row.load_balancer_id)
    elif isinstance(row, Pool):
        stacks = Stack.objects.filter(load_balancers__routes__pools__pool=row)
    elif row.stack_id:
        stacks = Stack.objects.filter(pk=row.stack_id)
    for stack in stacks.distinct().order_by("name") if actor.is_operator else ():
        if found := resources_of(actor, stack.pk, _ids(row)):
            yield stack, tuple(found)


@page
def index(request: PageRequest, kind: str, pk: int) -> HttpResponse:
    """The card by itself, `?tab=` in front."""
    entry = kind_named(kind)
    row: Any = only(entry.rows(request.actor), pk)
    card = there(card_of(request.actor, row, request.GET.get("tab", YAML), request.GET.get("fleet", "")))
    context = {"card": card, "label": getattr(row, entry.label), "word": entry.word}
    return show(request, "pages/finding/definition.html", context)
