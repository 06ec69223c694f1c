"""Regions: what their clients want, what they serve, what leaves and comes, and draining one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import OuterRef
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from apps.capacity.use.staleness import ages
from apps.core.clock import now
from apps.core.errors import there
from apps.definitions import selectors as definitions
from apps.definitions.models import Server
from apps.definitions.services import drain_region
from apps.definitions.serving import usable_servers
from apps.fleet import distances
from apps.fleet import selectors as topology
from apps.fleet.models import Region
from apps.logs.filters import word_of
from apps.observe import selectors as observe
from apps.observe.models import NodeReport
from apps.overflow import selectors
from apps.overflow.flows import FULL, Flow, Lane, RegionUse, WhatIf
from apps.overflow.reasons import misfits, overloads
from apps.web.capacity.measured import BackendKey, Measured, measured
from apps.web.kit.figures import AT_LEAST, rate
from apps.web.kit.pages import PageRequest, operators_only, page, shared_parts, show
from apps.web.kit.saving import telling
from apps.web.kit.undoing import say_done, url_with
from apps.web.kit.worst_first import by_word, counted
from apps.web.overflow.parts import lanes_in, lanes_out, shown
from apps.web.overflow.words import use_kind, use_words, why
from apps.web.pools.tables import limit_words
from apps.web.timeline.panel import timeline_of_nodes

SHARES_SHOWN = 50
NOT_MEASURED = "not measured yet"
PEERS_KNOWN_FOR = timedelta(minutes=1)
SOURCES = {
    "set": "set manually",
    "measured": "measured by the nodes",
    "estimated": "estimated from coordinates",
    "unknown": "unknown; ordered by name",
}
State = tuple[str, str, str]  # kind, shape and word of components/mark.html


@dataclass(frozen=True, slots=True)
class LaneWords:
    """A lane seen from one of its ends: the other end and the numbers as text; `asks` is the filter for its lines."""

    id: str
    name: str
    rps: str
    added: str
    why: str
    text: str
    asks: str


@page
@shared_parts("samples", "definitions")
def index(request: PageRequest) -> HttpResponse:
    """Every region beside its limits, worst first, what leaves it and what comes."""
    operators_only(request.actor, "regions")
    flow = selectors.flow_overall(request.actor)
    nodes = _nodes_of(request)
    tested = measured(request.actor)
    rows = [_row(region, flow, nodes.get(region.pk, []), tested) for region in topology.regions(request.actor)]
    rows = by_word([(row["state"][0], row) for row in rows], ("bad", "warn", "idle", "good"))
    return show(request, "pages/regions/list.html", {"rows": rows})


@page
@shared_parts("samples", "nodes", "definitions")
def detail(request: PageRequest, name: str) -> HttpResponse:
    """One region: numbers, lanes, the order in which its overflow looks for room, nodes, limits of its pools."""
    operators_only(request.actor, "region")
    region = _region(request, name)
    flow = selectors.flow_overall(request.actor)
    nodes = _nodes_of(request).get(region.pk, [])
    tested = measured(request.actor, region=region.pk)
    context: dict[str, Any] = {"region": region, "row": _row(region, flow, nodes, tested), "nodes": nodes}
    kind, _, _ = context["row"]["state"]
    context["trouble"] = kind == "bad" or (kind == "warn" and not region.drained)
    if request.GET.get("partial", "") in ("", "timeline"):
        context["timeline"] = timeline_of_nodes(request.actor, region, request.GET.get("range", ""))
    if not request.GET.get("partial"):
        context |= {"order": _order(request, region), **_shares(request, region)}
    return show(request, "pages/regions/detail.html", context)


def _region(request: PageRequest, name: str) -> Region:
    return there(topology.regions(request.actor).filter(name=name).first(), "There is no such region.")


def _row(
    region: Region, flow: Flow, nodes: list[dict[str, Any]], tested: Mapping[BackendKey, Measured]
) -> dict[str, Any]:
    """What lists and pages print of a region; empty where nothing was measured."""
    use = next((use for use in flow.regions if use.region_id == f"rgn-{region.pk}"), None)
    known = use is not None and flow.at is not None
    row: dict[str, Any] = {
        "region": region,
        "state": _state(region, use, known=known and not flow.stale and region.name not in flow.unread),
        "age": f"{flow.age_s:.0f} s" if known and flow.stale and flow.age_s is not None else "",
        "nodes": len(nodes),
        "nodes_up": sum(1 for node in nodes if node["serving"]),
        "nodes_unknown": sum(1 for node in nodes if node["serving"] is None),
        **_measured(region, tested),
        "out": [_lane(lane, lane.target_id, lane.target) for lane in lanes_out(flow, f"rgn-{region.pk}")],
        "into": [_lane(lane, lane.source_id, lane.source) for lane in lanes_in(flow, f"rgn-{region.pk}")],
        "use": "no limit set",
        "percent": None,
    }
    at_least = AT_LEAST if region.name in flow.unread else ""
    return row | _numbers(use, known=known, at_least=at_least) if use else row


def _measured(region: Region, tested: Mapping[BackendKey, Measured]) -> dict[str, Any]:
    """How many pools of a region were measured, with the number where it is one, and how old the oldest number is."""
    here = [each for (_, region_id), each in tested.items() if region_id == region.pk]
    if not here:
        return {"measured": NOT_MEASURED, "measured_one": "", "measured_at": None}
    oldest = min((each.at for each in here if each.at), default=None)
    one = rate(here[0].capacity) if len(here) == 1 else ""
    words = f"{one}/s in 1 pool" if one else f"{len(here)} pools"
    return {"measured": words, "measured_one": one, "measured_at": oldest}


def _numbers(use: RegionUse, *, known: bool, at_least: str) -> dict[str, Any]:
    one = use.fullest.use if use.fullest else use
    used = one.used if known and use.usable else None
    return {
        "offered": at_least + rate(use.demand_rps) if known else "",
        "served": at_least + rate(use.served_rps) if known else "",
        "overflow_out_rps": rate(use.overflow_out_rps) if known else "",
        "overflow_in_rps": rate(use.overflow_in_rps) if known else "",
        "percent": None if used is None else round(100 * used),
        "kind": use_kind(one) or "good",
        "use": use_words(use) if known else "",
        **_limit(one, use.fullest.pool if use.fullest else ""),
        "sentences": use.sentences if known else (),
    }


def _limit(use: RegionUse, pool: str) -> dict[str, str]:
    """The limit of the pool that uses most of its own; sums over pools would say nothing."""
    set_by = f"set by {use.capacity_set_by}" if use.capacity_set_by else ""
    return {
        "capacity": _capacity(use),
        "capacity_unit": "/s" if use.capacity_rps is not None else "in flight" if use.flight_limit else "",
        "capacity_from": ", ".join(filter(None, [f"of {pool}, the worst pool" if pool else "", set_by])),
    }


def _capacity(use: RegionUse) -> str:
    if use.capacity_rps is not None:
        return rate(use.capacity_rps)
    if use.flight_limit is not None:
        return f"{use.flight_limit:,}"
    return "no limit" if use.unlimited else ""


def _state(region: Region, use: RegionUse | None, *, known: bool) -> State:
    if region.drained:
        return "warn", "pause", "Drained"
    if use is None:
        return "idle", "unknown", "No servers"
    if not use.healthy:
        return "bad", "bad", "No usable server"
    if any(each.rejected_rps > 0 for each in (use, *(row.use for row in use.pools))):
        return "bad", "stop", "Rejecting"
    if use.pools_down:
        return "bad", "bad", f"{use.pools_down} of {len(use.pools)} pools down"
    if any(each.overflow_out_rps > 0 for each in (use, *(row.use for row in use.pools))):
        return "warn", "warn", "Overflowing"
    if use.pools_full or (use.used or 0.0) >= FULL:
        return "warn", "warn", "At its limit"
    return ("good", "good", "Has capacity") if known else ("idle", "unknown", "Unknown")


def _lane(lane: Lane, other_id: str, other: str) -> LaneWords:
    added = f"+{lane.added_ms:.0f} ms" if lane.added_ms is not None else "unknown"
    asks = f"{word_of('home', lane.source)} {word_of('region', lane.target)}"
    return LaneWords(other_id, other, rate(lane.rps), added, why(lane), f"{rate(lane.rps)}/s {other}", asks)


def _nodes_of(request: PageRequest) -> Mapping[int, list[dict[str, Any]]]:
    """Nodes by region with what they last said."""
    numbers = observe.node_numbers(request.actor)
    rows = list(topology.nodes(request.actor))
    names = {f"node-{node.pk}": node.name for node in rows}
    reports = {report.node_id: report for report in NodeReport.objects.all()}
    found: dict[int, list[dict[str, Any]]] = {}
    for node in rows:
        said = numbers.get(node.pk)
        found.setdefault(node.fleet.region_id, []).append(
            {
                "pk": node.pk,
                "name": node.name,
                "serving": said.serving if said else None,
                "numbers": said.numbers if said else None,
                **_peers(reports.get(node.pk), names),
            }
        )
    return found


def _peers(report: NodeReport | None, names: Mapping[str, str]) -> dict[str, Any]:
    """Whether the node exchanges counters with all others; unknown where it has not said so lately."""
    recent = report is not None and report.counted_at is not None and now() - report.counted_at < PEERS_KNOWN_FOR
    if report is None or not recent or not report.peers:
        return {"peers": None, "lost": ""}
    lost = [names.get(node, node) for node, connected in sorted(report.peers.items()) if not connected]
    told = f"{len(report.peers) - len(lost)} of {len(report.peers)} connected"
    return {"peers": ("warn", "warn", told) if lost else ("good", "good", told), "lost": ", ".join(lost)}


def _order(request: PageRequest, region: Region) -> list[dict[str, str]]:
    """The other regions in the order in which overflow tries them, nearest first."""
    names = {row.pk: row.name for row in topology.regions(request.actor)}
    table = topology.latency_table()
    ids = {name: pk for pk, name in names.items()}
    steps = [(name, table[region.pk, ids[name]]) for name in distances.nearest_first(region.pk, names, table)]
    return [{"name": name, "ms": _ms(step), "source": SOURCES[step.source]} for name, step in steps]


def _ms(step: distances.Latency) -> str:
    return "unknown" if step.ms is None else f"{step.ms:.0f} ms"


def _shares(request: PageRequest, region: Region) -> dict[str, Any]:
    """What pools may take here."""
    servers = Server.objects.filter(backend=OuterRef("pk"))
    rows = definitions.backends(request.actor).filter(region=region)
    rows = rows.annotate(ready=usable_servers(), all=counted(servers, "backend"))
    found = list(rows.order_by("pool__account__name", "pool__name").prefetch_related(None)[: SHARES_SHOWN + 1])
    ages_of = ages(found)
    shares = [
        {
            "backend": backend,
            "limit": limit_words(backend),
            "scaler": f"{100 * backend.capacity_scaler:g} %",
            "measured": ages_of.get(backend.pk, NOT_MEASURED),
            "ready": backend.ready,
            "servers": backend.all,
        }
        for backend in found[:SHARES_SHOWN]
    ]
    return {"shares": shares, "more_shares": len(found) > SHARES_SHOWN}


@page
def drain(request: PageRequest, name: str) -> HttpResponse:
    """Where the traffic would go and whether it fits; then, with a reason, drain the region or end it."""
    operators_only(request.actor, "region")
    request.actor.may_write()
    region = _region(request, name)
    reason = request.POST.get("reason", "").strip()[:400]
    if request.method == "POST" and reason and request.POST.get("do") in ("drain", "undrain"):
        drained = request.POST["do"] == "drain"
        with telling(request):
            drain_region(actor=request.actor, region=name, drained=drained, reason=reason)
            words = "is drained. Other regions serve its traffic" if drained else "serves traffic again"
            opposite = {"do": "undrain" if drained else "drain", "reason": f"Undo: {reason}"[:400]}
            say_done(request, f"Region {name} {words}.", url_with("web:region-drain", name, **opposite))
            return redirect(reverse("web:region", args=[name]))
    reason_error = "Enter a reason. It is recorded in the audit log." if request.method == "POST" and not reason else ""
    context = {"region": region, "reason": reason, "error": reason_error}
    context |= {} if region.drained else _preview(request, region)
    return show(request, "pages/regions/drain.html", context, status=422 if reason_error else 200)


def _preview(request: PageRequest, region: Region) -> dict[str, Any]:
    """The planner's answer at the traffic of now."""
    question = WhatIf(drained_regions=(f"rgn-{region.pk}",))
    current, predicted, differences = selectors.what_if(request.actor, None, question)
    # What is over its limit already does not fit either, though the drain would not make it worse.
    warnings = overloads(current.regions, predicted.regions) or misfits(predicted.regions)
    return {
        "current": shown(current, "drain-current"),
        "predicted": shown(predicted, "drain-predicted", counted=False),
        "differences": differences,
        "measured": current.at is not None,
        "warnings": warnings if current.at is not None else (),
    }
