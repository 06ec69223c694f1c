"""Selected routes: a maintenance page instead of them, a policy more or less, or their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from django.http import HttpResponse

from apps.core.errors import FieldError, Invalid
from apps.definitions.freezing.frozen_policies import OWN
from apps.definitions.models import Route
from apps.definitions.previewing.effective_rules import maintained
from apps.definitions.reading.describing import Document
from apps.definitions.selectors import describe
from apps.definitions.selectors import routes as visible_routes
from apps.web.bulk.asking import delete_selected, now_of
from apps.web.bulk.selecting import Noun, each_selected, reason_of, rejected
from apps.web.kit.pages import PageRequest, post_page
from apps.web.kit.saving import Typed, save
from apps.web.routes.rows import rows_of

ROUTES = Noun("route", "web:route", "web:routes")
Change = Callable[[Route, Document], Document]


@post_page
def change_routes(request: PageRequest) -> HttpResponse:
    """Do to the selected routes what the pressed button says."""
    request.actor.may_write()
    do, policy = request.POST.get("do", ""), request.POST.get("policy", "").strip()[:127]
    if do == "delete":
        text = "Their requests go to other matching routes, or get 404. Pools and servers are not deleted."
        rows, cells = visible_routes(request.actor), partial(_lost, request)
        return delete_selected(request, ROUTES, "Route", rows, text=text, heads=("Matches", "Requests/s"), cells=cells)
    if do in ("attach", "detach") and not policy:
        return rejected(request, ROUTES, "Enter the name of a policy.")
    ways: dict[str, tuple[Change, str]] = {
        "maintenance": (_begun, "put into maintenance"),
        "serve": (_ended, "taken out of maintenance"),
        "attach": (partial(_attached, policy), f"attached to policy {policy}"),
        "detach": (partial(_detached, policy), f"detached from policy {policy}"),
    }
    if do not in ways:
        return rejected(request, ROUTES, "Choose an action.")
    change, done = ways[do]
    return each_selected(request, ROUTES, visible_routes(request.actor), partial(_save, request, change), done)


def _save(request: PageRequest, change: Change, row: Route) -> None:
    spec = change(row, describe(row))
    save(request, Typed(kind="Route", row=row, spec=spec, version=row.version, reason=reason_of(request)))


def _begun(_row: Route, spec: Document) -> Document:
    rules = spec.get("rules") or {}
    return spec | {"rules": rules | {"maintenance": (rules.get("maintenance") or {}) | {"enabled": True}}}


def _ended(row: Route, spec: Document) -> Document:
    """Without its own word; what a policy shows is no matter of the route."""
    shown_by = maintained(Route.objects.filter(pk=row.pk)).get(row.pk, OWN)
    if shown_by != OWN:
        detail = f"Policy {shown_by} shows its maintenance page. End it there, or detach the policy."
        raise Invalid([FieldError("/rules/maintenance", "policy", detail)])
    rules = dict(spec.get("rules") or {})
    page = {name: value for name, value in (rules.pop("maintenance", None) or {}).items() if name != "enabled"}
    return spec | {"rules": (rules | ({"maintenance": page} if page else {})) or None}


def _attached(policy: str, row: Route, spec: Document) -> Document:
    name = _as_named_by(row, policy)
    return spec if name in spec["policies"] else spec | {"policies": [*spec["policies"], name]}


def _detached(policy: str, row: Route, spec: Document) -> Document:
    return spec | {"policies": [each for each in spec["policies"] if each != _as_named_by(row, policy)]}


def _as_named_by(row: Route, policy: str) -> str:
    """`acme/web` is `web` for a route of acme."""
    return policy.removeprefix(f"{row.account.name}/")


def _lost(request: PageRequest, rows: list[Any]) -> Iterable[Sequence[str]]:
    return [(row.where, now_of(row.figures)) for row in rows_of(request.actor, rows)]
