"""How pools and routes stand to their objectives.

Routes are counted in request lines, so those must be written and have come; pools by the nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from apps.core.clock import now
from apps.definitions.models import Pool, Route
from apps.definitions.previewing.effective_rules import partly_logged
from apps.fleet.models import Node
from apps.logs.models import CountedLines
from apps.observe.collect import lease
from apps.observe.collect.slots import WINDOW
from apps.observe.show.objectives import ALL, Share, Standing, standings

# Lines come about a second after their request, and are counted each minute.
SHOWN_BEHIND, BEHIND, UNCOUNTED = timedelta(seconds=15), timedelta(minutes=2), timedelta(minutes=5)
COLUMNS = ("log__read_at", "log__waiting_s", "log__error", "log__dropped_at")
NO_NODE = "No node serves this route, and clouds write no request lines"


def standing_of(row: Pool | Route) -> Standing | None:
    """How a pool or a route stands, None without an objective."""
    if isinstance(row, Route):
        return route_standings([row]).get(row.pk)
    found = standings([row]).get(row.pk)
    if found is None or lease.watched():
        return found
    return replace(found, incomplete="Nobody reads the nodes now.")


@dataclass(frozen=True, slots=True)
class _NodeLines:
    """How the lines of one node come in."""

    read_at: datetime | None
    waiting_s: float | None
    error: str | None
    dropped_at: datetime | None


def route_standings(
    routes: Sequence[Route], instant: datetime | None = None, *, windows: Collection[str] = ALL
) -> dict[int, Standing]:
    """How those of the routes stand that have an objective, by primary key. A fixed number of queries."""
    at = instant or now()
    wanted = {route.pk: route for route in routes if route.objective}
    if not wanted:
        return {}
    gaps = gaps_of(wanted.values(), at)
    until = dict(CountedLines.objects.exclude(until=None).values_list("account", "until"))
    found = standings(wanted.values(), at, kind="route", windows=windows)
    for pk, standing in found.items():
        gap = gaps[pk]
        missing = " ".join(filter(None, (gap.late or _uncounted(until.get(wanted[pk].account_id), at), gap.lost)))
        found[pk] = _without_numbers(standing, gap.unknown) if gap.unknown else replace(standing, incomplete=missing)
    return found


def _uncounted(until: datetime | None, at: datetime) -> str:
    if until is None or at - until <= UNCOUNTED:
        return ""
    return f"Counted until {until.astimezone(UTC):%Y-%m-%d %H:%M} UTC."


@dataclass(frozen=True, slots=True)
class Gap:
    """Why lines say nothing of a route, else what of them is late and what is lost; as sentences, or empty."""

    unknown: str
    late: str = ""
    lost: str = ""


def gaps_of(routes: Collection[Route], at: datetime) -> dict[int, Gap]:
    """What request lines lack of each route, by primary key. A fixed number of queries."""
    partly = partly_logged(Route.objects.filter(pk__in=[route.pk for route in routes]))
    nodes = _nodes({route.load_balancer_id for route in routes})
    return {route.pk: _gap(partly.get(route.pk, ""), nodes[route.load_balancer_id], at) for route in routes}


def _gap(partly: str, nodes: Sequence[_NodeLines], at: datetime) -> Gap:
    if partly or not nodes:
        return Gap(partly or NO_NODE)
    return Gap("", _late(nodes, at), _lost(nodes, at))


def missing_until(end: datetime) -> str:
    """What of the lines before `end` has not come yet, of nodes that run something, as a sentence; empty where all has.

    One query.
    """
    nodes = _all_nodes()
    return _late(nodes, min(end, now()), SHOWN_BEHIND) if nodes else ""


def nothing_comes(at: datetime) -> bool:
    """Whether every node that runs something still has its lines: what is counted then says nothing. One query."""
    nodes = _all_nodes()
    return bool(nodes) and _behind(nodes, at, BEHIND) == len(nodes)


def _all_nodes() -> list[_NodeLines]:
    rows = Node.objects.exclude(report=None).exclude(report__digest="").order_by().values_list(*COLUMNS)
    return [_NodeLines(*said) for said in rows]


def _nodes(fronts: Iterable[int]) -> dict[int, list[_NodeLines]]:
    """By load balancer. A node that never ran anything served nobody, so nobody waits for its lines."""
    rows = Node.objects.filter(fleet__load_balancers__in=list(fronts)).exclude(report__digest="").order_by()
    found: dict[int, list[_NodeLines]] = defaultdict(list)
    for front, *said in rows.values_list("fleet__load_balancers", *COLUMNS):
        found[front].append(_NodeLines(*said))
    return found


def _late(nodes: Sequence[_NodeLines], at: datetime, behind: timedelta = BEHIND) -> str:
    """What has not come of the lines until `at`, as a sentence."""
    if all(_is_silent(each, at, behind) for each in nodes):
        return "Nobody collects request lines now."
    if count := _behind(nodes, at, behind):
        missing = f"Request lines of {count} of {len(nodes)} nodes are missing"
        return f"{missing}; they are counted when they come."
    return ""


def _behind(nodes: Sequence[_NodeLines], at: datetime, behind: timedelta) -> int:
    """How many have lines that are older than that; what a node with an error has, nobody knows."""
    return sum(
        _is_silent(each, at, behind)
        or bool(each.error)
        or (each.read_at or at) - timedelta(seconds=each.waiting_s or 0) < at - behind
        for each in nodes
    )


def _is_silent(node: _NodeLines, at: datetime, behind: timedelta) -> bool:
    """Nobody asks it; one that does not answer has an error."""
    return not node.error and (node.read_at is None or at - node.read_at > behind)


def _lost(nodes: Sequence[_NodeLines], at: datetime) -> str:
    lost = max((each.dropped_at for each in nodes if each.dropped_at), default=None)
    if lost is None or at - lost >= WINDOW:
        return ""
    return f"A node lost request lines, last seen {lost.astimezone(UTC):%Y-%m-%d %H:%M} UTC; they are not counted."


def _without_numbers(standing: Standing, unknown: str) -> Standing:
    """Whatever was counted says nothing now."""
    aims = tuple(replace(aim, shares={name: Share(0, 0, aim.target) for name in aim.shares}) for aim in standing.aims)
    return replace(standing, aims=aims, known=0.0, unknown=unknown)
