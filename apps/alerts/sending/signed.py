"""Messages as signed JSON, as webhooks are: any library of Standard Webhooks checks them."""

from __future__ import annotations

from apps.alerts.sending.contract import Parcel
from apps.alerts.sending.posting import as_json, post
from apps.core.clock import now
from apps.webhooks.delivering import Outcome
from apps.webhooks.signing import signed_headers


def send(parcel: Parcel) -> Outcome:
    """`{type: alert.firing | alert.resolved | alert.test, timestamp, data}`."""
    message = parcel.message
    data = {
        "title": message.title,
        "severity": message.severity,
        "since": message.since,
        "account": message.account,
        "affects": list(message.lines),
        "more": message.more,
        "threads": list(message.threads),
        "url": parcel.link,
    }
    body = as_json({"type": f"alert.{message.event}", "timestamp": parcel.made_at.isoformat(), "data": data})
    return post(parcel.url, body, signed_headers(parcel.key, now(), body, [parcel.secret]))
