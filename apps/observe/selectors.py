"""The reads: live numbers, series, verdicts and problems, narrowed to what the actor may see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Model, QuerySet, Sum

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.requests import asked_once
from apps.definitions.models import Backend, KeySet, Listener, LoadBalancer, Pool, Route, Server, ServerSource
from apps.definitions.serving import in_use
from apps.definitions.sharing import seen_pools
from apps.fleet.models import Node
from apps.fleet.selectors import node_regions
from apps.observe.collect import consoles, lease
from apps.observe.collect.buckets import SHORT
from apps.observe.collect.deltas import Key
from apps.observe.evaluate.conditions import SEVERITY, Reason, Type, server_word
from apps.observe.live.store import LiveNode
from apps.observe.live.windows import STALE, at_rest, numbers_of, read_windows, requests_rps, silent
from apps.observe.models import Condition, NodeReport, Sample
from apps.observe.numbers import NodeNumbers, Numbers, PoolNumbers, Problem, Series, ServerRow
from apps.observe.show.history import grid, read_series

__all__ = [
    "has_served", "listener_numbers", "live_numbers", "node_numbers", "node_troubles", "overall_series", "pool_numbers",
    "problems", "reached", "rejected_connections", "route_numbers", "series", "series_of_all", "served_before",
    "server_rows",
]  # fmt: skip

PREFIXES: Mapping[str, tuple[str, type[Model]]] = {
    "backend": ("pool", Pool),
    "server": ("srv", Server),
    "route": ("route", Route),
    "frontend": ("lst", Listener),
    "node": ("node", Node),
}
# By the text as it is stored: a collector of a later version may have reasons that nobody knows here.
HEALTH: Mapping[str, str] = {
    Reason.ALL_SERVERS_UP: "healthy",
    Reason.SOME_SERVERS_DOWN: "degraded",
    Reason.REGION_WITHOUT_SERVERS: "degraded",
    Reason.NO_SERVER_UP: "down",
    Reason.NO_SERVERS: "down",
}


def _visible(actor: Actor, kind: str, ids: Iterable[int]) -> list[int]:
    """Those of the primary keys that the actor may see; nodes are for operators."""
    if kind == "node" and not actor.is_operator:
        return []
    wanted = tuple(ids)
    if kind == "backend":
        rows: QuerySet[Any] = seen_pools(actor, Pool.objects.filter(pk__in=wanted))
    else:
        rows = actor.visible(PREFIXES[kind][1]._default_manager.filter(pk__in=wanted))
    key = ("visible", actor.account.pk, kind, wanted)
    return asked_once(key, lambda: sorted(rows.values_list("pk", flat=True)))


def _own_pools(actor: Actor) -> list[int]:
    """Pools of requests: connections of tcp are something else, so that no sum has both."""
    return list(actor.visible(Pool.objects.exclude(protocol="tcp")).order_by().values_list("pk", flat=True))


def live_numbers(actor: Actor) -> Numbers:
    """The sum of everything that the actor may see: all listeners for operators, own pools for customers."""
    if actor.is_operator:
        nodes = list(node_regions())
        keys = [("node", f"node-{pk}") for pk in nodes]
        windows = read_windows(keys, nodes)
        return numbers_of(windows.values(), keys, partial=bool(silent(windows)))
    pools = _own_pools(actor)
    keys = [("backend", f"pool-{pk}") for pk in pools]
    windows = read_windows(keys)
    return numbers_of(windows.values(), keys, partial=bool(_partial("backend", pools, windows)))


def _partial(
    kind: str, ids: Collection[int], windows: Mapping[int, LiveNode], among: Collection[int] | None = None
) -> set[int]:
    """Those of the objects that a silent node may serve; two queries, none while all nodes are read."""
    if not (nodes := silent(windows, among)):
        return set()
    rows = PREFIXES[kind][1]._default_manager.filter(pk__in=ids)
    regions = {node_regions()[node] for node in nodes}
    where = {"backends__region__in": regions} if kind == "backend" else {"load_balancer__fleets__nodes__in": nodes}
    return set(rows.filter(**where).values_list("pk", flat=True))


def has_served(actor: Actor) -> bool:
    """Whether a pool of the actor's account answered a request within the time that samples are kept."""
    own = actor.visible(Pool.objects.all()).order_by()
    names = [f"pool-{pk}" for pk in own.values_list("pk", flat=True)]
    rows = Sample.objects.filter(kind="backend", object_id__in=names, requests__gt=0)
    return bool(names) and rows.exists()


