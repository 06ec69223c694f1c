"""Pools: the list, one with its servers, its form, and what can be done to servers in a hurry."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from apps.core.errors import Invalid, Stale
from apps.definitions import selectors
from apps.definitions.models import Pool, Server
from apps.definitions.previewing.capabilities import standings_of_pool
from apps.definitions.services import set_servers
from apps.definitions.sharing import must_own
from apps.fleet.models import Region
from apps.fleet.selectors import regions
from apps.observe import selectors as observe
from apps.overflow import selectors as overflow
from apps.replacements.selectors import open_in
from apps.rollouts.selectors import conditions_of
from apps.stacks.cloud import health
from apps.web.capacity.measured import measured
from apps.web.finding.sorting import Sorting, chips, sorted_page
from apps.web.kit.object_forms import copied
from apps.web.kit.pages import PageRequest, back_to, onward, page, post_page, shared_parts, show
from apps.web.kit.saving import Typed, deleted_by_name, save, tell, telling, two_edits, version_sent
from apps.web.kit.undoing import say_done
from apps.web.kit.worst_first import keyset_page, severity
from apps.web.objectives.shown import objective_of
from apps.web.overflow.parts import shown
from apps.web.pools.form import PoolForm, texts_of_pool
from apps.web.pools.limits import limit_notes, limits_typed
from apps.web.pools.servers import said_of_servers
from apps.web.pools.tables import backends_table, limits_table, number_cells, policy_of, servers_table
from apps.web.sizing.balance import who_works
from apps.web.timeline.panel import timeline_of

# A thousand pools are few: no column needs an index.
SORTS = {"Pool": ("name", "account__name"), "Protocol": ("protocol", "name"), "Balance": ("balance", "name")}
ACTIONS = {"ready": "ready", "drain": "draining", "maintenance": "in maintenance"}


@page
@shared_parts("samples", "definitions")
def index(request: PageRequest) -> HttpResponse:
    """Pools a keyset page at a time, the sick ones first, then by account and name, or as `?sort=` says.

    `?q=` looks into both names.
    """
    rows = selectors.pools(request.actor)
    query, after = request.GET.get("q", "").strip()[:63], request.GET.get("after", "")
    if query and query.isprintable():
        rows = rows.filter(Q(name__icontains=query) | Q(account__name__icontains=query))
    sorting = Sorting.asked(SORTS, request.GET.get("sort", ""))
    if sorting.head:
        shown, next_after = sorted_page(rows, sorting, after)
    else:
        sick = severity(observe.sick_pools().values())
        shown, next_after = keyset_page(rows, sick, ("account__name", "name"), after)
    numbers = observe.pool_numbers(request.actor, [pool.pk for pool in shown])
    context = {
        "rows": [
            {"pool": pool, "now": numbers[pool.pk], **number_cells(numbers[pool.pk].numbers)}
            for pool in shown
            if pool.pk in numbers
        ],
        "managed": next((pool for pool in shown if pool.manager), None),
        "regions": [] if request.GET.get("partial") else _regions(request),
        "query": query,
        "after": after,
        "next_after": next_after,
        "sorting": sorting,
        "paged": bool(after or next_after),
        "chips": chips(request.GET, {"q": "Search"}),
    }
    return show(request, "pages/pools/list.html", context)


@page
@shared_parts("samples", "definitions", "stacks")
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One pool: its verdict, its servers by region as every node sees them, its series, who uses it."""
    pool = selectors.only(selectors.pools(request.actor), pk)
    now = observe.pool_numbers(request.actor, [pk])[pk]
    backends = backends_table(
        pool,
        observe.server_rows(request.actor, pk),
        measured(request.actor, pools=[pk]),
        limits_typed(request.GET),
    )
    context = {
        "pool": pool,
        "may_write": _may_write(request, pool),
        "conditions": conditions_of("Pool", [pk])[pk] if request.actor.owns(pool) else [],
        "check": getattr(pool, "health_check", None),
        "servers_say": said_of_servers(pool),
        "replacement": open_in(request.actor, pk),
        "now": now,
        **number_cells(now.numbers),
        "backends": backends,
        **servers_table(backends, request.GET.get("region", "")),
    }
    partial = request.GET.get("partial")
    if partial in (None, "", "overflow"):
        flow = overflow.flow_of(request.actor, pool)
        context |= {"shown": shown(flow, "pool-flow"), "policy": policy_of(pool, request.actor)}
        context["limits"] = limits_table(backends, request.actor)
    if partial in (None, "", "objective"):
        context["objective"] = objective_of(pool) if request.actor.owns(pool) else None
    if partial in (None, "", "balance"):
        context |= who_works(_servers_of(pool))
    if partial in (None, "", "timeline"):
        asked = request.GET.get("range", "")
        context["timeline"] = timeline_of(request.actor, pool, asked, kind="backend", latency=True)
    if partial in (None, "", "clouds"):
        context["clouds"] = health.backends_of_pool(request.actor, pk)
    return show(request, "pages/pools/detail.html", context)


