"""Request lines as other log systems read them: syslog (RFC 5424, framed as in RFC 5425) and OTLP as JSON; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from apps.drivers.logs.contract import NUMBER_FIELDS, SAMPLED, Record
from apps.drivers.logs.files.columns import NAMES, millis

# Receivers should take messages of so many bytes (RFC 5425, section 4.3.1).
LONGEST_MESSAGE = 8192
CUT_TO = 1000
LOCAL0 = 16
# Severity of syslog, number and text of OTLP.
ERROR, WARNING, INFO = (3, 17, "ERROR"), (4, 13, "WARN"), (6, 9, "INFO")
# What OpenTelemetry's conventions call it; everything else is below `spillway.`.
CONVENTIONS = {
    "method": "http.request.method",
    "status": "http.response.status_code",
    "host": "server.address",
    "path": "url.path",
    "query": "url.query",
    "client": "client.address",
    "bytes_in": "http.request.size",
    "bytes_out": "http.response.size",
}
HEADER = "http.request.header."
_NOT_PRINTABLE = re.compile(r"[^!-~]")


def syslog(records: Iterable[Record], accounts: Mapping[int, str]) -> bytes:
    """Messages one after the other, each with its length in front."""
    return b"".join(b"%d %b" % (len(message), message) for each in records for message in [_message(each, accounts)])


def _message(record: Record, accounts: Mapping[int, str]) -> bytes:
    severity, _, _ = _severity(record)
    host = _NOT_PRINTABLE.sub("-", record.node)[:255] or "-"
    head = f"<{LOCAL0 * 8 + severity}>1 {_time(record.time)} {host} spillway - {record.kind} - "
    fields = _fields(record, accounts)
    found = (head + json.dumps(fields)).encode()
    if len(found) > LONGEST_MESSAGE:
        short = {name: value[:CUT_TO] if isinstance(value, str) else value for name, value in fields.items()}
        short.pop("headers", None)
        found = (head + json.dumps(short | {"cut": True})).encode()
    return found if len(found) <= LONGEST_MESSAGE else (head + json.dumps(_least(record))).encode()


def _least(record: Record) -> dict[str, object]:
    """What identifies a line whose text is too long however it is cut."""
    return {"id": record.id[:100], "status": record.status, "cut": True}


def otlp(records: Sequence[Record], accounts: Mapping[int, str], observed: datetime) -> dict[str, Any]:
    """The body of a request to `/v1/logs`, as the JSON encoding of protobuf has it: 64 bits are text."""
    return {
        "resourceLogs": [
            {
                "resource": resource,
                "scopeLogs": [
                    {
                        "scope": {"name": "spillway.requests"},
                        "logRecords": [_log_record(each, accounts, observed) for each in group],
                    }
                ],
            }
            for resource, group in by_node(records)
        ]
    }


def by_node(records: Sequence[Record]) -> Iterator[tuple[dict[str, Any], Iterable[Record]]]:
    """Each node as a resource of OpenTelemetry, with its records in the order of their time."""
    ordered = sorted(records, key=lambda each: (each.node, each.time))
    for node, group in groupby(ordered, key=lambda each: each.node):
        yield {"attributes": [attribute("service.name", "spillway"), attribute("service.instance.id", node)]}, group


def _log_record(record: Record, accounts: Mapping[int, str], observed: datetime) -> dict[str, Any]:
    _, number, text = _severity(record)
    said = f"{record.method} {record.host}{record.path}" if record.kind == "request" else "connection"
    traced = {"traceId": record.trace_id, "spanId": record.span_id, "flags": int(record.sampled == SAMPLED)}
    return {
        "timeUnixNano": str(millis(record.time) * 10**6),
        "observedTimeUnixNano": str(millis(observed) * 10**6),
        "severityNumber": number,
        "severityText": text,
        "body": {"stringValue": clean(f"{said} {record.status or '-'}")},
        "attributes": [attribute(name, value) for name, value in named_of(record, accounts).items()],
        **(traced if record.trace_id else {}),
    }


def named_of(record: Record, accounts: Mapping[int, str]) -> dict[str, object]:
    """What a line says, by the names of OpenTelemetry's conventions; trace and span have fields of their own there."""
    fields = _fields(record, accounts)
    for name in ("time", "trace_id", "span_id"):
        fields.pop(name, None)
    headers = fields.pop("headers", {})
    named = {CONVENTIONS.get(name, f"spillway.{name}"): value for name, value in fields.items()}
    if isinstance(headers, dict):
        named |= {f"{HEADER}{name.lower()}": value for name, value in headers.items()}
    return named


def attribute(name: str, value: object) -> dict[str, Any]:
    """A name and its value: a number, text, or a list of texts."""
    if isinstance(value, list):
        return {
            "key": clean(name),
            "value": {"arrayValue": {"values": [{"stringValue": clean(each)} for each in value]}},
        }
    if isinstance(value, int):
        return {"key": clean(name), "value": {"intValue": str(value)}}
    return {"key": clean(name), "value": {"stringValue": clean(str(value))}}


def _fields(record: Record, accounts: Mapping[int, str]) -> dict[str, object]:
    """What the line has; what is empty is left out."""
    found: dict[str, object] = {"time": _time(record.time), "account": accounts.get(record.account, "")}
    for name in NAMES:
        value = getattr(record, name)
        if name != "time" and value not in ("", None, {}):
            found[name] = dict(value) if name == "headers" else value if name in NUMBER_FIELDS else str(value)
    return found


def _severity(record: Record) -> tuple[int, int, str]:
    if record.status is None:
        return INFO
    return ERROR if record.status >= 500 else WARNING if record.status >= 400 else INFO


def _time(moment: datetime) -> str:
    utc = moment.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03}Z"


def clean(text: str) -> str:
    """Text that UTF-8 has: a half of a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode()
