"""The audit log: search, one entry with what it changed, and files to take away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse

from apps.audit.exporting import csv_lines, json_lines
from apps.audit.filters import filter_entries
from apps.audit.models import Entry
from apps.audit.selectors import entries, in_batches, words_of
from apps.core.errors import FieldError, Invalid, NotFound
from apps.web.accounts.audit_objects import pages_of_objects
from apps.web.accounts.audit_words import action_of, kind_of, word_of
from apps.web.finding.sorting import chips
from apps.web.kit import differences
from apps.web.kit.pages import PageRequest, page, show
from apps.web.kit.worst_first import newest_page

PER_PAGE = 50
# What each filter is called where one sees that it is set.
LABELS = {
    "q": "Search",
    "account": "Account",
    "kind": "Kind",
    "action": "Action",
    "actor": "Actor",
    "token": "Token",
    "since": "From",
    "until": "Until",
    "request_id": "Request",
    "object": "Object",
    "object_id": "Object ID",
}
FILES: dict[str, tuple[str, Callable[[Iterable[Entry]], Iterator[str]]]] = {
    "csv": ("text/csv; charset=utf-8", csv_lines),
    "jsonl": ("application/jsonl; charset=utf-8", json_lines),
}


@page
def index(request: PageRequest) -> HttpResponse:
    """Newest first, a keyset page at a time (`?before=`), narrowed by the query parameters of the API."""
    actor, chosen = request.actor, request.GET
    context: dict[str, Any] = {
        "chosen": chosen,
        "filtered": any(chosen.get(name) for name in LABELS),
        "chips": chips(chosen, LABELS),
        "words": words_of(actor),
    }
    try:
        rows = filter_entries(entries(actor), chosen)
    except Invalid as error:
        return show(request, "pages/audit/list.html", context | {"field_errors": error.field_errors}, status=422)
    found, around = newest_page(rows.defer("before", "after"), chosen.get("before", ""), PER_PAGE)
    context["rows"] = [(row, f"{kind_of(row.object_kind)} {word_of(row.action)}") for row in found]
    return show(request, "pages/audit/list.html", context | around)


@page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """One entry: who, why, from where, and the difference that it made."""
    row = entries(request.actor).filter(pk=pk).first() if pk < 2**63 else None
    if row is None:
        raise NotFound("There is no such entry, or you may not see it.")
    context = {
        "row": row,
        "action": action_of(row.action),
        "title": f"{kind_of(row.object_kind)} {word_of(row.action)}",
        "lines": differences.of_json(row.before, row.after),
        "object_url": pages_of_objects(request.actor, [row]).get(row.pk, ""),
    }
    return show(request, "pages/audit/detail.html", context)


@page
def export(request: PageRequest, kind: str) -> HttpResponse:
    """Everything that the filters leave, streamed; the file's name says nothing that anybody typed."""
    content_type, write = FILES[kind]
    try:
        rows = filter_entries(entries(request.actor), request.GET)
    except Invalid as error:
        return _refused(error.field_errors)
    response = StreamingHttpResponse(write(in_batches(rows)), content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="spillway-audit.{kind}"'
    # Nothing is kept back until the end: neither here nor in a proxy.
    response["X-Accel-Buffering"] = "no"
    return response  # type: ignore[return-value] # pages answer both, Django's types say HttpResponseBase


def _refused(field_errors: Iterable[FieldError]) -> HttpResponse:
    text = "\n".join(field_error.detail for field_error in field_errors)
    return HttpResponse(f"{text}\n", status=422, content_type="text/plain; charset=utf-8")
