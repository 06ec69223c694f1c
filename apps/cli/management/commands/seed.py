"""Fills a database with customers, pools and routes, for looking at the pages under load."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.actors import Actor, platform_actor
from apps.core.errors import Invalid, SpillwayError
from apps.core.secrets import keys
from apps.definitions import seeding
from apps.definitions.selectors import load_balancers
from apps.definitions.services import apply_document
from apps.fleet.selectors import regions

# Of documents in one transaction; how many depends on how long the last one held the database, on whatever machine.
FIRST_PART, LEAST_PART, MOST_PART = 50, 5, 1000
HOLD_S = 1.0
# SQLite has no queue: whoever waits looks ten times a second, and somebody has to find it free.
PAUSE_S = 0.25


class Command(BaseCommand):
    """`manage.py seed --routes 10000 --accounts 100`: through the same validation as everything else."""

    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        """How much."""
        parser.add_argument("--routes", type=int, default=10_000)
        parser.add_argument("--accounts", type=int, default=100)
        parser.add_argument("--load-balancer", default="", help="pool of the routes; default: the first one")
        parser.add_argument("--port", type=int, default=9100, help="servers listen on 127.0.0.1 above this port")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make what is not there yet; running it twice changes nothing."""
        started, accounts = time.monotonic(), max(1, options["accounts"])
        try:
            keys.must_fit()
            actor = platform_actor()
            front, region_names = self._world(actor, options["load_balancer"])
            apply_document(actor=actor, objects=seeding.account_documents(accounts), reason="seed")
            names = seeding.account_names(accounts)
            documents: list[dict[str, Any]] = []
            for name, count in zip(names, seeding.shares(options["routes"], accounts), strict=True):
                documents += seeding.documents_of(
                    name, count, load_balancer=front, regions=region_names, port=options["port"]
                )
            self._apply_in_parts(actor, documents)
        except Invalid as invalid:
            raise CommandError(
                "\n".join(f"{field_error.pointer}: {field_error.detail}" for field_error in invalid.field_errors[:20])
            ) from None
        except SpillwayError as error:
            raise CommandError(error.detail) from error
        spent = time.monotonic() - started
        self.stdout.write(f"{options['routes']} routes of {accounts} accounts in {spent:.1f} s.")

    def _apply_in_parts(self, actor: Actor, documents: list[dict[str, Any]]) -> None:
        """In transactions of about a second, so that nobody else waits for the database longer than a moment."""
        start, part = 0, FIRST_PART
        while start < len(documents):
            began = time.monotonic()
            apply_document(actor=actor, objects=documents[start : start + part], reason="seed")
            start, part = start + part, next_part(part, time.monotonic() - began)
            time.sleep(PAUSE_S if start < len(documents) else 0)

    def _world(self, actor: Actor, wanted: str) -> tuple[str, list[str]]:
        rows = load_balancers(actor)
        front = (rows.filter(name=wanted) if wanted else rows).first()
        region_names = list(
            regions(actor).filter(fleets__local_development=True).values_list("name", flat=True).distinct()
        )
        if front is None or not region_names:
            raise CommandError("Apply a document first: a load balancer and fleets for local development.")
        return front.name, region_names


def next_part(part: int, held_s: float) -> int:
    """How many documents to write next, after so many held the database for so long."""
    return max(LEAST_PART, min(MOST_PART, 2 * part, int(part * HOLD_S / max(held_s, 0.001))))
