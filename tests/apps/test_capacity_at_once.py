"""Runs that are due at one instant: all are claimed at once, and where one at a time may run, they do, one by one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.capacity import services
from apps.capacity.models import Run
from apps.capacity.run import claims, running
from apps.capacity.run.checking import Check, among_others, refusal
from apps.core.clock import now
from apps.drivers.load.memory import forget_memory_backends, memory_backend
from tests.apps.at_once import PATIENCE_S, at_once
from tests.apps.capacity_env import QUOTAS, Watched, a_test, put, stepwise

pytestmark = pytest.mark.both_engines
HOLD = {"kind": "constant", "rate": 10, "duration_s": 1, "arrivals": "constant"}
# Two in one region, whatever the account may; two of an account that may run one at a time.
TOGETHER = [("here", "here", 9), ("here", "there", 1)]


@pytest.fixture
def editor(db: None, live_redis: str) -> Actor:
    """Acme's editor in an environment that can be loaded."""
    return put()


@pytest.fixture
def nodes(editor: Actor, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """The nodes, pushed to and read, before a server that takes 20 requests/s."""
    memory_backend("127.0.0.1", 19101, servers=2, service_ms=100)
    yield stepwise(monkeypatch)
    forget_memory_backends()


def booked(editor: Actor, *regions: str, most: int) -> list[Run]:
    """A run for each region of an account that may run so many at once; they wait for workers that come late."""
    Account.objects.filter(name="acme").update(quotas={**QUOTAS, "test_runs_at_once": most})
    tests = [a_test(editor, f"t{number}", region=region, load=HOLD) for number, region in enumerate(regions)]
    runs = [services.request_run(actor=editor, test_id=test.pk) for test in tests]
    Run.objects.update(begin_by=now() + timedelta(minutes=10))
    return runs


def taken(runs: list[Run]) -> list[Run]:
    """All of them, each held by its worker, none asked whether it may go on."""
    held = [claims.take(run.pk) for run in runs]
    return [run for run in held if run is not None]


def go_on(run: Run) -> Check | None:
    """Why the run may not go on now; None when it may, and then it has its slot."""
    test = run.test
    assert test is not None
    return claims.take_slot(run, lambda: refusal(among_others(test, run)))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize(("first", "second", "most"), TOGETHER)
def test_of_two_that_are_due_together_whoever_asks_first_goes_on_and_the_other_afterwards(
    editor: Actor, first: str, second: str, most: int, order: tuple[int, int]
) -> None:
    held = taken(booked(editor, first, second, most=most))
    one, other = (held[number] for number in order)
    assert go_on(one) is None
    waits = go_on(other)
    assert waits is not None
    assert waits.passing
    claims.renew(one, state=Run.State.RUNNING)
    assert go_on(other) == waits
    claims.finish(one, Run.State.DONE, "", None)
    assert go_on(other) is None


def test_two_that_do_not_meet_go_on_together(editor: Actor) -> None:
    assert [go_on(run) for run in taken(booked(editor, "here", "there", most=2))] == [None, None]


@pytest.mark.django_db(transaction=True)  # workers are threads with connections of their own
def test_of_six_that_ask_in_the_same_moment_one_goes_on(editor: Actor) -> None:
    held = taken(booked(editor, *["here"] * 6, most=9))
    answers = at_once(*(partial(go_on, run) for run in held))
    assert [answer is None for answer in answers].count(True) == 1


def test_one_that_lost_its_claim_takes_no_slot(editor: Actor) -> None:
    held = taken(booked(editor, "here", "here", most=9))
    Run.objects.filter(pk=held[0].pk).update(attempt=held[0].attempt + 1)
    with pytest.raises(claims.ClaimLost):
        go_on(held[0])
    assert go_on(held[1]) is None


@pytest.mark.django_db(transaction=True)  # as above
@pytest.mark.slow(reason="two threads carry out two runs, one waits for the other")
@pytest.mark.parametrize(("first", "second", "most"), TOGETHER)
def test_two_workers_that_begin_together_carry_out_both_one_after_the_other(
    editor: Actor, nodes: Watched, monkeypatch: pytest.MonkeyPatch, first: str, second: str, most: int
) -> None:
    runs = booked(editor, first, second, most=most)
    take, together = claims.take, threading.Barrier(len(runs))

    def take_together(run_id: int) -> Run | None:
        held = take(run_id)
        together.wait(PATIENCE_S)
        return held

    monkeypatch.setattr(claims, "take", take_together)
    at_once(*(partial(running.carry_out, run.pk) for run in runs))
    before, after = Run.objects.order_by("started_at")
    assert (before.state, after.state) == (Run.State.DONE, Run.State.DONE), (before.message, after.message)
    assert before.ended_at is not None
    assert after.started_at is not None
    assert before.ended_at <= after.started_at
