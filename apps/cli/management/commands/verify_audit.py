"""`manage.py verify_audit` computes the chain of the audit log again and says whether it is whole."""

from __future__ import annotations

import logging
import re
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.audit.chain import verify

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    """Exit code 0: whole. 1: broken, with the first position that is wrong."""

    help = "Prove that no entry of the audit log was changed, removed, added in between or swapped."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where to begin, and what was noted there."""
        parser.add_argument("--from-position", type=int, help="begin at this position instead of at the first")
        parser.add_argument("--expect-digest", default="", help="the digest that was noted for that position")

    def handle(self, *args: Any, from_position: int | None, expect_digest: str, **options: Any) -> None:  # noqa: ARG002
        """Verify, say the result, and leave the head in the log so that it can be kept elsewhere."""
        if expect_digest and not re.fullmatch(r"[0-9a-f]{64}", expect_digest):
            raise CommandError("A digest has 64 hexadecimal digits; take it from the log or from an earlier run.")
        if expect_digest and from_position is None:
            raise CommandError("Say the position that had this digest: --from-position.")
        if from_position is not None and from_position < 1:
            raise CommandError("Positions begin at 1.")
        verdict = verify(start=from_position or 1, expected=expect_digest)
        if verdict.broken_at is not None:
            raise CommandError(f"The audit log is broken at position {verdict.broken_at}: {verdict.error}.")
        waiting = f", {verdict.waiting} waiting for their link" if verdict.waiting else ""
        count = f"{verdict.head.position:,}"
        self.stdout.write(f"{count} entries, chain whole, head {verdict.head.digest}{waiting}.")
        logger.info("audit chain whole: position %s, digest %s", verdict.head.position, verdict.head.digest)
