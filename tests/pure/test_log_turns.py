"""Questions to the request log take turns: no account has all places, nor all threads that wait for one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from pytest_django.fixtures import Settings

from apps.drivers.logs import registry
from apps.drivers.logs.ceilings import Ceilings, Turns
from apps.drivers.logs.contract import Busy
from tests.conformance.log_places import needs_duckdb

PATIENT = Ceilings(wait_seconds=30.0, waiting_each=1)


def beside(work: Callable[[], None]) -> threading.Thread:
    """It is done in a thread that has to wait by the time that this returns."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    time.sleep(0.1)
    assert thread.is_alive()
    return thread


def test_an_account_waits_with_one_question_and_its_others_are_refused_at_once() -> None:
    turns, entered = Turns(PATIENT), list[str]()

    def third() -> None:
        turns.enter(1, exports=False)
        entered.append("third")

    for _ in range(2):
        turns.enter(1, exports=False)
    waiting = beside(third)
    began = time.monotonic()
    with pytest.raises(Busy):
        turns.enter(1, exports=False)
    assert time.monotonic() - began < 5, "it held a thread"
    turns.enter(2, exports=False)
    turns.leave(1, exports=False)
    waiting.join(10)
    assert entered == ["third"]


def test_all_accounts_together_leave_half_of_the_threads_free() -> None:
    turns = Turns(Ceilings(wait_seconds=30.0, waiting_each=1, held=2))
    turns.enter(1, exports=False)
    turns.enter(2, exports=False)
    began = time.monotonic()
    for account in (1, 2, 3):
        with pytest.raises(Busy):
            turns.enter(account, exports=False)
    assert time.monotonic() - began < 5, "it held a thread"
    turns.leave(1, exports=False)
    turns.enter(3, exports=False)


def test_who_waits_counts_as_one_that_holds_a_thread() -> None:
    turns = Turns(Ceilings(wait_seconds=30.0, waiting_each=1, at_once_each=1, held=3))
    turns.enter(1, exports=False)
    waiting = beside(lambda: turns.enter(1, exports=False))
    turns.enter(2, exports=False)
    with pytest.raises(Busy):
        turns.enter(3, exports=False)
    turns.leave(1, exports=False)
    waiting.join(10)


def test_an_account_without_a_place_gets_the_next_one_before_those_that_have_one() -> None:
    turns = Turns(Ceilings(wait_seconds=0.01, waiting_each=1, held=2))
    turns.enter(1, exports=False)
    turns.enter(1, exports=False)
    with pytest.raises(Busy):
        turns.enter(2, exports=False)
    turns.leave(1, exports=False)
    with pytest.raises(Busy):
        turns.enter(1, exports=False)
    turns.enter(2, exports=False)
    turns.leave(2, exports=False)
    turns.enter(1, exports=False)


def test_an_archive_that_waited_is_refused_where_another_of_its_account_has_begun() -> None:
    turns, came_of = Turns(Ceilings(wait_seconds=30.0)), list[str]()

    def archive() -> None:
        try:
            turns.enter(1, exports=True)
        except Busy:
            came_of.append("busy")
        else:
            came_of.append("writes")

    for _ in range(2):
        turns.enter(1, exports=False)
    both = [beside(archive), beside(archive)]
    turns.leave(1, exports=False)
    turns.leave(1, exports=False)
    for each in both:
        each.join(10)
    assert sorted(came_of) == ["busy", "writes"]


@needs_duckdb
@pytest.mark.parametrize(("threads", "held"), [(0, None), (1, 1), (5, 2), (9, 4)])
def test_a_console_saves_its_threads_and_workers_are_patient(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, threads: int, held: int | None
) -> None:
    monkeypatch.setattr(registry, "_ceilings", Ceilings())
    settings.WEB_THREADS = threads
    apps.get_app_config("logs").ready()
    store: Any = registry.open_logs(f"logs+file://{tmp_path}/{threads}")
    assert store._workers.ceilings.waiting_each == (1 if threads else None)
    assert store._workers.ceilings.held == held
