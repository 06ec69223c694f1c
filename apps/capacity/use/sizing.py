"""How many servers a pool needs for a number of requests/s when one region is lost: from what was measured.

The rule: whichever region fails, the others take everything. So each region that is left needs its share of all
requests, and the sum of what is measured per server decides. The answer is honest about what it stands on: regions
without a measurement borrow the number of another and are marked; stale numbers are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from apps.accounts.actors import Actor
from apps.capacity.models import Run
from apps.capacity.use.staleness import Staleness, server_words, servers_at_work
from apps.capacity.use.staleness import verdict as staleness_of
from apps.core.errors import there
from apps.core.written.numbers import plain
from apps.definitions.models import Backend, Pool, Server
from apps.definitions.sharing import seen_pools

MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one server of a region takes (requests/s), where that comes from, and why not to rely on it (or empty)."""

    region: str
    servers: int
    per_server: float | None
    source: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """One region: servers now and needed, what they take (requests/s), what they cost more per month, doubts."""

    region: str
    servers: int
    needed: int
    more: int
    takes: float
    per_server: float
    source: str
    doubt: str
    cost: float | None


@dataclass(frozen=True, slots=True)
class Sizing:
    """The answer for a pool: by region, and as a sentence. `possible` is False where nothing was ever measured."""

    possible: bool
    message: str
    rate: float
    n_minus_1: bool
    needs: tuple[Need, ...] = ()
    doubts: tuple[str, ...] = ()
    cost: float | None = None
    takes_now: float | None = None


def size(
    measurements: Sequence[Measurement],
    rate: float,
    *,
    n_minus_1: bool = True,
    margin: float = MARGIN,
    cost_per_server: float | None = None,
) -> Sizing:
    """Servers per region for `rate` requests/s in all with `margin` (0–1) to spare; costs in whatever unit is given."""
    known = [each for each in measurements if each.per_server]
    if not known or rate <= 0:
        missing = "There is no measured capacity yet. Run a capacity test in one of its regions first."
        return Sizing(False, missing if not known else "Enter a rate above 0 requests/s.", rate, n_minus_1)
    if n_minus_1 and len(measurements) < 2:
        return Sizing(
            False, "The pool has only one region. If that region fails, nothing can serve its traffic.", rate, n_minus_1
        )
    left = len(measurements) - (1 if n_minus_1 else 0)
    needs = tuple(_need(each, known, rate / left / (1 - margin), cost_per_server) for each in measurements)
    doubts = tuple(f"{need.region}: {need.doubt}" for need in needs if need.doubt)
    cost = sum(need.needed for need in needs) * cost_per_server if cost_per_server is not None else None
    return Sizing(
        possible=True,
        message=_sentence(needs, rate, n_minus_1=n_minus_1),
        rate=rate,
        n_minus_1=n_minus_1,
        needs=needs,
        doubts=doubts,
        cost=cost,
        takes_now=_takes(needs, n_minus_1=n_minus_1),
    )


def _need(each: Measurement, known: Sequence[Measurement], rate: float, cost: float | None) -> Need:
    per_server, source, doubt = each.per_server, each.source, each.doubt
    if not per_server:
        weakest = min(known, key=lambda other: other.per_server or 0.0)
        per_server, source = weakest.per_server or 0.0, weakest.source
        doubt = f"Not measured; assumes the capacity per server of {weakest.region}."
    needed = ceil(rate / per_server - 1e-9)
    more = needed - each.servers
    return Need(
        each.region, each.servers, needed, more, each.servers * per_server, per_server, source, doubt,
        None if cost is None else more * cost,
    )  # fmt: skip


def _takes(needs: Sequence[Need], *, n_minus_1: bool) -> float:
    """What all servers of today take together, requests/s; without the strongest region when one may be lost."""
    each = [need.takes for need in needs]
    return sum(each) - (max(each) if n_minus_1 else 0.0)


def _sentence(needs: Sequence[Need], rate: float, *, n_minus_1: bool) -> str:
    total, now = sum(need.needed for need in needs), sum(need.servers for need in needs)
    when = " if any one region fails" if n_minus_1 else ""
    where = ", ".join(f"{need.needed} in {need.region}" for need in needs)
    change = (
        "the same number as now"
        if total == now
        else (f"{abs(total - now)} {'more' if total > now else 'fewer'} than now")
    )
    return f"{plain(rate)} requests/s{when} need {total} servers: {where}; {change}."


def measurements_of(pool: Pool) -> list[Measurement]:
    """What was measured of each region of a pool: the last finished search there, of the region or of one server."""
    backends = Backend.objects.filter(pool=pool).select_related("region").prefetch_related("servers")
    last: dict[int, Run] = {}
    runs = Run.objects.filter(pool=pool, state=Run.State.DONE, result__kind="search").select_related("pool", "region")
    for run in runs.order_by("id"):
        if run.region_id is not None and (run.result or {}).get("capacity"):
            last[run.region_id] = run
    return [_measurement(backend, last.get(backend.region_id)) for backend in backends]


def _measurement(backend: Backend, run: Run | None) -> Measurement:
    at_work = servers_at_work({"servers": server_words(backend.servers.all())})
    if run is None:
        return Measurement(backend.region.name, at_work, None)
    age: Staleness = staleness_of(run)
    document = run.result or {}
    together = servers_at_work(document.get("build") or {}) or at_work
    loaded = 1 if run.plan.get("target", {}).get("server") else together
    per_server = float(document["capacity"]) / max(1, loaded)
    return Measurement(backend.region.name, at_work, per_server, run.name, age.message if age.stale else "")


def sizing(
    actor: Actor,
    pool_id: int,
    rate: float,
    *,
    n_minus_1: bool = True,
    margin: float = MARGIN,
    cost_per_server: float | None = None,
) -> Sizing:
    """The answer for a pool that the actor sees; raises NotFound for any other."""
    pool = pool_of(actor, pool_id)
    found = measurements_of(pool)
    return size(found, rate, n_minus_1=n_minus_1, margin=margin, cost_per_server=cost_per_server)


def pool_of(actor: Actor, pool_id: int) -> Pool:
    """A pool that the actor sees; raises NotFound for any other."""
    return there(seen_pools(actor, Pool.objects.filter(pk=pool_id)).first())


def servers_of(pool: Pool) -> list[Server]:
    """All servers of a pool, by region and name."""
    rows = Server.objects.filter(backend__pool=pool).select_related("backend__region")
    return list(rows.order_by("backend__region__name", "name"))
