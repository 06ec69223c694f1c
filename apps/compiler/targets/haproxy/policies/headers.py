"""Blocks that change headers of requests and responses; values are formats in which only our variables count."""

from __future__ import annotations

from apps.compiler.header_text import Variable, parts
from apps.compiler.model.policy import HeaderChanges, SecurityHeaders
from apps.compiler.model.shared import Listener, Protocol
from apps.compiler.targets.haproxy.writer import Opaque, Section, Value

_FETCHES = {
    "client_address": "%[src]",
    "host": "%[var(txn.host)]",
    "method": "%[method]",
    "path": "%[var(txn.path)]",
    "request_id": "%[unique-id]",
    "tls_version": "%[ssl_fc_protocol]",
}


def add_to_request(section: Section, listener: Listener, when: tuple[str, ...], changes: HeaderChanges) -> None:
    """What servers get."""
    _add(section, "http-request", listener, when, changes)


def add_to_response(section: Section, listener: Listener, when: tuple[str, ...], changes: HeaderChanges) -> None:
    """What clients get, also in answers that no server gave."""
    _add(section, "http-after-response", listener, when, changes)


def _add(section: Section, rule: str, listener: Listener, when: tuple[str, ...], changes: HeaderChanges) -> None:
    for name in changes.remove or ():
        section.add(rule, "del-header", Value(name), "if", *when)
    for action, pairs in (("set-header", changes.set), ("add-header", changes.add)):
        for name, value in pairs or ():
            section.add(rule, action, Value(name), Opaque(written(value, listener)), "if", *when)


def written(value: str, listener: Listener) -> str:
    """The value as HAProxy's format: a percent sign of the text is doubled, so only our fetches are ones."""
    return "".join(_part(part, listener) for part in parts(value))


def _part(part: str | Variable, listener: Listener) -> str:
    if isinstance(part, str):
        return part.replace("%", "%%")
    return listener.protocol.value if part.name == "scheme" else _FETCHES[part.name]


def add_security(section: Section, listener: Listener, when: tuple[str, ...], said: SecurityHeaders) -> None:
    """Headers for browsers; Strict-Transport-Security counts over https only (RFC 6797, 7.2)."""
    found = {
        "X-Content-Type-Options": "nosniff" if said.no_sniff else None,
        "X-Frame-Options": said.frames.upper() if said.frames else None,
        "Referrer-Policy": said.referrer,
    }
    if listener.protocol is Protocol.HTTPS and said.hsts_seconds is not None:
        found["Strict-Transport-Security"] = f"max-age={said.hsts_seconds}" + (
            "; includeSubDomains" if said.hsts_subdomains else ""
        )
    for name, value in found.items():
        if value:
            section.add("http-after-response", "set-header", name, Value(value), "if", *when)
