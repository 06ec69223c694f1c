"""What expressions mean, and what happens when the clocks change."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter

from apps.calendars import CalendarError, describe, instants, next_after, read_timing, upcoming
from tests.calendar_rule import Rule, changes, croniter_means_the_same, random_rule, walk, zones

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)  # a Monday


def first(cron: str, *, after: datetime = NOON, zone: str = "UTC") -> str:
    found = next_after(read_timing(cron=cron, zone=zone), after)
    return "never" if found is None else f"{found:%Y-%m-%d %H:%M:%S}"


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("* * * * *", "2026-03-02 12:01:00"),
        ("* * * * * *", "2026-03-02 12:00:01"),
        ("30 * * * * *", "2026-03-02 12:00:30"),
        ("*/20 * * * *", "2026-03-02 12:20:00"),
        ("7/20 * * * *", "2026-03-02 12:07:00"),
        ("0 22-2 * * *", "2026-03-02 22:00:00"),
        ("0 0 * * sun", "2026-03-08 00:00:00"),
        ("0 0 * * 7", "2026-03-08 00:00:00"),
        ("0 0 * * 0", "2026-03-08 00:00:00"),
        ("0 0 * * FRI-MON", "2026-03-06 00:00:00"),
        ("0 0 * * 5-7/2", "2026-03-06 00:00:00"),
        ("0 0 1 JAN,Jul ?", "2026-07-01 00:00:00"),
        ("0 0 L * *", "2026-03-31 00:00:00"),
        ("0 0 L-3 * *", "2026-03-28 00:00:00"),
        ("0 0 LW 5 *", "2026-05-29 00:00:00"),
        ("0 0 15W 3 *", "2026-03-16 00:00:00"),
        ("0 0 1W 8 *", "2026-08-03 00:00:00"),
        ("0 0 31W 5 *", "2026-05-29 00:00:00"),
        ("0 0 * * 5L", "2026-03-27 00:00:00"),
        ("0 0 * * L5", "2026-03-27 00:00:00"),
        ("0 0 * * MON#5", "2026-03-30 00:00:00"),
        ("0 0 13 * FRI", "2026-03-06 00:00:00"),
        ("0 0 29 2 *", "2028-02-29 00:00:00"),
        ("0 0 29 2 1#5", "2028-02-29 00:00:00"),
        ("0 0 * 2 1#5", "2044-02-29 00:00:00"),
        ("0 0 30 2 *", "never"),
        ("@daily", "2026-03-03 00:00:00"),
        ("@Hourly", "2026-03-02 13:00:00"),
    ],
)
def test_an_expression_means(cron: str, expected: str) -> None:
    assert first(cron) == expected


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("61 * * * *", "'61' is not a minute: write a number from 0 to 59."),
        ("* * *", "this one has 3."),
        ("* * * * * * *", "this one has 7."),
        ("* * * * BLUE", "BLUE"),
        ("* * * * MOO", "one of SUN, MON"),
        ("0 0 * * L", "5L for the last Friday"),
        ("0 0 * * 1#6", "#1 to #5"),
        ("0 0 L-31 * *", "L-1 to L-30"),
        ("0 0 32W * *", "'32' is not a day of the month"),
        ("*/0 * * * *", "A step of 0"),
        ("*/61 * * * *", "A step of 61"),
        ("1,,2 * * * *", "empty part"),
        ("? * * * *", "days only"),
        ("@reboot", "@hourly"),
        ("", ""),
        ("٣ * * * *", "ASCII"),
        ("* * * * *\n", "printable"),
        ("1 " * 200, "at most 200"),
        ("-1 * * * *", "cannot be read"),
        ("1-2-3 * * * *", "cannot be read"),
        ("0 0 0 * *", "'0' is not a day"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_to_do(cron: str, said: str) -> None:
    if not cron:
        assert next_after(read_timing(cron=cron), NOON) is None
        return
    with pytest.raises(CalendarError) as caught:
        read_timing(cron=cron)
    assert caught.value.field == "cron"
    assert said in caught.value.detail


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"every_s": 0}, "every_s"),
        ({"every_s": 10**9}, "every_s"),
        ({"at": "2026-02-30T10:00:00"}, "at"),
        ({"at": "2026-02-03T10:00:00Z"}, "at"),
        ({"at": "2026-02-03"}, "at"),
        ({"at": "0001-01-01T00:00:00", "zone": "Asia/Tokyo"}, "at"),
        ({"at": "9999-12-31T23:59:59", "zone": "America/New_York"}, "at"),
        ({"cron": "@daily", "starts_at": datetime(1, 1, 1, tzinfo=UTC)}, "starts_at"),
        ({"cron": "@daily", "ends_at": datetime(9999, 12, 31, tzinfo=UTC)}, "ends_at"),
        ({"cron": "* * * * *", "every_s": 5}, "cron"),
        ({"every_s": 5, "zone": "Mars/Olympus"}, "zone"),
        ({"every_s": 5, "zone": "../../etc/passwd"}, "zone"),
        ({"every_s": 5, "zone": "localtime"}, "zone"),
        ({"every_s": 5, "starts_at": datetime(2026, 1, 1)}, "starts_at"),  # noqa: DTZ001 - it is what is wrong
        ({"every_s": 5, "starts_at": NOON, "ends_at": NOON}, "ends_at"),
    ],
)
def test_every_other_field_is_checked_as_well(fields: dict[str, object], field: str) -> None:
    with pytest.raises(CalendarError) as caught:
        read_timing(**fields)  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.parametrize("year", ["0002", "9998"])
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_the_first_and_the_last_year_that_may_be_named_are_read_in_every_zone(year: str, zone: str) -> None:
    timing = read_timing(at=f"{year}-01-01T00:00:00", zone=zone)
    assert (next_after(timing, NOON) is None) == (year == "0002")


def test_a_local_time_that_the_clocks_skip_runs_once_at_the_first_valid_instant() -> None:
    night = datetime(2026, 3, 28, 12, tzinfo=UTC)
    timing = read_timing(cron="*/20 2 * * *", zone="Europe/Berlin")
    found = [f"{instant:%d %H:%M}" for instant in upcoming(timing, night, 4)]
    assert found == ["29 01:00", "30 00:00", "30 00:20", "30 00:40"]


def test_a_local_time_that_comes_twice_runs_the_first_time() -> None:
    night = datetime(2026, 10, 24, 12, tzinfo=UTC)
    timing = read_timing(cron="30 2,3 * * *", zone="Europe/Berlin")
    assert [f"{instant:%d %H:%M}" for instant in upcoming(timing, night, 3)] == ["25 00:30", "25 02:30", "26 01:30"]
    within = datetime(2026, 10, 25, 1, 15, tzinfo=UTC)
    assert next_after(timing, within) == datetime(2026, 10, 25, 2, 30, tzinfo=UTC)


def test_one_time_follows_the_same_rule() -> None:
    skipped = read_timing(at="2026-03-29T02:30:00", zone="Europe/Berlin")
    twice = read_timing(at="2026-10-25T02:30:00", zone="Europe/Berlin")
    assert upcoming(skipped, NOON) == [datetime(2026, 3, 29, 1, 0, tzinfo=UTC)]
    assert upcoming(twice, NOON) == [datetime(2026, 10, 25, 0, 30, tzinfo=UTC)]


def test_a_rate_counts_from_its_start_and_goes_on_through_clock_changes() -> None:
    start = datetime(2026, 3, 29, 0, 0, 7, tzinfo=UTC)
    timing = read_timing(every_s=90, zone="Europe/Berlin", starts_at=start, ends_at=start + timedelta(seconds=270))
    assert upcoming(timing, NOON) == [start + timedelta(seconds=90 * number) for number in range(3)]
    unbounded = read_timing(every_s=7)
    assert next_after(unbounded, NOON + timedelta(microseconds=1)) == next_after(unbounded, NOON)


def test_instants_lie_from_the_start_on_and_before_the_end() -> None:
    timing = read_timing(cron="0 * * * *", starts_at=NOON, ends_at=NOON + timedelta(hours=2))
    assert upcoming(timing, NOON - timedelta(days=1)) == [NOON, NOON + timedelta(hours=1)]
    assert list(instants(timing, NOON, NOON + timedelta(days=1))) == [NOON + timedelta(hours=1)]
    late = read_timing(cron="0 * * * *", starts_at=NOON + timedelta(microseconds=1))
    assert next_after(late, NOON - timedelta(days=1)) == NOON + timedelta(hours=1)


def test_the_end_of_time_is_no_accident() -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    for timing in (read_timing(cron="* * * * *", zone="Asia/Tokyo"), read_timing(every_s=1)):
        assert next_after(timing, last) is None


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"cron": "30 2 * * *", "zone": "Europe/Berlin"}, "At 02:30 every day, Europe/Berlin"),
        ({"cron": "*/5 * * * *"}, "Every 5 minutes, UTC"),
        ({"cron": "* * * * * *"}, "Every second, UTC"),
        ({"cron": "0 9 * * 1-5"}, "At 09:00 on Monday to Friday, UTC"),
        ({"cron": "0 9 LW * ?"}, "At 09:00 on the last working day of the month, UTC"),
        ({"cron": "15 10 0 1 1 *"}, "At 00:10:15 on day 1 of the month in January, UTC"),
        ({"cron": "5,20 9-17 * * *"}, "At minutes 5 and 20 from 09:00 to 17:59, UTC"),
        ({"every_s": 90}, "Every 90 seconds"),
        ({"every_s": 3600}, "Every hour"),
        ({"at": "2026-12-01T10:00:00"}, "Once, on 1 December 2026 at 10:00:00, UTC"),
        ({}, "When its trigger is called"),
    ],
)
def test_a_timing_reads_as_a_sentence(fields: dict[str, object], sentence: str) -> None:
    assert describe(read_timing(**fields)) == sentence  # type: ignore[arg-type]


def computed_and_walked(rule: Rule, zone: str, start: datetime, hours: int) -> tuple[list[datetime], list[datetime]]:
    """When an expression runs, by us and by the rule walked second by second."""
    timing = read_timing(cron=rule.text, zone=zone)
    end = start + timedelta(hours=hours, seconds=-1)
    computed = list(instants(timing, start - timedelta(seconds=1), end))
    return computed, list(walk(rule, ZoneInfo(zone), start, hours * 3600))


@pytest.mark.parametrize(
    ("zone", "change", "seed"),
    [
        ("Europe/Berlin", "2029-03-25T01:00", 16),
        ("Europe/Berlin", "2029-10-28T01:00", 20),
        ("Africa/Cairo", "2029-04-26T22:00", 4),
        ("Australia/Lord_Howe", "2026-04-04T15:00", 68),
        ("Australia/Lord_Howe", "2026-10-03T15:30", 75),
        ("America/Los_Angeles", "2031-11-02T09:00", 7),
        ("Pacific/Chatham", "2025-09-27T14:00", 115),
        ("Asia/Beirut", "2031-10-25T21:00", 34),
    ],
)
def test_expressions_that_name_what_the_clocks_skip_or_repeat_agree_with_the_rule_walked_second_by_second(
    zone: str, change: str, seed: int
) -> None:
    dice = random.Random(seed)
    rule = random_rule(dice, whole_minutes=dice.random() < 0.8)
    start = datetime.fromisoformat(change).replace(tzinfo=UTC) - timedelta(seconds=5000)
    computed, walked = computed_and_walked(rule, zone, start, 3)
    assert computed == walked != [], rule.text


@pytest.mark.exhaustive
def test_random_expressions_around_random_clock_changes_agree_with_the_rule_walked_second_by_second() -> None:
    dice, compared = random.Random(2024), 0
    names = zones()
    for _ in range(150):
        name = dice.choice(names)
        start = _some_change(dice, name) - timedelta(seconds=dice.randint(3600, 2 * 3600))
        rule = random_rule(dice, whole_minutes=dice.random() < 0.8)
        computed, walked = computed_and_walked(rule, name, start, 5)
        assert computed == walked, (rule.text, name, start)
        compared += len(walked)
    assert compared > 100


def test_the_walked_rule_tells_apart_what_ignores_clock_changes() -> None:
    """The control: who only asks which local times match finds none in spring and two in autumn."""
    zone = ZoneInfo("Europe/Berlin")
    every = frozenset(range(1, 13))
    half_past_two = Rule("30 2 * * *", frozenset({0}), frozenset({30}), frozenset({2}), None, every, None)
    for change, matching in (
        (datetime(2026, 3, 29, 1, 0, tzinfo=UTC), 0),
        (datetime(2026, 10, 25, 1, 0, tzinfo=UTC), 2),
    ):
        seconds = [change + timedelta(seconds=offset) for offset in range(-3 * 3600, 3 * 3600)]
        naive = [each for each in seconds if half_past_two.names(each.astimezone(zone).replace(tzinfo=None))]
        assert len(naive) == matching
        assert len(list(walk(half_past_two, zone, seconds[0], len(seconds)))) == 1


def test_croniter_agrees_where_its_rules_are_ours() -> None:
    dice = random.Random(7)
    compared = 0
    while compared < 400:
        rule = random_rule(dice, whole_minutes=True)
        if not croniter_means_the_same(rule):
            continue
        start = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=dice.randint(0, 12 * 365 * 1440))
        theirs = croniter(rule.text, start, second_at_beginning=True).get_next(datetime)
        assert next_after(read_timing(cron=rule.text), start) == theirs, rule.text
        compared += 1


def _some_change(dice: random.Random, name: str) -> datetime:
    year = dice.choice(range(2024, 2036))
    found = changes(ZoneInfo(name), year, year)
    return dice.choice(found) if found else datetime(year, dice.randint(1, 12), 28, 12, tzinfo=UTC)
