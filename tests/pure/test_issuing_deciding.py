"""When certificates are renewed, how long a failed order rests, and which authority is asked next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from apps.issuing.deciding import LONGEST_PAUSE, LONGEST_WISH, chosen, pause, renewal, soonest_wake

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Authority:
    """One to choose."""

    name: str
    paused_until: datetime | None = None


@pytest.mark.parametrize("days", [6, 90, 398])
def test_a_certificate_is_renewed_when_a_third_is_left_or_a_little_earlier(days: int) -> None:
    life = timedelta(days=days)
    for number in range(200):
        left = (BEGIN + life - renewal(BEGIN, BEGIN + life, str(number))) / life
        assert 1 / 3 - 1e-6 <= left <= 1 / 3 + 1 / 20 + 1e-6


def test_many_certificates_of_one_moment_are_renewed_at_many() -> None:
    moments = {renewal(BEGIN, BEGIN + timedelta(days=90), str(number)) for number in range(500)}
    assert len(moments) == 500
    assert max(moments) - min(moments) > timedelta(days=4)


def test_one_certificate_is_always_due_at_the_same_moment() -> None:
    assert renewal(BEGIN, BEGIN + timedelta(days=90), "a") == renewal(BEGIN, BEGIN + timedelta(days=90), "a")


def test_a_failed_order_rests_longer_each_time_up_to_half_a_day() -> None:
    for failures in range(1, 60):
        usual = min(timedelta(minutes=5) * 2 ** min(failures - 1, 20), LONGEST_PAUSE)
        assert usual * 0.9 <= pause(failures) <= usual * 1.1


def test_what_the_authority_wishes_is_waited_for_two_days_at_most() -> None:
    assert pause(1, timedelta(hours=3)) == timedelta(hours=3)
    assert pause(1, timedelta(days=90)) == LONGEST_WISH
    assert pause(3, timedelta(seconds=1)) > timedelta(minutes=17)


def test_each_authority_is_asked_twice_before_the_next_one_and_then_the_first_again() -> None:
    both = [Authority("one"), Authority("two")]
    asked = [found.name for failures in range(6) if (found := chosen(both, failures, BEGIN))]
    assert asked == ["one", "one", "two", "two", "one", "one"]


def test_an_authority_that_asked_us_to_wait_is_passed_over_until_then() -> None:
    later = BEGIN + timedelta(hours=1)
    both = [Authority("one", later), Authority("two")]
    assert chosen(both, 0, BEGIN) == both[1]
    assert chosen(both, 0, later) == both[0]
    assert chosen(both[:1], 0, BEGIN) is None
    assert soonest_wake(both[:1]) == later
    assert chosen([], 0, BEGIN) is None
