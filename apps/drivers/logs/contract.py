"""The border of the log store: what every store of request lines promises.

Three implementations stand behind it, chosen by URL in `registry.py`: Parquet files in a folder or a bucket, searched
by DuckDB (`parquet.py`), a table of ClickHouse (`clickhouse/`), and an honest fake in memory (`memory.py`).
`tests/conformance/` runs one suite against all of them. Every call names the account as a number of its own; no filter
and no SQL can name another one. What an operator looks for on pages may name several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

Kind = Literal["request", "connection"]
# One account, or several at once.
Whose = int | tuple[int, ...]
ExportFormat = Literal["parquet", "jsonl.gz"]

# What a search may name, by how it is compared.
TEXT_FIELDS = (
    "id", "parent_id", "kind", "node", "fleet", "load_balancer", "listener", "route", "pool", "server", "region",
    "home_region", "why", "decided_by", "termination", "tls", "cipher", "method", "host", "path", "query", "test_run",
    "trace_id", "span_id", "parent_span_id", "sampled",
)  # fmt: skip
NUMBER_FIELDS = (
    "status", "queue_ms", "connect_ms", "response_ms", "total_ms", "request_ms", "bytes_in", "bytes_out",
)  # fmt: skip
ADDRESS_FIELDS = ("client",)
FACET_FIELDS = (
    "status", "load_balancer", "listener", "route", "pool", "server", "node", "region", "home_region", "why",
    "decided_by", "method", "host", "path", "client", "termination", "tls", "kind", "test_run",
)  # fmt: skip
# A condition on a chosen header is on the field `header.<Name>`.
HEADER = "header."
# Where free text is looked for.
SEARCHED_BY_TEXT = ("id", "parent_id", "trace_id", "host", "path", "query", "route", "server", "headers")
# Whether a span is wanted of a request in a trace.
SAMPLED, UNSAMPLED = "yes", "no"
# The bars of a histogram, lowest first; `none` are connections and requests that got no answer.
STATUS_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx", "none")


class LogStoreError(Exception):
    """The store did not do what it was asked; `message` is a sentence for whoever asked."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unavailable(LogStoreError):
    """The store cannot be reached or written now: try again, nothing was acknowledged."""


class Busy(LogStoreError):
    """Too many questions at once, of this account or of all: ask again in a moment."""


class TooLarge(LogStoreError):
    """The question met its ceiling of time, memory or rows; `message` says which and what to do."""


class Rejected(LogStoreError):
    """The question is not one that this store answers (SQL that is no SELECT, a field that is unknown)."""


@dataclass(frozen=True, slots=True)
class Record:
    """One request, or one connection of a listener that knows no requests, with names instead of identifiers.

    Times are milliseconds and None where the request never got that far. `why` is empty when it was served as usual,
    else a word of the glossary; `decided_by` names the policy, list or limit that decided. `id` starts with the
    milliseconds of its time (UUIDv7), so that a search by id knows the hour. `sampled` is `yes` or `no` in a trace.
    """

    time: datetime
    id: str
    node: str
    fleet: str
    account: int
    load_balancer: str
    listener: str
    kind: Kind = "request"
    parent_id: str = ""
    route: str = ""
    pool: str = ""
    server: str = ""
    region: str = ""
    home_region: str = ""
    why: str = ""
    decided_by: str = ""
    status: int | None = None
    termination: str = ""
    queue_ms: int | None = None
    connect_ms: int | None = None
    response_ms: int | None = None
    total_ms: int | None = None
    request_ms: int | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    tls: str = ""
    cipher: str = ""
    client: str = ""
    method: str = ""
    host: str = ""
    path: str = ""
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    test_run: str = ""
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    sampled: str = ""


class Comparison(StrEnum):
    """How a condition compares; `starts` and `contains` are for text, `within` for addresses."""

    IS = "is"
    BELOW = "below"
    AT_MOST = "at most"
    ABOVE = "above"
    AT_LEAST = "at least"
    STARTS = "starts"
    CONTAINS = "contains"
    WITHIN = "within"


