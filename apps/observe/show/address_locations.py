"""Static IPs that move: which node holds or announces each of them now, as the nodes themselves said last."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.observe.live.windows import STALE
from apps.observe.models import NodeReport


@dataclass(frozen=True, slots=True)
class AddressLocation:
    """What a node says of an address: held, standby, announced, withdrawn; unknown when it was not heard of lately."""

    node_id: int
    node: str
    status: str


def address_locations(actor: Actor) -> dict[str, list[AddressLocation]]:
    """Address → every node that would have it, by name. Nodes are for operators: anybody else sees none."""
    found: dict[str, list[AddressLocation]] = defaultdict(list)
    if not actor.is_operator:
        return found
    fresh = now() - timedelta(seconds=STALE)
    for report in NodeReport.objects.exclude(addresses={}).select_related("node").order_by("node__name"):
        heard = report.seen_at is not None and report.seen_at >= fresh
        for address, status in report.addresses.items():
            found[address].append(AddressLocation(report.node_id, report.node.name, status if heard else "unknown"))
    return found
