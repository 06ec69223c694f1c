"""The addresses of a server as listeners: ports, TLS, certificates, timeouts, trusted proxies."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apps.compiler import grammar
from apps.compiler.address_spelling import spelled
from apps.compiler.grammar import GrammarError
from apps.importing.caddy.certificates import certificates_of, policies_of
from apps.importing.caddy.context import Caddy
from apps.importing.caddy.durations import time_at
from apps.importing.caddy.matchers import hosts_of
from apps.importing.nginx.traffic.ports import ANYWHERE, HTTP3, LOOPBACK, ONLY_HERE
from apps.importing.values.fields import listed, mapping
from apps.importing.values.parsing import Path

_ADDRESS = re.compile(r"(?:tcp[46]?/)?(\[[^\]]*\]|[^/:]*):([0-9]+)(?:-([0-9]+))?")
NO_PORT = "A listener has a TCP port."
MOST_PORTS = 32
TIMES = (("read_header_timeout", "request_timeout_ms", 60_000), ("idle_timeout", "keepalive_timeout_ms", 300_000),
         ("read_timeout", "client_timeout_ms", None))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Server:
    """One server: its name, path, ports with their static IPs, hosts, and whether Caddy sees to its TLS."""

    name: str
    path: Path
    ports: tuple[tuple[int, str], ...]
    hosts: tuple[str, ...]
    automatic: bool
    redirects: bool
    policies: bool

    def is_encrypted(self, caddy: Caddy, port: int) -> bool:
        """Whether clients speak TLS at the port."""
        return port != caddy.http_port and (self.policies or (self.automatic and bool(self.hosts)))

    def https_port(self, caddy: Caddy) -> int:
        """The port to which requests without TLS are sent; 0 for none."""
        found = [port for port, _ in self.ports if self.is_encrypted(caddy, port)]
        if not self.redirects or not found:
            return 0
        return caddy.https_port if caddy.https_port in found else found[0]


def server_at(caddy: Caddy, name: str, path: Path) -> Server:
    """What a server says of itself."""
    said = mapping(caddy.fields.at(*path, "automatic_https"))
    for each in ("disable", "disable_redirects", "skip", "skip_certificates", "disable_certificates"):
        if each in said:
            caddy.fields.mapped((*path, "automatic_https", each))
    skipped = {str(each).lower() for each in listed(said.get("skip"))}
    ports = tuple(dict.fromkeys(_ports(caddy, path)))
    elsewhere = any(port != caddy.http_port for port, _ in ports)
    return Server(
        name, path, ports,
        tuple(dict.fromkeys(host for host in hosts_of(caddy, (*path, "routes")) if host not in skipped)),
        automatic=elsewhere and not said.get("disable"),
        redirects=elsewhere and not said.get("disable") and not said.get("disable_redirects"),
        policies=caddy.fields.at(*path, "tls_connection_policies") is not None,
    )  # fmt: skip


def _ports(caddy: Caddy, path: Path) -> Iterator[tuple[int, str]]:
    for at, text in caddy.fields.texts(*path, "listen"):
        found = _ADDRESS.fullmatch(text)
        if found is None or int(found[3] or found[2]) - int(found[2]) > MOST_PORTS:
            caddy.fields.impossible(at, NO_PORT)
            continue
        address = found[1].strip("[]")
        if address.startswith(LOOPBACK):
            caddy.fields.dead(at, ONLY_HERE)
            continue
        caddy.fields.mapped(at)
        static_ip = "" if address in ANYWHERE else caddy.context.options.addresses.get(address, "")
        if address not in ANYWHERE and not static_ip:
            caddy.fields.differs(at, f"Name the static IP of {address}: --address {address}=STATIC_IP.")
            caddy.context.need(f"The static IP of {address} (--address {address}=STATIC_IP).")
        for port in range(int(found[2]), int(found[3] or found[2]) + 1):
            yield port, static_ip


def listeners_of(caddy: Caddy, server: Server) -> list[dict[str, Any]]:
    """The specifications of the listeners of a server; those of https have certificates."""
    common = _connections(caddy, server.path) | _client_address(caddy, server.path) | _compression(caddy, server.path)
    found = []
    for port, static_ip in server.ports:
        encrypted = server.is_encrypted(caddy, port)
        spec: dict[str, Any] = {"name": f"{'https' if encrypted else 'http'}-{port}",
                                "protocol": "https" if encrypted else "http", "port": port, **common}  # fmt: skip
        if static_ip:
            spec["static_ip"] = static_ip
        if encrypted:
            spec |= policies_of(caddy, (*server.path, "tls_connection_policies"))
            spec["certificates"] = certificates_of(caddy, server.path, server.hosts)
            protocols = listed(caddy.fields.at(*server.path, "protocols")) or ["h1", "h2", "h3"]
            if "h2" not in protocols:
                spec["tls"] = {**spec.get("tls", {}), "http2": False}
            if "h3" in protocols:
                caddy.fields.differs((*server.path, "listen"), f"Clients are not offered HTTP/3. {HTTP3}")
        found.append(spec)
    return found


def _connections(caddy: Caddy, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, field, default in TIMES:
        time = time_at(caddy, (*path, name)) or default
        if time is not None:
            found[field] = time
    if caddy.fields.at(*path, "write_timeout") is not None:
        caddy.fields.differs((*path, "write_timeout"), "One time is for both directions, that of reading.")
    return {"connections": found}


def _client_address(caddy: Caddy, path: Path) -> dict[str, Any]:
    """`trusted_proxies`, and the PROXY protocol of a listener wrapper."""
    found: dict[str, Any] = {}
    for at, each in caddy.fields.each(*path, "listener_wrappers"):
        if each.get("wrapper") == "proxy_protocol":
            found["proxy_protocol_from"] = _networks(caddy, (*at, "allow"))
            caddy.fields.mapped((*at, "wrapper"))
        elif each.get("wrapper") == "tls":
            caddy.fields.mapped(at)
    trusted = (*path, "trusted_proxies")
    source = caddy.fields.at(*trusted, "source")
    if source == "static":
        found["forwarded_from"] = _networks(caddy, (*trusted, "ranges"))
        caddy.fields.mapped((*trusted, "source"))
    elif source is not None:
        caddy.fields.impossible(trusted, "Proxies are named by their networks.")
    headers = [name.lower() for _, name in caddy.fields.texts(*path, "client_ip_headers")]
    if headers and "x-forwarded-for" in headers:
        caddy.fields.mapped((*path, "client_ip_headers"))
    elif headers:
        why = f"Addresses of clients come in X-Forwarded-For or Forwarded, not in {headers[0]}."
        caddy.fields.impossible((*path, "client_ip_headers"), why)
        found.pop("forwarded_from", None)
    used = {name: networks for name, networks in found.items() if networks}
    return {"client_address": used} if used else {}


def _networks(caddy: Caddy, path: Path) -> list[str]:
    found = []
    for at, text in caddy.fields.texts(*path):
        try:
            found.append(grammar.trusted_network(spelled(ipaddress.ip_network(text, strict=False))))
            caddy.fields.mapped(at)
        except ValueError:
            caddy.fields.impossible(at, "Proxies are named by their networks.")
        except GrammarError as error:
            caddy.fields.impossible(at, f"Not every address is believed. {error.message}")
    return found


def _compression(caddy: Caddy, path: Path) -> dict[str, Any]:
    """`encode` of any route is the compression of the whole listener."""
    encoders = [at for at, value in caddy.fields.lines.items() if value and at[: len(path)] == path
                and at[-1] == "handler" and caddy.fields.at(*at) == "encode"]  # fmt: skip
    for at in encoders:
        caddy.fields.mapped(at[:-1])
        names = mapping(caddy.fields.at(*at[:-1], "encodings"))
        if "gzip" not in names or len(names) > 1:
            caddy.fields.differs((*at[:-1], "encodings"), "Nodes compress by gzip alone, for every route of the port.")
    return {"compression": {}} if encoders else {}
