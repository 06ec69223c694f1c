"""A port of nginx as a listener: TLS, certificates, timeouts, compression, addresses of clients."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from apps.compiler import grammar
from apps.compiler.address_spelling import spelled
from apps.compiler.grammar import GrammarError
from apps.importing.context import PRIVATE
from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.nginx.text.units import time_of
from apps.importing.nginx.traffic.context import Nginx
from apps.importing.nginx.traffic.ports import Port
from apps.importing.values.pem import chain_in, key_in
from apps.importing.verdicts import Verdict

PLAIN_STEMS = frozenset({"fullchain", "cert", "chain", "server", "ssl", "certificate", "tls", "public", "bundle"})
OF_PORT = "One listener has one setting for all servers of its port: that of the default server."


def is_encrypted(port: Port) -> bool:
    """Whether clients speak TLS at the port."""
    return port.has("ssl") or any(value_of(each.last("ssl")) == "on" for each in port.servers)


def listener_of(nginx: Nginx, port: Port) -> dict[str, Any]:
    """The specification of an http or https listener; without a certificate it cannot be stored."""
    encrypted = is_encrypted(port)
    speaks = "https" if encrypted else "http"
    spec: dict[str, Any] = {"name": f"{speaks}-{port.number}", "protocol": speaks, "port": port.number}
    if port.static_ip:
        spec["static_ip"] = port.static_ip
    for each in (server.last("ssl") for server in port.servers):
        if each is not None:
            nginx.ledger.mapped(each.line)
    if encrypted:
        for server, listen in port.listens:
            if "ssl" not in listen.words and value_of(server.last("ssl")) != "on":
                nginx.ledger.differs(listen.directive.line, f"Port {port.number} speaks TLS with every client.")
        add_tls(nginx, port, spec)
        spec |= _client_certificates(nginx, port)
    spec |= _client_address(nginx, port)
    spec |= _connections(nginx, port)
    spec |= _compression(nginx, port)
    return spec


def add_tls(nginx: Nginx, port: Port, spec: dict[str, Any]) -> None:
    """Certificates of all servers, that of the default server for other names, and versions of TLS."""
    names = list(dict.fromkeys(name for each in (port.default, *port.servers) for name in certificates_of(nginx, each)))
    if names:
        spec |= {"certificates": names, "default_certificate": names[0]}
    tls = _versions(nginx, port)
    if spec["protocol"] == "https" and not port.has("http2"):
        said = [each for server in port.servers if (each := server.inherited("http2")) is not None]
        for each in said:
            nginx.ledger.mapped(each.line)
        if not any(value_of(each) == "on" for each in said):
            tls["http2"] = False
    if tls:
        spec["tls"] = tls


def _versions(nginx: Nginx, port: Port) -> dict[str, Any]:
    tls: dict[str, Any] = {}
    protocols = port.default.inherited("ssl_protocols")
    if protocols is not None:
        nginx.ledger.mapped(protocols.line)
        if set(protocols.args) == {"TLSv1.3"}:
            tls["minimum_version"] = "1.3"
        if old := sorted(set(protocols.args) & {"SSLv2", "SSLv3", "TLSv1", "TLSv1.1"}):
            nginx.ledger.differs(protocols.line, f"The oldest version of TLS is 1.2; {', '.join(old)} is not offered.")
    for server in port.servers:
        tickets = server.inherited("ssl_session_tickets")
        if tickets is not None and value_of(tickets) == "off":
            tls["session_tickets"] = False
            nginx.ledger.mapped(tickets.line)
    return tls


def certificates_of(nginx: Nginx, server: Directive) -> Iterator[str]:
    """Names of ours for the certificates of a server, which were given, or are asked for."""
    keys = server.all_inherited("ssl_certificate_key")
    for key in keys:
        nginx.ledger.mapped(key.line)
    for at, each in enumerate(server.all_inherited("ssl_certificate")):
        path = value_of(each)
        nginx.ledger.mapped(each.line)
        if stands := nginx.context.options.certificates.get(path):
            yield stands
            continue
        name = _certificate_name(nginx, path)
        text = nginx.context.files.text(path) or ""
        key_text = (nginx.context.files.text(value_of(keys[at])) or "") if at < len(keys) else ""
        chain, private = chain_in(text), key_in(key_text)
        if chain and private:
            nginx.made.certificates[name] = {"chain": chain, "key": private}
            nginx.ledger.belongs(each.line, f"Certificate {name}")
        else:
            why = f"Create the certificate {name}, give the file {path} and its key, or say --certificate {path}=NAME."
            nginx.ledger.differs(each.line, why)
            nginx.context.need(f"The certificate {path} (--certificate {path}=NAME).")
        yield name


def _certificate_name(nginx: Nginx, path: str) -> str:
    """A name for the file; the folder where every file is called alike."""
    last = PurePosixPath(path)
    called = last.parent.name if last.stem in PLAIN_STEMS and last.parent.name else last.stem
    given = nginx.context.names.given
    others = sum(kind == f"Certificate {called}" for kind, _ in given)
    at = f"Certificate {called}", path
    if at not in given:
        given[at] = nginx.context.name("Certificate", f"{called}-{others + 1}" if others else called)
    return given[at]


def _client_certificates(nginx: Nginx, port: Port) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    for server in port.servers:
        verify, file = server.inherited("ssl_verify_client"), server.inherited("ssl_client_certificate")
        if verify is None or value_of(verify) == "off" or file is None:
            continue
        if value_of(verify) not in ("on", "optional"):
            for each in (verify, file):
                nginx.ledger.impossible(each.line, "Certificates of clients are verified, or not asked for.")
            continue
        for each in (verify, file):
            nginx.ledger.mapped(each.line)
        text = nginx.context.files.text(value_of(file)) or ""
        chain = chain_in(text)
        if not chain:
            nginx.ledger.differs(file.line, f"Clients present certificates of {value_of(file)}; give this file.")
            nginx.context.need(f"The file {value_of(file)} (--files).")
            continue
        entry: dict[str, Any] = {"mode": "required" if value_of(verify) == "on" else "optional", "ca": chain}
        entry |= _revoked(nginx, server)
        if server is not port.default:
            entry["hostnames"] = _hostnames(server)
            if not entry["hostnames"]:
                nginx.ledger.impossible(verify.line, "A server without a whole name cannot ask for certificates alone.")
                continue
        found.append(entry)
    return {"client_certificates": found} if found else {}


def _revoked(nginx: Nginx, server: Directive) -> dict[str, str]:
    """The list of certificates that count no more."""
    revoked = server.inherited("ssl_crl")
    if revoked is None:
        return {}
    if lists := nginx.context.files.text(value_of(revoked)):
        nginx.ledger.mapped(revoked.line)
        return {"crl": lists}
    nginx.ledger.differs(revoked.line, f"The revocation list {value_of(revoked)} was not given.")
    nginx.context.need(f"The file {value_of(revoked)} (--files).")
    return {}


def _hostnames(server: Directive) -> list[str]:
    names = [name.lower() for each in server.each("server_name") for name in each.args]
    found = []
    for name in names:
        try:
            found.append(grammar.hostname(name))
        except GrammarError:
            continue
    return sorted(set(found))


def _client_address(nginx: Nginx, port: Port) -> dict[str, Any]:
    """The PROXY protocol, and set_real_ip_from with its header."""
    by_protocol = port.has("proxy_protocol")
    header = port.default.inherited("real_ip_header")
    said = port.default.all_inherited("set_real_ip_from")
    networks = [network for each in said if (network := _network(nginx, each))]
    kind = value_of(header, "X-Real-IP").lower() if said else ""
    recursive = port.default.inherited("real_ip_recursive")
    if recursive is not None:
        nginx.ledger.note(recursive.line, Verdict.MAPPED)
        if value_of(recursive) == "on":
            nginx.ledger.differs(recursive.line, "Of the header the last address that is no such proxy is believed.")
    if header is not None:
        nginx.ledger.mapped(header.line)
    found: dict[str, Any] = {}
    if by_protocol:
        found["proxy_protocol_from"] = networks or list(PRIVATE)
        for _, each in port.listens:
            if not networks and "proxy_protocol" in each.words:
                why = "The PROXY protocol is believed from private networks; name those of the balancer in front."
                nginx.ledger.differs(each.directive.line, why)
    elif kind == "x-forwarded-for" and networks:
        found["forwarded_from"] = networks
    if kind not in ("", "x-forwarded-for", "proxy_protocol") or (kind == "proxy_protocol" and not by_protocol):
        why = f"Addresses of clients come in X-Forwarded-For, Forwarded or the PROXY protocol, not in {kind}."
        for each in (*said, *([header] if header is not None else ())):
            nginx.ledger.impossible(each.line, why)
        found.pop("forwarded_from", None)
    return {"client_address": found} if found else {}


def _network(nginx: Nginx, directive: Directive) -> str:
    try:
        found = grammar.trusted_network(spelled(ipaddress.ip_network(value_of(directive), strict=False)))
    except ValueError:
        nginx.ledger.impossible(directive.line, "Proxies are named by their networks.")
        return ""
    except GrammarError as error:
        nginx.ledger.impossible(directive.line, f"Not every address is believed. {error.message}")
        return ""
    nginx.ledger.mapped(directive.line)
    return found


def _connections(nginx: Nginx, port: Port) -> dict[str, Any]:
    found: dict[str, Any] = {"keepalive_timeout_ms": 75_000}
    times = (("keepalive_timeout", "keepalive_timeout_ms"), ("client_header_timeout", "request_timeout_ms"),
             ("client_body_timeout", "client_timeout_ms"))  # fmt: skip
    for name, field in times:
        directive = port.default.inherited(name)
        if directive is not None and value_of(directive).strip("0sm") == "" and name == "keepalive_timeout":
            found["keep_alive"] = "none"
            nginx.ledger.mapped(directive.line)
        elif (time := time_of(directive, nginx.ledger)) is not None:
            found[field] = time
        for server in port.servers:
            for each in server.everything():
                if each.name == name and each is not directive:
                    nginx.ledger.differs(each.line, OF_PORT)
    return {"connections": found}


def _compression(nginx: Nginx, port: Port) -> dict[str, Any]:
    on, types = port.default.inherited("gzip"), port.default.inherited("gzip_types")
    for server in port.servers:
        for each in server.everything():
            if each.name in ("gzip", "gzip_types") and each is not on and each is not types:
                nginx.ledger.differs(each.line, OF_PORT)
    for said in (on, types):
        if said is not None:
            nginx.ledger.mapped(said.line)
    if on is None or value_of(on) != "on":
        return {}
    wanted = {"text/html"}
    for text in types.args if types is not None else ():
        try:
            wanted.add(grammar.media_type(text))
        except GrammarError:
            if types is not None:
                nginx.ledger.differs(types.line, f"{text} is no media type, such as text/css.")
    return {"compression": {"types": sorted(wanted)[:32]}}