def served_before(moment: datetime) -> bool:
    """Whether any node answered a request before that, and within the time that samples are kept."""
    return Sample.objects.filter(kind__in=("frontend", "backend"), requests__gt=0, at__lt=moment).exists()


def reached(actor: Actor) -> bool:
    """Whether any node of the actor answers its console."""
    seen = NodeReport.objects.filter(seen_at__isnull=False, last_contact_error="")
    return bool(actor.is_operator) and seen.exists()


def series(
    actor: Actor, kind: str, object_ids: Iterable[str], *, minutes: int = 30, points: int = 60, latency: bool = False
) -> dict[str, Series]:
    """Series per model id; `kind` is backend (`pool-17`), server, route, frontend (`lst-2`) or node (`node-3`).

    Ids that the actor may not see are left out; every other one is in the answer, also when nothing happened.
    """
    prefix = PREFIXES[kind][0]
    numbers = [int(name.removeprefix(f"{prefix}-")) for name in object_ids if name.startswith(f"{prefix}-")]
    names = [f"{prefix}-{pk}" for pk in _visible(actor, kind, numbers)]
    return read_series({name: [name] for name in names}, kind, grid(minutes, points), latency=latency)


def series_of_all(
    actor: Actor, kind: str, ids: Iterable[int], *, minutes: int, points: int, latency: bool = False
) -> Series:
    """One series of several objects of a kind (primary keys) together, of those that the actor may see."""
    names = [f"{PREFIXES[kind][0]}-{pk}" for pk in _visible(actor, kind, ids)]
    return read_series({"all": names}, kind, grid(minutes, points), latency=latency)["all"]


def overall_series(actor: Actor, *, minutes: int = 30, points: int = 60, latency: bool = False) -> Series:
    """The series of what `live_numbers` shows."""
    if actor.is_operator:
        kind, names = "node", [f"node-{pk}" for pk in node_regions()]
    else:
        kind, names = "backend", [f"pool-{pk}" for pk in _own_pools(actor)]
    return read_series({"all": names}, kind, grid(minutes, points), latency=latency)["all"]


def pool_numbers(actor: Actor, pool_ids: Iterable[int]) -> dict[int, PoolNumbers]:
    """Numbers and verdict of pools by primary key; pools that the actor may not see are left out. Six queries."""
    pools = _visible(actor, "backend", pool_ids)
    servers: dict[int, list[int]] = defaultdict(list)
    for pk, pool_id in Server.objects.filter(backend__pool__in=pools).values_list("pk", "backend__pool_id"):
        servers[pool_id].append(pk)
    watched = lease.watched()
    verdicts = _verdicts("pool", pools, Type.HEALTHY) if watched else {}
    up = _verdicts("server", [pk for each in servers.values() for pk in each], Type.UP) if watched else {}
    windows = read_windows([("backend", f"pool-{pk}") for pk in pools])
    partial, having = _partial("backend", pools, windows), _by_key(windows)
    found = {}
    for pk in pools:
        verdict, key = verdicts.get(pk), ("backend", f"pool-{pk}")
        found[pk] = PoolNumbers(
            numbers=numbers_of(having[key], [key], partial=pk in partial),
            health=HEALTH.get(verdict.reason, "unknown") if verdict else "unknown",
            message=verdict.message if verdict else "",
            since=verdict.since if verdict else None,
            servers_up=_servers_up([up[each].status for each in servers[pk] if each in up]),
            servers_total=len(servers[pk]),
        )
    return found


