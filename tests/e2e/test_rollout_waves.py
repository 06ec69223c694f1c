"""Waves and stages with everything real: a bad change stops at the first node, a good one reaches all regions."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from apps.definitions.models import Pool
from apps.definitions.reading.describing import describe
from apps.definitions.services import apply_document, save_object
from apps.drivers.proxy.contract import NodeState
from apps.fleet.models import Fleet
from apps.observe.models import Sample
from apps.rollouts import selectors
from apps.rollouts.models import FleetSync, Quarantine, Rollout
from tests.database_url import database_url
from tests.e2e.installation import FLEETS, NODES, Installation, broker, built, wait_until
from tests.e2e.test_rollout_live import operator, somebody_listens

pytestmark = [pytest.mark.long, pytest.mark.e2e]

CHECK = {"kind": "http", "path": "/", "expect_status": 200, "interval_ms": 300, "timeout_ms": 300, "fall": 2}
FIRST, SECOND = FLEETS["us"]
STAGES = {"us": 1, "eu": 2}


@pytest.fixture(scope="module")
def db(lasting_db: None) -> None:
    """One database for all tests of this module."""


@pytest.fixture
def installation(db: None) -> Iterator[Installation]:
    """Two regions with two nodes each that take changes one after the other and one node at a time."""
    names = ("redis", *NODES, "worker", "schedule", "collect")
    with built(database_url(), *names, reload_gap=0.2) as found, broker(found.redis_url):
        document = found.document()
        for entry in document:
            if entry["kind"] == "Fleet":
                settings = {"waves": [50], "soak_seconds": 10, "stage": STAGES[entry["name"]]}
                entry["spec"]["rollout_settings"] = settings
            if entry["kind"] == "Pool":
                entry["spec"]["health_check"] = CHECK
        apply_document(actor=operator(), objects=document)
        try:
            wait_until(lambda: somebody_listens(found), "a worker is up")
            wait_until(lambda: all(is_live(fleet) for fleet in FLEETS), "all nodes run the first revision")
            yield found
        finally:
            print(*(f"{row} {row.state} {row.message}" for row in Rollout.objects.all()), found.logs(), sep="\n")


def is_live(fleet: str) -> bool:
    row = Fleet.objects.get(name=fleet)
    return selectors.is_live(row.pk, row.desired_generation)


@contextmanager
def traffic(installation: Installation) -> Iterator[dict[str, Counter[int]]]:
    """Requests to every node, about fifty a second each; how they were answered."""
    answers: dict[str, Counter[int]] = {node: Counter() for node in NODES}
    over = threading.Event()

    def ask(node: str) -> None:
        while not over.wait(0.02):
            answers[node][installation.get(node, "/")[0]] += 1

    threads = [threading.Thread(target=ask, args=(node,)) for node in NODES]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        over.set()
        for thread in threads:
            thread.join()


def change_pool(**more: Any) -> None:
    """The route's pool as it is, but for these fields."""
    spec = describe_pool() | more
    save_object(actor=operator(), kind="Pool", name="blue", spec=spec)


def describe_pool() -> dict[str, Any]:
    return dict(describe(Pool.objects.get(name="blue")))


def states(installation: Installation) -> dict[str, NodeState]:
    return {node: installation.state(node) for node in NODES}


def latest(fleet: str) -> Rollout:
    return Rollout.objects.filter(fleet__name=fleet).latest("id")


def measured() -> bool:
    """Whether the collector has stored what every node did before."""
    return Sample.objects.filter(kind="backend", requests__gt=50).values("node").distinct().count() == len(NODES)


@pytest.mark.exhaustive  # it lasts as long as two soaks; what decides is asked in tests/apps/test_rollout_waves.py
def test_a_bad_change_stops_at_the_first_node_and_a_good_one_reaches_all(installation: Installation) -> None:
    before = states(installation)
    with traffic(installation) as answers:
        wait_until(measured, "there are numbers of every node")
        change_pool(health_check=CHECK | {"expect_status": 418})
        wait_until(lambda: latest("us").state == "soaking", "the first node has the change")
        installation.kill("worker")
        installation.start("worker")
        wait_until(lambda: latest("us").state == "rolled_back", "the change is taken back")
        assert [installation.digest(node) for node in (FIRST, SECOND)] == [before[FIRST].digest, before[SECOND].digest]
        assert installation.state(SECOND).reloads == before[SECOND].reloads
        assert set(answers[SECOND]) == {200}
        assert Quarantine.objects.filter(fleet__name="us", label="operator/blue").exists()
        wait_until(lambda: is_live("eu"), "the other region leaves it out")
        assert {node: installation.state(node).reloads for node in FLEETS["eu"]} == {
            node: before[node].reloads for node in FLEETS["eu"]
        }
        change_pool(health_check=CHECK, balance="roundrobin")
        wait_until(lambda: latest("us").state == "soaking" and latest("us").wave == 2, "both nodes have a good change")
        assert all(installation.state(node).reloads == before[node].reloads for node in FLEETS["eu"])
        assert latest("eu").waits_for_stage
        wait_until(lambda: all(is_live(fleet) for fleet in FLEETS), "a good change is live everywhere")
        assert installation.digest(FIRST) == installation.digest(SECOND) != before[FIRST].digest
        assert [gate["passed"] for gate in latest("us").gates] == [True, True]
        assert not Quarantine.objects.exists()
        assert all(set(answers[node]) == {200} for node in NODES if node != FIRST)
    assert FleetSync.objects.filter(fallback=None).count() == 0
