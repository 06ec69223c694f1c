"""Plans: what an apply would do is kept for a day, and can then be done exactly so, or not at all."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from django.db import transaction

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.errors import Conflict, Invalid, there
from apps.core.secrets.sealing import seal, unseal
from apps.definitions.models import StoredPlan
from apps.definitions.selectors import plans
from apps.definitions.writing.documents import Plan, apply_document
from apps.definitions.writing.dry_runs.dry_runs import DryRun
from apps.definitions.writing.dry_runs.zone_differences import ZoneDifference
from apps.definitions.writing.rules.emptying import CODE
from apps.definitions.writing.rules.managed import managing, said

KEPT = timedelta(hours=24)
# Plans that wait to be applied; each new one above that makes the oldest go.
MOST_WAITING = 100


def summary_of(found: DryRun[Plan]) -> dict[str, Any]:
    """What an operator is shown of a plan that is kept, in the words of the API (schemas/nouns/plans.py)."""
    return {
        "stored": False,
        "counts": found.result.counts,
        "changes": [asdict(each) | {"account": each.account or None} for each in found.result.changes],
        "generations": found.generations,
        "fleets": [asdict(each) for each in found.fleets],
        "stacks": [asdict(each) for each in found.stacks],
        "zones": [_zone(each) for each in found.zones],
        "kept": list(found.result.kept),
    }


def _zone(found: ZoneDifference) -> dict[str, Any]:
    shown = asdict(found)
    return shown | {"zone": f"{shown.pop('account')}/{found.zone}"}


def store_plan(
    *, actor: Actor, objects: object, manager: str, prune: bool, base: str, summary: dict[str, Any]
) -> StoredPlan:
    """Keep a plan of the actor's account that was just made; `summary` is shown to whoever reads it, as it is."""
    actor.may_write()
    with transaction.atomic():
        _forget_old(actor)
        return StoredPlan.objects.create(
            id=secrets.token_hex(16),
            account=actor.account,
            actor=actor.name[:150],
            manager=manager,
            prune=prune,
            sealed_objects=seal(json.dumps(objects).encode()),
            base=base,
            summary=summary | {"take_over": sorted(said().take_over)},
            expires_at=now() + KEPT,
        )


def _forget_old(actor: Actor) -> None:
    waiting = StoredPlan.objects.filter(account=actor.account, applied_at=None)
    waiting.filter(expires_at__lt=now()).delete()
    kept = waiting.order_by("-created_at").values_list("pk", flat=True)[: MOST_WAITING - 1]
    waiting.exclude(pk__in=list(kept)).delete()


def apply_plan(*, actor: Actor, plan_id: str, reason: str = "") -> Plan:
    """Do what the plan says, exactly so and once.

    Raises NotFound for the plan of another account, Conflict when it was applied, when it has expired, and when
    anything that it was derived from is not as it was.
    """
    actor.may_write()
    with transaction.atomic():
        row = there(plans(actor).select_for_update(of=("self",)).filter(pk=plan_id).first())
        _must_wait(row)
        done = _apply(actor, row, reason or f"Plan {row.pk}")
        if done.base != row.base:
            raise Conflict("Objects have changed since this plan was made. Nothing was stored; plan again.")
        row.applied_at, row.applied_by, row.sealed_objects = now(), actor.name[:150], b""
        row.save(update_fields=("applied_at", "applied_by", "sealed_objects"))
    return replace(done, base="")


def _must_wait(row: StoredPlan) -> None:
    if row.applied_at is not None:
        raise Conflict(f"This plan was applied by {row.applied_by} at {row.applied_at:%Y-%m-%d %H:%M:%S} UTC.")
    if row.expires_at < now():
        raise Conflict("This plan has expired; plan again.")


def _apply(actor: Actor, row: StoredPlan, reason: str) -> Plan:
    objects = json.loads(unseal(row.sealed_objects))
    taken = row.summary.get("take_over", ())
    try:
        with managing(break_glass=said().break_glass, take_over=taken):
            return apply_document(actor=actor, objects=objects, prune=row.prune, manager=row.manager, reason=reason)
    except Invalid as invalid:
        if all(field_error.code == CODE for field_error in invalid.field_errors):
            raise  # a plan says what is lost, and who applies it confirms that
        # It was valid when it was made, so something else has changed.
        raise Conflict(f"This plan is no longer valid. Nothing was stored. {invalid.detail}") from invalid