def _servers_up(verdicts: Sequence[bool | None]) -> int | None:
    known = [status for status in verdicts if status is not None]
    return sum(known) if known else None


def pools_at_a_glance(pools: Collection[int]) -> dict[int, tuple[str, float]]:
    """Health and requests/s, enough to choose the pools of which `pool_numbers` is asked. Three queries.

    The caller has looked who may see these pools: of thousands, to look twice costs more than what is read.
    """
    verdicts = Condition.objects.filter(object_kind="pool", type=Type.HEALTHY)
    reasons = dict(verdicts.values_list("object_id", "reason")) if lease.watched() else {}
    having = _by_key(read_windows([("backend", f"pool-{pk}") for pk in pools]))
    found = {}
    for pk in pools:
        key = "backend", f"pool-{pk}"
        health = HEALTH.get(reasons.get(pk, ""), "unknown")
        found[pk] = health, requests_rps(having[key], key) if key in having else 0.0
    return found


def sick_pools() -> dict[str, list[int]]:
    """Primary keys of the pools that are down and of those that are degraded; none while nobody looks. Two queries.

    It is told of all pools: show of them only what the actor may see.
    """
    found: dict[str, list[int]] = {"down": [], "degraded": []}
    sick = {str(reason): word for reason, word in HEALTH.items() if word in found}
    if lease.watched():
        rows = Condition.objects.filter(object_kind="pool", type=Type.HEALTHY, reason__in=sick)
        for pk, reason in rows.values_list("object_id", "reason"):
            found[sick[reason]].append(pk)
    return found


def _verdicts(kind: str, ids: Collection[int], of: Type) -> dict[int, Condition]:
    """Conditions by object; ask for none while no collector looks, because then nobody knows."""
    rows = Condition.objects.filter(object_kind=kind, object_id__in=ids, type=of)
    return {row.object_id: row for row in rows}


def conditions_of(kind: str, ids: Collection[int]) -> dict[int, list[Condition]]:
    """Every verdict on these objects, by object and type, none while nobody looks; the caller asks who may see them."""
    found: dict[int, list[Condition]] = {pk: [] for pk in ids}
    if not lease.watched():
        return found
    for row in Condition.objects.filter(object_kind=kind, object_id__in=ids).order_by("type"):
        found[row.object_id].append(row)
    return found


def server_rows(actor: Actor, pool_id: int) -> list[ServerRow]:
    """Every server of a pool on every node of its region, ordered by region, server, node; four queries.

    Nodes that never ran anything are left out.
    """
    servers = list(
        Server.objects.filter(backend__pool__in=seen_pools(actor, Pool.objects.filter(pk=pool_id)))
        .select_related("backend__region")
        .order_by("backend__region__name", "name")
    )
    nodes: dict[int, list[Node]] = defaultdict(list)
    regions = {server.backend.region_id for server in servers}
    for node in Node.objects.filter(fleet__region__in=regions).exclude(report__digest="").select_related("fleet"):
        nodes[node.fleet.region_id].append(node)
    keys = [("server", f"srv-{server.pk}") for server in servers]
    windows = read_windows(keys, [node.pk for each in nodes.values() for node in each]) if servers else {}
    # Customers have no nodes: theirs are called by number.
    names = {node.pk: node.name for each in nodes.values() for node in each} if actor.is_operator else {}
    return [
        _server_row(server, node, windows.get(node.pk), names.get(node.pk) or f"node {position}")
        for server in servers
        for position, node in enumerate(nodes[server.backend.region_id], start=1)
    ]


def _server_row(server: Server, node: Node, window: LiveNode | None, name: str) -> ServerRow:
    key = ("server", f"srv-{server.pk}")
    counts = window.rows.get(key) if window else None
    old = window is None or now().timestamp() - window.at > STALE
    return ServerRow(
        server_id=server.pk,
        node_id=node.pk,
        node=name,
        region=server.backend.region.name,
        status="unknown" if counts is None or old else server_word(counts.status),
        check_text=counts.check if counts and not old else "",
        numbers=numbers_of([window], [key]) if window else Numbers(),
    )


