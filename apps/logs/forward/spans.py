"""Sampled requests as spans of OTLP's JSON, by OpenTelemetry's conventions for servers of HTTP; pure.

One span is one request at the load balancer. What a server does in it is the server's own span, whose parent is this
one: it got its id. Where the time went before that (queue, connect, response) are attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from apps.drivers.logs.contract import SAMPLED, Record
from apps.drivers.logs.files.columns import millis
from apps.logs.forward.formats import HEADER, attribute, by_node, clean, named_of

SERVER, ERROR = 2, 2
# Bits of a span's flags: it is sampled; whether its parent is elsewhere is known; and it is.
FLAG_SAMPLED, FLAG_KNOWN, FLAG_REMOTE = 0x001, 0x100, 0x200
# Other methods are not told apart, since clients choose them.
METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"})
OTHER = "_OTHER"


def is_span(record: Record) -> bool:
    """Whether a span is wanted of the request."""
    return record.sampled == SAMPLED and bool(record.trace_id)


def spans(records: Sequence[Record], accounts: Mapping[int, str]) -> dict[str, Any]:
    """The body of a request to `/v1/traces`: ids are hexadecimal there, 64 bits are text."""
    return {
        "resourceSpans": [
            {
                "resource": resource,
                "scopeSpans": [
                    {"scope": {"name": "spillway.requests"}, "spans": [_span(each, accounts) for each in group]}
                ],
            }
            for resource, group in by_node(records)
        ]
    }


def _span(record: Record, accounts: Mapping[int, str]) -> dict[str, Any]:
    begun = record.time - timedelta(milliseconds=record.request_ms or 0)  # a line's time is when its headers were read
    ended = begun + timedelta(milliseconds=record.total_ms or 0)
    parent = {"parentSpanId": record.parent_span_id} if record.parent_span_id else {}
    known = record.method in METHODS
    return {
        "traceId": record.trace_id,
        "spanId": record.span_id,
        **parent,
        "flags": FLAG_SAMPLED | FLAG_KNOWN | (FLAG_REMOTE if parent else 0),
        "name": clean(f"{record.method if known else 'HTTP'} {record.route}".strip()),
        "kind": SERVER,
        "startTimeUnixNano": str(millis(begun) * 10**6),
        "endTimeUnixNano": str(millis(ended) * 10**6),
        "attributes": [attribute(name, value) for name, value in _named(record, accounts, known=known).items()],
        "status": {"code": ERROR} if _failed(record) else {},
    }


def _named(record: Record, accounts: Mapping[int, str], *, known: bool) -> dict[str, object]:
    """What a line says, and what the conventions want of a server beyond it; there, a header is a list of values."""
    said = named_of(record, accounts)
    found = {name: [value] if name.startswith(HEADER) else value for name, value in said.items()}
    found["url.scheme"] = "https" if record.tls else "http"
    if not known:
        found |= {"http.request.method": OTHER, "http.request.method_original": record.method}
    if _failed(record):
        found["error.type"] = str(record.status or OTHER)
    if agent := said.get(f"{HEADER}user-agent"):
        found["user_agent.original"] = agent
    return found


def _failed(record: Record) -> bool:
    """4xx are the client's; without a status nobody was answered."""
    return record.status is None or record.status >= 500
