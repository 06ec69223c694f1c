"""A collector ends when it is told to, also in a moment in which all its nodes answer."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from apps.cli.management.commands import collect


class Busy:
    """A collector whose nodes all answer while its loop does something else, and then somebody ends it."""

    def __init__(self) -> None:
        self.stopped = asyncio.Event()

    def stop(self) -> None:
        self.stopped.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        nodes = threading.Thread(target=lambda: [loop.call_soon_threadsafe(int) for _ in range(1000)])
        nodes.start()
        nodes.join()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(self.stopped.wait(), 1)


def test_a_signal_is_heard_while_a_thousand_nodes_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setattr(collect, "Collector", Busy)
    try:
        asyncio.run(collect._collect())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
