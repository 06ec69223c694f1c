"""What fleets of earlier stages have proven, and so what those of later stages may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db.models import F, Max, Q, QuerySet

from apps.core.queue import enqueue_on_commit
from apps.fleet.models import Fleet, Node
from apps.fleet.services import RECONCILE_TASK, request_push
from apps.rollouts.culprits.quarantine import must_read_again
from apps.rollouts.models import FleetSync, Rollout
from apps.rollouts.push.states import TURNED_BACK, UNDER_WAY
from apps.rollouts.settings import of_earlier_stages, of_later_stages


def last_ended(fleet: Fleet) -> dict[int, int]:
    """The newest rollout that has ended on each fleet of an earlier stage; asked before definitions are read."""
    earlier = of_earlier_stages(fleet)
    if not earlier:
        return {}
    rows = Rollout.objects.filter(fleet__in=earlier).exclude(finished_at=None).order_by()
    ended = dict(rows.values_list("fleet").annotate(newest=Max("pk")))
    return {each.pk: ended.get(each.pk, 0) for each in earlier}


def awaited(ended: Mapping[int, int]) -> list[dict[str, int]]:
    """Which of these fleets have yet to prove what was read after `last_ended`, as `Rollout.awaits`."""
    rows = _unproven(ended).values_list("fleet", "fleet__desired_generation")
    return [{"fleet": fleet, "generation": generation, "after": ended[fleet]} for fleet, generation in rows]


def at_odds(fleet_ids: Iterable[int]) -> list[str]:
    """Sentences about those of the fleets that settled for something else than what is desired."""
    held = Q(held_at__isnull=False)
    busy = Rollout.objects.filter(finished_at=None).values("fleet")
    settled = Q(compiled_generation__gte=F("fleet__desired_generation")) & ~Q(fleet__in=busy)
    names = _unproven(fleet_ids).filter(held | settled).values_list("fleet__name", flat=True)
    return [f"Fleet {name} of an earlier stage does not run these changes." for name in names]


def _unproven(fleet_ids: Iterable[int]) -> QuerySet[FleetSync]:
    rows = _that_answer(fleet_ids).filter(
        Q(held_at__isnull=False) | Q(proven_generation__lt=F("fleet__desired_generation"))
    )
    return rows.order_by("fleet__name")


def _that_answer(fleet_ids: Iterable[int]) -> QuerySet[FleetSync]:
    """A fleet without a node that answers proves nothing, and is not waited for."""
    answering = Node.objects.filter(fleet__in=list(fleet_ids), report__last_contact_error="")
    return FleetSync.objects.filter(fleet__in=answering.values("fleet"))


def still_awaited(rollout: Rollout) -> dict[int, str]:
    """The fleets that have to prove the change before any node of this one gets it, with their names."""
    earlier = {fleet.pk for fleet in of_earlier_stages(rollout.fleet)}
    needed = {each["fleet"]: each["generation"] for each in rollout.awaits if each["fleet"] in earlier}
    rows = _that_answer(needed).order_by("fleet__name").values_list("fleet", "fleet__name", "proven_generation")
    return {fleet: name for fleet, name, proven in rows if proven < needed[fleet]}


def took_back(rollout: Rollout) -> list[str]:
    """Names of the fleets that went back since the definitions of the rollout were read."""
    since = Q(pk=None)
    for each in rollout.awaits:
        since |= Q(fleet=each["fleet"], pk__gt=each["after"])
    back = Q(kind=Rollout.Kind.ROLLBACK) | Q(kind=Rollout.Kind.CHANGE, state__in=TURNED_BACK)
    rows = Rollout.objects.filter(since, back).order_by("fleet__name")
    return list(rows.values_list("fleet__name", flat=True).distinct())


def note_proven(sync: FleetSync) -> None:
    """The fleet has settled for what was compiled last; inside the caller's transaction.

    What waited for the changes of others is read again. Later stages go on, and those that rejected something else
    because of this one look again.
    """
    if sync.proven_generation >= sync.compiled_generation:
        return
    sync.proven_generation = sync.compiled_generation
    FleetSync.objects.filter(pk=sync.pk).update(proven_generation=sync.proven_generation)
    if must_read_again(sync):
        request_push([sync.fleet])
    following = of_later_stages(sync.fleet)
    if not following:
        return
    later = Fleet.objects.filter(pk__in=[fleet.pk for fleet in following])
    for fleet_id in later.filter(rollouts__state__in=UNDER_WAY, rollouts__wave=0).values_list("pk", flat=True):
        enqueue_on_commit(RECONCILE_TASK, fleet_id)
    without = later.exclude(sync__wanted__digest=F("sync__compiled_digest"))
    request_push(without.exclude(pk__in=Rollout.objects.filter(finished_at=None).values("fleet")))
