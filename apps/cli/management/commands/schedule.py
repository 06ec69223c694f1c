"""PUSH, the sweep: `manage.py schedule` finds work that no wake-up brought to a worker; any number of them may run."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from django import db
from django.core.management.base import BaseCommand, CommandParser

from apps.core.clock import now
from apps.core.queue import wake
from apps.definitions.services import hostnames
from apps.fleet.services import RECONCILE_TASK
from apps.observe import services as observe
from apps.rollouts import services as rollouts

logger = logging.getLogger(__name__)
TIDY_SECONDS = 300.0


class Command(BaseCommand):
    """The sweep process; SIGTERM and SIGINT end it after the present sweep."""

    help = "Every ten seconds wake a worker for each fleet on which there is something to do, until SIGTERM."
    requires_system_checks = ()  # the sweep goes on where a page does not even import

    def add_arguments(self, parser: CommandParser) -> None:
        """`--every` seconds; `--once` for tests and for people."""
        parser.add_argument("--every", type=float, default=10.0, help="seconds between two sweeps")
        parser.add_argument("--once", action="store_true", help="sweep once and leave")

    def handle(self, *args: Any, every: float, once: bool, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        """Run until a signal."""
        ended = threading.Event()
        tidied = 0.0
        if not once:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: ended.set())
        while not ended.is_set():
            _survive(sweep)
            _survive(lambda: hostnames.sweep(now()))
            if time.monotonic() - tidied > TIDY_SECONDS:
                _survive(lambda: observe.prune(now()))
                tidied = time.monotonic()
            if once:
                return
            ended.wait(every)


def sweep() -> None:
    """Wake a worker for every fleet that needs one; without a broker to carry the wake-up do the work here."""
    for fleet_id in rollouts.fleets_to_sweep():
        if not wake(RECONCILE_TASK, fleet_id):
            rollouts.reconcile_fleet(fleet_id=fleet_id)


def _survive(work: Callable[[], object]) -> None:
    """A database that is away now is asked again at the next sweep; so is anything else that went wrong."""
    try:
        work()
    except Exception:
        logger.exception("this sweep failed; the next one begins in a moment")
        db.connections.close_all()
