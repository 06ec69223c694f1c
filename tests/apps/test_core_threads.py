"""One thread of a process never waits (apps/core/concurrency/threads.py)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from pytest_django.fixtures import Settings

from apps.core.concurrency import threads
from apps.core.errors import Unavailable

THREADS = 4
A_WHILE = 0.05


@pytest.fixture
def locked(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Whatever is asked for waits for this, unless it is the health of the process."""
    settings.WEB_THREADS = THREADS
    monkeypatch.setattr(threads, "PATIENCE_S", A_WHILE)
    opened = threading.Event()
    yield opened
    opened.set()


class Server:
    """As many threads as the web server has, all of them asked for what waits."""

    def __init__(self, opened: threading.Event) -> None:
        self._asks, self._pool = RequestFactory(), ThreadPoolExecutor(THREADS)
        self._began = threading.Semaphore(0)

        def view(request: HttpRequest) -> HttpResponse:
            if request.path != "/healthz":
                self._began.release()
                opened.wait(30)
            return HttpResponse(request.path)

        self._serve = threads.OneThreadFree(view)

    def ask(self, path: str) -> Future[HttpResponse]:
        """Ask as a client does: whoever is free answers."""
        return self._pool.submit(self._serve, self._asks.get(path))

    def full(self, count: int) -> list[Future[HttpResponse]]:
        """So many that wait, all of them begun."""
        asked = [self.ask("/write") for _ in range(count)]
        for _ in asked:
            assert self._began.acquire(timeout=30)
        return asked


def test_the_health_of_a_process_is_answered_while_all_others_wait(locked: threading.Event) -> None:
    server = Server(locked)
    waiting = server.full(THREADS - 1)
    refused = [server.ask("/write") for _ in range(5)]
    assert server.ask("/healthz").result(30).content == b"/healthz"
    for each in refused:
        with pytest.raises(Unavailable, match="try again"):
            each.result(30)
    locked.set()
    assert [each.result(30).status_code for each in waiting] == [200] * len(waiting)
    assert server.ask("/write").result(30).status_code == 200


def test_without_it_nobody_answers(locked: threading.Event, settings: Settings) -> None:
    settings.WEB_THREADS = 0
    server = Server(locked)
    server.full(THREADS)
    with pytest.raises(TimeoutError):
        server.ask("/healthz").result(0.2)
    locked.set()


def test_who_comes_while_others_come_and_go_waits_for_its_turn(
    locked: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PATIENCE_S", 30.0)
    server = Server(locked)
    server.full(THREADS - 1)
    last = server.ask("/write")
    locked.set()
    assert last.result(30).status_code == 200
