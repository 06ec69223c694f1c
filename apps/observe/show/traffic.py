"""Traffic by region; limits are a pool's, so they stand in apps/overflow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from apps.accounts.actors import Actor
from apps.definitions.models import Backend, Server
from apps.fleet.models import Region
from apps.fleet.selectors import node_regions
from apps.observe.collect import lease
from apps.observe.evaluate.conditions import Type
from apps.observe.live.store import LiveNode
from apps.observe.live.windows import numbers_of, read_windows
from apps.observe.models import Condition
from apps.observe.numbers import RegionTraffic


def traffic_by_region(actor: Actor) -> list[RegionTraffic]:
    """Served traffic per region, by name; customers see regions with backends of their own. Six queries."""
    backends: dict[int, list[Backend]] = defaultdict(list)
    for backend in actor.visible(Backend.objects.all()).order_by():
        backends[backend.region_id].append(backend)
    nodes: dict[int, list[int]] = defaultdict(list)
    for node_id, region_id in node_regions().items():
        nodes[region_id].append(node_id)
    keys = sorted({_key(backend) for each in backends.values() for backend in each})
    windows = read_windows(keys, [node_id for each in nodes.values() for node_id in each])
    up = _servers_up(actor)
    return [
        _region(region, backends[region.pk], {pk: windows[pk] for pk in nodes[region.pk] if pk in windows}, up)
        for region in Region.objects.order_by("name")
        if actor.is_operator or backends[region.pk]
    ]


def _key(backend: Backend) -> tuple[str, str]:
    return "backend", f"pool-{backend.pool_id}"


def _region(
    region: Region, backends: list[Backend], windows: Mapping[int, LiveNode], up: Mapping[int, tuple[int, int]]
) -> RegionTraffic:
    whole = numbers_of(windows.values(), [_key(backend) for backend in backends])
    pools = {}
    for backend in backends:
        rate = numbers_of(windows.values(), [_key(backend)]).requests_rps
        if rate is not None:
            pools[backend.pool_id] = rate
    servers_up, servers_total = up.get(region.pk, (0, 0))
    return RegionTraffic(
        region_id=region.pk,
        name=region.name,
        title=region.title,
        served_rps=whole.requests_rps,
        error_rate=whole.error_rate,
        p95_ms=whole.p95_ms,
        servers_up=servers_up,
        servers_total=servers_total,
        age_s=whole.age_s,
        stale=whole.stale,
        pools=pools,
    )


def _servers_up(actor: Actor) -> dict[int, tuple[int, int]]:
    """Servers up and in total per region; nobody is up while no collector looks."""
    up = set()
    if lease.watched():
        rows = Condition.objects.filter(object_kind="server", type=Type.UP, status=True)
        up = set(rows.values_list("object_id", flat=True))
    found: dict[int, tuple[int, int]] = {}
    for pk, region_id in actor.visible(Server.objects.all()).order_by().values_list("pk", "backend__region_id"):
        count, total = found.get(region_id, (0, 0))
        found[region_id] = (count + (pk in up), total + 1)
    return found
