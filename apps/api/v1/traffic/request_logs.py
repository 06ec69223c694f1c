"""Request lines: searched, counted, one by its id, asked in SQL; and what an account wants of its log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from django.http import FileResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.models import Account
from apps.api.v1.protocol import requests
from apps.api.v1.views import page_response
from apps.api.v1.writes import no_dry_run
from apps.core.errors import FieldError, Invalid, NotFound
from apps.logs import searching, selectors, services
from apps.logs.models import LogSettings
from apps.logs.objectives.standing import missing_until
from apps.logs.patterns import PATTERNS, USUAL_LINK_MBPS
from apps.logs.words import ending_of
from apps.members.reading import account_named

USUAL = timedelta(hours=1)
MOST_BINS, MOST_VALUES, MOST_LINK_MBPS = 400, 100, 1_000_000
FACETS = "status,route,pool,server,region,why"
QUESTION = ("account", "sql", "since", "until")
POINTERS = {"/from": "/since", "/to": "/until"}
Shape = dict[str, Any]


def shape(record: Any, owner: Account) -> Shape:
    """A line; milliseconds are null where the request never got that far. `ended` is its termination in words."""
    own = {"account": owner.name, "headers": dict(record.headers), "ended": ending_of(record.termination)}
    return {**asdict(record), **own}


def settings_shape(row: LogSettings) -> Shape:
    """What an account wants, and what it has."""
    used = selectors.usage(row.account)
    return {
        "account": row.account.name,
        "version": row.version,
        "spec": services.document(row),
        "lines": used.lines,
        "bytes": used.bytes,
        "oldest": used.oldest,
    }


@contextmanager
def _named() -> Iterator[None]:
    """Errors of the window name the parameters as they are called here."""
    try:
        yield
    except Invalid as error:
        renamed = (replace(each, pointer=POINTERS.get(each.pointer, each.pointer)) for each in error.field_errors)
        raise Invalid(renamed) from error


def _instant(given: object, name: str, usual: datetime) -> datetime:
    if given is None:
        return usual
    found = searching.instant_of(given)
    if found is None or found.tzinfo is None:
        detail = f"Write {name} as 2026-11-23T08:00:00Z, with its offset."
        raise Invalid([FieldError(f"/{name}", "not_instant", detail)])
    return found


def window(given: Any) -> tuple[datetime, datetime]:
    """What `since` and `until` say, the last hour by default."""
    end = _instant(given.get("until"), "until", searching.until_now(USUAL)[1])
    return _instant(given.get("since"), "since", end - USUAL), end


def _asked(request: Request) -> tuple[searching.Question, Account]:
    """The question that the query of the URL asks: `account`, `filter`, `since`, `until`."""
    actor, given = requests.actor_of(request), request.query_params
    start, end = window(given)
    owner = account_named(actor, given.get("account"))
    text = given.get("filter", "")
    with _named():
        return searching.question(actor, account=given.get("account"), text=text, start=start, end=end), owner


def _missing(asked: searching.Question) -> Shape:
    """What the page of requests says of the same window above its lines."""
    return {"missing": missing_until(asked.query.end)}


class LineList(APIView):
    """GET request lines, newest first."""

    def get(self, request: Request) -> Response:
        """`filter`, `since`, `until`, `account`, `limit`, `cursor`; the last hour unless a time is given."""
        asked, owner = _asked(request)
        limit = requests.number(request, "limit", 100, 1, requests.MAX_LIMIT)
        found = searching.search(asked, limit=limit, cursor=request.query_params.get("cursor", ""))
        response = page_response(request, [shape(each, owner) for each in found.records], found.cursor or None)
        response.data |= _missing(asked)
        return response


class LineDetail(APIView):
    """GET one request by its id."""

    def get(self, request: Request, record: str) -> Response:
        """`account`, for operators."""
        actor, name = requests.actor_of(request), request.query_params.get("account")
        owner = account_named(actor, name)
        found = searching.one(actor, account=name, record_id=record)
        if found is None:
            raise NotFound("There is no such request: it is not stored yet or not any more, or you may not see it.")
        return Response(shape(found, owner))


class Bins(APIView):
    """GET how many lines there were over time, by status class."""

    def get(self, request: Request) -> Response:
        """`filter`, `since`, `until`, `account`, and about how many `bins`."""
        asked, _ = _asked(request)
        found = searching.histogram(asked, bins=requests.number(request, "bins", 60, 1, MOST_BINS))
        bins = [{"start": each.start, "counts": dict(each.counts)} for each in found.bins]
        return Response({"step_s": found.step_seconds, "bins": bins, **_missing(asked)})


class Facets(APIView):
    """GET the most frequent values of fields."""

    def get(self, request: Request) -> Response:
        """`filter`, `since`, `until`, `account`, `fields` separated by commas, `limit` values of each."""
        asked, _ = _asked(request)
        names = request.query_params.get("fields", FACETS).split(",")
        if len(names) > len(selectors.COUNTED):
            raise Invalid([FieldError("/fields", "too_many", f"Name at most {len(selectors.COUNTED)} fields.")])
        found = selectors.facets(asked, names, limit=requests.number(request, "limit", 10, 1, MOST_VALUES))
        facets = [
            {"field": each.field, "values": [{"value": value, "lines": lines} for value, lines in each.values]}
            for each in found
        ]
        return Response({"facets": facets, **_missing(asked)})


class Pattern(APIView):
    """GET what a prepared search finds, in sentences and as its largest groups."""

    def get(self, request: Request, name: str) -> Response:
        """`filter`, `since`, `until`, `account`, and `link_mbps` for bytes per response."""
        asked, _ = _asked(request)
        link = requests.number(request, "link_mbps", USUAL_LINK_MBPS, 1, MOST_LINK_MBPS)
        found = selectors.pattern(asked, name, link_mbps=link)
        pattern = PATTERNS[name]
        rows = [{"cells": each.cells, "filter": each.words} for each in found.rows]
        return Response(
            {
                "name": name,
                "title": pattern.title,
                "about": pattern.about,
                "sentences": found.sentences,
                "columns": pattern.columns,
                "rows": rows,
                **_missing(asked),
            }
        )


class Sql(APIView):
    """POST one SELECT over the table `requests`; not for viewers."""

    scope, scope_noun = "read", "request-logs"

    def post(self, request: Request) -> Response:
        """`{sql, since?, until?, account?}`."""
        data = requests.only(request, QUESTION)
        text = data.get("sql")
        if not isinstance(text, str):
            raise Invalid([FieldError("/sql", "not_text", "Write the statement as text: SELECT … FROM requests.")])
        start, end = window(data)
        with _named():
            found = selectors.sql(
                requests.actor_of(request), account=data.get("account"), text=text, start=start, end=end
            )
        answer = {"columns": found.columns, "rows": found.rows, "truncated": found.truncated}
        return Response(answer | {"missing": missing_until(end)})


class Archive(APIView):
    """GET request lines as one file, oldest first; not for viewers."""

    def get(self, request: Request, kind: selectors.ExportFormat) -> FileResponse:
        """`filter`, `since`, `until`, `account`; `kind` is `parquet` or `jsonl.gz`."""
        asked, owner = _asked(request)
        opened = selectors.archive(requests.actor_of(request), asked, kind)
        return FileResponse(
            opened,
            as_attachment=True,
            filename=f"requests-{owner.name}.{kind}",
            content_type=selectors.MEDIA_TYPES[kind],
        )


class Deletion(APIView):
    """POST to delete lines; for admins of the account, and for operators."""

    def post(self, request: Request) -> Response:
        """`{before, account?}`: lines of whole hours that ended before this time go."""
        data = requests.only(request, ("before", "account"))
        no_dry_run(request)
        before = data.get("before")
        if before is None:
            raise Invalid([FieldError("/before", "required", "Say before which time, as 2026-11-23T08:00:00Z.")])
        gone = services.delete_lines(
            actor=requests.actor_of(request),
            account=data.get("account"),
            before=_instant(before, "before", searching.until_now(USUAL)[0]),
            reason=requests.reason(request),
        )
        return Response({"lines": gone})


class Settings(APIView):
    """GET and PATCH what an account wants of its request log; a change needs `If-Match`."""

    def get(self, request: Request) -> Response:
        """`account`, for operators."""
        row = selectors.settings_of(account_named(requests.actor_of(request), request.query_params.get("account")))
        return Response(settings_shape(row), headers={"ETag": requests.etag(row.version)})

    def patch(self, request: Request) -> Response:
        """`{spec: {retention_days?, mask_addresses?, mask_values_of?}}`: what is left out stays."""
        actor, name = requests.actor_of(request), request.query_params.get("account")
        data = requests.only(request, ("spec",))
        no_dry_run(request)
        present = selectors.settings_of(account_named(actor, name))
        row = services.change_settings(
            actor=actor,
            account=name,
            spec=data.get("spec"),
            expected_version=requests.expected_version(request, present=present.version),
            reason=requests.reason(request),
        )
        return Response(settings_shape(row), headers={"ETag": requests.etag(row.version)})
