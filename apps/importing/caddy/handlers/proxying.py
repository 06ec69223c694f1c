"""`reverse_proxy`: a pool, and what servers get with a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apps.importing.caddy.context import Caddy
from apps.importing.caddy.handlers.headers import header_changes
from apps.importing.caddy.handlers.rewriting import rewritten
from apps.importing.caddy.pools.servers import pool_of
from apps.importing.logic.decisions import NOWHERE, Effect
from apps.importing.nginx.rules.access import CLOSED, REFUSED
from apps.importing.values.fields import listed, mapping
from apps.importing.values.parsing import Path

NO_SERVER = "A pool has servers that speak HTTP, at addresses that are known; requests get 503 here."
PASSED_ON = "Responses of servers are passed on as they are."
STREAMS = "Nodes pass on what comes as it comes."
OF_NODES = {
    "flush_interval": STREAMS, "request_buffers": STREAMS, "response_buffers": STREAMS, "stream_close_delay": STREAMS,
    "verbose_logs": "Every request is logged.",
}  # fmt: skip


def passed(caddy: Caddy, path: Path) -> Iterator[Effect]:
    """Changes, and the pool that ends the list."""
    caddy.fields.mapped((*path, "handler"))
    for name, why in OF_NODES.items():
        caddy.fields.node_setting((*path, name), why)
    caddy.fields.impossible((*path, "trusted_proxies"), "Proxies are trusted by the listener (client_address).")
    if caddy.fields.at(*path, "handle_response") is not None:
        if asks_somebody(mapping(caddy.fields.at(*path))):
            caddy.fields.impossible(path, CLOSED)
            yield REFUSED
            return
        caddy.fields.impossible((*path, "handle_response"), PASSED_ON)
    yield from header_changes(caddy, (*path, "headers"), _first_server(caddy, path))
    if caddy.fields.at(*path, "rewrite") is not None:
        yield from (effect for _, effect in rewritten(caddy, (*path, "rewrite")).effects)
    if caddy.fields.at(*path, "transport", "protocol") == "fastcgi":
        caddy.fields.impossible(path, NO_SERVER)
        yield NOWHERE
        return
    key = pool_of(caddy, path)
    if key is None:
        caddy.fields.impossible((*path, "handler"), NO_SERVER)
    yield Effect("backend", (key,)) if key is not None else NOWHERE


def asks_somebody(handler: Mapping[str, Any]) -> bool:
    """`forward_auth`: another server is asked first, and its answer lets the request go on."""
    codes = [code for each in map(mapping, listed(handler.get("handle_response")))
             for code in listed(mapping(each.get("match")).get("status_code"))]  # fmt: skip
    return "uri" in mapping(handler.get("rewrite")) and any(str(code).startswith("2") for code in codes)


def _first_server(caddy: Caddy, path: Path) -> str:
    return str(caddy.fields.at(*path, "upstreams", 0, "dial") or "")
