"""What a stored pool says of the way to its servers, as the compiler reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from apps.compiler.codec import from_plain
from apps.compiler.model import servers
from apps.compiler.model import shared as model

OBJECTS = {
    "server_tls": servers.ServerTls,
    "persistence": servers.Persistence,
    "agent_check": servers.AgentCheck,
    "outlier_ejection": servers.OutlierEjection,
    "connections": servers.Connections,
    "retries": servers.Retries,
}
HEADERS = "request_headers"
WORDS = {
    "http_version": servers.HttpVersion,
    "proxy_protocol": servers.ProxyProtocol,
    "connection_reuse": servers.Reuse,
}


def options_of_row(row: Any) -> dict[str, Any]:
    """The options of a stored pool. Raises UNREADABLE errors where a column says nothing that could be meant."""
    found: dict[str, Any] = {}
    for field in fields(model.PoolOptions):
        value = getattr(row, field.name)
        if field.name in WORDS:
            value = WORDS[field.name](value)
        elif field.name in OBJECTS and value is not None:
            value = from_plain(OBJECTS[field.name], _without_name(row, value) if field.name == "server_tls" else value)
        found[field.name] = tuple(sorted(value.items())) if field.name == HEADERS else value
    return found


def _without_name(row: Any, stored: dict[str, Any]) -> dict[str, Any]:
    """TLS with the id of the certificate in place of its name."""
    key = row.client_certificate_id
    return {name: value for name, value in stored.items() if name != "client_certificate"} | {
        "client_certificate_id": f"crt-{key}" if key else None
    }


def open_to(mode: str, chosen: Iterable[str], order: Iterable[str]) -> list[str]:
    """Of regions in the order of overflow those that a pool's traffic may go to."""
    allowed = servers.OverflowMode(mode)
    if allowed is servers.OverflowMode.NEVER:
        return []
    named = set(chosen)
    return [name for name in order if allowed is servers.OverflowMode.ANYWHERE or name in named]
