"""The reads: what people and programs look for among the request lines of one account, operators of all together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.core.clock import now
from apps.core.errors import FieldError, Invalid, SpillwayError
from apps.drivers.logs.contract import (
    Bin,
    Busy,
    Facet,
    Histogram,
    LogStore,
    LogStoreError,
    Page,
    Query,
    Record,
    Rejected,
    Whose,
)
from apps.drivers.logs.registry import open_logs
from apps.logs.filters import FilterError, parse
from apps.members.reading import account_named

__all__ = [
    "EVERY", "Bin", "Facet", "Histogram", "NotAnswered", "Page", "Question", "Record",
    "facets", "histogram", "instant_of", "one", "question", "search", "until_now",
]  # fmt: skip
LONGEST_WINDOW = timedelta(days=31)
MOST_LINES = 1000
# In these years an hour more or another zone is still an instant, for us and for every store.
YEARS = range(1970, 2201)
# When places are usually free again, where all were taken.
ASK_AGAIN_S = 2
# What operators write instead of an account for all of them.
EVERY = "*"


class NotAnswered(SpillwayError):
    """The store of request lines could not answer now, or the question was too large; the sentence says which."""

    status = 503
    title = "No answer"

    def __init__(self, detail: str, wait_s: int | None = None) -> None:
        super().__init__(detail)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Question:
    """Whose lines (primary keys of accounts), and which of them."""

    whose: Whose
    query: Query

    @property
    def account(self) -> int:
        """The account, where only one can be asked. Raises Invalid."""
        if not isinstance(self.whose, int):
            raise Invalid([FieldError("/account", "one", "Choose one account: this asks the lines of one alone.")])
        return self.whose


def question(actor: Actor, *, account: object, text: str, start: datetime, end: datetime) -> Question:
    """What is asked, read and bounded; `account` is a name, None for the own one, `EVERY` for all, which operators see.

    Raises Invalid with `/account`, `/filter`, `/from` or `/to`.
    """
    whose = _every() if account == EVERY and actor.is_operator else account_named(actor, account).pk
    errors = [*_window_errors(start, end)]
    try:
        conditions = parse(text)
    except FilterError as error:
        errors.append(FieldError("/filter", "filter", error.message))
        raise Invalid(errors) from error
    if errors:
        raise Invalid(errors)
    return Question(whose, Query(start.astimezone(UTC), end.astimezone(UTC), conditions))


def _every() -> tuple[int, ...]:
    """Accounts that have lines; what was left by one that is deleted is nobody's."""
    with answering("/account") as store:
        return tuple(Account.objects.filter(pk__in=store.accounts()).order_by("pk").values_list("pk", flat=True))


def _window_errors(start: datetime, end: datetime) -> Iterator[FieldError]:
    if start >= end:
        yield FieldError("/to", "order", "The end must be later than the start.")
    elif end - start > LONGEST_WINDOW:
        yield FieldError("/from", "window", f"Choose at most {LONGEST_WINDOW.days} days.")


def search(asked: Question, *, limit: int, cursor: str = "") -> Page:
    """The newest lines that fit, from `cursor` on. Raises NotAnswered, and Invalid for a cursor that is none."""
    with answering() as store:
        return store.search(asked.whose, asked.query, limit=min(limit, MOST_LINES), cursor=cursor)


def histogram(asked: Question, *, bins: int) -> Histogram:
    """Counts over time by status class. Raises NotAnswered."""
    with answering() as store:
        return store.histogram(asked.whose, asked.query, bins=bins)


def facets(asked: Question, fields: Sequence[str], *, limit: int) -> tuple[Facet, ...]:
    """The most frequent values of each field. Raises NotAnswered."""
    with answering() as store:
        return store.facets(asked.whose, asked.query, fields, limit=limit)


def one(actor: Actor, *, account: object, record_id: str) -> Record | None:
    """The line of this id, if the account has it. Raises NotAnswered, Invalid."""
    owner = account_named(actor, account)
    with answering() as store:
        return store.one(owner.pk, record_id)


def instant_of(text: object) -> datetime | None:
    """What a text of ISO 8601 says, naive where it has no zone; None for what says none, or one in no year of ours."""
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found and found.year in YEARS else None


def until_now(length: timedelta) -> tuple[datetime, datetime]:
    """The window of this length that ends now."""
    end = now()
    return end - length, end


def dialect() -> str:
    """In whose SQL the store is asked."""
    return "ClickHouse" if settings.LOGS_URL.startswith("clickhouse") else "DuckDB"


@contextmanager
def answering(pointer: str = "/cursor") -> Iterator[LogStore]:
    """The store; what it rejects is said of the field at `pointer`. Raises NotAnswered, Invalid."""
    try:
        yield open_logs(settings.LOGS_URL)
    except Rejected as error:
        raise Invalid([FieldError(pointer, "rejected", error.message)]) from error
    except LogStoreError as error:
        raise NotAnswered(error.message, ASK_AGAIN_S if isinstance(error, Busy) else None) from error
