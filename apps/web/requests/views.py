"""Search among request lines, one request with its reasons and times, and the lines as a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.urls import reverse
from django.utils.http import urlencode

from apps.accounts.models import Account
from apps.accounts.selectors import accounts
from apps.audit.exporting import cell
from apps.core.errors import Invalid, NotFound
from apps.logs import saved, searching
from apps.logs.models import SavedSearch
from apps.logs.objectives.standing import missing_until
from apps.logs.searching import NotAnswered, Question, Record
from apps.logs.words import column_of, ending_of, phases
from apps.web.kit.pages import PageRequest, page, show
from apps.web.requests.asked import LENGTHS, Asked
from apps.web.requests.histogram import drawing
from apps.web.requests.reasons import steps_of

PER_PAGE = 50
BINS = 72
FACETS = {
    "status": "Status",
    "why": "Why",
    "route": "Route",
    "pool": "Pool",
    "server": "Server",
    "region": "Region",
}
# Clients are as many as they like, so no count by minute has them: they are counted by themselves, after the rest.
LATER = {"client": "Client"}
VALUES_OF_A_FACET = 6
# What people look for first.
PREPARED = (
    ("Server errors", "status>=500"),
    ("Slow, over 1 s", "total>1s"),
    ("Overflow", "why:overflow"),
    ("Limit reached", "why:over_limit,held"),
    ("No server up", "why:no_server"),
    ("Client limits", "why:limited"),
)
# A file is for people to look into; archives come from the API.
MOST_EXPORTED = 100_000
COLUMNS = (
    *("time", "id", "status", "method", "host", "path", "route", "pool", "server", "region", "why", "decided_by"),
    *("total_ms", "queue_ms", "connect_ms", "response_ms", "bytes_in", "bytes_out", "client", "node", "termination"),
    *("ended", "trace_id", "span_id"),
)


@page
def index(request: PageRequest) -> HttpResponse:
    """Histogram, facets and lines of a window, newest first; `?partial=found` for following along.

    `?partial=clients` counts the clients, which takes longer than everything else where there are many lines.
    """
    asked = Asked.read(request.GET)
    context = _frame(request, asked)
    every = context["every"]
    try:
        question = asked.question(request.actor)
    except Invalid as error:
        return show(request, "pages/requests/list.html", context | {"field_errors": error.field_errors}, status=422)
    if request.GET.get("partial") == "clients":
        return show(request, "pages/requests/list.html", context | _clients(question, asked))
    try:
        context |= _found(question, asked, every)
    except NotAnswered as error:
        context["not_answered"] = error.detail
    except Invalid as error:
        return show(request, "pages/requests/list.html", context | {"field_errors": error.field_errors}, status=422)
    return show(request, "pages/requests/list.html", context)


def _frame(request: PageRequest, asked: Asked) -> dict[str, Any]:
    """What stands around the lines, whether there are any or not."""
    prepared = [(title, asked.address(q=words), asked.text == words) for title, words in PREPARED]
    return {
        "asked": asked,
        "chips": asked.chips(),
        "lengths": [(word, title) for word, (title, _) in LENGTHS.items()],
        "prepared": prepared,
        "saved": [(row.name, asked.address(q=row.filter), asked.text == row.filter) for row in _saved(request, asked)],
        "save": reverse("web:saved-search-new") + asked.address(),
        "accounts": accounts(request.actor) if request.actor.is_operator else (),
        "every": asked.account == searching.EVERY and request.actor.is_operator,
        "files": [(kind, reverse("web:requests-export", args=[kind]) + asked.address()) for kind in ("csv", "jsonl")],
        "patterns": reverse("web:request-patterns") + asked.address(before=""),
        "follows": asked.address(partial="found") if asked.last and not asked.before else "",
    }


def _saved(request: PageRequest, asked: Asked) -> list[SavedSearch]:
    """The saved searches of the account that is looked at."""
    own = saved.searches(request.actor).filter(account__name=asked.account or request.actor.account.name)
    return list(own) if asked.account.isprintable() else []


def _found(question: Question, asked: Asked, every: bool) -> dict[str, Any]:
    drawn = drawing(searching.histogram(question, bins=BINS), asked)
    lines = searching.search(question, limit=PER_PAGE, cursor=asked.before)
    return {
        "missing": missing_until(question.query.end),
        "drawing": drawn,
        "facets": list(_facets(question, asked, FACETS)) if drawn.total else [],
        "count_clients": asked.address(partial="clients", before=""),
        "rows": list(_rows(lines.records, asked, every)),
        "older": asked.address(before=lines.cursor) if lines.cursor else "",
        "newest_of": _newest_of(len(lines.records), drawn.total) if lines.cursor and not asked.before else "",
    }


def _newest_of(shown: int, count: int) -> str:
    """What the list says while more lines come than it has room for."""
    return f"Newest {shown:,} of {count:,} requests" if count > shown else f"Newest {shown:,} requests"


def _clients(question: Question, asked: Asked) -> dict[str, Any]:
    """The facet of clients; unknown, with the reason, where counting took longer than a question may."""
    try:
        return {"clients": list(_facets(question, asked, LATER))}
    except NotAnswered as error:
        return {"clients_unknown": error.detail}


def _facets(
    question: Question, asked: Asked, titles: Mapping[str, str]
) -> Iterator[tuple[str, list[tuple[str, int, int, str, bool]]]]:
    """Title and values: what is shown, how many, its share of the largest (per cent), the address, whether chosen."""
    for facet in searching.facets(question, tuple(titles), limit=VALUES_OF_A_FACET):
        largest = max((count for _, count in facet.values), default=0)
        values = []
        for value, count in facet.values:
            shown = (column_of(value) if facet.field == "why" else value) or "none"
            values.append((shown, count, 100 * count // largest, *asked.with_word(facet.field, value)))
        if values and any(value for value, _ in facet.values):
            yield titles[facet.field], values


def _rows(records: Sequence[Record], asked: Asked, every: bool) -> Iterator[tuple[Record, str, str, str]]:
    """Each line with its reason, its page, and its account where those of several are shown."""
    owners = Account.objects.filter(pk__in={each.account for each in records}) if every else ()
    names = {owner.pk: owner.name for owner in owners}
    for record in records:
        owner = names.get(record.account, asked.account)
        address = reverse("web:request", args=[record.id]) + (f"?{urlencode({'account': owner})}" if owner else "")
        yield record, column_of(record.why), address, owner if every else ""


@page
def detail(request: PageRequest, record_id: str) -> HttpResponse:
    """One request: which route won, what decided, which server answered, and where the time went."""
    asked = Asked.read(request.GET)
    try:
        record = searching.one(request.actor, account=asked.account or None, record_id=record_id)
    except NotAnswered as error:
        return show(request, "pages/requests/detail.html", {"not_answered": error.detail, "asked": asked}, status=503)
    except Invalid as error:
        raise NotFound(error.detail) from error
    if record is None:
        raise NotFound("There is no such request, its line was deleted, or you may not see it.")
    stretches = phases(record)
    whole = max(1, record.total_ms or 0)
    context = {
        "asked": asked,
        "record": record,
        "steps": steps_of(record, request.actor),
        "ending": ending_of(record.termination),
        "phases": [(each, 100 * each.begun_ms / whole, 100 * (each.took_ms or 0) / whole) for each in stretches],
        "around": _around(record, asked),
        "run": record.test_run.removeprefix("run-") if record.test_run.startswith("run-") else "",
    }
    return show(request, "pages/requests/detail.html", context)


def _around(record: Record, asked: Asked) -> list[tuple[str, str]]:
    """Questions that somebody who looks at this request asks next."""
    fields = (
        ("Same route", "route", record.route),
        ("Same server", "server", record.server),
        ("Same client", "client", record.client),
        ("Same trace", "trace", record.trace_id),
        ("Same capacity run", "test_run", record.test_run),
    )
    list_url = reverse("web:requests")
    empty = Asked("", asked.account, asked.last, asked.start, asked.end, "")
    return [(title, list_url + empty.with_word(field, value)[0]) for title, field, value in fields if value]


@page
def export(request: PageRequest, kind: str) -> HttpResponse:
    """The lines that the filter leaves as `csv` or `jsonl`, newest first, streamed."""
    try:
        question = Asked.read(request.GET).question(request.actor)
        first = searching.search(question, limit=searching.MOST_LINES)  # what is wrong is said before a file begins
    except Invalid as error:
        return refused("\n".join(field_error.detail for field_error in error.field_errors), 422)
    except NotAnswered as error:
        return refused(error.detail, 503, error.wait_s)
    write, content_type = (_csv, "text/csv") if kind == "csv" else (_json, "application/jsonl")
    response = StreamingHttpResponse(write(_all(question, first)), content_type=f"{content_type}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="spillway-requests.{kind}"'
    response["X-Accel-Buffering"] = "no"
    return response  # type: ignore[return-value] # pages answer both, Django's types say HttpResponseBase


def refused(text: str, status: int, wait_s: int | None = None) -> HttpResponse:
    """Why there is no file, and after how long to ask again."""
    headers = {} if wait_s is None else {"Retry-After": str(wait_s)}
    return HttpResponse(f"{text}\n", status=status, content_type="text/plain; charset=utf-8", headers=headers)


def _all(question: Question, lines: searching.Page) -> Iterator[Record]:
    """The records of this page and of those behind it."""
    yield from lines.records
    found = len(lines.records)
    while lines.cursor and found < MOST_EXPORTED:
        lines = searching.search(question, limit=searching.MOST_LINES, cursor=lines.cursor)
        yield from lines.records
        found += len(lines.records)


def _csv(records: Iterable[Record]) -> Iterator[str]:
    line = io.StringIO()
    writer = csv.writer(line)
    writer.writerow(COLUMNS)
    for record in records:
        writer.writerow([cell(_value(record, name)) for name in COLUMNS])
        yield line.getvalue()
        line.seek(0)
        line.truncate()
    yield line.getvalue()


def _value(record: Record, name: str) -> Any:
    return ending_of(record.termination) if name == "ended" else getattr(record, name)


def _json(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        said = {name: _value(record, name) for name in COLUMNS} | {"headers": dict(record.headers)}
        yield json.dumps(said | {"time": record.time.isoformat()}, ensure_ascii=False) + "\n"
