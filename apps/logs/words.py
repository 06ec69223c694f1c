"""What pages say of a request: why it ended as it did, how its session ended, and where its time went; pure.

Reasons are those of `meaning.py`. The letters of a session are HAProxy's (its manual, section 8.5, "Session state at
disconnection"): who or what ended it, and what it was doing then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.drivers.logs.contract import Record

# Reason → what a column says, and what the request's own page says.
REASONS: dict[str, tuple[str, str]] = {
    "no_route": ("no route", "No route is defined for this host and path."),
    "malformed": ("malformed", "It was no valid request, or it named no host as a request must."),
    "loop": ("loop", "A server of the pool leads back to this load balancer."),
    "denied": ("denied", "An access policy denied it."),
    "unauthenticated": ("unauthenticated", "The client did not prove who it is."),
    "too_large": ("body too large", "Its body was larger than the policy of the route allows."),
    "limited": ("client limit", "The client was over its limit."),
    "maintenance": ("maintenance", "The maintenance page answered."),
    "preflight": ("preflight", "The CORS policy answered the browser's preflight request."),
    "redirect": ("redirect", "The route redirects."),
    "fixed_answer": ("fixed response", "The route answers by itself."),
    "cached": ("cache", "The cache of the listener answered."),
    "over_limit": ("limit reached", "The region was at its limit, and no other region had room."),
    "held": ("queued", "Every region was at its limit; the request waited in the queue."),
    "overflow": ("overflow", "The region was at its limit; another region served the request."),
    "no_server": ("no server up", "No server of the pool was up."),
}
_ENDED_BY = {
    "C": "The client closed the connection",
    "S": "The server closed or refused the connection",
    "P": "A rule of the load balancer ended the request",
    "L": "The load balancer answered by itself",
    "R": "The node ran out of memory, sockets or ports",
    "I": "HAProxy met an error of its own",
    "D": "The server went down, and its connections were ended",
    "U": "A primary server came back, and connections to backup servers were ended",
    "K": "An operator ended the connection",
    "c": "The client was silent for too long",
    "s": "The server was silent for too long",
}
_WHILE = {
    "R": "before the request was complete",
    "Q": "while the request waited for a server",
    "C": "while the load balancer connected to the server",
    "H": "before the response began",
    "D": "while the response was sent",
    "L": "while the last bytes went to the client",
    "T": "while the client was kept waiting on purpose",
}


def column_of(why: str) -> str:
    """`no_server` → `no server up`; an unknown reason of a newer version is shown as it is."""
    return REASONS[why][0] if why in REASONS else why.replace("_", " ")


def sentence_of(why: str) -> str:
    """The sentence for the request's own page, empty when it was served as usual."""
    return REASONS[why][1] if why in REASONS else ""


def ending_of(letters: str) -> str:
    """`sH--` → "The server was silent for too long before the response began."; empty for a session that ended well."""
    who, when = _ENDED_BY.get(letters[:1], ""), _WHILE.get(letters[1:2], "")
    if not who:
        return ""
    return f"{who} {when}." if when else f"{who}."


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of a request's time: its name, when it began and how long it took (ms); None for never reached."""

    name: str
    begun_ms: int
    took_ms: int | None


def phases(record: Record) -> Sequence[Phase]:
    """The stretches of a request one after the other, as HAProxy's timers have them (TR, Tw, Tc, Tr, and the rest).

    What is left of the total is the transfer of the response.
    """
    timers = (
        ("Receive request", record.request_ms),
        ("Wait in queue", record.queue_ms),
        ("Connect to server", record.connect_ms),
        ("Wait for response", record.response_ms),
    )
    found, at = [], 0
    for name, took in timers:
        found.append(Phase(name, at, took))
        at += took or 0
    reached = record.response_ms is not None and record.total_ms is not None
    found.append(Phase("Send response", at, max(0, (record.total_ms or 0) - at) if reached else None))
    return found
