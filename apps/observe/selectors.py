"""SHOW, the reads: live numbers, series, verdicts and problems, narrowed to what the actor may see."""

from __future__ import annotations

from collections.abc import Iterable

from apps.accounts.actors import Actor
from apps.observe.numbers import NodeNumbers, Numbers, PoolNumbers, Problem, RegionTraffic, Series, ServerRow


def live_numbers(actor: Actor) -> Numbers:
    """The sum of everything that the actor may see: all listeners for operators, own pools for customers."""
    return Numbers()


def traffic_by_region(actor: Actor) -> list[RegionTraffic]:
    """Served traffic and limits per region, ordered by name; customers see regions with backends of their own."""
    return []


def series(
    actor: Actor, kind: str, object_ids: Iterable[str], *, minutes: int = 30, points: int = 60, latency: bool = False
) -> dict[str, Series]:
    """Series per model id; `kind` is backend (`pool-17`), server, route, frontend (`lst-2`) or node (`node-3`).

    Ids that the actor may not see are left out. Every id that may be seen is in the answer.
    """
    return {}


def overall_series(actor: Actor, *, minutes: int = 30, points: int = 60, latency: bool = False) -> Series:
    """The series of what `live_numbers` shows."""
    return Series((), (), (), (), ())


def pool_numbers(actor: Actor, pool_ids: Iterable[int]) -> dict[int, PoolNumbers]:
    """Numbers and verdict of pools by primary key; pools that the actor may not see are left out."""
    return {}


def server_rows(actor: Actor, pool_id: int) -> list[ServerRow]:
    """Every server of a pool on every node of its region, ordered by region, server, node."""
    return []


def route_numbers(actor: Actor, route_ids: Iterable[int]) -> dict[int, Numbers]:
    """Numbers of routes by primary key (requests and errors; no latency); foreign routes are left out."""
    return {}


def listener_numbers(actor: Actor, listener_ids: Iterable[int]) -> dict[int, Numbers]:
    """Numbers of listeners by primary key; foreign listeners are left out."""
    return {}


def node_numbers(actor: Actor) -> dict[int, NodeNumbers]:
    """Every node by primary key with its last report; empty for customers, who have no nodes."""
    return {}


def problems(actor: Actor) -> list[Problem]:
    """What is wrong now, worst first, then longest first; customers see their own pools only."""
    return []