def _servers_of(pool: Pool) -> list[Server]:
    """All servers of a pool as the selector read it, by region and name."""
    backends = sorted(pool.backends.all(), key=lambda each: each.region.name)
    return [server for each in backends for server in sorted(each.servers.all(), key=lambda row: row.name)]


def _may_write(request: PageRequest, pool: Pool) -> bool:
    """Whether to offer what changes a pool: not for viewers, and not for one that is only shared."""
    return request.actor.owns(pool) and request.actor.role != "viewer"


def _own(request: PageRequest, pk: int) -> Pool:
    """A pool that the actor's account may change. Raises NotFound, Forbidden."""
    pool = selectors.only(selectors.pools(request.actor), pk)
    must_own(request.actor, pool)
    return pool


@page
def new(request: PageRequest) -> HttpResponse:
    """The empty form, or one with what another pool says (`?copy=7`), and creating."""
    request.actor.may_write()
    regions = _regions(request)
    form = PoolForm(request.POST or None, actor=request.actor, regions=regions, begin=_begin(request, regions))
    if request.method == "POST" and form.is_valid():
        try:
            return _saved(
                request, _typed(request, form, None), "is created and is being rolled out to every fleet that uses it"
            )
        except Invalid as error:
            form.attach_errors(error)
    return _form_page(request, form, None)


def _begin(request: PageRequest, regions: list[Region]) -> dict[str, str]:
    """What a copy begins with: all but the name, for the owner of the other."""
    source = copied(request, selectors.pools(request.actor))
    if source is None or not request.actor.owns(source):
        return {}
    texts = texts_of_pool(source, regions)
    return {name: text for name, text in texts.items() if name not in ("version", "began")} | {
        "/account": source.account.name
    }


@page
def edit(request: PageRequest, pk: int) -> HttpResponse:
    """The filled form, and saving; an older version than the stored one is refused."""
    request.actor.may_write()
    pool = _own(request, pk)
    regions = _regions(request)
    texts = texts_of_pool(pool, regions)
    standings = standings_of_pool(request.actor, pool)
    form = PoolForm(request.POST or None, actor=request.actor, regions=regions, texts=texts, standings=standings)
    if request.method == "POST" and request.GET.get("partial"):
        return show(request, "pages/pools/form.html", {"form": form})
    form.notes = limit_notes(pool)
    if request.method == "POST" and form.is_valid():
        typed = _typed(request, form, pool)
        try:
            return _saved(request, typed, "is saved and is being rolled out")
        except Stale:
            return _two_edits(request, form, typed, regions)
        except Invalid as error:
            form.attach_errors(error)
    return _form_page(request, form, pool)


def _typed(request: PageRequest, form: PoolForm, pool: Pool | None) -> Typed:
    return Typed(
        kind="Pool",
        row=pool,
        name=form.text("/name"),
        account=form.text("/account"),
        spec=form.spec(),
        version=version_sent(request),
        reason=form.text("reason"),
    )


