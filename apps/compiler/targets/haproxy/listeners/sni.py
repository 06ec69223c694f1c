"""Connections of a tcp listener that go to a pool by the name that the client asks for.

Where TLS is passed on, the name stands in the first bytes of a client that speaks TLS. Whoever sends nothing (some
protocols let the server speak first) waits until HAProxy gives up looking, and goes to the default pool. Where TLS is
ended, the handshake has said the name. The names are a map, so that their number costs nothing and a change needs no
reload.
"""

from __future__ import annotations

from apps.compiler.model.shared import Listener, LoadBalancer
from apps.compiler.targets.haproxy.listeners.handover import hands_over, inner, outer
from apps.compiler.targets.haproxy.maps import Entries
from apps.compiler.targets.haproxy.writer import Section

PATIENCE = "5s"
_NOT_FOUND = ("if", "!", "{", "var(txn.action)", "-m", "found", "}")


def sni_path(listener: Listener) -> str:
    """`lst-2` → `maps/lst-2-sni.map`; of those that are handed over `maps/lst-2-ended.map`."""
    return f"maps/{listener.id}-{'ended' if listener.ends_tls else 'sni'}.map"


def sni_maps(front: LoadBalancer) -> dict[str, Entries]:
    """Hostname (or `*.` and a domain) → pool, of each listener that has such routes."""
    faces = [
        face
        for listener in front.listeners
        for face in ((outer(listener), inner(listener)) if hands_over(listener) else (listener,))
    ]
    return {
        sni_path(face): {each.hostname: each.pool_id for each in face.sni_routes} for face in faces if face.sni_routes
    }


def add_sni_rules(section: Section, listener: Listener) -> None:
    """`txn.action` is the pool: that of the exact name, of the name with `*` for its first label, or the default."""
    add = section.add
    if listener.ends_tls:
        add("tcp-request", "content", "set-var(txn.sni)", "ssl_fc_sni,lower")
    elif listener.sni_routes:
        add("tcp-request", "inspect-delay", PATIENCE)
        hello = ("if", "{", "req.ssl_hello_type", "1", "}")
        add("tcp-request", "content", "set-var(txn.sni)", "req.ssl_sni,lower", *hello)
    else:
        return
    add("tcp-request", "content", "set-var(txn.asked)", "var(txn.sni)")  # for the request log
    if listener.sni_routes:
        _add_lookup(section, listener)


def _add_lookup(section: Section, listener: Listener) -> None:
    add, looked_up = section.add, f"map_str({sni_path(listener)})"
    add("tcp-request", "content", "set-var(txn.action)", f"var(txn.sni),{looked_up}")
    add("tcp-request", "content", "set-var-fmt(txn.sni)", "*.%[var(txn.sni),field(2,.,0)]", *_NOT_FOUND)
    add("tcp-request", "content", "set-var(txn.action)", f"var(txn.sni),{looked_up}", *_NOT_FOUND)
    if listener.default_pool_id:
        add("tcp-request", "content", "set-var(txn.action)", f"str({listener.default_pool_id})", *_NOT_FOUND)
    else:
        add("tcp-request", "content", "reject", *_NOT_FOUND)
