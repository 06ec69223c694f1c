"""Instants become runs once, runs become effects, and what cannot be done is said."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.audit.models import Entry
from apps.core.clock import database_now, now
from apps.core.errors import Conflict, Forbidden, NotFound, Stale
from apps.schedules import metrics, pruning, services
from apps.schedules.models import ScheduleRun
from apps.schedules.run import claims, ticking, working
from apps.schedules.run.booking import book
from apps.schedules.targets.contract import Outcome, Target, TargetFailed
from tests.apps.at_once import at_once
from tests.apps.schedules_env import Notes, a_schedule, ago, book_all, notes, states

__all__ = ["notes"]
pytestmark = pytest.mark.django_db


@pytest.mark.both_engines
def test_an_instant_that_has_come_is_booked_once(acme: Actor) -> None:
    schedule = a_schedule(acme)
    assert book().waiting == 1
    assert book().schedules == 0
    schedule.refresh_from_db()
    assert schedule.next_at is not None
    assert schedule.next_at > database_now()
    assert schedule.version == 1


@pytest.mark.both_engines
def test_two_rows_of_one_instant_cannot_be(acme: Actor) -> None:
    schedule = a_schedule(acme)
    book()
    run = ScheduleRun.objects.get()
    run.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        run.save(force_insert=True)
    assert ScheduleRun.objects.filter(schedule=schedule).count() == 1


@pytest.mark.both_engines
def test_booking_an_instant_again_adds_nothing(acme: Actor) -> None:
    schedule = a_schedule(acme)
    instant = schedule.next_at
    book()
    type(schedule).objects.update(next_at=instant)
    book()
    assert ScheduleRun.objects.count() == 1


def test_paused_schedules_and_those_of_suspended_accounts_are_not_booked(acme: Actor, globex: Actor) -> None:
    a_schedule(acme, paused=True)
    a_schedule(globex)
    Account.objects.filter(pk=globex.account.pk).update(suspended_at=now())
    assert book().schedules == 0
    Account.objects.filter(pk=globex.account.pk).update(suspended_at=None)
    assert book().schedules == 1


def test_what_is_missed_is_counted_shown_and_told(acme: Actor) -> None:
    schedule = a_schedule(acme, every_s=10, next_at=ago(1000), catch_up="skip", starts_at=ago(1000))
    book_all()
    schedule.refresh_from_db()
    assert schedule.missed in {99, 100}
    missed = ScheduleRun.objects.get(state="missed")
    assert missed.result["missed"] == schedule.missed
    assert missed.message.startswith(f"Missed {schedule.missed} times from ")
    entry = Entry.objects.get(object_kind="Schedule", action="miss")
    assert (entry.account, entry.object_id, entry.reason) == (acme.account, schedule.pk, missed.message)


@pytest.mark.parametrize("policy", ["once", "all"])
def test_what_is_missed_is_not_said_of_a_schedule_that_catches_up_or_of_schedulers_alone(
    acme: Actor, policy: str
) -> None:
    """The account was suspended meanwhile, and the last times of the schedule are caught up."""
    since = ago(1000)
    schedule = a_schedule(acme, every_s=100, next_at=since, catch_up=policy, catch_up_window_s=300, starts_at=since)
    book_all()
    missed = ScheduleRun.objects.get(state="missed")
    assert ScheduleRun.objects.filter(schedule=schedule, cause="catch_up").exists()
    assert missed.message.endswith("the account was suspended. These times are not caught up.")


def test_a_capacity_test_never_catches_up(acme: Actor) -> None:
    schedule = a_schedule(
        acme, every_s=60, next_at=ago(200), catch_up="all", target_kind="capacity_test", starts_at=ago(200)
    )
    book_all()
    schedule.refresh_from_db()
    assert schedule.missed == 4
    assert states(schedule)["waiting"] == 0


def test_the_overlap_is_decided_by_what_is_open(acme: Actor) -> None:
    for overlap in ("skip", "queue", "allow"):
        schedule = a_schedule(acme, overlap, overlap=overlap, every_s=1, next_at=ago(3), starts_at=ago(3))
        book()
        waiting = {"skip": 1, "queue": 1, "allow": 4}[overlap]
        assert states(schedule)["waiting"] >= waiting
        assert (states(schedule)["skipped"] > 0) == (overlap != "allow")


def test_a_run_is_done_and_says_so(acme: Actor, notes: Notes) -> None:
    a_schedule(acme)
    book()
    assert working.work_off() == 1
    run = ScheduleRun.objects.get()
    assert (run.state, run.attempt, run.message, run.result) == ("done", 1, "Noted.", {"attempt": 1})
    assert run.lease_until is None
    assert notes.seen == {run.key: 1}


@pytest.mark.both_engines
def test_many_topic_runs_are_done_in_few_statements(acme: Actor, notes: Notes, django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    schedule = a_schedule(acme, every_s=1, next_at=ago(8), target_kind="topic", starts_at=ago(8))
    book()
    with django_assert_max_num_queries(30):
        working.work_off()
    assert states(schedule)["done"] >= 8


def test_a_failure_is_tried_again_later_and_then_it_is_dead(acme: Actor, notes: Notes) -> None:
    a_schedule(acme, attempts=2, backoff_s=7)
    book()
    notes.failures = [TargetFailed("The receiver answered 500."), TargetFailed("The receiver answered 502.")]
    before = database_now()
    working.work_off()
    run = ScheduleRun.objects.get()
    assert (run.state, run.message) == ("waiting", "The receiver answered 500.")
    assert before <= run.next_try_at - timedelta(seconds=7) <= database_now()
    ScheduleRun.objects.update(next_try_at=database_now())
    working.work_off()
    run.refresh_from_db()
    assert (run.state, run.attempt, run.message) == ("dead", 2, "The receiver answered 502.")
    entry = Entry.objects.get(object_kind="ScheduleRun", action="give_up")
    assert (entry.account, entry.reason) == (acme.account, "The receiver answered 502.")


def test_a_final_failure_is_dead_at_once(acme: Actor, notes: Notes) -> None:
    a_schedule(acme, attempts=5)
    book()
    notes.failures = [TargetFailed("The object moved.", final=True)]
    working.work_off()
    assert ScheduleRun.objects.get().state == "dead"


def test_a_target_that_breaks_costs_an_attempt_and_tells_nobody_how(
    acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(run: ScheduleRun, moment: object) -> Outcome:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(working, "TARGETS", {"webhook": Target(broken)})
    a_schedule(acme)
    book()
    working.work_off()
    run = ScheduleRun.objects.get()
    assert (run.state, run.message) == ("waiting", working.BROKE)


def test_the_pause_before_another_try_doubles_up_to_an_hour() -> None:
    assert [working.pause_before(attempt, 5).total_seconds() for attempt in (1, 2, 3, 4)] == [5, 10, 20, 40]
    assert working.pause_before(100, 5) == timedelta(hours=1)


def test_a_dead_run_can_be_tried_again_by_hand(acme: Actor, globex: Actor, notes: Notes) -> None:
    a_schedule(acme, attempts=1)
    book()
    notes.failures = [TargetFailed("No.")]
    working.work_off()
    run = ScheduleRun.objects.get()
    with pytest.raises(NotFound):
        services.retry_run(actor=globex, run_id=run.pk)
    with pytest.raises(Forbidden):
        services.retry_run(actor=Actor("v", acme.account, Membership.Role.VIEWER), run_id=run.pk)
    services.retry_run(actor=acme, run_id=run.pk)
    working.work_off()
    run.refresh_from_db()
    assert (run.state, run.attempt, notes.seen[run.key]) == ("done", 2, 2)
    with pytest.raises(Conflict):
        services.retry_run(actor=acme, run_id=run.pk)


@pytest.mark.both_engines
def test_a_worker_that_dies_is_missed_and_its_late_word_is_not_written(acme: Actor, notes: Notes) -> None:
    a_schedule(acme)
    book()
    (lost,) = claims.take(["webhook"])
    assert working.recover() == 0
    ScheduleRun.objects.update(lease_until=database_now() - timedelta(seconds=1))
    assert working.recover() == 1
    (again,) = claims.take(["webhook"])
    assert again.attempt == 2
    assert claims.write([lost], state="done") == 0
    with pytest.raises(claims.LeaseLost), transaction.atomic():
        claims.lock(lost)
    assert claims.write([again], state="done") == 1


@pytest.mark.both_engines
def test_a_run_under_which_every_worker_dies_is_given_up(acme: Actor) -> None:
    a_schedule(acme, attempts=1)
    book()
    for _ in range(1 + working.LOST_LEASES):
        assert claims.take(["webhook"])
        ScheduleRun.objects.update(lease_until=database_now() - timedelta(seconds=1))
        working.recover()
    run = ScheduleRun.objects.get()
    assert (run.state, run.message) == ("dead", working.POISONED)
    assert Entry.objects.filter(action="give_up").count() == 1


def test_what_is_ours_is_undone_when_the_attempt_fails(acme: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(run: ScheduleRun, moment: object) -> Outcome:
        Account.objects.filter(pk=run.account_id).update(title="Half")
        raise TargetFailed("The other half failed.")

    monkeypatch.setattr(working, "TARGETS", {"webhook": Target(half, in_transaction=True)})
    a_schedule(acme)
    book()
    working.work_off()
    assert Account.objects.get(pk=acme.account.pk).title == "Acme"
    assert ScheduleRun.objects.get().message == "The other half failed."


@pytest.mark.both_engines
def test_runs_that_may_not_overlap_are_taken_one_after_another(acme: Actor) -> None:
    a_schedule(acme, overlap="queue", catch_up="all", every_s=10, next_at=ago(60), starts_at=ago(60))
    book_all()
    (first,) = claims.take(["webhook"])
    assert claims.take(["webhook"]) == []
    claims.write([first], state="done")
    (second,) = claims.take(["webhook"])
    assert second.pk > first.pk


def test_a_restore_neither_waits_for_others_nor_keeps_them(acme: Actor) -> None:
    schedule = a_schedule(acme, overlap="skip")
    ScheduleRun.objects.create(
        schedule=schedule,
        account=acme.account,
        scheduled_at=ago(500),
        due_at=ago(0) + timedelta(hours=1),
        next_try_at=ago(0) + timedelta(hours=1),
        cause="restore",
    )
    book()
    assert states(schedule) == {"waiting": 2}
    assert len(claims.take(["webhook"])) == 1


@pytest.mark.both_engines
def test_of_a_long_backlog_each_account_has_its_part(acme: Actor, globex: Actor) -> None:
    for number in range(8):
        a_schedule(acme, f"many-{number}", next_at=ago(5))
    a_schedule(globex, next_at=ago(1))
    book()
    taken = claims.take(["webhook"], limit=4)
    assert [run.account_id for run in taken].count(globex.account.pk) == 1
    assert len(taken) == 3, "two of the one that has many, which is half of four"


def test_run_now_books_a_run_of_this_instant(acme: Actor, globex: Actor, notes: Notes) -> None:
    schedule = a_schedule(acme, paused=True, overlap="skip")
    with pytest.raises(NotFound):
        services.run_now(actor=globex, schedule_id=schedule.pk)
    run = services.run_now(actor=acme, schedule_id=schedule.pk, reason="To see it.")
    assert (run.cause, run.actor) == ("by_hand", acme.name)
    with pytest.raises(Conflict):
        services.run_now(actor=acme, schedule_id=schedule.pk)
    working.work_off()
    assert notes.seen == {run.key: 1}
    assert Entry.objects.get(action="run").reason == "To see it."


def test_what_passed_during_a_pause_is_neither_run_nor_missed(acme: Actor) -> None:
    schedule = a_schedule(acme, every_s=60, next_at=ago(3600))
    services.pause(actor=acme, schedule_id=schedule.pk)
    assert book().schedules == 0
    resumed = services.resume(actor=acme, schedule_id=schedule.pk, expected_version=2)
    assert resumed.version == 3
    assert resumed.next_at is not None
    assert resumed.next_at > database_now()
    assert book().schedules == 0
    with pytest.raises(Stale):
        services.pause(actor=acme, schedule_id=schedule.pk, expected_version=2)
    with pytest.raises(Forbidden):
        services.pause(actor=Actor("v", acme.account, Membership.Role.VIEWER), schedule_id=schedule.pk)


def test_a_call_from_outside_is_skipped_while_another_run_is_open_and_refused_while_paused(acme: Actor) -> None:
    schedule = a_schedule(acme, overlap="skip", every_s=None, next_at=None)
    assert services.run_by_trigger(schedule_id=schedule.pk, caller="hook", body="{}").state == "waiting"
    assert services.run_by_trigger(schedule_id=schedule.pk, caller="hook").state == "skipped"
    services.pause(actor=acme, schedule_id=schedule.pk)
    with pytest.raises(Conflict):
        services.run_by_trigger(schedule_id=schedule.pk, caller="hook")


def test_without_a_broker_the_scheduler_acts_itself(acme: Actor, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    # What `enqueue` answers when Redis is away; the suite has one that lives.
    monkeypatch.setattr(ticking, "enqueue", lambda *_, **__: False)
    a_schedule(acme)
    pause = ticking.schedules_tick()
    assert ScheduleRun.objects.get().state == "done"
    assert 0 < pause <= ticking.LONGEST_SLEEP_S


@pytest.mark.both_engines
def test_old_runs_are_forgotten_but_not_the_last_of_a_schedule(acme: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "KEPT_OF_EACH", 3)
    schedule = a_schedule(acme, every_s=86_400, next_at=None)
    for days in (40, 39, 38, 37, 36, 2):
        at = database_now() - timedelta(days=days)
        ScheduleRun.objects.create(
            schedule=schedule, account=acme.account, scheduled_at=at, due_at=at, next_try_at=at, state="done"
        )
    assert pruning.prune(now()) == 3
    assert pruning.prune(now()) == 0


def test_metrics_say_what_waits_and_what_was_missed(acme: Actor) -> None:
    a_schedule(acme, every_s=10, next_at=ago(100), catch_up="skip", starts_at=ago(100))
    book()
    found = {sample.name: sample.value for family in metrics.families() for sample in family.samples}
    assert found["spillway_schedule_runs_missed"] >= 8
    assert found["spillway_schedules_behind_seconds"] == 0


@pytest.mark.both_engines
@pytest.mark.slow(reason="threads of schedulers and workers run until all is done")
@pytest.mark.django_db(transaction=True)
def test_many_schedulers_and_workers_at_once_do_each_run_once(acme: Actor, notes: Notes) -> None:
    for number in range(30):
        a_schedule(acme, f"beat-{number}", every_s=1, next_at=ago(5), target_kind="topic", starts_at=ago(5))

    def work() -> None:
        book_all()
        working.work_off(seconds=10)

    at_once(*[work] * 6)
    book_all()
    working.work_off()
    assert ScheduleRun.objects.exclude(state="done").count() == 0
    assert ScheduleRun.objects.count() >= 30 * 6
    assert set(notes.seen.values()) == {1}