def _saved(request: PageRequest, typed: Typed, done: str) -> HttpResponse:
    saved: Pool = save(request, typed)
    tell(request, typed, saved, f"Pool {saved.name} {done}.")
    return onward(request, "web:pool", saved.pk)


def _two_edits(request: PageRequest, form: PoolForm, typed: Typed, regions: list[Region]) -> HttpResponse:
    live = selectors.only(selectors.pools(request.actor), typed.row.pk)

    def again(spec: dict[str, Any]) -> dict[str, Any]:
        texts = texts_of_pool(live, regions, spec) | {"reason": typed.reason}
        both = PoolForm(
            actor=request.actor, regions=regions, texts=texts, standings=standings_of_pool(request.actor, live)
        )
        both.notes = limit_notes(live)
        return {"form": both, "pool": live}

    return two_edits(request, "pages/pools/form.html", typed, live=live, began=form.text("began"), again=again)


def _regions(request: PageRequest) -> list[Region]:
    return list(regions(request.actor).prefetch_related(None))  # without how far they are from each other


def _form_page(request: PageRequest, form: PoolForm, pool: Pool | None) -> HttpResponse:
    status = 422 if form.is_bound and form.errors else 200
    return show(request, "pages/pools/form.html", {"form": form, "pool": pool}, status=status)


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Delete a pool that nobody uses, once its name was typed."""
    pool = _own(request, pk)
    gone = deleted_by_name(request, "Pool", pool, f"Pool {pool.name} is deleted.")
    return redirect("web:pools") if gone else redirect("web:pool", pk=pk)


@post_page
def change_servers(request: PageRequest, pk: int) -> HttpResponse:
    """State or weight of the chosen servers; asks once more before a region loses its last ready server."""
    pool = _own(request, pk)
    request.actor.may_write()
    back, chosen = back_to(request, reverse("web:pool", args=[pk])), _chosen(pool, request.POST)
    state, weight, field_error = _wanted(request.POST)
    if not chosen or field_error:
        messages.error(request, field_error or "Choose at least one server first.")
        return redirect(back)
    lost = _regions_lost(pool, set(chosen), state, weight)
    if lost and request.POST.get("confirmed") != "yes":
        context = {"pool": pool, "lost": lost, "servers": list(chosen.items()), "post": request.POST, "back": back}
        return show(request, "pages/pools/confirm.html", context)
    with telling(request):
        reason = request.POST.get("reason", "")[:400]
        set_servers(actor=request.actor, server_ids=chosen, state=state, weight=weight, reason=reason)
        what = ACTIONS[state] if state else f"at weight {weight}"
        say_done(request, f"{', '.join(list(chosen.values())[:5])}: {what}.")
    return redirect(back)


def _chosen(pool: Pool, post: QueryDict) -> dict[int, str]:
    """The pool's own servers among those that were sent, id to name."""
    wanted = set(post.getlist("server"))
    servers = [server for backend in pool.backends.all() for server in backend.servers.all()]
    return {server.pk: server.name for server in servers if str(server.pk) in wanted}


def _wanted(post: QueryDict) -> tuple[str | None, int | None, str]:
    """The state or the weight that was asked for, or what is wrong with the question."""
    action, weight = post.get("do", ""), post.get("weight", "").strip()
    if action in ACTIONS:
        return action, None, ""
    if action == "weight" and weight.isascii() and weight.isdecimal() and int(weight[:9]) <= 256:
        return None, int(weight), ""
    return None, None, "Enter a weight from 0 to 256." if action == "weight" else "Choose an action."


def _regions_lost(pool: Pool, chosen: set[int], state: str | None, weight: int | None) -> list[str]:
    """Regions that have a ready server now and would have none afterwards."""
    if state == "ready" or weight:
        return []
    found = []
    for backend in pool.backends.all():
        taking = {server.pk for server in backend.servers.all() if server.usable}
        if taking and not taking - chosen:
            found.append(backend.region.name)
    return found
