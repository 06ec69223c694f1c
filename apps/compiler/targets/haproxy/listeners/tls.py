"""What a listener that ends TLS offers to clients, as words of its `bind` line.

The presets are those of Mozilla's Server Side TLS guidelines, version 6.0 of 2026
(https://ssl-config.mozilla.org/guidelines/6.0.json): "intermediate" are the ciphers that nodes offer by default,
"modern" is TLS 1.3 alone. The guidelines' curves (X25519MLKEM768, X25519, P-256, P-384) are left to OpenSSL, which
prefers the same ones, and which before 3.5 refuses to start with the first of them. Early data of TLS 1.3 (0-RTT) can
be played back by whoever recorded it, so `allow-0rtt` is never written.

HTTP/3 is a second `bind` line, for UDP. It stands under a condition: a node whose HAProxy cannot do it, because its
package was changed after it was asked, leaves it out instead of refusing everything. Clients learn of it by Alt-Svc. A
client need not prove its address first (`quic-force-retry` would cost each one a round trip); HAProxy demands that by
itself while many handshakes are open, for which it needs the secret that all nodes share. By the same secret a node can
tell a client that its connection is gone, after its address has moved there.
"""

from __future__ import annotations

import hashlib
import hmac

from apps.compiler.bundle import http3_variable
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.listener_options import ListenerTls, TlsPreset, TlsVersion
from apps.compiler.model.shared import Listener, Protocol
from apps.compiler.targets.haproxy.listeners.client_certificates import bind_words
from apps.compiler.targets.haproxy.settings import CIPHERS, CIPHERSUITES
from apps.compiler.targets.haproxy.writer import Argument, Call, Document, Expanded, Section, Value

# Whoever was promised HTTP/3 that is there no more asks in vain so long, and uses TCP meanwhile.
PROMISED_S = 3600
WITHOUT_TICKETS = "no-tls-tickets"
_VERSIONS = {TlsVersion.V12: "TLSv1.2", TlsVersion.V13: "TLSv1.3"}


def certificate_list_path(listener_id: str) -> str:
    """`lst-2` → `certs/lst-2.list`."""
    return f"certs/{listener_id}.list"


def add_bind(section: Section, listener: Listener, *where: str | Expanded) -> None:
    """The line of an address, with TLS where the listener speaks it.

    The agent has the keys of session tickets and names their folder; one of before has none, and offers no tickets.
    """
    if not listener.speaks_tls:
        section.add("bind", *where)
        return
    words = _tls_words(listener, *_protocols(listener))
    if not offers_tickets(listener):
        section.add("bind", *where, *words, WITHOUT_TICKETS)
        return
    keys = Expanded(f"${{SPILLWAY_TICKETS}}/{listener.id}.keys")
    section.add(".if", "defined(SPILLWAY_TICKETS)")
    section.add("bind", *where, *words, "tls-ticket-keys", keys)
    section.add(".else")
    section.add("bind", *where, *words, WITHOUT_TICKETS)
    section.add(".endif")


def offers_tickets(listener: Listener) -> bool:
    """Not where clients are verified: a ticket would carry the certificate to other hosts and past its revocation."""
    return (listener.tls or ListenerTls()).session_tickets and not listener.client_certificates


def takes_http3(listener: Listener) -> bool:
    """Whether clients may use HTTP/3."""
    return listener.protocol is Protocol.HTTPS and listener.tls is not None and listener.tls.http3


def add_quic_secret(document: Document, snapshot: Snapshot) -> None:
    """What the nodes of all fleets share for QUIC, made of the word by which they know each other."""
    if any(takes_http3(listener) for front in snapshot.load_balancers for listener in front.listeners):
        secret = hmac.new(snapshot.overflow_key.encode(), b"quic", hashlib.sha256).hexdigest()
        section = document.section("global")
        section.add(".if", "feature(QUIC)")
        section.add("cluster-secret", secret)
        section.add(".endif")


def add_http3(section: Section, listener: Listener, *options: str) -> None:
    """Take HTTP/3 on the UDP port of the same number, and tell everybody; `options` are those of the other line."""
    if not takes_http3(listener):
        return
    name = http3_variable(listener.id)
    section.add(".if", f"defined({name})")
    section.add("bind", Expanded(f"${{{name}-unset}}"), *options, *_tls_words(listener, "alpn", "h3"), WITHOUT_TICKETS)
    promise = f'h3=":%[dst_port]"; ma={PROMISED_S}'
    section.add("http-after-response", "set-header", "Alt-Svc", promise)
    section.add(".endif")


def _protocols(listener: Listener) -> tuple[Argument, ...]:
    """ALPN: what the servers of a tcp listener speak is known to its owner alone."""
    tls = listener.tls or ListenerTls()
    if listener.protocol is Protocol.HTTPS:
        return ("alpn", "h2,http/1.1" if tls.http2 else "http/1.1")
    parts = [part for name in tls.alpn for part in (",", Value(name))][1:]
    return ("alpn", Call(tuple(parts))) if parts else ()


def _tls_words(listener: Listener, *alpn: Argument) -> tuple[Argument, ...]:
    strict = () if listener.default_certificate_id else ("strict-sni",)
    words = ("ssl", "crt-list", certificate_list_path(listener.id), *strict, *alpn)
    return (*words, *_offered(listener.tls or ListenerTls()), *bind_words(listener))


def _offered(tls: ListenerTls) -> tuple[str, ...]:
    version = tls.minimum_version
    if version is None and tls.preset is not None:
        version = TlsVersion.V13 if tls.preset is TlsPreset.MODERN else TlsVersion.V12
    words = ("ssl-min-ver", _VERSIONS[version]) if version else ()
    ciphers = ("ciphers", CIPHERS, "ciphersuites", CIPHERSUITES) if tls.preset is TlsPreset.INTERMEDIATE else ()
    return (*words, *ciphers)
