"""What a message says, as it is stored with it: the cause, since when, what it affects, where to look; pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from apps.alerts.models import Alert, Finding
from apps.definitions.shapes.operations.alert_watches import SEVERITIES

# So much of what is affected is named; the page has all of it.
NAMED = 10
FIRING, RESOLVED, TEST = "firing", "resolved", "test"


@dataclass(frozen=True, slots=True)
class Message:
    """A stored message, read again by the types of channels. `threads` are those that it begins or ends."""

    event: str
    title: str
    severity: str
    since: str
    account: str
    lines: tuple[str, ...]
    more: int
    page: str
    threads: tuple[str, ...]

    @property
    def heading(self) -> str:
        """One line: `[Critical] Pool shop is down`."""
        word = {RESOLVED: "Resolved", TEST: "Test"}.get(self.event, SEVERITIES.get(self.severity, "Alert"))
        return f"[{word}] {self.title}"

    @property
    def began(self) -> str:
        """Since when, as people read it."""
        return instant_words(datetime.fromisoformat(self.since))

    def text(self, link: str) -> str:
        """The whole message as plain text."""
        began = {RESOLVED: "It began", TEST: "Sent"}.get(self.event, "Since")
        lines = [f"{self.title}.", "", f"{began}: {self.began}"]
        if self.lines:
            lines += ["", *(f"* {line}" for line in self.lines)]
            lines += [f"* and {self.more} more"] if self.more else []
        return "\n".join([*lines, "", f"Account: {self.account}", link])


def one_line(text: str, longest: int = 400) -> str:
    """The text without anything that could begin another line, header or command."""
    kept = "".join(" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in text)
    return " ".join(kept.split())[:longest]


def content_of(event: str, alerts: Sequence[tuple[Alert, Sequence[Finding]]], threads: Sequence[str]) -> dict[str, Any]:
    """What a message about these alerts says; about several it names them, the worst first."""
    first, findings = alerts[0]
    if len(alerts) == 1:
        lines = [_line(row) for row in findings]
        title, page = first.title, f"/alerts/{first.pk}"
    else:
        lines = [one_line(alert.title) for alert, _ in alerts]
        title, page = f"{len(alerts)} alerts: {first.title} and others", "/alerts"
    return {
        "title": one_line(title, 200),
        "severity": first.severity,
        "since": iso(min(alert.since for alert, _ in alerts)),
        "account": first.account.name,
        "lines": lines[:NAMED],
        "more": max(len(lines) - NAMED, 0),
        "page": page,
        "threads": list(threads),
        "event": event,
    }


def test_content(account: str, channel: str, page: str, instant: datetime) -> dict[str, Any]:
    """What a test says."""
    return {
        "title": f"Channel {channel} works",
        "severity": "info",
        "since": iso(instant),
        "account": account,
        "lines": ["A test from Spillway. Nothing is wrong."],
        "more": 0,
        "page": page,
        "threads": [],
        "event": TEST,
    }


def message_of(content: Mapping[str, Any]) -> Message:
    """A stored message."""
    known = {name: content[name] for name in Message.__dataclass_fields__}
    return Message(**known | {"lines": tuple(content["lines"]), "threads": tuple(content["threads"])})


def iso(instant: datetime) -> str:
    """`2026-11-23T08:30:12Z`, as programs read it."""
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def instant_words(instant: datetime) -> str:
    """`2026-11-23 08:30:12 UTC`."""
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _line(row: Finding) -> str:
    return one_line(f"{row.title}: {row.detail}" if row.detail else row.title)
