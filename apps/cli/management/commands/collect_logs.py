"""`manage.py collect_logs` fetches request lines from the nodes until it is told to stop; several share the nodes."""

from __future__ import annotations

import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from apps.drivers.logs.registry import open_logs
from apps.logs.collect.collector import LogCollector


class Command(BaseCommand):
    """The process that collects request lines; SIGTERM and SIGINT end it after the segments at hand."""

    help = "Fetch the request lines of every node and store them, until SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        """Run until a signal."""
        collector = LogCollector(open_logs(settings.LOGS_URL))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: collector.stop())
        collector.run()