@dataclass(frozen=True, slots=True)
class Condition:
    """One word of a filter: the field, how it is compared, and with which values (any of them fits).

    The field `""` is free text: it fits when one of `SEARCHED_BY_TEXT` contains it, in any case.
    A number that a line does not have fits nothing, and so it fits what is negated.
    """

    field: str
    comparison: Comparison
    values: tuple[str | int, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for: from `start` until before `end` (UTC), where all of the conditions hold."""

    start: datetime
    end: datetime
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """Records, newest first; `cursor` continues with older ones and is empty at the end."""

    records: tuple[Record, ...]
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Bin:
    """How many lines of each status class are from `start` until one step later."""

    start: datetime
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Histogram:
    """All bins of the window, the empty ones too; `step_seconds` is how long each of them is."""

    step_seconds: int
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True)
class Facet:
    """The most frequent values of a field, each with its number of lines, the most frequent first."""

    field: str
    values: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Lines that have the same values of some fields, and what is counted of them.

    `failed` have a status from 500 on, `paths` are different ones. Times are those of the response, then of the whole.
    """

    values: tuple[str, ...]
    lines: int
    failed: int
    paths: int
    bytes_out: int
    response_p50_ms: float | None
    total_p95_ms: float | None


@dataclass(frozen=True, slots=True)
class Point:
    """Lines from `start` until one step later; `value` is the percentile of a time, None where no line has it."""

    start: datetime
    lines: int
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the lines of one route ended, from `start` until one step later.

    `failed` have a status from 500 on. Of `timed` lines a response began; so many were `slower` than each bound.
    """

    start: datetime
    route: str
    lines: int
    failed: int
    timed: int
    slower: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SqlAnswer:
    """Rows of an SQL question as plain values of JSON; `truncated` when there were more than the ceiling of rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What an account has in the store; `oldest` is the start of its oldest hour, None when it has nothing."""

    lines: int
    bytes: int
    oldest: datetime | None


def each_of(account: Whose) -> tuple[int, ...]:
    """The accounts that are meant."""
    return (account,) if isinstance(account, int) else account


class LogStore(Protocol):
    """Lines of many accounts. Every call may raise LogStoreError; none blocks longer than its ceiling of time."""

    def store(self, batch_id: str, records: Sequence[Record], *, first: bool = False) -> int:
        """Keep a batch and return how many lines are new: 0 when the batch is stored already.

        When this returns, the lines survive a crash of the machine. Records may belong to several accounts and hours.
        Whoever knows that nobody has tried to store the batch before says `first`: nothing is looked up then.
        """

    def search(self, account: Whose, query: Query, *, limit: int, cursor: str = "") -> Page:
        """The newest records that fit, from `cursor` on."""

    def histogram(self, account: Whose, query: Query, *, bins: int) -> Histogram:
        """Counts over time by status class, in about so many bins."""

    def facets(self, account: Whose, query: Query, fields: Sequence[str], *, limit: int) -> tuple[Facet, ...]:
        """The most frequent values of each field, among what fits."""

    def groups(self, account: int, query: Query, fields: Sequence[str], *, limit: int) -> tuple[Group, ...]:
        """What fits, put together by the values of these fields, the largest groups first."""

    def series(
        self, account: int, query: Query, *, step_seconds: int, of: str = "", percentile: int = 50
    ) -> tuple[Point, ...]:
        """What fits by steps of time, those without lines left out; with the percentile of `of`, a time or a size."""

    def outcomes(
        self, account: int, query: Query, *, step_seconds: int, bounds_ms: Sequence[int]
    ) -> tuple[Outcome, ...]:
        """How what fits ended, by route and by steps of time. A bound is on the time until the response begins."""

    def one(self, account: int, record_id: str) -> Record | None:
        """The record of this id, None when this account has none."""

    def sql(self, account: int, text: str, *, start: datetime, end: datetime) -> SqlAnswer:
        """The answer to one SELECT over the table `requests`: the account's lines of the window, nothing else."""

    def export(self, account: int, query: Query, target: Path, kind: ExportFormat) -> int:
        """Write what fits into a new file, oldest first, and return how many lines it has."""

    def usage(self, account: int) -> Usage:
        """How much the account has stored."""

    def accounts(self) -> tuple[int, ...]:
        """Everybody who has lines here."""

    def delete(self, account: int, before: datetime | None = None) -> int:
        """Delete the account's lines of whole hours that ended before this, or all; return how many lines went."""

    def tidy(self, now: datetime) -> int:
        """Make fewer, larger files of many small ones where that is due; return how many files went into others."""
