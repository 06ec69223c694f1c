"""Send some lines to one log system; the way there is checked as for webhooks: no private address is called."""

from __future__ import annotations

import gzip
import json
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from apps.core import outbound
from apps.core.called_urls import Refused
from apps.core.clock import now
from apps.core.concurrency.backoff import retry_after
from apps.core.secrets.sealing import unseal
from apps.drivers.logs.contract import Record
from apps.logs.forward import formats
from apps.logs.forward.spans import is_span, spans
from apps.logs.models import LogForward

TIMEOUT_S = 10.0
SYSLOG = "syslog+tls"
# The receiver says that it will never take these lines; others may be taken later (OTLP, "Failures").
NEVER = (400, 413, 415, 422)
ANSWER_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: lines that were taken and refused for good, or an error after which they are sent again."""

    sent: int = 0
    refused: int = 0
    error: str = ""
    wish: timedelta | None = None
    again: bool = False


def schemes() -> tuple[str, ...]:
    """What a URL may begin with: without TLS only on a developer's machine."""
    return (SYSLOG, "https", "http") if settings.DEVELOPMENT else (SYSLOG, "https")


def is_syslog(url: str) -> bool:
    """Whether lines go there as syslog; else as OTLP."""
    return urlsplit(url).scheme == SYSLOG


def context_of(ca: str) -> ssl.SSLContext | None:
    """What trusts these certificates alone; None for those of this machine. Raises ValueError for text that is none."""
    if not ca:
        return None
    try:
        return ssl.create_default_context(cadata=ca)
    except (ssl.SSLError, ValueError) as error:
        raise ValueError("not certificates") from error


def send(
    row: LogForward, records: Sequence[Record], accounts: Mapping[int, str], timeout: float = TIMEOUT_S
) -> Outcome:
    """Send lines in one go; never raises for what the other side does or is."""
    try:
        if is_syslog(row.url):
            return _send_syslog(row, records, accounts, timeout)
        if row.sends == LogForward.Sends.LINES:
            return _send_otlp(row, formats.otlp(records, accounts, now()), len(records), timeout)
        wanted = [each for each in records if is_span(each)]  # lines may wait from before it was to send spans
        return _send_otlp(row, spans(wanted, accounts), len(wanted), timeout) if wanted else Outcome()
    except (Refused, outbound.Unreachable, ValueError) as error:
        return Outcome(error=str(error)[:400], again=True)


def _send_syslog(row: LogForward, records: Sequence[Record], accounts: Mapping[int, str], timeout: float) -> Outcome:
    """Syslog has no answers. Lines count as taken when the receiver has read up to our end and closed in order."""
    content, began = formats.syslog(records, accounts), time.monotonic()
    with outbound.tls_stream(row.url, timeout=timeout, schemes=(SYSLOG,), context=context_of(row.ca)) as stream:
        stream.settimeout(timeout)
        stream.sendall(content)
        # A peer that closes without TLS's goodbye has still read everything; one that resets has not.
        with suppress(ssl.SSLEOFError, ssl.SSLZeroReturnError):
            stream.unwrap()
        if time.monotonic() - began >= timeout - 0.1:  # cut off by the clock, which looks like the peer's end
            raise TimeoutError
    return Outcome(sent=len(records))


def _send_otlp(row: LogForward, content: Mapping[str, Any], count: int, timeout: float) -> Outcome:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", "User-Agent": "Spillway-Logs/1"}
    if row.header_name and row.header_value:
        headers[row.header_name] = unseal(bytes(row.header_value)).decode()
    answer = outbound.fetch(
        row.url,
        method="POST",
        headers=headers,
        body=gzip.compress(json.dumps(content).encode(), 1, mtime=0),
        timeout=timeout,
        limit=ANSWER_BYTES,
        schemes=schemes(),
        context=context_of(row.ca),
    )
    if 200 <= answer.status < 300:
        refused = min(_rejected(answer.body), count)
        said = f"The receiver refused {refused} {row.sends}." if refused else ""
        return Outcome(sent=count - refused, refused=refused, error=said)
    if answer.status in NEVER:
        return Outcome(refused=count, error=f"The receiver refused {count} {row.sends} with {answer.status}.")
    return Outcome(error=f"The receiver answered {answer.status}.", wish=retry_after(answer.headers, now()), again=True)


def _rejected(body: bytes) -> int:
    """How many lines or spans an answer of OTLP says it did not take."""
    try:
        partial = json.loads(body).get("partialSuccess") or {}
        return max(0, *(int(partial.get(name, 0)) for name in ("rejectedLogRecords", "rejectedSpans")))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return 0
