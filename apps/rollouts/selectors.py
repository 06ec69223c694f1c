"""What is pushed: revisions, rollouts and how far each node and fleet has come; operators see all of it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Case, Count, Exists, F, OuterRef, Prefetch, Q, QuerySet, Subquery, When

from apps.accounts.actors import Actor
from apps.compiler.differences.files import diff_bundles
from apps.compiler.differences.snapshots import diff_snapshots
from apps.compiler.questions.withholding import KINDS, kind_of
from apps.core.errors import NotFound
from apps.core.requests import asked_once
from apps.fleet.models import Fleet, Node
from apps.observe.models import NodeReport
from apps.rollouts.models import FleetSync, Quarantine, Revision, Rollout, Step
from apps.rollouts.push import revision_store
from apps.rollouts.push.states import TERMINAL, RolloutState, StepState
from apps.rollouts.waves.holding import rollouts_in_waves

POLL_SECONDS = 0.02
ROLLOUTS_READ = 2000
# The newest rollout is superseded where it was never sent out, because an earlier stage took the change back.
TAKEN_BACK = (RolloutState.ROLLED_BACK, RolloutState.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class NodeSync:
    """One node: what it runs against what it should run.

    `status` is in_sync, behind, drifted, unreachable or never_pushed; `message` says it in a sentence. Revision numbers
    are None where there is none (`running_revision`: where the running digest is no revision of ours);
    `running_made_at` is when the running one was compiled.
    """

    node_id: int
    node: str
    fleet_id: int
    fleet: str
    status: str
    message: str
    running_generation: int
    running_digest: str
    running_revision: int | None
    running_made_at: datetime | None
    wanted_revision: int | None
    drift: tuple[str, ...]
    seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a fleet is, for everybody: whether its nodes are asked to run all that is stored (not while it is held
    or the newest was refused), and when the last revision was compiled that all of them took.
    """

    newest: bool
    last_good_at: datetime | None


@dataclass(frozen=True, slots=True)
class Difference:
    """From one revision to another: `sentences` about definitions, `files` as a unified difference without secrets."""

    sentences: tuple[str, ...]
    files: str


def rollouts(actor: Actor) -> QuerySet[Rollout]:
    """Rollouts with fleet and revisions, newest first; customers have none."""
    rows = Rollout.objects.select_related("fleet__region", "revision", "previous")
    rows = rows.defer("revision__bundle", "revision__snapshot", "previous__bundle", "previous__snapshot")
    return (rows if actor.is_operator else rows.none()).order_by("-id")


