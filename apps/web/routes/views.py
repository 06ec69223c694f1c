"""Routes: the list, one route, and the way it is taken away."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from django.contrib import messages
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.canaries.selectors import open_on
from apps.core.errors import Conflict, FieldError, Invalid, Stale
from apps.definitions.key_sets.following import key_set_of
from apps.definitions.models import Route, RoutePool
from apps.definitions.previewing.effective_rules import settings_of_route
from apps.definitions.selectors import filter_routes, load_balancers, only, page_of_routes
from apps.definitions.selectors import routes as visible_routes
from apps.definitions.services import delete_object, fetch_key_set_of_route
from apps.definitions.sharing import taken_back
from apps.observe.evaluate.lost_pools import sentence
from apps.observe.selectors import sick_pools
from apps.rollouts.selectors import conditions_of
from apps.web.finding.sorting import Sorting, chips, sorted_page
from apps.web.fleets.deployment_status import deployment_status
from apps.web.kit.pages import PageRequest, page, post_page, shared_parts, show
from apps.web.kit.undoing import say_done
from apps.web.load_balancers.curl_examples import ways_to_try
from apps.web.objectives.shown import objective_of
from apps.web.policies.views import say_fetched
from apps.web.routes.rows import CANARY_SHARES, rows_of
from apps.web.timeline.panel import timeline_of

PER_PAGE = 50
# Counting all of them would cost more than showing some.
MOST_COUNTED = 1000
LABELS = {
    "q": "Search",
    "account": "Account",
    "pool": "Pool",
    "load_balancer": "Load balancer",
    "action": "Action",
    "hostname": "Hostname",
}
# By the indexes of hostnames and paths, and of accounts and names.
SORTS = {"Route": ("hostname__name", "path"), "Account": ("account__name", "name")}
ACTIONS = (("pools", "Pools"), ("redirect", "Redirect"), ("fixed_response", "Fixed response"))


@page
@shared_parts("samples", "definitions", "rollouts")
def index(request: PageRequest) -> HttpResponse:
    """Routes of sick pools, then all others by hostname and path, or as `?sort=` says; narrowed as in the API."""
    actor, chosen = request.actor, request.GET
    context: dict[str, Any] = {
        "chosen": chosen,
        "actions": ACTIONS,
        "filtered": any(chosen.get(name) for name in LABELS),
        "chips": chips(chosen, LABELS, dict(ACTIONS)),
        "sorting": Sorting.asked(SORTS, chosen.get("sort", "")),
    }
    try:
        narrowed = filter_routes(visible_routes(actor), chosen)
        shown, following = _page(narrowed, context["sorting"], chosen)
    except Invalid as error:
        context |= {"field_errors": tuple(map(_in_words, error.field_errors)), "filtered": True}
        return show(request, "pages/routes/list.html", context | _choices(request), status=422)
    total = narrowed.prefetch_related(None).order_by()[: MOST_COUNTED + 1].count()
    context |= {"rows": rows_of(actor, shown), **following}
    context["managed"] = next((route for route in shown if route.manager), None)
    context["paged"] = any(following.values()) or any(chosen.get(name) for name in ("cursor", "after"))
    of = f"{total:,}" if total <= MOST_COUNTED else f"more than {MOST_COUNTED:,}"
    context["count"] = f"{len(shown)} of {of} route{'' if total == 1 else 's'}"
    return show(request, "pages/routes/list.html", context | _choices(request))


def _in_words(error: FieldError) -> FieldError:
    """A page has no cursor to take from anywhere: its address was changed, or is old."""
    if error.pointer not in ("/cursor", "/after"):
        return error
    return replace(error, pointer="", detail="This address begins at no route; start at the first page again.")


def _page(rows: QuerySet[Route], sorting: Sorting, chosen: Any) -> tuple[list[Route], dict[str, str | None]]:
    """The next routes, and where those behind them begin, by the word of the query that says so."""
    if sorting.head:
        found, after = sorted_page(rows, sorting, chosen.get("after", ""), PER_PAGE)
        return found, {"next_after": after}
    sick, cursor = _of_sick_pools(rows), chosen.get("cursor", "")
    rest = page_of_routes(rows.exclude(pk__in=[route.pk for route in sick]), limit=PER_PAGE, cursor=cursor)
    return rest.rows if cursor else [*sick, *rest.rows], {"next_cursor": rest.next_cursor}


def _of_sick_pools(rows: QuerySet[Route]) -> list[Route]:
    """Routes that send to pools that are down, then those of degraded ones; a page of them at most."""
    pools = sick_pools()
    shares = RoutePool.objects.filter(weight__gt=0)
    if not any(pools.values()):
        return []
    down = shares.filter(route=OuterRef("pk"), pool__in=pools["down"])
    found = rows.filter(pk__in=shares.filter(pool__in=[*pools["down"], *pools["degraded"]]).values("route"))
    return list(found.annotate(down=Exists(down)).order_by("-down", "hostname__name", "path", "pk")[:PER_PAGE])


def _choices(request: PageRequest) -> dict[str, Any]:
    """What the filters offer; a refreshed part of the page has no filters."""
    if request.GET.get("partial"):
        return {}
    return {"balancers": load_balancers(request.actor).prefetch_related(None)}


@page
@shared_parts("samples", "rollouts", "nodes", "definitions")
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One route: what it matches, what happens, how it goes, where it is live, and how to try it."""
    actor = request.actor
    route = only(visible_routes(actor), pk)
    conditions = conditions_of("Route", [pk])[pk]
    context: dict[str, Any] = {"route": route, "row": rows_of(actor, [route])[0], "conditions": conditions}
    context["lost"] = lost = _lost_pools(route)
    context["trouble"] = bool(lost) or context["row"].health in ("down", "degraded")
    context["lost_sentence"] = sentence(lost.values()) if lost else ""
    context["live"] = deployment_status(actor, route, refusing={each.fleet for each in conditions})
    partial = request.GET.get("partial", "")
    if partial in ("", "objective"):
        context["objective"] = objective_of(route)
    if partial in ("", "timeline"):
        context["timeline"] = timeline_of(actor, route, request.GET.get("range", ""), kind="route")
    if partial in ("", "numbers") and context["row"].canary:
        context |= {"canary": open_on(actor, pk), "canary_shares": CANARY_SHARES}
    if not partial:
        context |= {"settings": settings_of_route(route), "key_set": key_set_of(route)}
        context["ways"] = ways_to_try(actor, route)
    return show(request, "pages/routes/detail.html", context)


