"""`manage.py collect_logs` fetches and forwards request lines until it is told to stop; several share the work."""

from __future__ import annotations

import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.drivers.logs.contract import LogStoreError
from apps.drivers.logs.registry import open_logs, open_queues
from apps.logs.collect.collector import LogCollector
from apps.logs.forward.forwarding import Forwarder
from apps.system import heartbeat


class Command(BaseCommand):
    """The process that collects request lines; SIGTERM and SIGINT end it after the segments at hand."""

    help = "Fetch the request lines of every node and store them, until SIGTERM."
    requires_system_checks = ()  # they import every page, which takes seconds

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        """Run until a signal."""
        try:
            store, queues = open_logs(settings.LOGS_URL), open_queues(settings.LOGS_URL)
        except LogStoreError as error:
            raise CommandError(error.message) from error
        collector, forwarder = LogCollector(store, queues), Forwarder(queues)

        def stop(*_: object) -> None:
            collector.stop()
            forwarder.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        heartbeat.begin("log-collector")
        forwarder.start()
        collector.run()
        forwarder.join()