def rollout(actor: Actor, pk: int) -> Rollout:
    """One rollout with its steps (`.steps.all()`) and their nodes. Raises NotFound."""
    steps = Step.objects.select_related("node").order_by("wave", "node__name")
    found = rollouts(actor).prefetch_related(Prefetch("steps", steps)).filter(pk=pk).first() if 0 < pk < 2**63 else None
    if found is None:
        raise NotFound("There is no such rollout, or you may not see it.")
    return found


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is wrong with an object, as machines and people read it; `object` says which part of it."""

    type: str
    status: bool
    reason: str
    message: str
    since: datetime
    fleet: str
    object: str


def conditions_of(kind: str, ids: Iterable[int]) -> dict[int, list[Condition]]:
    """What nodes refuse of these certificates, pools or routes, by primary key; the caller asks who may see them."""
    prefix = next(prefix for prefix, each in KINDS.items() if each == kind)
    keys = {f"{prefix}-{pk}": pk for pk in ids}
    found: dict[int, list[Condition]] = defaultdict(list)
    rows = Quarantine.objects.filter(part_of__in=keys).select_related("fleet").order_by("fleet__name", "pk")
    for row in rows:
        said = Condition("Accepted", False, row.reason, row.message, row.since, row.fleet.name, row.label)
        found[keys[row.part_of]].append(said)
    return found


def quarantined(actor: Actor) -> QuerySet[Quarantine]:
    """What nodes of any fleet refuse, the newest first; customers have what is their own."""
    rows = Quarantine.objects.select_related("fleet")
    own = rows if actor.is_operator else rows.filter(label__startswith=f"{actor.account.name}/")
    return own.order_by("-id")


def kind_in_quarantine(row: Quarantine) -> str:
    """Certificate, Pool, Route or Server."""
    return KINDS[kind_of(row.object_id)]


def revisions(actor: Actor) -> QuerySet[Revision]:
    """Revisions of all fleets, newest first, without their contents; customers have none."""
    rows = Revision.objects.select_related("fleet__region").defer("bundle", "snapshot")
    return (rows if actor.is_operator else rows.none()).order_by("-id")


def fleet_syncs(actor: Actor) -> QuerySet[FleetSync]:
    """How far each fleet has come, with its revisions; a fleet that was never worked on has none yet."""
    rows = FleetSync.objects.select_related("fleet__region", "wanted", "last_good", "held_at")
    hidden = [f"{name}__{field}" for name in ("wanted", "last_good", "held_at") for field in ("bundle", "snapshot")]
    return (rows.defer(*hidden) if actor.is_operator else rows.none()).order_by("fleet__name")


def sync_statuses(_actor: Actor) -> dict[int, str]:
    """How each fleet stands, by fleet id, for everybody: in_sync, behind, held, refused, no_nodes or empty.

    Without nodes nothing runs what is wanted; an empty one has nothing to run.
    """
    # Says nothing about anybody's definitions: whether what is stored is what runs.
    return asked_once("sync_statuses", _sync_statuses)


def _sync_statuses() -> dict[int, str]:
    latest = Rollout.objects.filter(fleet=OuterRef("pk")).order_by("-id")
    rows = Fleet.objects.annotate(
        latest_state=Subquery(latest.values("state")[:1]),
        latest_revision=Subquery(latest.values("revision_id")[:1]),
        has_nodes=Exists(Node.objects.filter(fleet=OuterRef("pk"))),
    ).select_related("sync__wanted")
    rows = rows.defer("sync__wanted__bundle", "sync__wanted__snapshot")
    return {fleet.pk: _fleet_status(fleet) for fleet in rows}


def _fleet_status(fleet: Fleet) -> str:
    sync: FleetSync | None = getattr(fleet, "sync", None)
    if sync is None:
        return "behind" if fleet.desired_generation else "empty"
    if sync.held_at_id:
        return "held"
    if sync.compiled_generation < fleet.desired_generation:
        return "behind"
    wanted = sync.wanted.digest if sync.wanted else ""
    if sync.compile_error or sync.compiled_digest != wanted:
        return "refused"
    latest_state, latest_revision = getattr(fleet, "latest_state", ""), getattr(fleet, "latest_revision", None)
    done = sync.wanted is None or (latest_state == RolloutState.DONE and latest_revision == sync.wanted_id)
    # Back at the last good revision, which is all that is wanted without what is quarantined.
    done = done or (latest_state in TAKEN_BACK and sync.wanted_id in (sync.last_good_id, sync.fallback_id))
    if not done:
        return "behind"
    stands = "in_sync" if sync.wanted else "empty"
    return stands if getattr(fleet, "has_nodes", False) else "no_nodes"


def progress(fleet_ids: Collection[int]) -> dict[int, Progress]:
    """How far these fleets (primary keys) are; one that was never worked on is missing."""
    rows = FleetSync.objects.filter(fleet__in=fleet_ids)
    newest = Q(
        held_at=None, compiled_generation__gte=F("fleet__desired_generation"), wanted__digest=F("compiled_digest")
    )
    rows = rows.annotate(newest=Case(When(newest, then=True), default=False))
    return {
        fleet: Progress(yes, at) for fleet, yes, at in rows.values_list("fleet_id", "newest", "last_good__created_at")
    }


def node_sync(actor: Actor) -> list[NodeSync]:
    """Every node, ordered by name; at most five queries whatever their number. Customers have none."""
    nodes = list(actor.visible(Node.objects.select_related("fleet")).order_by("name")) if actor.is_operator else []
    syncs = {sync.fleet_id: sync for sync in fleet_syncs(actor)}
    reports = {report.node_id: report for report in NodeReport.objects.all()} if nodes else {}
    digests = {report.digest for report in reports.values() if report.digest}
    known = Revision.objects.filter(digest__in=digests).defer("bundle", "snapshot").order_by("number")
    revisions_there = {(revision.fleet_id, revision.digest): revision for revision in known}
    found = [_node_sync(node, syncs.get(node.fleet_id), reports.get(node.pk), revisions_there) for node in nodes]
    return _with_waves(found) if any(node.status == "behind" for node in found) else found


def _with_waves(nodes: list[NodeSync]) -> list[NodeSync]:
    """With the wave that a node waits for instead of what it should run."""
    rows = Step.objects.filter(rollout__in=rollouts_in_waves(), state=StepState.WAITING)
    waves = dict(rows.values_list("node", "wave"))
    return [
        replace(
            node,
            message=f"Runs revision {node.running_revision or 'unknown'}. "
            f"Revision {node.wanted_revision} comes with wave {waves[node.node_id]}.",
        )
        if node.status == "behind" and node.node_id in waves
        else node
        for node in nodes
    ]


def _node_sync(
    node: Node, sync: FleetSync | None, report: NodeReport | None, known: Mapping[tuple[int, str], Revision]
) -> NodeSync:
    report = report or NodeReport(node=node)
    wanted = sync.wanted if sync else None
    revision = known.get((node.fleet_id, report.digest))
    running = revision.number if revision else None
    status, message = _verdict(report, wanted, running)
    return NodeSync(
        node_id=node.pk,
        node=node.name,
        fleet_id=node.fleet_id,
        fleet=node.fleet.name,
        status=status,
        message=message,
        running_generation=report.generation,
        running_digest=report.digest,
        running_revision=running,
        running_made_at=revision.created_at if revision else None,
        wanted_revision=wanted.number if wanted else None,
        drift=tuple(report.drift),
        seen_at=report.seen_at,
    )


def _verdict(report: NodeReport, wanted: Revision | None, running: int | None) -> tuple[str, str]:
    if report.last_contact_error:
        return "unreachable", report.last_contact_error
    if not report.digest:
        return "never_pushed", "This node runs no Spillway revision yet."
    if report.drift or report.on_disk != report.digest:
        words = ", ".join(report.drift) or "its files were edited"
        return "drifted", f"Someone changed this node: {words}."
    if wanted is None or report.digest == wanted.digest:
        return "in_sync", f"Runs revision {running}." if running else "Runs the target revision."
    return "behind", f"Runs revision {running or 'unknown'}, should run {wanted.number}."


def difference(actor: Actor, revision_a: int, revision_b: int) -> Difference:
    """From revision a to revision b (primary keys of one fleet's revisions). Raises NotFound."""
    found = {row.pk: row for row in revisions(actor).filter(pk__in=[revision_a, revision_b])}
    if {revision_a, revision_b} - found.keys() or found[revision_a].fleet_id != found[revision_b].fleet_id:
        raise NotFound("There are no two such revisions of one fleet, or you may not see them.")
    before, after = found[revision_a], found[revision_b]
    changes = diff_snapshots(
        revision_store.snapshot_of(before.pk, before.digest), revision_store.snapshot_of(after.pk, after.digest)
    )
    files = diff_bundles(
        revision_store.bundle_of(before.pk, before.digest), revision_store.bundle_of(after.pk, after.digest)
    )
    return Difference(tuple(change.sentence for change in changes), files)


def wait_until_live(fleet_ids: Collection[int], generation: int | None, seconds: float) -> bool:
    """Wait until every fleet's nodes run what was desired at `generation`; False when the time ends before.

    With None each fleet's present desired generation is meant: what was committed before the call.
    """
    rows = Fleet.objects.filter(pk__in=fleet_ids).values_list("pk", "desired_generation")
    waiting = {pk: desired if generation is None else generation for pk, desired in rows}
    deadline = time.monotonic() + seconds
    while True:
        waiting = {pk: wanted for pk, wanted in waiting.items() if not is_live(pk, wanted)}
        if not waiting:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)


