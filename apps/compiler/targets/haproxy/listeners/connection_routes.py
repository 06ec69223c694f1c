"""Connections of a tcp listener that go to a pool by the name that the client asks for, or by what it sends first.

Where TLS is passed on, the name and what the client offers by ALPN stand in the first bytes of a client that speaks
TLS. Whoever sends nothing (some protocols let the server speak first) waits until HAProxy gives up looking. Where TLS
is ended, the handshake has said both, and what is looked at comes after it. The names are a map, so that their number
costs nothing and a change needs no reload.
"""

from __future__ import annotations

import re

from apps.compiler.model.listener_options import ClientProtocol, ProtocolRoute
from apps.compiler.model.shared import Listener, LoadBalancer
from apps.compiler.targets.haproxy.listeners.handover import hands_over, inner, outer
from apps.compiler.targets.haproxy.maps import Entries
from apps.compiler.targets.haproxy.writer import Section

PATIENCE = "5s"
_NOT_FOUND = ("!", "{", "var(txn.action)", "-m", "found", "}")
_HELLO = ("{", "req.ssl_hello_type", "1", "}")
# In the order in which they are asked: who sends nothing has been waited for by then.
_BEGINNINGS: dict[ClientProtocol, tuple[str, ...]] = {
    ClientProtocol.TLS: _HELLO,
    ClientProtocol.SSH: ("{", "req.payload(0,4)", "-m", "bin", b"SSH-".hex(), "}"),
    ClientProtocol.RDP: ("{", "req.payload(0,2)", "-m", "bin", "0300", "}"),  # TPKT, RFC 1006
    ClientProtocol.SOCKS5: ("{", "req.payload(0,1)", "-m", "bin", "05", "}"),
    ClientProtocol.WEBSOCKET: ("{", "req.proto_http", "}", "{", "req.hdr(upgrade)", "-i", "websocket", "}"),
    ClientProtocol.HTTP: ("{", "req.proto_http", "}"),
    ClientProtocol.SILENT: ("!", "{", "req.len", "gt", "0", "}"),
}


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


def add_connection_routes(section: Section, listener: Listener) -> None:
    """`txn.action` is the pool: by ALPN, by name (also with `*` for its first label), by protocol, or the default."""
    add = section.add
    if listener.connection_routes and (listener.protocol_routes or not listener.ends_tls):
        add("tcp-request", "inspect-delay", PATIENCE)
    if listener.ends_tls:
        add("tcp-request", "content", "set-var(txn.sni)", "ssl_fc_sni,lower")
    elif listener.connection_routes:
        add("tcp-request", "content", "set-var(txn.sni)", "req.ssl_sni,lower", "if", *_HELLO)
    else:
        return
    add("tcp-request", "content", "set-var(txn.asked)", "var(txn.sni)")  # for the request log
    if listener.connection_routes:
        _add_choice(section, listener)


def _add_choice(section: Section, listener: Listener) -> None:
    by_alpn = [each for each in listener.protocol_routes if each.alpn]
    by_beginning = {each.protocol: each for each in listener.protocol_routes}
    for each in by_alpn:
        _let(section, each.pool_id, *_offers(each, listener))
    if listener.sni_routes:
        _add_lookup(section, listener, () if not by_alpn else ("if", *_NOT_FOUND))
    for protocol, asked in _BEGINNINGS.items():
        if protocol in by_beginning:
            _let(section, by_beginning[protocol].pool_id, *asked)
    if listener.default_pool_id:
        _let(section, listener.default_pool_id)
    else:
        section.add("tcp-request", "content", "reject", "if", *_NOT_FOUND)


def _let(section: Section, pool_id: str, *condition: str) -> None:
    section.add("tcp-request", "content", "set-var(txn.action)", f"str({pool_id})", "if", *_NOT_FOUND, *condition)


def _offers(route: ProtocolRoute, listener: Listener) -> tuple[str, ...]:
    """Clients offer a list, between commas; where TLS is ended, one of it was agreed on."""
    if listener.ends_tls:
        return ("{", "ssl_fc_alpn", "-m", "str", route.alpn, "}")
    return ("{", "req.ssl_alpn", "-m", "reg", f"(^|,){re.escape(route.alpn)}(,|$)", "}")


def _add_lookup(section: Section, listener: Listener, condition: tuple[str, ...]) -> None:
    add, looked_up = section.add, f"map_str({sni_path(listener)})"
    add("tcp-request", "content", "set-var(txn.action)", f"var(txn.sni),{looked_up}", *condition)
    add("tcp-request", "content", "set-var-fmt(txn.sni)", "*.%[var(txn.sni),field(2,.,0)]", "if", *_NOT_FOUND)
    add("tcp-request", "content", "set-var(txn.action)", f"var(txn.sni),{looked_up}", "if", *_NOT_FOUND)
