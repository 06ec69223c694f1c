"""What an account wants of its request log and has in it; patterns; questions in SQL and exports, not for viewers."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.core.errors import Forbidden, NotFound
from apps.definitions.models import Server
from apps.drivers.logs import contract
from apps.drivers.logs.contract import ExportFormat, Facet, Group, SqlAnswer, Usage
from apps.logs.filters import parse
from apps.logs.models import LogSettings
from apps.logs.patterns import MOST_GROUPS, PATTERNS, USUAL_LINK_MBPS, Around, Found, PoolRegion, Weights, found
from apps.logs.searching import Question, answering, question

__all__ = [
    "COUNTED", "MEDIA_TYPES", "STATUS_CLASSES", "ExportFormat",
    "archive", "facets", "may_ask_much", "pattern", "settings_of", "sql", "usage",
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


def pattern(asked: Question, name: str, *, link_mbps: int = USUAL_LINK_MBPS) -> Found:
    """What a prepared search finds among the lines of the question. Raises NotFound, NotAnswered."""
    wanted = PATTERNS.get(name)
    if wanted is None:
        raise NotFound(f"There is no such pattern; there are {', '.join(PATTERNS)}.")
    query = replace(asked.query, conditions=(*asked.query.conditions, *parse(wanted.words)))
    with answering("/filter") as store:
        groups = store.groups(asked.account, query, wanted.fields, limit=MOST_GROUPS)
    seconds = (query.end - query.start).total_seconds()
    weights = _weights(asked.account, groups) if "server" in wanted.fields else {}
    return found(wanted, groups, Around(seconds, weights, link_mbps))


def _weights(account: int, groups: Sequence[Group]) -> Weights:
    """Weights of the servers of these pools, as they are now."""
    pools = {each.values[0] for each in groups}
    rows = Server.objects.filter(backend__pool__account_id=account, backend__pool__name__in=pools, backup=False)
    weights: dict[PoolRegion, dict[str, int]] = defaultdict(dict)
    for pool, region, server, weight in rows.values_list(
        "backend__pool__name", "backend__region__name", "name", "weight"
    ):
        weights[pool, region][server] = weight
    return weights


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


def may_ask_much(actor: Actor, what: str) -> None:
    """Raise Forbidden for viewers: they search, and leave to others what costs much."""
    if actor.role == Membership.Role.VIEWER:
        raise Forbidden(f"Your role is viewer, which searches request lines. Only editors and admins may {what}.")
