"""DNS zones: how far each has come, what is wanted and what is served, and what somebody changed."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.core.errors import Conflict
from apps.definitions.models import Zone
from apps.definitions.selectors import only
from apps.definitions.selectors import records as visible_records
from apps.definitions.selectors import zones as visible_zones
from apps.dns import selectors, services
from apps.dns.selectors import RecordState, ZoneState
from apps.web.kit.pages import PageRequest, operators_only, page, post_page, show
from apps.web.kit.saving import deleted, deleted_by_name, telling
from apps.web.kit.worst_first import by_word

SHOWN = 500
# State of a zone or record → state and word of components/status.html.
ZONES = {
    "in_sync": ("in_sync", "In sync"),
    "behind": ("behind", "Behind"),
    "drifted": ("drifted", "Drifted"),
    "blocked": ("degraded", "Conflict"),
    "refused": ("refused", "Rejected"),
    "failing": ("unreachable", "Failing"),
    "of_stack": ("waiting", "Managed by its stack"),
}
WORST = ("failing", "refused", "blocked", "drifted", "behind")


@page
def index(request: PageRequest) -> HttpResponse:
    """Every zone that the actor sees, with its state, worst first."""
    states = by_word([(state.status, state) for state in selectors.zone_states(request.actor)], WORST)
    mine = None if request.actor.is_operator else Q(records__account=request.actor.account)
    counts = dict(
        Zone.objects.filter(pk__in=[state.zone.pk for state in states])
        .annotate(count=Count("records", filter=mine))
        .values_list("pk", "count")
    )
    rows = [(state, ZONES[state.status], counts.get(state.zone.pk, 0)) for state in states[:SHOWN]]
    return show(request, "pages/zones/list.html", {"rows": rows, "more": len(states) > SHOWN, "shown": SHOWN})


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One zone: its records as wanted and as served, drift, and for operators the server's side and what was pushed."""
    zone = selectors.zone_for(request.actor, pk)
    state = selectors.state_of_zone(request.actor, zone)
    records = selectors.record_states(request.actor, zone)
    query = request.GET.get("q", "").strip().lower()[:253]
    shown = [each for each in records if query in each.name or query in each.record.type.lower()]
    context = {
        "zone": zone,
        "state": state,
        "word": ZONES[state.status],
        "rows": [(each, mark_of(each, state)) for each in shown[:SHOWN]],
        "records": len(records),
        "query": query,
        "drifted": sum(each.drift is not None for each in records),
        "blocked": sum(each.in_the_way is not None for each in records),
        **_of_operators(request, zone, state),
    }
    return show(request, "pages/zones/detail.html", context)


def mark_of(each: RecordState, state: ZoneState) -> tuple[str, str]:
    """How one record stands, as state and word of `components/status.html`."""
    if each.refused:
        return "refused", "Rejected"
    if each.in_the_way:
        return "degraded", "Conflict"
    if each.drift:
        return "drifted", "Drifted"
    if state.status == "of_stack":
        return "waiting", "Managed by its stack"
    if not each.values:
        return "waiting", "No status yet"
    return ("in_sync", "In sync") if each.pushed else ("behind", "Behind")


def _of_operators(request: PageRequest, zone: Zone, state: ZoneState) -> dict[str, Any]:
    """What only operators see: the server's other records, and the last writes."""
    if not request.actor.is_operator:
        return {}
    unmanaged, writing = (state.sync.unmanaged, state.sync.writing) if state.sync else ([], [])
    pushes = selectors.pushes(request.actor, zone)[:20]
    return {"pushes": pushes, "unmanaged": unmanaged, "served": zone.pushed_records.count() + len(writing)}


@page
def difference(request: PageRequest, pk: int) -> HttpResponse:
    """What a push would write now, asked of the server itself."""
    operators_only(request.actor, "difference")
    zone = selectors.zone_for(request.actor, pk)
    context: dict[str, Any] = {"zone": zone}
    try:
        found = services.preview(actor=request.actor, zone_id=pk)
    except Conflict as error:
        return show(request, "pages/zones/difference.html", context | {"error": error.detail}, status=409)
    return show(request, "pages/zones/difference.html", context | {"plan": found.plan, "rows": found.plan.edits})


@post_page
def repair(request: PageRequest, pk: int) -> HttpResponse:
    """Write what is wanted over what somebody changed; `adopt_existing` also over records that were never ours."""
    adopt_existing = request.POST.get("adopt_existing") == "true"
    with telling(request, "Writing the records. This page shows when they are live."):
        services.repair(
            actor=request.actor,
            zone_id=pk,
            adopt_existing=adopt_existing,
            reason=request.POST.get("reason", "").strip(),
        )
    return redirect("web:zone", pk)


@post_page
def delete(request: PageRequest, pk: int) -> HttpResponse:
    """Delete a zone that has no records any more, once its name was typed."""
    operators_only(request.actor, "delete of zones")
    request.actor.may_write()
    zone = only(visible_zones(request.actor), pk)
    gone = deleted_by_name(request, "Zone", zone, f"Zone {zone.domain} is no longer managed here.")
    return redirect("web:zones") if gone else redirect("web:zone", pk)


@post_page
def delete_record(request: PageRequest, pk: int) -> HttpResponse:
    """Delete a record; the server loses it a moment later."""
    record = only(visible_records(request.actor), pk)
    deleted(request, "Record", record, f"{record.label} {record.type} is deleted.")
    return redirect("web:zone", record.zone_id)
