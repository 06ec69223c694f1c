"""A capacity test with its runs as rows: one that is over and one that goes on, with numbers as a real run has them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from apps.capacity.measure.results import Point, Result
from apps.capacity.models import Run, Second, Step
from apps.capacity.use.staleness import build_of
from apps.core.clock import now
from apps.definitions.models import CapacityTest, Pool, Server
from apps.definitions.shapes.base.writing import write
from apps.definitions.shapes.operations.capacity_test import (
    CapacityTestSpec,
    GuardSpec,
    LoadSpec,
    ObjectiveSpec,
    PolicySpec,
    TargetSpec,
)
from apps.fleet.models import Node, Region
from apps.observe.collect.buckets import SHORT
from apps.observe.models import Sample

# What a backend of three times two lanes of 384 ms does: rate, seconds, p50, p95, p99, errors, in flight, verdict.
STEPS: tuple[tuple[str, float, int, float, float, float, float, str], ...] = (
    ("warm_up", 1.5, 8, 385, 392, 398, 0, "good"),
    ("double", 3, 8, 385, 394, 401, 0, "good"),
    ("double", 6, 8, 386, 402, 420, 0, "good"),
    ("double", 12, 9, 388, 436, 492, 0, "good"),
    ("double", 24, 4, 2150, 4210, 4630, 0.02, "bad"),
    ("bisect", 18, 5, 980, 1720, 1910, 0, "bad"),
    ("bisect", 15, 10, 392, 548, 590, 0, "good"),
    ("bisect", 15.7, 6, 610, 930, 1050, 0, "bad"),
    ("confirm", 15, 20, 391, 541, 588, 0, "good"),
)


def make_test(pool: Pool, region: str = "us-central1", name: str = "", **load: Any) -> CapacityTest:
    """A stored test of the pool's account, without asking whether it might be run."""
    spec = CapacityTestSpec(
        TargetSpec(pool.name, region, "shop.acme.example"),
        load=_load(load),
        objective=ObjectiveSpec(),
        guards=GuardSpec(max_rate=40, max_connections=100, max_duration_s=240, headroom=0.5),
        policy=PolicySpec(),
    )
    parts = write(CapacityTestSpec, spec)
    del parts["target"]
    return CapacityTest.objects.create(
        account=pool.account,
        name=name or f"{pool.name}-{region}",
        pool=pool,
        region=Region.objects.get(name=region),
        hostname=spec.target.hostname,
        **parts,
    )


def _load(given: dict[str, Any]) -> LoadSpec:
    usual: dict[str, Any] = {"kind": "search", "rate": 10.0, "arrivals": "constant"}
    return LoadSpec(**usual | given)


def plan_of(test: CapacityTest) -> dict[str, Any]:
    """The document that a run of the test keeps."""
    return write(CapacityTestSpec, test, test.account_id)


def make_run(test: CapacityTest, *, steps: int | None = None, ago: timedelta = timedelta(0), **fields: Any) -> Run:
    """A run with its steps and seconds; one that is over unless `state` says otherwise."""
    chosen = STEPS[:steps]
    lasted = sum(seconds + 1 for _, _, seconds, *_ in chosen)
    end = now() - ago
    start = end - timedelta(seconds=lasted)
    usual = {"state": Run.State.DONE, "actor": "ada", "started_at": start, "message": "The capacity is confirmed."}
    run = Run.objects.create(
        account=test.account,
        test=test,
        pool=test.pool,
        region=test.region,
        label=f"{test.account.name}/{test.name}",
        plan=plan_of(test),
        **usual | fields,
    )
    at = start
    for ordinal, step in enumerate(chosen, 1):
        at = _step(run, ordinal, step, at)
    if run.state == Run.State.DONE and "result" not in fields:
        run.result = result_of_steps(test)
        run.ended_at = end
        run.save()
    return run


def _step(
    run: Run, ordinal: int, step: tuple[str, float, int, float, float, float, float, str], at: datetime
) -> datetime:
    purpose, rate, seconds, p50, p95, p99, errors, verdict = step
    Step.objects.create(
        run=run,
        ordinal=ordinal,
        purpose=purpose,
        rate=rate,
        started_at=at,
        seconds=seconds,
        offered=rate,
        answered=min(rate, 15.6),
        errors={"timeout": 2} if errors else {},
        error_rate=errors,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        max_ms=p99 * 1.1,
        histogram="HISTFAAAAA==",
        status=verdict,
        message="p95 stayed below 600 ms."
        if verdict == "good"
        else "The queue grew without end: p95 rose every second.",
    )
    rows = []
    for second in range(seconds):
        grown = 1.0 if verdict == "good" else (second + 1) / seconds
        rows.append(
            Second(
                run=run,
                at=at + timedelta(seconds=second),
                target=rate,
                offered=round(rate),
                answered=round(min(rate, 15.6)),
                errors=round(errors * rate),
                in_flight=round(rate * p50 / 1000 * grown),
                p50_ms=max(384.0, p50 * grown),
                p95_ms=max(388.0, p95 * grown),
                p99_ms=max(390.0, p99 * grown),
            )
        )
    Second.objects.bulk_create(rows)
    return at + timedelta(seconds=seconds + 1)


def result_of_steps(test: CapacityTest, capacity: float = 15.0) -> dict[str, Any]:
    """What a search over these steps found, as a run stores it."""
    points = tuple(
        Point(rate, min(rate, 15.6), p50, p95, p99, errors, rate * p50 / 1000, verdict)
        for _, rate, _, p50, p95, p99, errors, verdict in STEPS[:8]
    )
    factor = capacity / 15.0
    found = Result(
        kind="search",
        message=f"{capacity:g} requests/s meet p95 below 600 ms with errors below 1 %; {15.7 * factor:.3g} did not.",
        limited_by="objective",
        capacity=capacity,
        low=14.8 * factor,
        high=15.6 * factor,
        confirmed=True,
        knee=points[6],
        curve=points,
        in_flight_limit=6,
        overloaded_s=7.0,
        seconds=87.0,
        met=True,
    )
    bottleneck = {"message": "The servers themselves: each worked on 2 requests at once and the others waited there."}
    return found.document() | {"build": build_of(test.pool, test.region), "bottleneck": bottleneck}


def make_work(pool: Pool, at: datetime, *requests: int, errors: int = 0, slow: int = 0) -> None:
    """Ten seconds in which the servers of us-central1 got these requests; `errors` and `slow` ones of them."""
    rows = Server.objects.filter(backend__pool=pool, backend__region__name="us-central1").order_by("name")
    node, name, total = Node.objects.earliest("pk"), f"pool-{pool.pk}", sum(requests)
    usual: dict[str, Any] = {"at": at, "resolution": SHORT, "node": node, "seconds": 10}
    for server, count in zip(rows, requests, strict=False):
        fields = {"requests": count, "status_5xx": errors * count // total, "parent_id": name}
        Sample.objects.create(**usual, kind="server", object_id=f"srv-{server.pk}", **fields)
    latency = {"50": total - slow, "400": slow}
    Sample.objects.create(
        **usual, kind="backend", object_id=name, requests=total, status_5xx=errors, latency_buckets=latency
    )
    Sample.objects.create(**usual, kind="node", object_id=f"node-{node.pk}", requests=total)
