"""What is stored is stored once, rolled up, pruned, and says since when."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from apps.observe import rolling, services
from apps.observe.collect import lease
from apps.observe.collect.deltas import Counts
from apps.observe.collect.recorder import Recorder
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.models import CollectorLease, Condition, NodeReport, Sample
from tests.apps.observe_env import START, Env, make_env, state

pytestmark = [pytest.mark.django_db, pytest.mark.both_engines]  # upserts, bulk deletes, a lease
AT = int(START.timestamp())


@pytest.fixture
def env(db: None) -> Env:
    return make_env()


def stored(env: Env, at: int, requests: int, resolution: int = 10, number: int = 0) -> None:
    counts = Counts(seconds=10, requests=requests, queue_now=requests, latency={100: requests}, status="OPEN")
    services.store_buckets(resolution, [(at, env.nodes[number].pk, ("backend", "pool-1"), counts)])


def test_a_push_notes_what_the_node_says(env: Env) -> None:
    node = env.nodes[0]
    services.note_report(node_id=node.pk, state=state(4))
    services.note_report(node_id=node.pk, state=state(5, drift=("maps/a.map was edited",)))
    report = NodeReport.objects.get(node=node)
    assert (report.generation, report.drift) == (5, ["maps/a.map was edited"])


def test_a_contact_error_leaves_the_last_report_as_it_was(env: Env) -> None:
    node = env.nodes[0]
    services.note_report(node_id=node.pk, state=state(4))
    services.store_contact_errors({node.pk: "No answer.", env.nodes[1].pk: "No route."})
    report = NodeReport.objects.get(node=node)
    assert (report.generation, report.last_contact_error) == (4, "No answer.")
    assert NodeReport.objects.get(node=env.nodes[1]).seen_at is None


def test_a_bucket_that_is_stored_again_replaces_the_first(env: Env) -> None:
    stored(env, AT, 5)
    stored(env, AT, 7)
    assert list(Sample.objects.values_list("requests", "latency_buckets")) == [(7, {"100": 7})]


def test_storing_takes_one_statement_for_any_number_of_objects_that_fits(env: Env) -> None:
    for many in (2, 30):
        rows = [(AT, env.nodes[0].pk, ("route", f"route-{each}"), Counts(requests=1)) for each in range(many)]
        with CaptureQueriesContext(
            connection,
        ) as queries:
            services.store_buckets(10, rows)
        assert len([query for query in queries if "INSERT" in query["sql"]]) == 1


def test_ten_second_buckets_become_minutes_once(env: Env) -> None:
    for step in range(12):
        stored(env, AT + 10 * step, step)
    assert rolling.roll_up(AT + 130) == 2
    assert rolling.roll_up(AT + 130) == 0
    minutes = Sample.objects.filter(resolution=60).order_by("at")
    assert [minute.requests for minute in minutes] == [15, 51]
    assert [minute.seconds for minute in minutes] == [60, 60]
    assert [minute.queue_now for minute in minutes] == [5, 11]
    assert [minute.latency_buckets for minute in minutes] == [{"100": 15}, {"100": 51}]


def test_a_minute_made_in_parts_holds_every_node_and_is_seen_when_it_is_whole(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rolling, "NODES_AT_ONCE", 1)
    for number in (0, 1):
        stored(env, AT, 5, number=number)
    make, pauses = rolling._make, list[float]()

    def fail_at_the_second(begin: int, fine: int, coarse: int, nodes: list[int]) -> None:
        if nodes == [env.nodes[1].pk]:
            raise OperationalError("gone")
        make(begin, fine, coarse, nodes)

    monkeypatch.setattr(rolling, "_make", fail_at_the_second)
    with pytest.raises(OperationalError):
        rolling.roll_up(AT + 60, pauses.append)
    monkeypatch.setattr(rolling, "_make", make)
    minutes = Sample.objects.filter(resolution=60)
    assert not minutes.exists()
    assert rolling.roll_up(AT + 60, pauses.append) == 1
    assert set(minutes.values_list("node", "requests")) == {(node.pk, 5) for node in env.nodes[:2]}
    assert bool(pauses) is (connection.vendor == "postgresql"), "on SQLite nobody else may write meanwhile"


def observed(env: Env, at: int, number: int, requests: int) -> None:
    """A minute of a node in which its pool answered so many requests; none, and the pool has no row."""
    node = env.nodes[number].pk
    rows = [("node", f"node-{node}"), *([("backend", "pool-1")] if requests else [])]
    services.store_buckets(60, [(at, node, key, Counts(seconds=60, requests=requests)) for key in rows])


def hours() -> list[tuple[int, int, int, float]]:
    """Hours of the pool: since the first, node, requests and seconds observed."""
    rows = Sample.objects.filter(resolution=3600, kind="backend").order_by("at", "node")
    return [((int(row.at.timestamp()) - FIRST) // 3600, row.node_id, row.requests, row.seconds) for row in rows]


FIRST = AT // 3600 * 3600


def test_minutes_become_whole_hours_node_by_node(env: Env) -> None:
    first, second = (node.pk for node in env.nodes[:2])
    for minute in range(121):
        observed(env, FIRST + 60 * minute, 0, minute % 2)
        if minute < 60:
            observed(env, FIRST + 60 * minute, 1, 2)
    assert [rolling.roll_up_hour() for _ in range(4)] == [True] * 3 + [False], "the third hour is not over"
    assert hours() == [(0, first, 30, 3600), (0, second, 120, 3600), (1, first, 30, 3600)]


def test_a_node_whose_minutes_come_late_gets_its_hour_all_the_same(env: Env) -> None:
    for minute in range(60):
        observed(env, FIRST + 60 * minute, 0, 1)
    assert rolling.roll_up_hour()
    observed(env, FIRST + 60, 1, 5)
    assert rolling.roll_up_hour()
    assert [row[2] for row in hours()] == [60, 5]


def test_an_hour_in_which_nobody_looked_is_passed_over(env: Env) -> None:
    for hour in (0, 3):
        for minute in range(60):
            observed(env, FIRST + 3600 * hour + 60 * minute, 0, 1)
    while rolling.roll_up_hour():
        pass
    assert [row[0] for row in hours()] == [0, 3]


def test_a_collector_makes_an_hour_at_each_tick_and_looks_once_a_minute_when_none_is_lacking(env: Env) -> None:
    for minute in range(60):
        for number in (0, 1):
            observed(env, FIRST + 60 * minute, number, 1)
    recorder, made = Recorder(), []
    for second in range(0, 70, 2):
        with CaptureQueriesContext(connection) as queries:
            recorder.make_hour(START + timedelta(seconds=second))
        made.append((len(hours()), bool(queries.captured_queries)))
    assert made[:4] == [(1, True), (2, True), (2, True), (2, False)]
    assert [asked for _, asked in made[4:]].count(True) == 1


def test_of_many_nodes_only_the_newest_hours_are_caught_up_with(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "CATCH_UP", 2 * len(env.nodes))
    for minute in range(5 * 60):
        observed(env, FIRST + 60 * minute, 0, 1)
    while rolling.roll_up_hour():
        pass
    assert [row[0] for row in hours()] == [3, 4]


def test_a_minute_that_is_not_over_is_not_rolled_up(env: Env) -> None:
    stored(env, AT, 1)
    assert rolling.roll_up(AT + 59) == 0


def test_old_samples_go_in_batches_and_young_ones_stay(env: Env) -> None:
    for step in range(6):
        stored(env, AT - 10 * step, 1)
    stored(env, AT - 60, 6, resolution=60)
    stored(env, AT - 3600, 6, resolution=3600)
    a_day_later = START + timedelta(days=1, seconds=-15)
    assert rolling.prune(a_day_later, batch=3) == 3
    assert rolling.prune(a_day_later, batch=3) == 1
    assert rolling.prune(a_day_later, batch=3) == 0
    assert sorted(Sample.objects.values_list("resolution", flat=True)) == [10, 10, 60, 3600]
    assert rolling.prune(START + timedelta(weeks=2)) == 3
    assert rolling.prune(START + timedelta(days=31)) == 1


def verdict(status: bool | None, reason: Reason, message: str = "") -> Verdict:
    return Verdict("pool", 1, Type.HEALTHY, status, reason, message)


def test_since_moves_with_the_verdict_and_not_with_its_words(env: Env) -> None:
    later, latest = START + timedelta(seconds=10), START + timedelta(seconds=20)
    assert services.store_verdicts([verdict(False, Reason.NO_SERVER_UP, "first")], START)
    assert not services.store_verdicts([verdict(False, Reason.NO_SERVER_UP, "first")], later)
    assert services.store_verdicts([verdict(False, Reason.NO_SERVER_UP, "other words")], later)
    row = Condition.objects.get()
    assert (row.since, row.message) == (START, "other words")
    services.store_verdicts([verdict(True, Reason.ALL_SERVERS_UP)], latest)
    assert Condition.objects.get().since == latest


def test_verdicts_on_what_is_gone_are_forgotten_and_those_of_others_stay(env: Env) -> None:
    services.store_verdicts([verdict(True, Reason.ALL_SERVERS_UP)], START)
    Condition.objects.create(
        object_kind="pool", object_id=2, type="InSync", status=True, reason="x", message="", since=START
    )
    services.forget_verdicts("pool", {1})
    assert Condition.objects.count() == 2
    services.forget_verdicts("pool", set())
    assert [row.type for row in Condition.objects.all()] == ["InSync"]


def test_nodes_are_watched_until_the_last_collector_leaves_or_falls_silent(db: None) -> None:
    assert not lease.watched()
    assert lease.share("first").held
    assert lease.watched()
    lease.leave("first")
    assert not lease.watched()
    assert lease.share("second").held
    CollectorLease.objects.update(until=START)
    assert not lease.watched()
