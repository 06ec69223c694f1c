"""Who is left out: objects that nodes of a fleet refuse are kept apart, named, and tried again in their time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.audit import services as audit
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import Finding
from apps.compiler.questions.withholding import Part, parts_of, suspects, withhold
from apps.core.events import publish_after_commit
from apps.fleet.models import Fleet
from apps.fleet.services import request_push
from apps.observe.models import NodeReport
from apps.rollouts.models import FleetSync, Quarantine, Rollout
from apps.rollouts.push import revision_store
from apps.rollouts.push.states import TURNED_BACK
from apps.rollouts.settings import of_earlier_stages, of_later_stages

REASON = "refused_by_node"
WAITS = "waits_for_others"
OTHERS_FIRST = (
    "Nodes rejected an earlier change of this account a moment ago; this one goes live after those of other accounts."
)
# Who has so many in one fleet is not asked about one by one any more: the others would wait for each.
MOST_OF_ACCOUNT = 3
WITH_THE_REST = "Nodes reject several objects of this account; its other recent changes wait with them."


@dataclass(frozen=True, slots=True)
class Culprits:
    """Objects without which a node takes the rest, and what is said to the owner of each, by id."""

    parts: tuple[Part, ...]
    messages: Mapping[str, str]


def applied(fleet: Fleet, snapshot: Snapshot) -> tuple[Snapshot, tuple[Finding, ...]]:
    """The snapshot without what is quarantined, here or in an earlier stage, and who that is.

    What should be tried again is no longer quarantined.
    """
    rows = list(Quarantine.objects.filter(fleet__in=[fleet, *of_earlier_stages(fleet)]).order_by("pk"))
    if not rows:
        return snapshot, ()
    sync = FleetSync.objects.select_related("fallback", "last_good").get(fleet=fleet)
    parts, versions = parts_of(snapshot), versions_by_fleet([fleet.pk])[fleet.pk]
    fresh = [row for row in rows if row.fleet_id == fleet.pk and row.generation >= sync.proven_generation]
    settled = [row for row in rows if row.fleet_id == fleet.pk and row not in fresh]
    over = [row.pk for row in settled if not _stands(row, parts, versions)]
    if over:
        with transaction.atomic():
            Quarantine.objects.filter(pk__in=over).delete()
            request_push(of_later_stages(fleet))
    # What an earlier stage thinks of the object as it is now, this fleet hears when that stage has read it.
    kept = {row.object_id: row for row in rows if row.pk not in over and row.object_id in parts}
    refused = _refused_last(fleet) if fresh else None
    waiting = _changed_since(refused, snapshot, {owner_of(row) for row in fresh}, kept)
    snapshot = withhold(snapshot, waiting, refused)
    good = sync.fallback or sync.last_good
    before = revision_store.snapshot_of(good.pk, good.digest) if good else None
    changed = {row.object_id for row in fresh if not _stands(row, parts, versions)}
    findings = [_finding(row, changed=row.object_id in changed) for row in kept.values()]
    findings += [Finding(WAITS, part.id, part.label, OTHERS_FIRST) for part in waiting.values()]
    return withhold(snapshot, set(kept), before), tuple(findings)


def _finding(row: Quarantine, *, changed: bool) -> Finding:
    """What keeps the object from being live: nodes, or that it was changed before the changes of others were there."""
    if changed:
        return Finding(WAITS, row.object_id, row.label, OTHERS_FIRST)
    return Finding(REASON, row.object_id, row.label, row.message)


def must_read_again(sync: FleetSync) -> bool:
    """Whether something waited for the changes of others that are there now, or is quarantined and was deleted."""
    if any(each["code"] == WAITS for each in sync.left_out):
        return True
    known = [each["object_id"] for each in sync.left_out if each["code"] == REASON]
    return Quarantine.objects.filter(fleet=sync.fleet_id).exclude(object_id__in=known).exists()


def _refused_last(fleet: Fleet) -> Snapshot | None:
    rows = Rollout.objects.filter(fleet=fleet, kind=Rollout.Kind.CHANGE, state__in=TURNED_BACK)
    row = rows.select_related("revision").order_by("-pk").first()
    return revision_store.snapshot_of(row.revision_id, row.revision.digest) if row else None


def _changed_since(
    refused: Snapshot | None, snapshot: Snapshot, accounts: Collection[str], known: Collection[str]
) -> dict[str, Part]:
    """What these accounts changed since something of theirs was refused, but for what is known to be refused.

    Who changes one object after the other to what nodes refuse would else keep the changes of all others from them.
    """
    if refused is None:
        return {}
    changed = suspects(snapshot, refused)
    return {key: part for key, part in changed.items() if part.account in accounts and key not in known}


def owner_of(row: Quarantine) -> str:
    """The name of the account that owns the object."""
    return row.label.partition("/")[0]


def _stands(row: Quarantine, parts: Mapping[str, Part], versions: list[str]) -> bool:
    part = parts.get(row.object_id)
    return part is not None and part.content == row.content and versions == row.haproxy_versions


def put(*, fleet: Fleet, culprits: Culprits) -> None:
    """Keep these objects apart and tell their owners; inside the caller's transaction."""
    fleet.refresh_from_db(fields=("desired_generation",))
    versions = versions_by_fleet([fleet.pk])[fleet.pk]
    for part in culprits.parts:
        content = {"content": part.content, "haproxy_versions": versions, "generation": fleet.desired_generation}
        names = {"label": part.label[:400], "part_of": part.part_of}
        said = {"reason": REASON, "message": culprits.messages[part.id][:1000]}
        Quarantine.objects.update_or_create(fleet=fleet, object_id=part.id, defaults=content | names | said)
        audit.record(
            actor=Actor("spillway", fleet.account, Membership.Role.ADMIN),
            action="quarantine",
            kind=part.kind,
            object_id=int(part.id.rpartition("-")[2]),
            label=part.label,
            account=Account.objects.filter(name=part.account).first(),
            after={"fleet": fleet.name, **said},
        )
    publish_after_commit("definitions")


