"""What an account wants of its request log and has in it; questions in SQL and exports, which are not for viewers."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.core.errors import Forbidden
from apps.drivers.logs import contract
from apps.drivers.logs.contract import ExportFormat, Facet, SqlAnswer, Usage
from apps.logs.models import LogSettings, NodeLog
from apps.logs.searching import Question, answering, question

__all__ = [
    "COUNTED", "MEDIA_TYPES", "STATUS_CLASSES", "ExportFormat",
    "archive", "collecting", "facets", "may_ask_much", "settings_of", "sql", "usage",
]  # fmt: skip
COUNTED, STATUS_CLASSES = contract.FACET_FIELDS, contract.STATUS_CLASSES
MEDIA_TYPES: dict[ExportFormat, str] = {
    "parquet": "application/vnd.apache.parquet",
    "jsonl.gz": "application/gzip",
}


def sql(actor: Actor, *, account: object, text: str, start: datetime, end: datetime) -> SqlAnswer:
    """The answer to one SELECT over the account's lines of the window. Raises Forbidden, Invalid, NotAnswered."""
    may_ask_much(actor, "ask in SQL")
    asked = question(actor, account=account, text="", start=start, end=end)
    with answering("/sql") as store:
        return store.sql(asked.account, text, start=asked.query.start, end=asked.query.end)


def facets(asked: Question, fields: Sequence[str], *, limit: int) -> tuple[Facet, ...]:
    """The most frequent values of each field. Raises NotAnswered, and Invalid for a field that is not counted."""
    with answering("/fields") as store:
        return store.facets(asked.account, asked.query, fields, limit=limit)


def archive(actor: Actor, asked: Question, kind: ExportFormat) -> BinaryIO:
    """The lines that fit as an open file that nobody else finds, oldest first. Raises Forbidden, Invalid, NotAnswered.

    It is whole before its first byte is sent, so that what cannot be answered is an error and not half a file.
    """
    may_ask_much(actor, "export request lines")
    with tempfile.TemporaryDirectory(prefix="spillway-archive-") as folder, answering("/format") as store:
        target = Path(folder, "lines")
        store.export(asked.account, asked.query, target, kind)
        return target.open("rb")


def usage(account: Account) -> Usage:
    """What the account has stored. Raises NotAnswered."""
    with answering("/account") as store:
        return store.usage(account.pk)


def settings_of(account: Account) -> LogSettings:
    """What the account wants; a row that is not stored where it never said anything."""
    return LogSettings.objects.filter(account=account).first() or LogSettings(account=account)


def collecting() -> list[NodeLog]:
    """How the lines of each node come in, for operators."""
    return list(NodeLog.objects.select_related("node").order_by("node__name"))


def may_ask_much(actor: Actor, what: str) -> None:
    """Raise Forbidden for viewers: they search, and leave to others what costs much."""
    if actor.role == Membership.Role.VIEWER:
        raise Forbidden(f"Your role is viewer, which searches request lines. Only editors and admins may {what}.")
