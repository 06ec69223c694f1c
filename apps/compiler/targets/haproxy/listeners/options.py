"""How many clients a listener takes, how long they may be silent, and what it answers or compresses by itself.

A listener that says nothing has the times of its defaults (settings.py), and no line of these.
"""

from __future__ import annotations

from apps.compiler.model.listener_options import Connections, KeepAlive
from apps.compiler.model.shared import Listener, Protocol
from apps.compiler.targets.haproxy.listeners.cache import add_filter
from apps.compiler.targets.haproxy.writer import Argument, Call, Section, Value

_MODES = {KeepAlive.CLIENTS: "http-server-close", KeepAlive.NONE: "httpclose"}


def add_options(section: Section, listener: Listener) -> None:
    """The lines of a frontend that are no rules."""
    if listener.connections is not None:
        _add_connections(section, listener.connections, is_http=listener.protocol is not Protocol.TCP)
    if listener.monitor_path is not None:
        section.add("monitor-uri", Value(listener.monitor_path))
    add_filter(section, listener)
    if listener.compression is not None:
        section.add("filter", "compression")
        section.add("compression", "algo", "gzip")
        section.add("compression", "type", *map(Value, sorted(listener.compression.types)))


def _add_connections(section: Section, wanted: Connections, *, is_http: bool) -> None:
    if wanted.max_connections is not None:
        section.add("maxconn", Value(str(wanted.max_connections)))
    section.add("timeout", "client", _ms(wanted.client_timeout_ms))
    if not is_http:
        return
    section.add("timeout", "http-request", _ms(wanted.request_timeout_ms))
    section.add("timeout", "http-keep-alive", _ms(wanted.keepalive_timeout_ms))
    if wanted.keep_alive in _MODES:
        section.add("option", _MODES[wanted.keep_alive])


def _ms(milliseconds: int) -> Argument:
    return Call((Value(str(milliseconds)), "ms"))