def new_suspects(fleet_id: int, snapshot: Snapshot, good: Snapshot | None) -> dict[str, Part]:
    """What differs from a good snapshot, can be withheld, and is not quarantined already."""
    known = set(Quarantine.objects.filter(fleet=fleet_id).values_list("object_id", flat=True))
    return {key: part for key, part in suspects(snapshot, good).items() if key not in known}


def with_the_rest(fleet_id: int, found: Mapping[str, str], changed: Mapping[str, Part]) -> Culprits:
    """These objects (what is said of each, by id), and all that else changed of an account that has several already."""
    owners = [owner_of(row) for row in Quarantine.objects.filter(fleet=fleet_id)]
    known = {changed[key].account for key in found if owners.count(changed[key].account) >= MOST_OF_ACCOUNT}
    parts = {key: part for key, part in changed.items() if key in found or part.account in known}
    return Culprits(tuple(parts.values()), {key: found.get(key, WITH_THE_REST) for key in parts})


def release(fleet_id: int) -> list[str]:
    """Forget who is quarantined in a fleet, so that the next compile tries them again; their names."""
    rows = Quarantine.objects.filter(fleet=fleet_id).order_by("label")
    labels = list(rows.values_list("label", flat=True))
    rows.delete()
    return labels


def try_other_versions() -> None:
    """Push again to fleets whose nodes report other versions of HAProxy than those that refused.

    Once: what a fleet that is held, or in waves, wants already is tried with all else that waits.
    """
    rows = list(Quarantine.objects.values_list("fleet_id", "haproxy_versions"))
    if not rows:
        return
    versions = versions_by_fleet({fleet for fleet, _ in rows})
    moved = {fleet for fleet, then in rows if versions[fleet] != then}
    if moved:
        FleetSync.objects.filter(fleet__in=moved).update(refused_digest="")
        request_push(Fleet.objects.filter(pk__in=moved, sync__compiled_generation__gte=F("desired_generation")))


def versions_by_fleet(fleet_ids: Collection[int]) -> dict[int, list[str]]:
    """The versions of HAProxy that the nodes of each fleet reported last, sorted."""
    found: dict[int, set[str]] = defaultdict(set)
    rows = NodeReport.objects.filter(node__fleet__in=fleet_ids).exclude(haproxy_version="")
    for fleet, version in rows.values_list("node__fleet", "haproxy_version"):
        found[fleet].add(version)
    return {fleet: sorted(found[fleet]) for fleet in fleet_ids}
