"""Static IPs that nodes may hold: by their last word, and by what they may have taken without one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from django.db.models import F, Q, QuerySet

from apps.fleet.models import StaticIP
from apps.observe.models import NodeReport
from apps.rollouts.models import Step
from apps.rollouts.push import revision_store
from apps.rollouts.push.states import UNDER_WAY, StepState


def held_addresses() -> Mapping[str, list[str]]:
    """Address → names of the nodes that have not confirmed a configuration without it."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, addresses in NodeReport.objects.exclude(addresses={}).values_list("node__name", "addresses"):
        for address in addresses:
            found[address].add(name)
    revisions: dict[tuple[int, str], set[str]] = defaultdict(set)
    for name, pk, digest in _unconfirmed().values_list("node__name", "rollout__revision", "rollout__revision__digest"):
        revisions[pk, digest].add(name)
    for (pk, digest), names in revisions.items():
        for each in revision_store.snapshot_of(pk, digest).addresses:
            found[each.address] |= names
    return {address: sorted(names) for address, names in found.items()}


def left_behind() -> list[tuple[str, list[str]]]:
    """Addresses that no static IP has any more, and the nodes that keep them from being free."""
    held = held_addresses()
    kept = set(StaticIP.objects.filter(address__in=held).values_list("address", flat=True))
    return sorted((address, nodes) for address, nodes in held.items() if address not in kept)


def _unconfirmed() -> QuerySet[Step]:
    """Pushes that a node may have taken and has said nothing after."""
    under_way = Q(state=StepState.PUSHING) & (Q(rollout__state__in=UNDER_WAY) | _silent_since("started_at"))
    return Step.objects.filter(under_way | Q(state=StepState.UNREACHABLE) & _silent_since("finished_at"))


def _silent_since(field: str) -> Q:
    return Q(node__report__seen_at=None) | Q(node__report__seen_at__lt=F(field))
