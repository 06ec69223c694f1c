"""What an https listener offers to clients, as words of its `bind` line.

The presets are those of Mozilla's Server Side TLS guidelines, version 6.0 of 2026
(https://ssl-config.mozilla.org/guidelines/6.0.json): "intermediate" are the ciphers that nodes offer by default,
"modern" is TLS 1.3 alone. The guidelines' curves (X25519MLKEM768, X25519, P-256, P-384) are left to OpenSSL, which
prefers the same ones, and which before 3.5 refuses to start with the first of them. Early data of TLS 1.3 (0-RTT) can
be played back by whoever recorded it, so `allow-0rtt` is never written.
"""

from __future__ import annotations

from apps.compiler.model.listener_options import ListenerTls, TlsPreset, TlsVersion
from apps.compiler.model.shared import Listener, Protocol
from apps.compiler.targets.haproxy.listeners.client_certificates import bind_words
from apps.compiler.targets.haproxy.settings import CIPHERS, CIPHERSUITES
from apps.compiler.targets.haproxy.writer import Expanded, Section

_VERSIONS = {TlsVersion.V12: "TLSv1.2", TlsVersion.V13: "TLSv1.3"}


def certificate_list_path(listener_id: str) -> str:
    """`lst-2` → `certs/lst-2.list`."""
    return f"certs/{listener_id}.list"


def add_bind(section: Section, listener: Listener, *where: str | Expanded) -> None:
    """The line of an address, with TLS where the listener speaks it.

    The agent has the keys of session tickets and names their folder; one of before has none, and offers no tickets.
    """
    if listener.protocol is not Protocol.HTTPS:
        section.add("bind", *where)
        return
    words, without = _tls_words(listener), "no-tls-tickets"
    if not offers_tickets(listener):
        section.add("bind", *where, *words, without)
        return
    keys = Expanded(f"${{SPILLWAY_TICKETS}}/{listener.id}.keys")
    section.add(".if", "defined(SPILLWAY_TICKETS)")
    section.add("bind", *where, *words, "tls-ticket-keys", keys)
    section.add(".else")
    section.add("bind", *where, *words, without)
    section.add(".endif")


def offers_tickets(listener: Listener) -> bool:
    """Not where clients are verified: a ticket would carry the certificate to other hosts and past its revocation."""
    return (listener.tls or ListenerTls()).session_tickets and not listener.client_certificates


def _tls_words(listener: Listener) -> tuple[str, ...]:
    tls = listener.tls or ListenerTls()
    strict = () if listener.default_certificate_id else ("strict-sni",)
    alpn = ("alpn", "h2,http/1.1" if tls.http2 else "http/1.1")
    words = ("ssl", "crt-list", certificate_list_path(listener.id), *strict, *alpn, *_offered(tls))
    return (*words, *bind_words(listener))


def _offered(tls: ListenerTls) -> tuple[str, ...]:
    version = tls.minimum_version
    if version is None and tls.preset is not None:
        version = TlsVersion.V13 if tls.preset is TlsPreset.MODERN else TlsVersion.V12
    words = ("ssl-min-ver", _VERSIONS[version]) if version else ()
    ciphers = ("ciphers", CIPHERS, "ciphersuites", CIPHERSUITES) if tls.preset is TlsPreset.INTERMEDIATE else ()
    return (*words, *ciphers)
