"""No verdict depends on another machine's clock, and a clock that is off is named."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone

from apps.core import clock
from apps.fleet.models import Node
from apps.observe import selectors, services
from apps.observe.collect import consoles, lease
from apps.observe.live.windows import STALE
from apps.observe.models import Console, NodeReport
from tests.apps.observe_env import Env, make_env, state

TEN_MINUTES = timedelta(minutes=10)
SetOff = Callable[[timedelta], None]


@pytest.fixture
def env(db: None) -> Env:
    return make_env()


@pytest.fixture
def set_off(monkeypatch: pytest.MonkeyPatch) -> SetOff:
    """Put this machine's clock ahead of the database's by so much from now on; what the database said was right."""
    monkeypatch.setattr(clock, "_anchor", None)
    right: Callable[[], datetime] = timezone.now

    def set_it(by: timedelta) -> None:
        clock.anchor(right(), clock.ticks())
        monkeypatch.setattr(timezone, "now", lambda: right() + by)

    return set_it


def off_by(moment: datetime) -> timedelta:
    """From the real present, by the counter that nobody sets."""
    anchor = clock._anchor
    assert anchor is not None
    return abs(moment - anchor.instant - timedelta(seconds=clock.ticks() - anchor.ticks))


@pytest.mark.parametrize("by", [TEN_MINUTES, -TEN_MINUTES])
def test_a_machine_whose_clock_is_off_goes_by_the_databases(set_off: SetOff, by: timedelta) -> None:
    set_off(by)
    assert off_by(clock.now()) < timedelta(seconds=1)


def test_control_without_what_the_database_said_the_machines_own_clock_is_believed(
    set_off: SetOff, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_off(TEN_MINUTES)
    anchor = clock._anchor
    monkeypatch.setattr(clock, "_told", lambda: None)
    monkeypatch.setattr(clock, "_anchor", anchor)
    assert off_by(clock.now()) > timedelta(minutes=9)


def test_a_clock_that_is_right_within_a_moment_is_its_machines_own(set_off: SetOff) -> None:
    set_off(timedelta(milliseconds=100))
    assert abs(clock.now() - timezone.now()) < timedelta(milliseconds=50)


@pytest.mark.both_engines
def test_asking_the_database_says_how_far_this_machine_is_off(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("NOT CHECKED: SQLite has no clock but this machine's")
    monkeypatch.setattr(clock, "LONGEST_QUESTION_S", 60.0)
    monkeypatch.setattr(clock, "_anchor", None)
    right: Callable[[], datetime] = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: right() + TEN_MINUTES)
    clock.database_now()
    ahead = clock.ahead_of_database_s()
    assert ahead is not None
    assert abs(ahead - 600) < 5
    assert abs(clock.now() - right()) < timedelta(seconds=5)


def reachable(env: Env, node: Node) -> bool | None:
    return selectors.node_numbers(env.operator)[node.pk].reachable


@pytest.mark.parametrize("by", [TEN_MINUTES, -TEN_MINUTES])
def test_a_node_is_up_and_down_at_the_right_time_whatever_the_clock_of_the_console_that_read_it(
    env: Env, set_off: SetOff, by: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, right = env.nodes[0], timezone.now
    set_off(by)
    services.note_report(node_id=node.pk, state=state())
    monkeypatch.setattr(timezone, "now", right)  # another console, whose clock is right
    assert off_by(NodeReport.objects.get(node=node).seen_at or right() - TEN_MINUTES) < timedelta(seconds=5)
    assert reachable(env, node) is True
    NodeReport.objects.filter(node=node).update(seen_at=right() - timedelta(seconds=STALE + 5))
    assert reachable(env, node) is None


def clocks_named(env: Env) -> list[str]:
    return [each.sentence for each in selectors.problems(env.operator) if each.reason == "ClockOff"]


def test_a_console_whose_clock_is_off_is_named_until_it_is_right(env: Env, set_off: SetOff) -> None:
    assert lease.share("a collector").held
    set_off(timedelta(0))
    consoles.note_clock("console-b")
    assert clocks_named(env) == []
    set_off(timedelta(seconds=-4))
    consoles.note_clock("console-b")
    assert clocks_named(env) == [
        "Console console-b has a clock that is off. Its clock is 4 s behind the database's. Let a time service set it."
    ]
    assert selectors.problems(env.acme) == []
    set_off(timedelta(0))
    consoles.note_clock("console-b")
    assert clocks_named(env) == []


def test_a_console_that_is_gone_is_not_named_any_more(env: Env, set_off: SetOff) -> None:
    assert lease.share("a collector").held
    set_off(timedelta(seconds=4))
    consoles.note_clock("console-b")
    assert clocks_named(env)
    Console.objects.update(heard_at=timezone.now() - timedelta(minutes=2))
    assert clocks_named(env) == []
