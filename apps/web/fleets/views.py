"""Fleets and nodes, running against wanted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from apps.definitions.freezing.node_builds import capabilities_of
from apps.definitions.selectors import only
from apps.fleet import selectors as topology
from apps.fleet.models import Fleet, Node
from apps.observe import selectors as observe
from apps.observe.evaluate.conditions import Reason
from apps.observe.models import NodeReport
from apps.rollouts import selectors, services
from apps.rollouts.models import Step
from apps.rollouts.selectors import NodeSync
from apps.web.kit.differences import files_of
from apps.web.kit.pages import PageRequest, operators_only, page, post_page, show
from apps.web.kit.saving import telling
from apps.web.kit.worst_first import by_word
from apps.web.timeline.panel import timeline_of, timeline_of_nodes

WORST = ("unreachable", "refused", "drifted", "held", "behind", "never_pushed", "in_sync", "no_nodes", "empty")
TROUBLE = frozenset(("unreachable", "refused", "drifted"))


@page
def index(request: PageRequest) -> HttpResponse:
    """Every fleet with its nodes, worst first: in sync, behind, drifted, unreachable or held."""
    operators_only(request.actor, "fleets")
    entries = _entries(request, topology.fleets(request.actor))
    fleets = by_word([(_worst(fleet), fleet) for fleet in entries], WORST)
    quarantined = 0 if request.GET.get("partial") else selectors.quarantined(request.actor).count()
    return show(request, "pages/fleets/list.html", {"fleets": fleets, "quarantined": quarantined})


@page
def fleet(request: PageRequest, pk: int) -> HttpResponse:
    """One fleet: its nodes, its traffic over time, what changed."""
    operators_only(request.actor, "fleet")
    row = only(topology.fleets(request.actor), pk)
    entry = _entries(request, [row])[0]
    context: dict[str, Any] = {"fleet": row, "entry": entry, "trouble": _worst(entry) in TROUBLE}
    # The request log knows nodes, and no fleets.
    context["asks"] = f"node:{','.join(node.node for node, _ in entry['nodes'])}" if entry["nodes"] else ""
    if request.GET.get("partial", "") in ("", "timeline"):
        context["timeline"] = timeline_of_nodes(request.actor, row, request.GET.get("range", ""))
    return show(request, "pages/fleets/detail.html", context)


def _entries(request: PageRequest, fleets: Iterable[Fleet]) -> list[dict[str, Any]]:
    """Fleets with what each should run and does, and their nodes with what they last said."""
    actor = request.actor
    nodes = selectors.node_sync(actor)
    numbers = observe.node_numbers(actor)
    syncs = {sync.fleet_id: sync for sync in selectors.fleet_syncs(actor)}
    statuses = selectors.sync_statuses(actor)
    return [
        {
            "fleet": row,
            "sync": syncs.get(row.pk),
            "status": statuses.get(row.pk, "unknown"),
            "nodes": [(node, numbers.get(node.node_id)) for node in nodes if node.fleet_id == row.pk],
        }
        for row in fleets
    ]


def _worst(fleet: dict[str, Any]) -> str:
    """The worst status of a fleet and its nodes."""
    statuses = {fleet["status"], *(node.status for node, _ in fleet["nodes"])}
    return next((status for status in WORST if status in statuses), "")


@post_page
def push_again(request: PageRequest, pk: int) -> HttpResponse:
    """Try what was refused again, and repair what drifted."""
    services.push_again(actor=request.actor, fleet_id=pk, reason=request.POST.get("reason", ""))
    messages.success(request, "Spillway checks every node of the fleet and redeploys where the configuration differs.")
    return redirect("web:fleets")


@post_page
def resume(request: PageRequest, pk: int) -> HttpResponse:
    """Let the changes that waited go out."""
    with telling(request, "The fleet follows its definitions again. Queued changes are rolled out together."):
        services.resume(actor=request.actor, fleet_id=pk, reason=request.POST.get("reason", ""))
    return redirect("web:fleets")


@page
def node(request: PageRequest, pk: int) -> HttpResponse:
    """One node: facts, what it runs against what it should, its last pushes."""
    operators_only(request.actor, "node")
    row = only(topology.nodes(request.actor), pk)
    sync = next(each for each in selectors.node_sync(request.actor) if each.node_id == pk)
    report, troubles = observe.node_numbers(request.actor).get(pk), observe.node_troubles(request.actor, pk)
    context = {
        "node": row,
        "sync": sync,
        "report": report,
        "certificate": certificate_of(row),
        "troubles": troubles,
        "trouble": bool(troubles) or sync.status in TROUBLE or (report is not None and report.serving is False),
        "capabilities": capabilities_of(row),
        "steps": Step.objects.filter(node=pk).select_related("rollout__revision").defer(*HIDDEN).order_by("-id")[:10],
        **_difference(request, sync),
    }
    if request.GET.get("partial", "") in ("", "timeline"):
        context["timeline"] = timeline_of(request.actor, row, request.GET.get("range", ""), kind="node")
    return show(request, "pages/fleets/node.html", context)


def certificate_of(node: Node) -> dict[str, Any]:
    """The certificate that the node showed last, until when it counts, and a mark of how it is."""
    report, reason = NodeReport.objects.filter(node=node).first(), observe.certificate_reason(node.pk)
    if report is None or report.certificate_ends_at is None:
        return {}
    return {
        "sha256": report.certificate_sha256,
        "ends_at": report.certificate_ends_at,
        "state": CERTIFICATE_STATES.get(reason),
    }


CERTIFICATE_STATES: dict[str, tuple[str, str, str]] = {
    Reason.CERTIFICATE_VALID: ("good", "good", "Valid"),
    Reason.CERTIFICATE_ENDS: ("warn", "warn", "Ends soon"),
    Reason.CERTIFICATE_ENDED: ("bad", "bad", "Ended"),
    Reason.CERTIFICATE_REVOKED: ("bad", "stop", "Revoked"),
}
HIDDEN = ("rollout__revision__bundle", "rollout__revision__snapshot")


def _difference(request: PageRequest, sync: NodeSync) -> dict[str, Any]:
    """What a push would change on the node; empty when it runs what it should or something that is not ours."""
    running, wanted = sync.running_revision, sync.wanted_revision
    if running is None or wanted is None or running == wanted:
        return {"sentences": (), "files": []}
    rows = selectors.revisions(request.actor).filter(fleet=sync.fleet_id, number__in=(running, wanted))
    ids = {row.number: row.pk for row in rows}
    found = selectors.difference(request.actor, ids[running], ids[wanted])
    return {"sentences": found.sentences, "files": files_of(found.files)}
