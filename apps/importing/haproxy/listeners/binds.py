"""`bind` lines (and addresses on the line of a section) as listeners."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from apps.importing.context import PRIVATE
from apps.importing.haproxy.listeners.certificates import Certificates, client_certificates
from apps.importing.haproxy.listeners.ports import ANYWHERE, Bind, listeners_among, say_address
from apps.importing.haproxy.pools.addresses import divided, say_unset
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.text.tables.proxies import BIND_OPTIONS
from apps.importing.haproxy.text.words import expanded
from apps.importing.haproxy.traffic.context import Context
from apps.importing.verdicts import Line

FLAGS = frozenset(
    {
        *("ssl", "accept-proxy", "accept-netscaler-cip", "strict-sni", "transparent", "v4v6", "v6only", "tfo"),
        *("defer-accept", "prefer-client-ciphers", "no-ca-names", "generate-certificates", "allow-0rtt", "expose-fd"),
        *("no-tls-tickets", "tls-tickets", "no-sslv3", "no-tlsv10", "no-tlsv11", "no-tlsv12", "no-tlsv13"),
        *("force-tlsv10", "force-tlsv11", "force-tlsv12", "force-tlsv13", "force-sslv3", "quic-force-retry", "no-alpn"),
        *("no-strict-sni", "ktls", "ocsp-update-auto"),
    }
)
_LOOPBACK = re.compile(r"127\.|::1\Z|localhost\Z")
MOST_PORTS = 256
OLD_TLS = frozenset({"SSLv3", "TLSv1.0", "TLSv1.1"})

NO_CERTIFICATE = "No crt says which certificate clients are shown, so this port has no listener."


def binds_of(context: Context, section: Section) -> list[Bind]:
    """All ports of the section, with those that are named on its own line."""
    found: list[Bind] = []
    words = section.header.words
    if len(words) > 2 and words[2] != "from" and ":" in words[2]:
        found += _endpoints(context, section.header, words[2], tuple(_expected(context, section)))
    expected = tuple(_expected(context, section))
    for line in section.each("bind"):
        if len(line.words) > 1:
            found += _endpoints(context, line, line.words[1], (*_options(context, line), *expected))
    return listeners_among(context, section, found)


def _expected(context: Context, section: Section) -> Iterator[tuple[str, str]]:
    """`tcp-request connection expect-proxy layer4` is what `accept-proxy` says of a bind line."""
    lines = [line for line in section.each("tcp-request") if "expect-proxy" in line.words[1:3]]
    for line in lines:
        if "if" in line.words or "unless" in line.words:
            context.ledger.differs(line, "The PROXY protocol is believed from private networks; name those it is of.")
    if lines:
        yield "accept-proxy", ""


def _options(context: Context, line: Line) -> Iterator[tuple[str, str]]:
    words = line.words[2:]
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        value = "" if word in FLAGS or at >= len(words) else words[at]
        at += 0 if word in FLAGS else 1
        fact = BIND_OPTIONS.get(word)
        if fact is None:
            context.ledger.impossible(line, f"No version of HAProxy has the option {word} of a bind line.")
        elif word in WHY:
            context.ledger.differs(line, WHY[word])
        yield word, value


WHY = {
    **dict.fromkeys(
        ("ciphers", "ciphersuites", "curves", "ecdhe", "sigalgs", "client-sigalgs"),
        "Ciphers and curves are those of the fleet (tls_preset).",
    ),
    "accept-netscaler-cip": "Only the PROXY protocol is understood.",
    "ca-verify-file": "Certificates of clients are verified with those of ca-file alone; put all authorities into it.",
    "generate-certificates": "Certificates are objects of their own; none is made while clients connect.",
    "interface": "Listeners are bound to addresses, not to interfaces.",
    "transparent": "Listeners are bound to addresses of the node.",
    "force-tlsv10": "The oldest version of TLS is 1.2.",
    "force-tlsv11": "The oldest version of TLS is 1.2.",
    "force-sslv3": "The oldest version of TLS is 1.2.",
}


def _endpoints(context: Context, line: Line, text: str, options: tuple[tuple[str, str], ...]) -> Iterator[Bind]:
    text, unknown = expanded(text, context.configuration.environment)
    say_unset(context, line, unknown)
    if context.ledger.has_unset(line):
        text = "*:443" if any(name == "ssl" for name, _ in options) else "*:80"
    for each in text.split(","):
        address, _, ports = each.rpartition(":")
        low, _, high = ports.partition("-")
        if low.isdecimal() and high.isdecimal():
            yield from _range(context, line, address.strip("[]"), range(int(low), int(high) + 1), options)
            continue
        found = divided(each)
        if found is None or found.port == 0:
            context.ledger.differs(line, "Listeners have ports; a socket of the machine is none.")
            continue
        if _LOOPBACK.match(found.address) and found.address not in context.options.addresses:
            context.ledger.differs(line, "Only its own machine connects to this address, so it is no listener.")
            continue
        context.ledger.mapped(line)
        yield Bind(line, found.address, found.port, options, quic=each.lower().startswith("quic"))


def _range(
    context: Context, line: Line, address: str, ports: range, options: tuple[tuple[str, str], ...]
) -> Iterator[Bind]:
    context.ledger.mapped(line)
    if len(ports) > MOST_PORTS:
        context.ledger.impossible(line, f"A listener has one port; of this range the first {MOST_PORTS} have one each.")
    yield from (Bind(line, address, port, options) for port in ports[:MOST_PORTS])


def listener_of(context: Context, bind: Bind, protocol: str, certificates: Certificates) -> dict[str, Any]:
    """A listener without what its frontend says. `protocol` is that of the frontend (http or tcp)."""
    encrypted = bind.has("ssl")
    speaks = "https" if protocol == "http" and encrypted else protocol
    spec: dict[str, Any] = {"name": f"{'tls' if encrypted and speaks == 'tcp' else speaks}-{bind.port}",
                            "protocol": speaks, "port": bind.port}  # fmt: skip
    _add_address(context, bind, spec)
    if encrypted:
        names = certificates.of_bind(bind.line, bind.all("crt") + bind.all("default-crt"), bind.all("crt-list"))
        spec["certificates"] = names
        if not names and not bind.all("crt-list"):
            context.ledger.impossible(bind.line, NO_CERTIFICATE)
        if names and not bind.has("strict-sni"):
            spec["default_certificate"] = names[0]
        spec |= _tls(bind, speaks)
        _say_versions(context, bind)
        spec |= client_certificates(context, bind.line, bind.all("verify"), bind.all("ca-file"), bind.all("crl-file"))
    if bind.has("accept-proxy"):
        spec["client_address"] = {"proxy_protocol_from": list(PRIVATE)}
        context.ledger.differs(
            bind.line, "The PROXY protocol is believed from private networks; name those of the balancer in front."
        )
    for value in bind.all("maxconn"):
        if value.isdecimal() and int(value):
            spec["connections"] = {"max_connections": min(int(value), 1_000_000)}
    return spec


def _add_address(context: Context, bind: Bind, spec: dict[str, Any]) -> None:
    if bind.address in ANYWHERE:
        return
    name = context.options.addresses.get(bind.address)
    if name:
        spec["static_ip"] = name
    say_address(context, bind)


def _say_versions(context: Context, bind: Bind) -> None:
    """Versions of TLS that are other than the line says."""
    if OLD_TLS & set(bind.all("ssl-min-ver")):
        context.ledger.differs(bind.line, WHY["force-tlsv10"])
    if bind.has("no-tlsv13") or bind.has("force-tlsv12") or set(bind.all("ssl-max-ver")) - {"TLSv1.3"}:
        context.ledger.differs(bind.line, "Clients may use TLS 1.3 as well.")


def _tls(bind: Bind, speaks: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    oldest = next(iter(bind.all("ssl-min-ver")), "")
    if oldest == "TLSv1.3" or bind.has("force-tlsv13") or bind.has("no-tlsv12"):
        found["minimum_version"] = "1.3"
    protocols = [word for text in bind.all("alpn") for word in re.split(r",", text) if word]
    if speaks == "https" and protocols and "h2" not in protocols and not bind.quic:
        found["http2"] = False
    if speaks == "https" and bind.quic:
        found["http3"] = True
    if speaks == "tcp" and protocols:
        found["alpn"] = protocols[:8]
    return {"tls": found} if found else {}
