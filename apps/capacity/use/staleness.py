"""The age of a number: on what a run measured, and whether that is still what serves.

A measured limit is worth something as long as servers, settings and proxy are those that were measured, and for some
days only, because what runs on the servers changes without anybody telling.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.conf import settings

from apps.capacity.models import Run
from apps.compiler.model.shared import ServerState
from apps.core.clock import now
from apps.definitions.models import Backend, Pool, Server
from apps.definitions.reading.describing import describe
from apps.fleet.models import Region
from apps.observe.models import NodeReport

DAY_S = 86_400.0
# What a run is told about a pool that changes nothing of what its servers in one region can take.
_NOT_OF_THE_BUILD = ("backends", "overflow", "tags")
# How a server says that it takes none of the load.
_IDLE = frozenset({"drain", "maintenance", "weight 0", "backup"})
_OF_RUN = ("pk", "pool_id", "region_id", "ended_at")
MOST_DIGITS = 18

Build = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Staleness:
    """`status` is fresh, old, changed or unknown; `message` says the age and what is wrong with it, if anything."""

    status: str
    message: str
    measured_at: datetime | None
    build: str

    @property
    def stale(self) -> bool:
        """Whether somebody should measure again before relying on it."""
        return self.status != "fresh"


def build_of(pool: Pool, region: Region) -> Build:
    """What a run on the pool in the region measures now, as plain data: kept in `Run.result["build"]`.

    `servers` by name, `settings` of the pool, `haproxy` versions of the region's nodes, and a short `digest` of all.
    """
    servers = Server.objects.filter(backend__pool=pool, backend__region=region).order_by("name")
    reports = NodeReport.objects.filter(node__fleet__region=region).exclude(haproxy_version="")
    document = describe(Pool.objects.get(pk=pool.pk))
    facts: Build = {
        "servers": server_words(servers),
        "settings": {name: entry for name, entry in document.items() if name not in _NOT_OF_THE_BUILD},
        "haproxy": sorted(set(reports.values_list("haproxy_version", flat=True))),
    }
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return {"digest": sha256(text.encode()).hexdigest()[:12], **facts}


def server_words(servers: Iterable[Server]) -> dict[str, str]:
    """Server → where it is and what it takes, as nodes see it: they drain one that its source says is leaving."""
    return {
        each.name: f"{each.address}:{each.port}, weight {each.weight}, {_state(each)}{', backup' * each.backup}"
        for each in servers
    }


def _state(server: Server) -> str:
    return "drain" if server.leaving and server.state == ServerState.READY else server.state


def servers_at_work(build: Mapping[str, Any]) -> int:
    """How many servers of a build take load: the ready ones with a weight, no backups. 0 where nobody knows."""
    servers = (build.get("servers") or {}).values()
    return sum(_IDLE.isdisjoint(str(words).split(", ")) for words in servers)


def verdict(run: Run) -> Staleness:
    """How far what the run found can be relied on now."""
    measured_at, build = run.ended_at, (run.result or {}).get("build") or {}
    name = str(build.get("digest", ""))
    if measured_at is None or not run.result:
        return Staleness("unknown", f"{run.name} has measured nothing.", None, name)
    said = f"Measured by {run.name} {age_words((now() - measured_at).total_seconds())} ago"
    if not build or run.pool is None or run.region is None:
        return Staleness("unknown", f"{said}, but on an unknown build: measure again.", measured_at, name)
    changes = list(_changes(build, build_of(run.pool, run.region)))
    if changes:
        return Staleness("changed", f"{said}; since then {_joined(changes)}: measure again.", measured_at, name)
    if (now() - measured_at).total_seconds() > settings.CAPACITY_STALE_DAYS * DAY_S:
        limit = f"more than {settings.CAPACITY_STALE_DAYS} days"
        return Staleness("old", f"{said}, {limit}: measure again.", measured_at, name)
    return Staleness("fresh", f"{said} on build {name}, which has not changed.", measured_at, name)


def stale_words(run: Run) -> str:
    """Why the run's number should not be relied on; empty while it may be."""
    found = verdict(run)
    return found.message if found.stale else ""


def run_behind(backend: Backend) -> Run | None:
    """The run that measured the backend's limit; None for a limit that somebody chose, or whose run is gone."""
    kind, _, number = backend.limit_measured_by.partition("-")
    if kind != "run" or not number.isascii() or not number.isdigit() or len(number) > MOST_DIGITS:
        return None
    # The name is a word that callers may write: it counts only where it is a run of this very backend.
    rows = Run.objects.select_related("pool__account", "region", "account")
    return rows.filter(pk=int(number), pool=backend.pool_id, region=backend.region_id).first()


def of_limit(backend: Backend) -> Staleness | None:
    """How far a backend's measured limit can be relied on; None for one that nobody measured."""
    if not backend.limit_measured_by:
        return None
    run = run_behind(backend)
    if run is None:
        message = f"It says to be measured by {backend.limit_measured_by}, which does not exist: measure again."
        return Staleness("unknown", message, None, "")
    return verdict(run)


def ages(backends: Iterable[Backend]) -> dict[int, str]:
    """Backend (primary key) → `run-17, 3 days ago`, for those with a measured limit; one query whatever their number.

    Says that a number is old, not that its build changed: that is for the pages of one pool.
    """
    measured = [backend for backend in backends if backend.limit_measured_by]
    numbers = {name.removeprefix("run-") for name in (backend.limit_measured_by for backend in measured)}
    wanted = [int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) <= MOST_DIGITS]
    rows = Run.objects.filter(pk__in=wanted, ended_at__isnull=False) if wanted else Run.objects.none()
    ended = {(f"run-{pk}", pool, region): at for pk, pool, region, at in rows.values_list(*_OF_RUN)}
    found = {}
    for backend in measured:
        at = ended.get((backend.limit_measured_by, backend.pool_id, backend.region_id))
        found[backend.pk] = f"{backend.limit_measured_by}, {_age(at) if at else 'which nobody knows'}"
    return found


def _age(ended_at: datetime) -> str:
    seconds = (now() - ended_at).total_seconds()
    old = ": old" if seconds > settings.CAPACITY_STALE_DAYS * DAY_S else ""
    return f"{age_words(seconds)} ago{old}"


def age_words(seconds: float) -> str:
    """`3 days`, `2 hours`, `a minute`: the largest unit that fits."""
    for unit, length in (("day", DAY_S), ("hour", 3600.0), ("minute", 60.0)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "less than a minute"


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """What is different, as parts of a sentence."""
    old, new = before.get("servers", {}), after["servers"]
    for name in sorted(new.keys() - old.keys()):
        yield f"server {name} was added"
    for name in sorted(old.keys() - new.keys()):
        yield f"server {name} was removed"
    for name in sorted(name for name in old.keys() & new.keys() if old[name] != new[name]):
        yield f"server {name} changed ({old[name]} → {new[name]})"
    known = before.get("settings", {})
    fields = [name for name, entry in after["settings"].items() if known.get(name) != entry]
    if fields:
        yield f"{_joined([name.replace('_', ' ') for name in fields])} of the pool changed"
    if before.get("haproxy") != after["haproxy"] and after["haproxy"]:
        yield f"HAProxy became {_joined(after['haproxy'])}"


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
