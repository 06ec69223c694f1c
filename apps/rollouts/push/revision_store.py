"""The revision store: revisions are stored sealed, and the last few are kept open in this process."""

from __future__ import annotations

import json
import threading
import zlib
from collections import OrderedDict
from typing import TypeVar

from django.db.models import Max

from apps.compiler.bundle import Bundle
from apps.compiler.codec import bundle_from_bytes, bundle_to_bytes, snapshot_from_json, snapshot_to_bytes
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import Finding
from apps.core.secrets.sealing import seal, unseal
from apps.rollouts.models import FleetSync, Revision, Rollout

KEPT_OPEN = 24
KEPT_STORED = 100
PRUNE_EVERY = 20

T = TypeVar("T", Bundle, Snapshot)
Key = tuple[int, str]
_open_bundles: OrderedDict[Key, Bundle] = OrderedDict()
_open_snapshots: OrderedDict[Key, Snapshot] = OrderedDict()
_lock = threading.Lock()


def store_revision(
    *, fleet_id: int, snapshot: Snapshot, bundle: Bundle, summary: str, actor: str, quarantined: tuple[Finding, ...]
) -> Revision:
    """The next number of the fleet; call it while the fleet is claimed and its row locked. Old ones are forgotten."""
    last = Revision.objects.filter(fleet_id=fleet_id).aggregate(last=Max("number"))["last"] or 0
    if last and last % PRUNE_EVERY == 0:
        prune_revisions(fleet_id=fleet_id)
    revision = Revision.objects.create(
        fleet_id=fleet_id,
        number=last + 1,
        digest=bundle.digest,
        snapshot=seal(zlib.compress(snapshot_to_bytes(snapshot), level=3)),
        bundle=seal(bundle_to_bytes(bundle)),
        summary=summary[:400],
        actor=actor[:150],
        quarantined=[
            {"code": found.code, "object_id": found.object_id, "label": found.label, "message": found.message}
            for found in quarantined
        ],
    )
    _remember(_open_bundles, (revision.pk, revision.digest), bundle)
    _remember(_open_snapshots, (revision.pk, revision.digest), snapshot)
    return revision


def bundle_of(revision_id: int, digest: str) -> Bundle:
    """The files of a revision. Raises Unsealable, ValueError or Revision.DoesNotExist."""
    found = _recall(_open_bundles, (revision_id, digest))
    if found is None:
        found = bundle_from_bytes(unseal(Revision.objects.values_list("bundle", flat=True).get(pk=revision_id)))
        _remember(_open_bundles, (revision_id, digest), found)
    return found


def snapshot_of(revision_id: int, digest: str) -> Snapshot:
    """The definitions of a revision. Raises Unsealable, ValueError or Revision.DoesNotExist."""
    found = _recall(_open_snapshots, (revision_id, digest))
    if found is None:
        sealed = Revision.objects.values_list("snapshot", flat=True).get(pk=revision_id)
        found = snapshot_from_json(json.loads(zlib.decompress(unseal(sealed))))
        _remember(_open_snapshots, (revision_id, digest), found)
    return found


def bundles_by_digest(fleet_id: int, digests: set[str]) -> dict[str, Bundle]:
    """The files behind those digests that are revisions of the fleet."""
    rows = Revision.objects.filter(fleet_id=fleet_id, digest__in=digests).values_list("pk", "digest")
    return {digest: bundle_of(pk, digest) for digest, pk in {digest: pk for pk, digest in rows.order_by("pk")}.items()}


def prune_revisions(*, fleet_id: int, keep: int = KEPT_STORED) -> int:
    """Forget all but the last `keep` revisions of the fleet that nothing points to; returns how many went.

    Rollouts of a forgotten revision go with it: their story is in the audit.
    """
    last = Revision.objects.filter(fleet_id=fleet_id).aggregate(last=Max("number"))["last"] or 0
    syncs = FleetSync.objects.filter(fleet_id=fleet_id)
    busy = Rollout.objects.filter(fleet_id=fleet_id, finished_at=None)
    kept = [*syncs.values_list("wanted", "last_good", "fallback", "held_at"), *busy.values_list("revision", "previous")]
    used = {pk for row in kept for pk in row if pk}
    old = Revision.objects.filter(fleet_id=fleet_id, number__lte=last - keep)
    _, deleted = old.exclude(pk__in=used).delete()
    return deleted.get(Revision._meta.label, 0)


def _remember(cache: OrderedDict[Key, T], key: Key, thing: T) -> None:
    with _lock:
        cache[key] = thing
        cache.move_to_end(key)
        while len(cache) > KEPT_OPEN:
            cache.popitem(last=False)


def _recall(cache: OrderedDict[Key, T], key: Key) -> T | None:
    with _lock:
        return cache.get(key)
