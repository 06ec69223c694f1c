"""What becomes of instants that have passed, decided without a database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from apps.calendars import next_after, read_timing
from apps.schedules.run.deciding import MOST_INSTANTS, Open, Policy, decide, due_at

T = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def policy(every_s: int = 60, **fields: Any) -> Policy:
    return Policy(7, read_timing(every_s=every_s), **({"overlap": "allow"} | fields))


def test_an_instant_that_has_just_come_is_on_time() -> None:
    decision = decide(policy(), T, T + seconds(0.1), Open())
    assert [(run.scheduled_at, run.late) for run in decision.runs] == [(T, False)]
    assert (decision.next_at, decision.gap) == (T + seconds(60), None)


def test_nothing_is_decided_before_its_time() -> None:
    decision = decide(policy(), T, T - seconds(1), Open())
    assert (decision.runs, decision.next_at) == ([], T)


def test_short_delays_lose_nothing_whatever_the_policy() -> None:
    decision = decide(policy(1, catch_up="skip"), T, T + seconds(9), Open())
    assert len(decision.runs) == 10
    assert decision.gap is None


def test_skip_misses_all_that_is_late() -> None:
    decision = decide(policy(catch_up="skip"), T, T + seconds(600), Open())
    assert decision.gap is not None
    assert (decision.gap.first, decision.gap.last, decision.gap.count) == (T, T + seconds(540), 10)
    assert [run.late for run in decision.runs] == [False]


def test_once_runs_the_latest_that_is_late() -> None:
    decision = decide(policy(catch_up="once"), T, T + seconds(200), Open())
    assert [(run.scheduled_at, run.late) for run in decision.runs] == [(T + seconds(180), True)]
    assert decision.gap is not None
    assert decision.gap.count == 3


def test_all_runs_what_lies_within_the_window_and_counts_the_rest() -> None:
    decision = decide(policy(catch_up="all", catch_up_window_s=130), T, T + seconds(630), Open())
    assert [run.scheduled_at for run in decision.runs] == [T + seconds(540), T + seconds(600)]
    assert decision.gap is not None
    assert decision.gap.count == 9


def test_once_runs_nothing_that_is_older_than_the_window() -> None:
    decision = decide(policy(3600, catch_up="once", catch_up_window_s=300), T, T + seconds(1800), Open())
    assert decision.runs == []
    assert decision.gap is not None
    assert decision.gap.count == 1


def test_what_is_never_late_misses_every_late_instant() -> None:
    decision = decide(policy(catch_up="all", never_late=True), T, T + seconds(75), Open())
    assert decision.runs == []
    assert decision.gap is not None
    assert decision.gap.count == 2


def test_every_instant_is_a_run_or_counted_however_far_behind() -> None:
    behind, moment, counted, runs = T, T + seconds(3 * MOST_INSTANTS + 5), 0, []
    following: datetime | None = behind
    while following is not None and following <= moment:
        decision = decide(policy(1, catch_up="once"), following, moment, Open())
        counted += decision.gap.count if decision.gap else 0
        runs += decision.runs
        following = decision.next_at
    assert counted + len(runs) == 3 * MOST_INSTANTS + 6
    assert sum(run.late for run in runs) == 1


def test_a_schedule_without_another_instant_is_through() -> None:
    once = Policy(1, read_timing(at="2026-03-02T12:00:00"))
    assert decide(once, T, T + seconds(1), Open()).next_at is None


def test_overlap_skips_queues_one_or_allows() -> None:
    def outcome(overlap: str, opened: Open) -> list[bool]:
        decision = decide(policy(1, overlap=overlap), T, T + seconds(2), opened)
        return [bool(run.skipped) for run in decision.runs]

    assert outcome("allow", Open(5, 5)) == [False, False, False]
    assert outcome("skip", Open()) == [False, True, True]
    assert outcome("skip", Open(running=1)) == [True, True, True]
    assert outcome("queue", Open(running=1)) == [False, True, True]
    assert outcome("queue", Open(waiting=1)) == [True, True, True]


def test_what_catches_up_is_not_skipped_for_its_own_kind() -> None:
    decision = decide(policy(catch_up="all", overlap="skip"), T, T + seconds(200), Open())
    assert [run.skipped for run in decision.runs] == ["", "", "", ""]


def test_window_and_jitter_are_the_same_for_every_scheduler() -> None:
    wide = policy(window_s=600, jitter_s=30)
    first = due_at(wide, T)
    assert first == due_at(policy(window_s=600, jitter_s=30), T)
    assert T <= first <= T + seconds(630)
    assert due_at(policy(), T) == T


def test_the_window_moves_a_schedule_and_jitter_each_instant() -> None:
    only_window, only_jitter = policy(window_s=600), policy(jitter_s=30)
    instants = [T + seconds(60 * number) for number in range(20)]
    assert len({due_at(only_window, each) - each for each in instants}) == 1
    assert len({due_at(only_jitter, each) - each for each in instants}) > 15


def test_the_next_instant_is_that_of_the_calendar() -> None:
    timing = read_timing(cron="30 2 * * *", zone="Europe/Berlin")
    instant = next_after(timing, T)
    assert instant is not None
    assert decide(Policy(1, timing), instant, instant, Open()).next_at == next_after(timing, instant)
