"""Reads what names a source of servers: `dns://name:port`, `srv://…`, `heartbeat://seconds`, or an https URL; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from apps.compiler.grammar import GrammarError
from apps.core.called_urls import Refused, read_url

LONGEST = 400
_LABEL = "[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z)({_LABEL}\.)+{_LABEL}")
_WRITE = "Write dns://name:port, srv://_service._tcp.name, heartbeat://30, or the https URL of a target list."
SHORTEST_LEASE_S, LONGEST_LEASE_S = 10, 3600


class Kind(StrEnum):
    """How a source is asked."""

    DNS = "dns"
    SRV = "srv"
    HTTP = "http"
    HEARTBEAT = "heartbeat"


@dataclass(frozen=True, slots=True)
class Source:
    """A source: `name` is a DNS name, or the URL; `port` is that of all servers, zero where each has its own.

    `lease_s` is how long servers that register themselves stay without saying so again.
    """

    kind: Kind
    name: str
    port: int = 0
    lease_s: int = 0


def read_source(text: str) -> Source:
    """The source that is named. Raises GrammarError."""
    kind, _, rest = text.partition("://")
    if kind == Kind.DNS:
        name, _, port = rest.rpartition(":")
        if not re.fullmatch("[1-9][0-9]{0,4}", port) or int(port) > 65535:
            raise GrammarError("source", "Add the port of the servers: dns://app.internal:8080.")
        return Source(Kind.DNS, _name(name), int(port))
    if kind == Kind.SRV:
        return Source(Kind.SRV, _name(rest))
    if kind == Kind.HEARTBEAT:
        if not re.fullmatch("[1-9][0-9]{1,3}", rest) or not SHORTEST_LEASE_S <= int(rest) <= LONGEST_LEASE_S:
            raise GrammarError("source", "Say for how many seconds a heartbeat counts, 10 to 3600: heartbeat://30.")
        return Source(Kind.HEARTBEAT, "", lease_s=int(rest))
    if kind != "https":
        raise GrammarError("source", _WRITE)
    try:
        read_url(text, schemes=("https",))
    except Refused as refusal:
        raise GrammarError("url", str(refusal)) from None
    return Source(Kind.HTTP, text)


def source(value: object) -> str:
    """The text of a source, empty for none. Raises GrammarError."""
    if value == "":
        return ""
    if not isinstance(value, str) or len(value) > LONGEST:
        raise GrammarError("source", _WRITE)
    read_source(value)
    return value


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise GrammarError("source", "Write the DNS name in lower case, without a final dot: app.internal.")
    return text
