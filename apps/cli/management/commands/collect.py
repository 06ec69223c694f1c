"""`manage.py collect` reads every agent until it is told to stop; a second one waits for the lease."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from django.core.management.base import BaseCommand

from apps.observe.collect.collector import Collector
from apps.system import garbage, heartbeat


class Command(BaseCommand):
    """The collector process; SIGTERM and SIGINT end it after the present round."""

    help = "Read every agent every two seconds and store the readings, until SIGTERM."
    requires_system_checks = ()  # they import every page, which takes seconds

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        """Run until a signal."""
        heartbeat.begin("collector")
        garbage.leave_what_is_loaded()
        asyncio.run(_collect())


async def _collect() -> None:
    collector = Collector()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # The loop's own handlers hear of signals by a pipe. Where 278 nodes answer while the loop is busy, it is full,
        # and the signal is lost.
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(collector.stop))
    await collector.run()
