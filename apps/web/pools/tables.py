"""Numbers of pools and servers as the cells and series that the pages of pools draw."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from apps.accounts.actors import Actor
from apps.capacity.use import staleness
from apps.definitions.models import Backend, Pool, Route, Server
from apps.definitions.previewing.effective_rules import own_overflow
from apps.definitions.shapes.traffic.pool import Overflow
from apps.observe.numbers import Numbers, ServerRow
from apps.web.capacity.measured import BackendKey, Measured
from apps.web.kit.figures import figures_of
from apps.web.pools.limits import limit_choices, limit_words

__all__ = ["backends_table", "limit_words", "number_cells"]

MARKS = {
    "up": ("healthy", "Up"),
    "down": ("down", "Down"),
    "drain": ("drain", "Draining"),
    "maintenance": ("maintenance", "Maintenance"),
    "unchecked": ("unknown", "Not checked"),
    "unknown": ("unknown", "Unknown"),
}
# What people must see first, where nodes do not agree.
WORST = ("down", "unknown", "maintenance", "drain", "unchecked", "up")


def number_cells(numbers: Numbers) -> dict[str, Any]:
    """What a row shows: `figures`, and the requests that wait in queues, empty where nothing was measured."""
    return {"figures": figures_of(numbers), "queue": "" if numbers.queue is None else f"{numbers.queue:,}"}


def backends_table(
    pool: Pool,
    rows: Iterable[ServerRow],
    found: Mapping[BackendKey, Measured] | None = None,
    typed: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """The pool's backends with their servers, each beside what every node says; `found` is what was measured.

    `typed` are values for the forms of limits, by region.
    """
    seen: dict[int, list[ServerRow]] = defaultdict(list)
    for row in rows:
        seen[row.server_id].append(row)
    return [
        _backend(backend, seen, (found or {}).get((pool.pk, backend.region_id)))
        | {"change": limit_choices(backend, (typed or {}).get(backend.region.name, ""))}
        for backend in pool.backends.all()
    ]


def _backend(backend: Backend, seen: dict[int, list[ServerRow]], found: Measured | None) -> dict[str, Any]:
    servers = [_server(server, seen[server.pk]) for server in backend.servers.all()]
    return {
        "backend": backend,
        "limit": limit_words(backend),
        "measured": found,
        "scaler": f"{100 * backend.capacity_scaler:g} %",
        "servers": servers,
        "source": getattr(backend, "source", None) if backend.servers_from else None,
        "up": _up([{row.status for row in seen[server.pk]} for server in backend.servers.all()]),
    }


def _up(servers: list[set[str]]) -> int | None:
    """How many are up on all nodes that know; None where of none anybody knows."""
    known = [words for statuses in servers if (words := statuses - {"unchecked", "unknown"})]
    return known.count({"up"}) if known or not servers else None


FULL = {
    "spread": "excess that fits in no region is spread over all regions by capacity",
    "queue": "excess that fits in no region queues in its local region",
    "refuse": "excess that fits in no region is rejected with 503 and Retry-After",
}


def policy_of(pool: Pool, actor: Actor) -> dict[str, Any]:
    """What happens to traffic over a limit, in words."""
    return {
        "order": _order(pool.overflow),
        "routes": own_overflow(actor.visible(Route.objects.filter(pools__pool=pool).distinct())),
        "full": FULL[pool.when_full],
    }


def servers_table(backends: Iterable[Mapping[str, Any]], asked: str) -> dict[str, Any]:
    """What the table of servers needs besides `backends`: the region that was asked for, if the pool is there."""
    region = asked if asked in {entry["backend"].region.name for entry in backends} else ""
    shown = [row for entry in backends if region in ("", entry["backend"].region.name) for row in entry["servers"]]
    # Nodes may not measure latency per server; then there is no column of dashes.
    latency = any(row["figures"].p95 for row in shown)
    return {"region": region, "has_servers": bool(shown), "latency": latency}


def limits_table(backends: Iterable[dict[str, Any]], actor: Actor) -> list[dict[str, Any]]:
    """The pool's backends with what the measurement behind each limit is worth."""
    return [entry | _worth(entry["backend"], actor) for entry in backends]


def _order(said: Overflow) -> str:
    order = " → ".join(said.order)
    if said.mode == "never":
        return "nowhere; excess stays in its region"
    if said.mode == "listed":
        return f"{order}, nowhere else"
    return f"{order}, then the nearest" if order else "the nearest region with capacity first"


def _worth(backend: Backend, actor: Actor) -> dict[str, Any]:
    """What the measurement of a limit is worth; the run is named to those who may see it."""
    if backend.limit_kind == "none":
        return {}
    run = staleness.run_behind(backend)
    return {"worth": staleness.of_limit(backend), "run": run.pk if run and actor.owns(run) else None}


def _server(server: Server, rows: list[ServerRow]) -> dict[str, Any]:
    statuses = {row.status for row in rows} or {"unknown"}
    word = next((word for word in WORST if word in statuses), "unknown")
    mark, text = MARKS[word]
    if len(statuses) > 1:
        count = sum(1 for row in rows if row.status == word)
        text = f"{text} on {count} of {len(rows)} nodes"
    return {
        "server": server,
        "word": word,
        "mark": mark,
        "text": text,
        "notes": _notes(rows),
        **number_cells(_together([row.numbers for row in rows])),
    }


def _notes(rows: list[ServerRow]) -> list[tuple[str, str]]:
    """What the checks said last, with the nodes that said so; the same text is said once."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        same = row.status == rows[0].status == "up"
        text = row.check_text or MARKS[row.status][1]
        nodes[rows[0].check_text if same and rows[0].check_text else text].append(row.node)
    return [(", ".join(names), text) for text, names in nodes.items()]


def _together(parts: list[Numbers]) -> Numbers:
    """One server on all nodes: rates and counts are added, of percentiles the worst is shown; None stays None.

    As in the numbers of its pool, those of silent nodes do not count while others are read.
    """
    known = [part for part in parts if part.requests_rps is not None]
    if not known:
        return Numbers()
    known = [part for part in known if not part.stale] or known
    latencies = [part.p95_ms for part in known if part.p95_ms is not None]
    ages = [part.age_s for part in known if part.age_s is not None]
    return Numbers(
        requests_rps=sum(part.requests_rps or 0.0 for part in known),
        errors_rps=sum(part.errors_rps or 0.0 for part in known),
        p95_ms=max(latencies) if latencies else None,
        connections=sum(part.connections or 0 for part in known),
        queue=sum(part.queue or 0 for part in known),
        age_s=max(ages) if ages else None,
        stale=any(part.stale for part in known),
        partial=any(part.stale for part in parts) and not any(part.stale for part in known),
    )