@dataclass(frozen=True, slots=True)
class FleetProgress:
    """How far what is desired has come on one fleet, for everybody: no node, person or object is named."""

    fleet: str
    state: str
    terminal: bool
    nodes: int
    nodes_done: int
    created_at: datetime
    finished_at: datetime | None


def progress_since(fleet_ids: Collection[int], moment: datetime) -> list[FleetProgress]:
    """The first rollout of each fleet that carries a change of this moment."""
    rows = Rollout.objects.filter(fleet__in=fleet_ids, kind=Rollout.Kind.CHANGE, created_at__gte=moment)
    done = Count("steps", filter=Q(steps__state=StepState.DONE))
    rows = rows.annotate(nodes=Count("steps"), done=done).select_related("fleet").order_by("fleet__name", "pk")
    first: dict[int, FleetProgress] = {}
    for row in rows[:ROLLOUTS_READ]:
        times = (row.created_at, row.finished_at)
        found = FleetProgress(row.fleet.name, row.state, row.state in TERMINAL, row.nodes, row.done, *times)
        first.setdefault(row.fleet_id, found)
    return list(first.values())


def is_live(fleet_id: int, generation: int) -> bool:
    """Whether the definitions of this generation (or later ones) run on every node of the fleet, as nodes confirmed."""
    latest = Rollout.objects.filter(fleet=OuterRef("fleet")).order_by("-id")
    rows = FleetSync.objects.filter(fleet_id=fleet_id, compiled_generation__gte=generation, compile_error="")
    rows = rows.filter(held_at=None).annotate(
        latest_state=Subquery(latest.values("state")[:1]), latest_revision=Subquery(latest.values("revision_id")[:1])
    )
    if rows.filter(wanted=None, compiled_digest="").exists():
        return True  # there is nothing to run, and nothing runs
    there = Q(latest_state=RolloutState.DONE, latest_revision=F("wanted_id"))
    good = Q(wanted=F("last_good")) | Q(wanted=F("fallback"))
    back = Q(latest_state__in=TAKEN_BACK) & good
    return rows.filter(there | back, wanted__digest=F("compiled_digest")).exists()
