"""Bounds of request bodies. What says its length is judged by that, the rest by what fits into a buffer.

HAProxy 2.6 cannot count a body while it streams. A body without a length is waited for: either all of it is in the
buffer and counted, or the buffer is full, and the client is told to send the length (411).
"""

from __future__ import annotations

from apps.compiler.model.policy import Body
from apps.compiler.targets.haproxy.writer import Section, Value

WAIT = "10s"
# Headers and body of which HAProxy's buffer (16 kB with 1 kB in reserve) certainly holds all.
SURE_BYTES = 12_000
LENGTH_REQUIRED = "Send Content-Length with a body of this size.\n"
_SAID = ("{", "req.hdr(content-length)", "-m", "found", "}")
_NOT_SAID = ("!", *_SAID)


def add(section: Section, when: tuple[str, ...], said: Body) -> None:
    """413 for what is longer, 411 for what might be."""
    wait = ("http-request", "wait-for-body", "time", WAIT)
    if said.max_bytes is not None:
        bound = ("-m", "int", "gt", Value(str(said.max_bytes)), "}")
        deny = ("http-request", "deny", "deny_status", "413")
        section.add(*deny, "if", *when, "{", "req.hdr_val(content-length)", *bound)
        section.add(*wait, "if", *when, *_NOT_SAID)
        section.add(*deny, "if", *when, *_NOT_SAID, "{", "req.body_len", *bound)
        section.add("http-request", "set-var(txn.head)", "req.hdrs,length", "if", *when, *_NOT_SAID)
        full = ("{", "req.body_len,add(txn.head)", "-m", "int", "ge", str(SURE_BYTES), "}")
        some = ("{", "req.body_len", "-m", "int", "gt", "0", "}")
        plain = ("status", "411", "content-type", "text/plain; charset=utf-8", "string", LENGTH_REQUIRED)
        section.add("http-request", "return", *plain, "if", *when, *_NOT_SAID, *some, *full)
    if said.buffered:
        section.add(*wait, "if", *when)