def route_numbers(actor: Actor, route_ids: Iterable[int]) -> dict[int, Numbers]:
    """Numbers of routes by primary key (requests and errors; no latency); foreign routes are left out. Three queries.

    A route that rests has no row of its own: it has zeros where its nodes were observed.
    """
    return _numbers_of_kind(actor, "route", route_ids)


def listener_numbers(actor: Actor, listener_ids: Iterable[int]) -> dict[int, Numbers]:
    """Numbers of listeners by primary key; foreign listeners are left out. Three queries."""
    return _numbers_of_kind(actor, "frontend", listener_ids)


def rejected_connections(actor: Actor, listener_ids: Iterable[int], within: timedelta) -> dict[int, int]:
    """How many connections listeners closed at once, by primary key; those without any are left out. Two queries."""
    names = {f"lst-{pk}": pk for pk in _visible(actor, "frontend", listener_ids)}
    rows = Sample.objects.filter(resolution=SHORT, kind="rejected", object_id__in=names, at__gt=now() - within)
    counted = rows.order_by().values_list("object_id").annotate(count=Sum("connections"))
    return {names[name]: count for name, count in counted if count}


def _numbers_of_kind(actor: Actor, kind: str, ids: Iterable[int]) -> dict[int, Numbers]:
    keys = {pk: (kind, f"{PREFIXES[kind][0]}-{pk}") for pk in _visible(actor, kind, ids)}
    nodes = _nodes_of(kind, keys) if keys else []
    windows = read_windows(list(keys.values()), nodes)
    partial = _partial(kind, keys, windows, nodes)
    having, rests = _by_key(windows), at_rest(windows.values())
    return {
        pk: numbers_of(having[key], [key], partial=pk in partial)
        if key in having
        else replace(rests, partial=pk in partial)
        for pk, key in keys.items()
    }


def _nodes_of(kind: str, ids: Collection[int]) -> list[int]:
    """Nodes of the fleets on which the load balancers of these routes or listeners stand; other nodes have no row."""
    balancers = PREFIXES[kind][1]._default_manager.filter(pk__in=ids).values("load_balancer")
    return list(
        Node.objects.filter(fleet__load_balancers__in=balancers).order_by().distinct().values_list("pk", flat=True)
    )


def _by_key(windows: Mapping[int, LiveNode]) -> Mapping[Key, list[LiveNode]]:
    """The windows in which each object is; of thousands of nodes most objects are on few."""
    found: dict[Key, list[LiveNode]] = defaultdict(list)
    for window in windows.values():
        for key in window.rows:
            found[key].append(window)
    return found


def node_numbers(actor: Actor) -> dict[int, NodeNumbers]:
    """Every node by primary key with its last report; empty for customers, who have no nodes. Four queries."""
    if not actor.is_operator:
        return {}
    nodes = list(node_regions())
    reports = {report.node_id: report for report in NodeReport.objects.all()}
    verdicts = _verdicts("node", nodes, Type.REACHABLE) if lease.watched() else {}
    unwatched = lease.unwatched(verdicts) if verdicts else set()
    verdicts = {pk: verdict for pk, verdict in verdicts.items() if pk not in unwatched}
    windows = read_windows([("node", f"node-{pk}") for pk in nodes], nodes)
    found = {}
    for pk in nodes:
        numbers = numbers_of([windows[pk]] if pk in windows else [], [("node", f"node-{pk}")])
        found[pk] = _node_numbers(numbers, reports.get(pk), verdicts.get(pk))
    return found