def _lost_pools(route: Route) -> dict[int, str]:
    """Pools of others that the route leads to and that are not shared with its account any more, by primary key."""
    led = (*(share.pool for share in route.shares), route.mirror)
    if all(pool is None or pool.account_id == route.account_id for pool in led):
        return {}
    uses = taken_back(RoutePool.objects.filter(route=route)).select_related("pool__account")
    return {each.pool_id: f"{each.pool.account.name}/{each.pool.name}" for each in uses}


@page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Ask for the name, then take the route away."""
    request.actor.may_write()
    route = only(visible_routes(request.actor), pk)
    context: dict[str, Any] = {
        "route": route,
        "row": rows_of(request.actor, [route])[0],
        "reason": request.POST.get("reason", ""),
    }
    if request.method != "POST":
        return show(request, "pages/routes/delete.html", context)
    context["typed"] = request.POST.get("confirm", "")
    if context["typed"] != route.name:
        context["error"] = f"Type {route.name}, the name of the route, to delete it."
        return show(request, "pages/routes/delete.html", context, status=422)
    try:
        _take_away(request, route)
    except Stale:
        messages.error(request, "Someone changed this route while you viewed it. Review it again before you delete it.")
        return redirect("web:route", pk=pk)
    except (Conflict, Invalid) as error:
        context["error"] = error.detail
        return show(request, "pages/routes/delete.html", context, status=409)
    say_done(request, f"Route {route.name} is deleted. Its requests go to other routes as soon as the change is live.")
    return redirect("web:routes")


def _take_away(request: PageRequest, route: Route) -> None:
    version = request.POST.get("version", "")
    delete_object(
        actor=request.actor,
        kind="Route",
        name=route.name,
        account=route.account.name,
        expected_version=int(version) if version.isdecimal() and len(version) < 10 else None,
        reason=request.POST.get("reason", "").strip()[:400],
    )


@post_page
def fetch_key_set(request: PageRequest, pk: int) -> HttpResponse:
    """Have the key set that its own rules name fetched now."""
    say_fetched(request, partial(fetch_key_set_of_route, route_id=pk))
    return redirect("web:route", pk=pk)
