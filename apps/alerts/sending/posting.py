"""One POST of JSON to an address that somebody chose; every type of channel that speaks HTTP goes this way."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from apps.audit.exporting import visible
from apps.core import outbound
from apps.core.called_urls import Refused
from apps.core.clock import now
from apps.core.concurrency.backoff import retry_after
from apps.webhooks.delivering import Outcome
from apps.webhooks.services import schemes

TIMEOUT_S = 10.0
ANSWER_BYTES = 1024
AGENT = {"Content-Type": "application/json", "User-Agent": "Spillway-Alerts/1"}


def post(url: str, body: bytes, headers: Mapping[str, str] | None = None) -> Outcome:
    """What came of it; never raises for what the other side does or is."""
    began = time.monotonic()
    try:
        answer = outbound.fetch(
            url,
            method="POST",
            headers={**AGENT, **(headers or {})},
            body=body,
            timeout=TIMEOUT_S,
            limit=ANSWER_BYTES,
            schemes=schemes(),
        )
    except (Refused, outbound.Unreachable) as error:
        return Outcome(None, round((time.monotonic() - began) * 1000), error=str(error)[:400])
    text = visible(answer.body.decode(errors="replace"))
    return Outcome(answer.status, answer.milliseconds, "", text, retry_after(answer.headers, now()))


def as_json(document: Mapping[str, Any]) -> bytes:
    """The document as bytes."""
    return json.dumps(document).encode()