def _node_numbers(numbers: Numbers, report: NodeReport | None, verdict: Condition | None) -> NodeNumbers:
    if report is None:
        return NodeNumbers(numbers)
    recent = report.seen_at is not None and now() - report.seen_at <= timedelta(seconds=STALE)
    reachable = True if recent else (verdict.status if verdict and not verdict.status else None)
    return NodeNumbers(
        numbers=numbers,
        reachable=reachable,
        serving=report.serving if recent else None,
        seen_at=report.seen_at,
        running_generation=report.generation,
        running_digest=report.digest,
        on_disk_digest=report.on_disk,
        haproxy_version=report.haproxy_version,
        features=tuple(report.features),
        tls_library=report.tls_library,
        http3=report.http3,
        agent_version=report.agent_version,
        boot_id=report.boot_id,
        workers=report.workers,
        reloads=report.reloads,
        drift=tuple(report.drift),
        error=report.error,
        contact_error=report.last_contact_error,
    )


UNFIT = (Reason.VERSION_TOO_OLD, Reason.AGENT_OLDER, Reason.AGENT_TOO_OLD, Reason.AGENT_TOO_NEW, Reason.CLOCK_OFF)


def node_troubles(actor: Actor, node_id: int) -> list[str]:
    """What makes a node's machine unfit now, as sentences; none while nobody looks. Two queries."""
    if not actor.is_operator or not lease.watched():
        return []
    rows = Condition.objects.filter(object_kind="node", object_id=node_id, reason__in=UNFIT)
    return list(rows.order_by("type").values_list("message", flat=True))


def certificate_reason(node_id: int) -> str:
    """How the certificate of a node was last found to be, a Reason; empty where nobody judged it."""
    found = Condition.objects.filter(object_kind="node", object_id=node_id, type=Type.CERTIFICATE_VALID)
    return found.values_list("reason", flat=True).first() or ""


def problems(actor: Actor) -> list[Problem]:
    """What is wrong now, worst first, then longest first; customers see what is their own. Eight queries.

    Without a collector nobody knows what is wrong; the only problem is then that nobody looks (kind "collector").
    """
    if not lease.watched():
        return [] if not Node.objects.exists() else [_nobody_looks()]
    rows = list(Condition.objects.filter(reason__in=[reason.value for reason in SEVERITY]))
    unwatched = lease.unwatched(_ids(rows, "node"))
    rows = [row for row in rows if row.object_kind != "node" or row.object_id not in unwatched]
    if any(row.reason == Reason.NO_SERVERS for row in rows):
        used = in_use()  # a pool that nothing leads to is down as well, and nobody's problem yet
        rows = [row for row in rows if row.reason != Reason.NO_SERVERS or row.object_id in used]
    labels = {
        "pool": dict(actor.visible(Pool.objects.filter(pk__in=_ids(rows, "pool"))).values_list("pk", "name")),
        "node": dict(Node.objects.filter(pk__in=_ids(rows, "node")).values_list("pk", "name"))
        if actor.is_operator
        else {},
        "console": consoles.heard_of() if actor.is_operator and _ids(rows, "console") else {},
        "key_set": dict(actor.visible(KeySet.objects.filter(pk__in=_ids(rows, "key_set"))).values_list("pk", "url")),
        "load_balancer": dict(
            actor.visible(LoadBalancer.objects.filter(pk__in=_ids(rows, "load_balancer"))).values_list("pk", "name")
        ),
        "route": dict(actor.visible(Route.objects.filter(pk__in=_ids(rows, "route"))).values_list("pk", "name")),
        "server_source": _sources(actor, _ids(rows, "server_source")),
    }
    failing = _failing_servers(labels["pool"])
    found = [
        _problem(row, labels[row.object_kind][row.object_id], failing)
        for row in rows
        if row.object_id in labels.get(row.object_kind, {})
    ]
    return sorted(found, key=lambda problem: (problem.severity, problem.since))


def _sources(actor: Actor, ids: Collection[int]) -> dict[int, str]:
    own = ServerSource.objects.filter(pk__in=ids, backend__in=actor.visible(Backend.objects.all()))
    found = own.values_list("pk", "backend__pool__name", "backend__region__name")
    return {pk: f"of pool {pool} in {region}" for pk, pool, region in found}


