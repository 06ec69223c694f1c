"""One SELECT over an account's request lines, with what it finds as a table or as CSV; not for viewers."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse, QueryDict

from apps.accounts.selectors import accounts
from apps.audit.exporting import cell
from apps.core.errors import FieldError, Invalid
from apps.logs import selectors
from apps.logs.searching import NotAnswered, dialect
from apps.web.kit.pages import PageRequest, page, show
from apps.web.requests.asked import LENGTHS, Asked

# A page shows so many rows; the CSV has all of the answer.
SHOWN = 200
LONGEST_CELL = 300
_QUANTILE = re.compile(r"quantile_cont\((\w+), ([0-9.]+)\)")
EXAMPLES = (
    (
        "Server errors per server",
        """SELECT server, count(*) AS lines,
       count(*) FILTER (WHERE status >= 500) AS errors,
       round(100.0 * errors / lines, 2) AS percent
FROM requests WHERE server <> ''
GROUP BY server ORDER BY errors DESC, server""",
    ),
    (
        "p95 per route",
        """SELECT route, count(*) AS lines,
       quantile_cont(total_ms, 0.5) AS p50_ms,
       quantile_cont(total_ms, 0.95) AS p95_ms
FROM requests WHERE route <> ''
GROUP BY route ORDER BY p95_ms DESC""",
    ),
    (
        "Top clients",
        """SELECT client, count(*) AS lines, sum(bytes_out) AS bytes
FROM requests
GROUP BY client ORDER BY lines DESC LIMIT 20""",
    ),
    (
        "Per minute and status",
        """SELECT date_trunc('minute', time) AS minute, status, count(*) AS lines
FROM requests
GROUP BY ALL ORDER BY minute DESC, status""",
    ),
)


def examples(of: str) -> list[tuple[str, str]]:
    """What may be asked, each with its name, in the dialect of a store."""
    return [(name, _QUANTILE.sub(r"quantile(\2)(\1)", text) if of == "ClickHouse" else text) for name, text in EXAMPLES]


@dataclass(frozen=True, slots=True)
class Table:
    """What a statement found, as text to show; `more` rows are in the CSV only, `truncated` that there were others."""

    columns: list[str]
    rows: list[list[str]]
    more: int
    truncated: bool


@page
def ask(request: PageRequest) -> HttpResponse:
    """The statement and its window; sent, also what it finds. An address may carry a statement, which is not run."""
    selectors.may_ask_much(request.actor, "ask in SQL")
    sent = request.POST if "sql" in request.POST else request.GET
    asked, text = Asked.read(_window_of(sent)), sent.get("sql", EXAMPLES[0][1]).replace("\r\n", "\n")
    context: dict[str, Any] = {
        "asked": asked,
        "text": text,
        "lengths": [(word, title) for word, (title, _) in LENGTHS.items()],
        "accounts": accounts(request.actor) if request.actor.is_operator else (),
        "examples": examples(dialect()),
    }
    if "sql" not in request.POST:
        return show(request, "pages/requests/sql.html", context)
    try:
        start, end = asked.window()
        found = selectors.sql(request.actor, account=asked.account or None, text=text, start=start, end=end)
    except Invalid as error:
        errors = [FieldError(each.pointer, each.code, plain(each.detail)) for each in error.field_errors]
        return show(request, "pages/requests/sql.html", context | {"field_errors": errors}, status=422)
    except NotAnswered as error:
        return show(request, "pages/requests/sql.html", context | {"not_answered": error.detail})
    if sent.get("as") == "csv":
        return _csv(found.columns, found.rows)
    shown = [[_short(value) for value in row] for row in found.rows[:SHOWN]]
    table = Table(list(found.columns), shown, max(0, len(found.rows) - SHOWN), found.truncated)
    return show(request, "pages/requests/sql.html", context | {"table": table})


def plain(message: str) -> str:
    """What DuckDB says of a statement, without its own names for kinds of errors."""
    kind, _, rest = message.partition(" Error: ")
    return rest if rest and len(kind.split()) <= 2 else message


def _window_of(sent: QueryDict) -> QueryDict:
    """The fields of the window: with a length, what `from` and `to` may still say does not count."""
    found = sent.copy()
    if found.get("last"):
        for name in ("from", "to"):
            found.pop(name, None)
    return found


def _short(value: object) -> str:
    text = cell(value)
    return text if len(text) <= LONGEST_CELL else text[:LONGEST_CELL] + "…"


def _csv(columns: tuple[str, ...], rows: tuple[tuple[object, ...], ...]) -> HttpResponse:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([cell(each) for each in columns])
    writer.writerows([cell(value) for value in row] for row in rows)
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="spillway-answer.csv"'
    return response
