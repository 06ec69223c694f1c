"""Events for PagerDuty and Opsgenie: a thread is an incident, begun and ended by its key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from apps.alerts.sending.contract import Parcel
from apps.alerts.sending.posting import as_json, post
from apps.alerts.telling.messages import RESOLVED, TEST
from apps.webhooks.delivering import Outcome

PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
OPSGENIE = "https://api.opsgenie.com/v2/alerts"
_PRIORITIES = {"critical": "P1", "warning": "P3", "info": "P5"}
_OPSGENIE_MESSAGE = 130


def pagerduty(parcel: Parcel) -> Outcome:
    """Events API v2; a test begins an incident of the lowest urgency and ends it at once."""
    message, url = parcel.message, parcel.url or PAGERDUTY
    threads = message.threads or (parcel.key,)
    if message.event == RESOLVED:
        return _all(post(url, _pagerduty(parcel, "resolve", thread)) for thread in threads)
    begun = post(url, _pagerduty(parcel, "trigger", threads[0]))
    return _all((begun, post(url, _pagerduty(parcel, "resolve", threads[0])))) if message.event == TEST else begun


def _pagerduty(parcel: Parcel, action: str, thread: str) -> bytes:
    message = parcel.message
    document: dict[str, Any] = {"routing_key": parcel.secret, "event_action": action, "dedup_key": _key(thread)}
    if action == "trigger":
        document["payload"] = {
            "summary": message.title[:1024],
            "source": message.account,
            "severity": message.severity,
            "timestamp": message.since,
            "component": "spillway",
            "custom_details": {"affects": list(message.lines), "more": message.more},
        }
        document["links"] = [{"href": parcel.link, "text": "Open in Spillway"}]
    return as_json(document)


def opsgenie(parcel: Parcel) -> Outcome:
    """Alert API v2; what is told again is counted up there under the same alias."""
    message, url = parcel.message, (parcel.url or OPSGENIE).rstrip("/")
    headers = {"Authorization": f"GenieKey {parcel.secret}"}
    threads = message.threads or (parcel.key,)

    def close(thread: str) -> Outcome:
        return post(f"{url}/{quote(_key(thread), safe='')}/close?identifierType=alias", as_json({}), headers)

    if message.event == RESOLVED:
        return _all(close(thread) for thread in threads)
    document = {
        "message": message.heading[:_OPSGENIE_MESSAGE],
        "alias": _key(threads[0]),
        "description": message.text(parcel.link)[:15_000],
        "priority": _PRIORITIES.get(message.severity, "P3"),
        "source": "Spillway",
        "details": {"account": message.account, "url": parcel.link},
    }
    begun = post(url, as_json(document), headers)
    return _all((begun, close(threads[0]))) if message.event == TEST else begun


def _key(thread: str) -> str:
    return f"spillway-{thread}"


def _all(outcomes: Iterable[Outcome]) -> Outcome:
    """The first that was not taken, else the last: each of them may be sent again."""
    found = None
    for outcome in outcomes:
        found = outcome
        if not outcome.delivered:
            break
    return found or Outcome(204, 0)