def _ids(rows: Iterable[Condition], kind: str) -> list[int]:
    return [row.object_id for row in rows if row.object_kind == kind]


def _failing_servers(pool_ids: Collection[int]) -> dict[int, set[tuple[int, str, int]]]:
    """For each of these pools (primary keys) where its servers stand whose check fails: region, address, port."""
    found: dict[int, set[tuple[int, str, int]]] = defaultdict(set)
    failing = Condition.objects.filter(object_kind="server", type=Type.UP, reason=Reason.CHECK_FAILS)
    rows = Server.objects.filter(backend__pool__in=pool_ids, pk__in=failing.values("object_id"))
    fields = rows.values_list("backend__pool_id", "backend__region_id", "address", "port")
    for pool, region, address, port in fields:
        found[pool].add((region, address, port))
    return found


def _problem(row: Condition, label: str, failing: Mapping[int, Collection[tuple[int, str, int]]]) -> Problem:
    reason = Reason(row.reason)
    opening = f"{row.object_kind.replace('_', ' ').capitalize()} {label}"
    return Problem(
        severity=SEVERITY[reason],
        kind=row.object_kind,
        object_id=row.object_id,
        label=label,
        sentence=f"{opening} {OPENINGS[reason]} {row.message}".strip(),
        reason=reason.value,
        since=row.since,
        at=frozenset(failing.get(row.object_id, ())) if row.object_kind == "pool" else frozenset(),
        message=row.message,
    )


UNFIT = (
    Reason.VERSION_TOO_OLD,
    Reason.CLOCK_OFF,
    Reason.CERTIFICATE_ENDS,
    Reason.CERTIFICATE_ENDED,
    Reason.CERTIFICATE_REVOKED,
)
OPENINGS = {
    Reason.DOES_NOT_ANSWER: "cannot be reached.",
    Reason.NO_WORKER: "does not serve.",
    Reason.NO_SERVER_UP: "is down.",
    Reason.NO_SERVERS: "is down.",
    Reason.REGION_WITHOUT_SERVERS: "is down in a region.",
    Reason.MANY_ERRORS: "answers with errors.",
    Reason.SOME_SERVERS_DOWN: "is degraded.",
    Reason.FILES_EDITED: "has drifted.",
    Reason.QUEUE_GROWS: "falls behind.",
    Reason.PEER_LOST: "has lost a peer.",
    Reason.SUMS_DIFFER: "counts otherwise than its peers.",
    Reason.LIMIT_ALWAYS_REACHED: "is always at a limit.",
    Reason.LIMIT_NEVER_REACHED: "has a limit far above its traffic.",
    Reason.MEASUREMENT_STALE: "has a limit that should be measured again.",
    Reason.VERSION_TOO_OLD: "cannot be served.",
    Reason.AGENT_TOO_OLD: "has an agent that is too old.",
    Reason.AGENT_TOO_NEW: "has an agent that is newer than this console.",
    Reason.CHANGES_WAIT: "could not take a change.",
    Reason.CLOCK_OFF: "has a clock that is off.",
    Reason.KEY_SET_FAILS: "cannot be fetched.",
    Reason.SOURCE_FAILS: "lists no servers that can be used.",
    Reason.REVOCATION_LIST_ENDS: "will reject clients soon.",
    Reason.REVOCATION_LIST_ENDED: "rejects clients.",
    Reason.CERTIFICATE_ENDS: "will be cut off soon.",
    Reason.CERTIFICATE_ENDED: "is cut off.",
    Reason.CERTIFICATE_REVOKED: "is cut off.",
}


def _nobody_looks() -> Problem:
    sentence = "No collector is running, so nobody knows how the nodes are. Start one: manage.py collect."
    return Problem(1, "collector", 0, "collector", sentence, Reason.NOT_OBSERVED.value, now())
