"""Connections of TLS that are passed on as they are, to a pool by the name that the client asks for.

The name stands in the first bytes of a client that speaks TLS. Whoever sends nothing (some protocols let the server
speak first) waits until HAProxy gives up looking, and goes to the default pool. The names are a map, so that their
number costs nothing and a change needs no reload.
"""

from __future__ import annotations

from apps.compiler.model.shared import Listener, LoadBalancer
from apps.compiler.targets.haproxy.maps import Entries
from apps.compiler.targets.haproxy.writer import Section

PATIENCE = "5s"
_NOT_FOUND = ("if", "!", "{", "var(txn.action)", "-m", "found", "}")


def sni_path(listener_id: str) -> str:
    """`lst-2` → `maps/lst-2-sni.map`."""
    return f"maps/{listener_id}-sni.map"


def sni_maps(front: LoadBalancer) -> dict[str, Entries]:
    """Hostname (or `*.` and a domain) → pool, of each listener that has such routes."""
    return {
        sni_path(listener.id): {each.hostname: each.pool_id for each in listener.sni_routes}
        for listener in front.listeners
        if listener.sni_routes
    }


def add_sni_rules(section: Section, listener: Listener) -> None:
    """`txn.action` is the pool: that of the exact name, of the name with `*` for its first label, or the default."""
    if not listener.sni_routes:
        return
    add = section.add
    looked_up = f"map_str({sni_path(listener.id)})"
    hello = ("if", "{", "req.ssl_hello_type", "1", "}")
    add("tcp-request", "inspect-delay", PATIENCE)
    add("tcp-request", "content", "set-var(txn.sni)", "req.ssl_sni,lower", *hello)
    add("tcp-request", "content", "set-var(txn.asked)", "var(txn.sni)")  # for the request log
    add("tcp-request", "content", "set-var(txn.action)", f"var(txn.sni),{looked_up}")
    add("tcp-request", "content", "set-var-fmt(txn.sni)", "*.%[var(txn.sni),field(2,.,0)]", *_NOT_FOUND)
    add("tcp-request", "content", "set-var(txn.action)", f"var(txn.sni),{looked_up}", *_NOT_FOUND)
    if listener.default_pool_id:
        add("tcp-request", "content", "set-var(txn.action)", f"str({listener.default_pool_id})", *_NOT_FOUND)
    else:
        add("tcp-request", "content", "reject", *_NOT_FOUND)
