"""The reads: what people and programs look for among the request lines of one account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.errors import FieldError, Invalid, SpillwayError
from apps.drivers.logs.contract import (
    Bin,
    Facet,
    Histogram,
    LogStore,
    LogStoreError,
    Page,
    Query,
    Record,
    Rejected,
)
from apps.drivers.logs.registry import open_logs
from apps.logs.filters import FilterError, parse
from apps.members.reading import account_named

__all__ = [
    "Bin", "Facet", "Histogram", "NotAnswered", "Page", "Question", "Record",
    "facets", "histogram", "one", "question", "search", "until_now",
]  # fmt: skip
LONGEST_WINDOW = timedelta(days=31)
MOST_LINES = 1000


class NotAnswered(SpillwayError):
    """The store of request lines could not answer now, or the question was too large; the sentence says which."""

    status = 503
    title = "No answer"


@dataclass(frozen=True, slots=True)
class Question:
    """Whose lines (the account's primary key), and which of them."""

    account: int
    query: Query


def question(actor: Actor, *, account: object, text: str, start: datetime, end: datetime) -> Question:
    """What is asked, read and bounded. Raises Invalid with `/account`, `/filter`, `/from` or `/to`."""
    owner = account_named(actor, account)
    errors = [*_window_errors(start, end)]
    try:
        conditions = parse(text)
    except FilterError as error:
        errors.append(FieldError("/filter", "filter", error.message))
        raise Invalid(errors) from error
    if errors:
        raise Invalid(errors)
    return Question(owner.pk, Query(start.astimezone(UTC), end.astimezone(UTC), conditions))


def _window_errors(start: datetime, end: datetime) -> Iterator[FieldError]:
    if start >= end:
        yield FieldError("/to", "order", "The end must be later than the start.")
    elif end - start > LONGEST_WINDOW:
        yield FieldError("/from", "window", f"Choose at most {LONGEST_WINDOW.days} days.")


def search(asked: Question, *, limit: int, cursor: str = "") -> Page:
    """The newest lines that fit, from `cursor` on. Raises NotAnswered, and Invalid for a cursor that is none."""
    with answering() as store:
        return store.search(asked.account, asked.query, limit=min(limit, MOST_LINES), cursor=cursor)


def histogram(asked: Question, *, bins: int) -> Histogram:
    """Counts over time by status class. Raises NotAnswered."""
    with answering() as store:
        return store.histogram(asked.account, asked.query, bins=bins)


def facets(asked: Question, fields: Sequence[str], *, limit: int) -> tuple[Facet, ...]:
    """The most frequent values of each field. Raises NotAnswered."""
    with answering() as store:
        return store.facets(asked.account, asked.query, fields, limit=limit)


def one(actor: Actor, *, account: object, record_id: str) -> Record | None:
    """The line of this id, if the account has it. Raises NotAnswered, Invalid."""
    owner = account_named(actor, account)
    with answering() as store:
        return store.one(owner.pk, record_id)


def until_now(length: timedelta) -> tuple[datetime, datetime]:
    """The window of this length that ends now."""
    end = now()
    return end - length, end


@contextmanager
def answering(pointer: str = "/cursor") -> Iterator[LogStore]:
    """The store; what it rejects is said of the field at `pointer`. Raises NotAnswered, Invalid."""
    try:
        yield open_logs(settings.LOGS_URL)
    except Rejected as error:
        raise Invalid([FieldError(pointer, "rejected", error.message)]) from error
    except LogStoreError as error:
        raise NotAnswered(error.message) from error
