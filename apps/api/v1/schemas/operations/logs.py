"""What each URL of the request log does."""

from __future__ import annotations

from dataclasses import replace

from apps.api.v1.schemas import request_lines as logs
from apps.api.v1.schemas.operations.building import (
    READ_REFUSALS,
    Operation,
    Table,
    at_once,
    change,
    create,
    detail,
    listing,
    of_one,
    read,
    remove,
    write,
)

WHICH = ("filter", "since", "until", "account")
REFUSES = (*READ_REFUSALS, 503)
OPERATIONS: Table = {
    ("log-forwards-list", "GET"): listing(logs.LogForward, "log forwards", "name", "account"),
    ("log-forwards-list", "POST"): at_once(create(logs.LogForward, logs.LogForwardEnvelope, "a log forward")),
    ("log-forwards-detail", "GET"): detail(logs.LogForward, "a log forward"),
    ("log-forwards-detail", "PATCH"): at_once(
        change("Change a log forward", {200: logs.LogForward}, logs.LogForwardPatch)
    ),
    ("log-forwards-detail", "DELETE"): at_once(remove("a log forward")),
    ("log-forwards-test", "POST"): of_one("Send a test line", {200: logs.LogForwardTested}),
    ("request-logs-list", "GET"): replace(
        listing(logs.RequestLine, "request lines", *WHICH), shown={200: logs.RequestLinePage}, refuses=REFUSES
    ),
    ("request-logs-detail", "GET"): replace(
        detail(logs.RequestLine, "a request line by its ID", "account", version=False), refuses=(*REFUSES, 404)
    ),
    ("request-logs-histogram", "GET"): replace(
        detail(logs.LineHistogram, "the number of request lines over time", *WHICH, "bins", version=False),
        refuses=REFUSES,
    ),
    ("request-logs-facets", "GET"): replace(
        detail(logs.LineFacets, "the most frequent values of request lines", *WHICH, "fields", "limit", version=False),
        refuses=REFUSES,
    ),
    ("request-logs-pattern", "GET"): replace(
        detail(logs.RequestPattern, "what a prepared search finds", *WHICH, "link_mbps", version=False),
        refuses=(*REFUSES, 404),
    ),
    **read("saved-searches", logs.SavedSearch, "a saved search", "saved searches", "account", version=False),
    ("saved-searches-list", "POST"): at_once(create(logs.SavedSearch, logs.CreateSavedSearch, "a saved search")),
    ("saved-searches-detail", "DELETE"): of_one("Delete a saved search and its history", {204: None}),
    ("saved-searches-history", "GET"): replace(
        detail(logs.MetricHistory, "the minutes of a metric", "since", "until", version=False),
        refuses=(*READ_REFUSALS, 404),
    ),
    ("request-logs-sql", "POST"): Operation(
        summary="Ask request lines in SQL",
        shown={200: logs.LogAnswer},
        sent=logs.LogQuestion,
        refuses=(400, *REFUSES, 413, 415),
    ),
    ("request-logs-archive", "GET"): Operation(
        summary="Read request lines as a file",
        shown={200: None},
        query=WHICH,
        refuses=(*REFUSES, 404),
        media=("application/vnd.apache.parquet", "application/gzip"),
    ),
    ("request-logs-delete", "POST"): at_once(
        write("Delete request lines", {200: logs.LinesDeleted}, logs.LineDeletion),
    ),
    ("request-logs-settings", "GET"): replace(
        detail(logs.LogSettings, "what an account wants of its request log", "account", version=False),
        refuses=REFUSES,
        tells=("ETag",),
    ),
    ("request-logs-settings", "PATCH"): at_once(
        replace(
            change(
                "Change what an account wants of its request log",
                {200: logs.LogSettings},
                logs.LogSettingsPatch,
                "account",
            ),
            tells=("ETag", "Idempotency-Replayed"),
        )
    ),
}
