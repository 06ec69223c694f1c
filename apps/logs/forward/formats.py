"""Request lines as other log systems read them: syslog (RFC 5424, framed as in RFC 5425) and OTLP as JSON; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from apps.drivers.logs.contract import NUMBER_FIELDS, Record
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
    ordered = sorted(records, key=lambda each: (each.node, each.time))
    return {
        "resourceLogs": [
            {
                "resource": {
                    "attributes": [_attribute("service.name", "spillway"), _attribute("service.instance.id", node)]
                },
                "scopeLogs": [
                    {
                        "scope": {"name": "spillway.requests"},
                        "logRecords": [_log_record(each, accounts, observed) for each in group],
                    }
                ],
            }
            for node, group in groupby(ordered, key=lambda each: each.node)
        ]
    }


def _log_record(record: Record, accounts: Mapping[int, str], observed: datetime) -> dict[str, Any]:
    _, number, text = _severity(record)
    fields = _fields(record, accounts)
    said = f"{record.method} {record.host}{record.path}" if record.kind == "request" else "connection"
    del fields["time"]
    headers = fields.pop("headers", {})
    named = {CONVENTIONS.get(name, f"spillway.{name}"): value for name, value in fields.items()}
    if isinstance(headers, dict):
        named |= {f"http.request.header.{name.lower()}": value for name, value in headers.items()}
    return {
        "timeUnixNano": str(millis(record.time) * 10**6),
        "observedTimeUnixNano": str(millis(observed) * 10**6),
        "severityNumber": number,
        "severityText": text,
        "body": {"stringValue": _clean(f"{said} {record.status or '-'}")},
        "attributes": [_attribute(name, value) for name, value in named.items()],
    }


def _attribute(name: str, value: object) -> dict[str, Any]:
    if isinstance(value, int):
        return {"key": _clean(name), "value": {"intValue": str(value)}}
    return {"key": _clean(name), "value": {"stringValue": _clean(str(value))}}


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


def _clean(text: str) -> str:
    """Text that UTF-8 has: a half of a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode()
