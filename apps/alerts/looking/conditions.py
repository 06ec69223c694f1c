"""Looks at verdicts of the collector: pools, nodes and regions. Without a collector all of them are blind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Q

from apps.alerts.looking.contract import BLIND, Key, Look, Seen
from apps.definitions.models import Pool, Server
from apps.definitions.serving import in_use
from apps.fleet.models import Node
from apps.observe.collect import lease
from apps.observe.evaluate.conditions import Reason, Type
from apps.observe.models import Condition

# Watch → the reasons that make it, with how a title goes on after the name.
OF_POOLS: dict[str, dict[str, str]] = {
    "pool_down": {
        Reason.NO_SERVER_UP: "is down",
        Reason.NO_SERVERS: "is down",
        Reason.REGION_WITHOUT_SERVERS: "is down in a region",
    },
    "pool_degraded": {Reason.SOME_SERVERS_DOWN: "has lost servers"},
    "pool_queue": {Reason.QUEUE_GROWS: "makes requests queue"},
    "pool_at_limit": {Reason.LIMIT_ALWAYS_REACHED: "is always at its limit"},
}
OF_NODES: dict[str, dict[str, str]] = {
    "node_down": {Reason.DOES_NOT_ANSWER: "is gone", Reason.NO_WORKER: "does not serve"},
    "node_drift": {Reason.FILES_EDITED: "runs something else than was pushed"},
    "node_unfit": {
        Reason.VERSION_TOO_OLD: "has a HAProxy that is too old",
        Reason.AGENT_TOO_OLD: "has an agent that is too old",
        Reason.AGENT_TOO_NEW: "has an agent that is newer than the console",
        Reason.CLOCK_OFF: "has a clock that is off",
        Reason.PEER_LOST: "has lost a peer",
        Reason.CHANGES_WAIT: "takes no changes",
        Reason.CERTIFICATE_ENDS: "has a certificate that ends soon",
        Reason.CERTIFICATE_ENDED: "has a certificate that ended",
        Reason.CERTIFICATE_REVOKED: "has a certificate that was revoked",
    },
}
_POOL_TYPES = {
    "pool_down": Type.HEALTHY,
    "pool_degraded": Type.HEALTHY,
    "pool_queue": Type.QUEUE_GROWING,
    "pool_at_limit": Type.LIMIT_FITS,
}
_NODE_TYPES = {"node_down": Type.REACHABLE, "node_drift": Type.DRIFTED}


@dataclass(frozen=True, slots=True)
class Failing:
    """A server whose check fails: whose pool it is in, where it stands."""

    pool_id: int
    region: str
    address: str

    @property
    def key(self) -> str:
        """The machine as a cause: other pools may have the very same."""
        return f"server:{self.region}:{self.address}"


def look_at_conditions() -> dict[str, Look]:
    """Every watch of this file at once, in at most eight queries; three while nothing is wrong."""
    names = (*OF_POOLS, *OF_NODES, "region_down")
    if not lease.watched():
        return dict.fromkeys(names, BLIND)
    reasons = {str(reason) for table in (*OF_POOLS.values(), *OF_NODES.values()) for reason in table}
    wrong = Condition.objects.filter(Q(reason__in=reasons) | Q(status=None), object_kind__in=("pool", "node"))
    rows = list(wrong.order_by("object_kind", "object_id", "type"))
    unwatched = lease.unwatched(row.object_id for row in rows if row.object_kind == "node")
    for row in rows:
        if row.object_kind == "node" and row.object_id in unwatched:
            row.status = None
    if not rows:
        return dict.fromkeys(names, Look())
    pools = _pools([row for row in rows if row.object_kind == "pool"])
    nodes = _nodes([row for row in rows if row.object_kind == "node"])
    return pools | nodes


def _unknown(rows: Iterable[Condition], of: Type | None) -> frozenset[Key]:
    """Objects of which nobody knows; of a watch with several types: where any of them is not known.

    What has no health check any more is none of them: nothing would ever end its alert.
    """
    return frozenset(
        (row.object_kind, row.object_id)
        for row in rows
        if row.status is None and row.reason != Reason.UNCHECKED and (of is None or row.type == of)
    )


def _pools(rows: list[Condition]) -> dict[str, Look]:
    known = {
        pk: (account_id, account, name)
        for pk, account_id, account, name in Pool.objects.filter(
            pk__in={row.object_id for row in rows if row.status is not None}
        ).values_list("pk", "account_id", "account__name", "name")
    }
    failing = failing_servers(known)
    lost = _regions_lost(failing, known)
    used = in_use() if any(row.reason == Reason.NO_SERVERS for row in rows) else frozenset()
    found: dict[str, Look] = {}
    for watch, table in OF_POOLS.items():
        seen = []
        for row in rows:
            words = table.get(row.reason) if row.status is not None else None
            idle = row.reason == Reason.NO_SERVERS and row.object_id not in used  # nobody's problem yet
            if words and row.object_id in known and not idle:
                account_id, account, name = known[row.object_id]
                causes = {f"pool:{row.object_id}", *(each.key for each in failing[row.object_id])}
                causes |= {f"region:{region}" for region in lost[row.object_id]}
                seen.append(
                    Seen(
                        *("pool", row.object_id, account_id, account, name, f"Pool {{}} {words}", row.message),
                        row.since,
                        f"/pools/{row.object_id}",
                        tuple(sorted(causes)),
                    )
                )
        found[watch] = Look(tuple(seen), _unknown(rows, _POOL_TYPES[watch]))
    return found


def failing_servers(pools: Collection[int]) -> Mapping[int, list[Failing]]:
    """For each of these pools (primary keys) its servers whose check fails. Two queries."""
    down = Condition.objects.filter(
        object_kind="server", type=Type.UP, reason__in=(Reason.CHECK_FAILS, Reason.NODES_DISAGREE)
    )
    rows = Server.objects.filter(backend__pool__in=list(pools), pk__in=list(down.values_list("object_id", flat=True)))
    found: dict[int, list[Failing]] = defaultdict(list)
    for row in rows.values_list("backend__pool_id", "backend__region__name", "address"):
        found[row[0]].append(Failing(*row))
    return found


def _regions_lost(failing: Mapping[int, list[Failing]], pools: Collection[int]) -> Mapping[int, set[str]]:
    """Pool → regions in which it and at least one other pool have no server left: there the region is the cause."""
    counts: dict[tuple[int, str], int] = defaultdict(int)
    for pool_id, region in Server.objects.filter(backend__pool__in=[pk for pk in pools if failing[pk]]).values_list(
        "backend__pool_id", "backend__region__name"
    ):
        counts[pool_id, region] += 1
    alone: dict[str, set[int]] = defaultdict(set)
    for (pool_id, region), count in counts.items():
        if sum(each.region == region for each in failing[pool_id]) == count:
            alone[region].add(pool_id)
    found: dict[int, set[str]] = defaultdict(set)
    for region, those in alone.items():
        for pool_id in those if len(those) > 1 else ():
            found[pool_id].add(region)
    return found


def _nodes(rows: list[Condition]) -> dict[str, Look]:
    nodes = {node.pk: node for node in Node.objects.select_related("fleet__region")} if rows else {}
    gone = {row.object_id for row in rows if row.type == Type.REACHABLE and row.status is False}
    by_region: dict[str, set[int]] = defaultdict(set)
    for node in nodes.values():
        by_region[node.fleet.region.name].add(node.pk)
    dark = {region for region, those in by_region.items() if those and those <= gone}
    found: dict[str, Look] = {}
    for watch, table in OF_NODES.items():
        seen: dict[int, Seen] = {}
        for row in rows:
            words = table.get(row.reason) if row.status is not None else None
            if words and row.object_id in nodes:
                seen.setdefault(row.object_id, _node(nodes[row.object_id], row, words, dark))
        found[watch] = Look(tuple(seen.values()), _unknown(rows, _NODE_TYPES.get(watch)))
    found["region_down"] = Look(tuple(_regions_down(nodes.values(), rows, dark)))
    return found


def _node(node: Node, row: Condition, words: str, dark: Collection[str]) -> Seen:
    region = node.fleet.region.name
    causes = (f"node:{node.name}", *((f"region:{region}",) if region in dark else ()))
    title = f"Node {node.name} {words}"
    return Seen("node", node.pk, None, "", node.name, title, row.message, row.since, f"/nodes/{node.pk}", causes)


def _regions_down(nodes: Collection[Node], rows: Iterable[Condition], dark: Collection[str]) -> Iterable[Seen]:
    since = {row.object_id: row.since for row in rows if row.type == Type.REACHABLE and row.status is False}
    regions = {node.fleet.region.name: node.fleet.region for node in nodes}
    for name in sorted(dark):
        region = regions[name]
        those = [node for node in nodes if node.fleet.region_id == region.pk]
        detail = f"None of its {len(those)} nodes answers." if len(those) > 1 else "Its only node does not answer."
        yield Seen(
            *("region", region.pk, None, "", name, f"Region {region.title} has no node left", detail),
            max(since[node.pk] for node in those),
            f"/regions/{name}",
            (f"region:{name}",),
        )
