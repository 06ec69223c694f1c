"""Alerts for Prometheus' Alertmanager (API v2), which groups, routes and silences them by its own rules.

Alertmanager ends an alert by itself: each says until when it holds, and telling/planning.py says it again before that.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from apps.alerts.sending.contract import Parcel
from apps.alerts.sending.posting import post
from apps.alerts.telling.messages import RESOLVED, TEST, iso
from apps.core.clock import now
from apps.definitions.shapes.operations.alert_watches import SEVERITIES
from apps.webhooks.delivering import Outcome

HOLDS = timedelta(hours=24)
HOLDS_AS_TEST = timedelta(minutes=1)


def send(parcel: Parcel) -> Outcome:
    """One alert for each thread that the message begins or ends."""
    alerts = [alert for thread in parcel.message.threads or (parcel.key,) for alert in _alerts(parcel, thread, now())]
    return post(f"{parcel.url.rstrip('/')}/api/v2/alerts", json.dumps(alerts).encode(), _headers(parcel.secret))


def _alerts(parcel: Parcel, thread: str, moment: datetime) -> Iterator[dict[str, Any]]:
    """The thread as it is now, and its end under every other severity: the labels are what an alert is known by."""
    message = parcel.message
    holds = {RESOLVED: timedelta(), TEST: HOLDS_AS_TEST}.get(message.event, HOLDS)
    for severity in SEVERITIES:
        yield {
            "labels": {
                "alertname": "Spillway",
                "severity": severity,
                "account": message.account,
                "cause": thread,
            },
            "annotations": {"summary": message.title, "description": "\n".join(message.lines)},
            "startsAt": message.since,
            "endsAt": iso(moment + (holds if severity == message.severity else timedelta())),
            "generatorURL": parcel.link,
        }


def _headers(secret: str) -> dict[str, str]:
    if not secret:
        return {}
    if ":" in secret:
        return {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
    return {"Authorization": f"Bearer {secret}"}
