"""What is stored is stored once, rolled up, pruned, and says since when."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.observe import services
from apps.observe.collect import lease
from apps.observe.collect.deltas import Counts
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.models import CollectorLease, Condition, NodeReport, Sample
from tests.apps.observe_env import START, Env, make_env, state

pytestmark = [pytest.mark.django_db, pytest.mark.both_engines]  # upserts, bulk deletes, a lease
AT = int(START.timestamp())


@pytest.fixture
def env(db: None) -> Env:
    return make_env()


def stored(env: Env, at: int, requests: int, resolution: int = 10) -> None:
    counts = Counts(seconds=10, requests=requests, queue_now=requests, latency={100: requests}, status="OPEN")
    services.store_buckets(resolution, [(at, env.nodes[0].pk, ("backend", "pool-1"), counts)])


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
    assert services.roll_up(AT + 130) == 2
    assert services.roll_up(AT + 130) == 0
    minutes = Sample.objects.filter(resolution=60).order_by("at")
    assert [minute.requests for minute in minutes] == [15, 51]
    assert [minute.seconds for minute in minutes] == [60, 60]
    assert [minute.queue_now for minute in minutes] == [5, 11]
    assert [minute.latency_buckets for minute in minutes] == [{"100": 15}, {"100": 51}]


def test_a_minute_that_is_not_over_is_not_rolled_up(env: Env) -> None:
    stored(env, AT, 1)
    assert services.roll_up(AT + 59) == 0


def test_old_samples_go_in_batches_and_young_ones_stay(env: Env) -> None:
    for step in range(6):
        stored(env, AT - 10 * step, 1)
    stored(env, AT - 60, 6, resolution=60)
    a_day_later = START + timedelta(days=1, seconds=-15)
    assert services.prune(a_day_later, batch=3) == 3
    assert services.prune(a_day_later, batch=3) == 1
    assert services.prune(a_day_later, batch=3) == 0
    assert sorted(Sample.objects.values_list("resolution", flat=True)) == [10, 10, 60]
    assert services.prune(START + timedelta(weeks=2)) == 3


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
