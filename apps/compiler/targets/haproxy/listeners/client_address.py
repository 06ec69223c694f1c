"""Where a client really is, when others stand in front: one address, `src`, for rules, limits, lists and headers.

* PROXY protocol: connections from the named networks begin with it, all others must not. A node that connects to itself
  (the agent's questions, keepalived's check) never does, whatever network it is in.
* Forwarded (RFC 7239): the same by the addresses of its elements (forwarded_header.py), for networks of their own: a
  proxy passes on what clients write into the header that it does not write itself.
* X-Forwarded-For: of requests from the named networks the address that stands last is the client; where that is one of
  the named networks again, the one before it, up to four. Whatever else a client wrote there is not believed, and what
  servers are sent is the one address that was found.

The networks are maps with the longest prefix first, so that a list of thousands costs a lookup and changes without a
reload. Nothing is written for a listener that names nobody.
"""

from __future__ import annotations

from apps.compiler.model.listener_options import ClientAddress
from apps.compiler.model.shared import Listener, LoadBalancer
from apps.compiler.targets.haproxy.listeners.forwarded_header import (
    FORWARDED,
    add_element,
    add_told_port,
    add_told_scheme,
    send,
)
from apps.compiler.targets.haproxy.maps import Entries
from apps.compiler.targets.haproxy.writer import Section

HOPS = 4
FORWARDED_FOR = "x-forwarded-for"
YES = "yes"
Words = tuple[str, ...]
# Condition: the node connects to itself; `sess.here` is its own address.
ITSELF: Words = ("{", "src,strcmp(sess.here)", "-m", "int", "eq", "0", "}")


def proxies_path(listener_id: str) -> str:
    """Networks that speak the PROXY protocol: `maps/lst-1-proxies.map`."""
    return f"maps/{listener_id}-proxies.map"


def forwarders_path(listener_id: str) -> str:
    """Networks whose X-Forwarded-For or Forwarded is believed: `maps/lst-1-forwarders.map`."""
    return f"maps/{listener_id}-forwarders.map"


def address_maps(front: LoadBalancer) -> dict[str, Entries]:
    """Both maps of each listener that has them: network → yes; `forwarded` for who writes that."""
    found: dict[str, Entries] = {}
    for listener in front.listeners:
        said = listener.client_address or ClientAddress()
        forwarders = dict.fromkeys(said.forwarded_from, YES) | dict.fromkeys(said.forwarded_header_from, FORWARDED)
        for path, networks in (
            (proxies_path(listener.id), dict.fromkeys(said.proxy_protocol_from, YES)),
            (forwarders_path(listener.id), forwarders),
        ):
            found |= {path: networks} if networks else {}
    return found


def has_proxies(listener: Listener) -> bool:
    """Whether some of its connections begin with the PROXY protocol."""
    return listener.client_address is not None and bool(listener.client_address.proxy_protocol_from)


def phase_of(listener: Listener) -> str:
    """When its clients are known, in a word of `tcp-request`: behind the PROXY protocol a step later."""
    return "session" if has_proxies(listener) else "connection"


def from_proxy(listener: Listener) -> Words:
    """Condition: the connection comes from a balancer that speaks the PROXY protocol."""
    return ("{", f"src,map_ip({proxies_path(listener.id)})", "-m", "found", "}")


def from_forwarder(listener: Listener) -> Words:
    """Condition: the sender is one of those whose X-Forwarded-For or Forwarded is believed."""
    return ("{", f"src,map_ip({forwarders_path(listener.id)})", "-m", "found", "}")


def _writes(listener: Listener, word: str, address: str) -> Words:
    """Condition: the address is one of those whose header has this word in the map."""
    return ("{", f"{address},map_ip({forwarders_path(listener.id)})", "-m", "str", word, "}")


def add_proxy_protocol(section: Section, listener: Listener) -> None:
    """Expect it from whom it is meant to come, before anything else is asked."""
    if has_proxies(listener):
        section.add("tcp-request", "connection", "set-var(sess.here)", "dst")
        expected = ("if", *from_proxy(listener), "!", *ITSELF)
        section.add("tcp-request", "connection", "expect-proxy", "layer4", *expected)


def add_forwarded(section: Section, listener: Listener) -> None:
    """`src` becomes the address of the client; `txn.via` is set where an X-Forwarded-For was believed.

    `txn.told` is the element of a Forwarded header that was.
    """
    said = listener.client_address or ClientAddress()
    if not listener.has_forwarders:
        return
    if said.forwarded_from:
        section.add("http-request", "set-var(txn.via)", "src", "if", *_writes(listener, YES, "src"))
        believed = _writes(listener, YES, "var(txn.via)")
        for hop in range(1, HOPS + 1):
            found = f"req.hdr_ip({FORWARDED_FOR},-{hop})"
            section.add("http-request", f"set-var(txn.hop_{hop})", found, "if", *believed)
            believed = _writes(listener, YES, f"var(txn.hop_{hop})")
    if said.forwarded_header_from:
        believed = _writes(listener, FORWARDED, "src")
        for hop in range(1, HOPS + 1):
            add_element(section, hop, believed)
            believed = (*_there(f"named_{hop}"), *_writes(listener, FORWARDED, f"var(txn.hop_{hop})"))
    for hop in range(1, HOPS + 1):
        section.add("http-request", "set-src", f"var(txn.hop_{hop})", "if", *_there(f"hop_{hop}"))


def _there(name: str) -> Words:
    return ("{", f"var(txn.{name})", "-m", "found", "}")


def add_address_headers(section: Section, listener: Listener) -> None:
    """What servers are told of the client; whoever is believed may say how the client came to it."""
    section.add("http-request", "set-header", "X-Forwarded-For", "%[src]")
    section.add("http-request", "set-header", "X-Real-IP", "%[src]")
    if listener.has_forwarders:
        _add_believed(section, listener)
    else:
        section.add("http-request", "set-header", "X-Forwarded-Proto", listener.protocol.value)
        section.add("http-request", "set-header", "X-Forwarded-Port", "%[dst_port]")
    if listener.client_address is not None and listener.client_address.send_forwarded:
        send(section)


def _add_believed(section: Section, listener: Listener) -> None:
    """Scheme and port as the proxy in front says, which must say each once."""
    via = ("{", "var(txn.via)", "-m", "found", "}")
    once = ("{", "req.fhdr_cnt(x-forwarded-proto)", "eq", "1", "}")
    scheme = ("{", "req.fhdr(x-forwarded-proto)", "-m", "str", "http", "https", "}")
    section.add("http-request", "set-var(txn.proto)", f"str({listener.protocol.value})")
    section.add("http-request", "set-var(txn.proto)", "req.fhdr(x-forwarded-proto)", "if", *via, *once, *scheme)
    names_scheme = bool(listener.client_address and listener.client_address.forwarded_header_from)
    if names_scheme:
        add_told_scheme(section)
    section.add("http-request", "set-header", "X-Forwarded-Proto", "%[var(txn.proto)]")
    port = "req.fhdr(x-forwarded-port),add(0)"
    once = ("{", "req.fhdr_cnt(x-forwarded-port)", "eq", "1", "}")
    sound = ("{", port, "-m", "int", "1:65535", "}")
    section.add("http-request", "set-var(txn.port)", "dst_port")
    section.add("http-request", "set-var(txn.port)", port, "if", *via, *once, *sound)
    if names_scheme:
        add_told_port(section)
    section.add("http-request", "set-header", "X-Forwarded-Port", "%[var(txn.port)]")
