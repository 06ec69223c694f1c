"""Processes that live long load everything first, and their garbage collector leaves that alone."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
from celery.signals import worker_init

from apps.cli.management.commands import collect
from apps.system import heartbeat
from controlplane import celery as worker
from controlplane import web_server


@pytest.fixture(autouse=True)
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The garbage collector of this process, as it was before; looking through all that a run has loaded takes long."""
    monkeypatch.setattr(gc, "collect", lambda: 0)
    thresholds = gc.get_threshold()
    gc.unfreeze()
    yield
    gc.freeze()
    gc.set_threshold(*thresholds)


async def _nothing() -> None:
    return


@pytest.fixture
def of_a_collector(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The command without its rounds."""
    monkeypatch.setattr(heartbeat, "begin", lambda _: None)
    monkeypatch.setattr(collect, "_collect", _nothing)
    return collect.Command().handle


@pytest.mark.parametrize("process", ["web", "worker", "collector"])
def test_what_was_loaded_is_not_looked_through_for_garbage(process: str, of_a_collector: Callable[[], None]) -> None:
    begin = {
        "web": lambda: web_server.when_ready(None),
        "worker": worker.leave_what_is_loaded,
        "collector": of_a_collector,
    }
    begin[process]()
    assert gc.get_freeze_count() > 10_000
    assert gc.get_threshold()[0] == 10_000
    assert gc.isenabled()


def test_a_worker_does_so_before_it_forks() -> None:
    connected = [receiver() for _, receiver, *_ in worker_init.receivers]
    assert worker.leave_what_is_loaded in connected
