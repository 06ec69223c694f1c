"""The transport of `reverse_proxy`: how long servers may take, and TLS to them."""

from __future__ import annotations

import base64
import binascii
import textwrap
from collections.abc import Mapping
from typing import Any

from apps.compiler.grammar import GrammarError, server_host
from apps.importing.caddy.context import Caddy
from apps.importing.caddy.durations import time_at
from apps.importing.haproxy.text.durations import LONGEST_MS
from apps.importing.values.fields import listed, mapping
from apps.importing.values.parsing import Path

KEPT_OPEN = "Nodes have settings of their own for this."
OF_NODES = ("keep_alive", "compression", "max_response_header_size", "write_buffer_size", "read_buffer_size",
            "dial_fallback_delay", "expect_continue_timeout", "max_conns_per_host")  # fmt: skip


def transport(caddy: Caddy, at: Path, host: str) -> dict[str, Any]:
    """How servers are reached; Caddy waits for an answer as long as it takes."""
    said = mapping(caddy.fields.at(*at))
    found: dict[str, Any] = {"connect_timeout_ms": 3000, "server_timeout_ms": LONGEST_MS}
    if "protocol" in said:
        caddy.fields.mapped((*at, "protocol"))
    for name, field in (("dial_timeout", "connect_timeout_ms"), ("response_header_timeout", "server_timeout_ms")):
        if (time := time_at(caddy, (*at, name))) is not None:
            found[field] = time
    for name in ("read_timeout", "write_timeout"):
        if time_at(caddy, (*at, name)) is not None:
            caddy.fields.differs((*at, name), "One time is for both directions, that of the response.")
    for name in OF_NODES:
        if name in said:
            caddy.fields.node_setting((*at, name), KEPT_OPEN)
    found |= _protocols(caddy, at, said)
    if "tls" in said:
        found["server_tls"] = _tls(caddy, (*at, "tls"), mapping(said["tls"]), host)
    return found


def _protocols(caddy: Caddy, at: Path, said: Mapping[str, Any]) -> dict[str, Any]:
    """The version of HTTP, and the PROXY protocol."""
    found: dict[str, Any] = {}
    if "versions" in said:
        caddy.fields.mapped((*at, "versions"))
        found |= {"http_version": "2"} if {*map(str, listed(said["versions"]))} <= {"2", "h2c"} else {}
    if said.get("proxy_protocol") in ("v1", "v2"):
        caddy.fields.mapped((*at, "proxy_protocol"))
        found["proxy_protocol"] = said["proxy_protocol"]
    return found


def _tls(caddy: Caddy, at: Path, said: Mapping[str, Any], host: str) -> dict[str, Any]:
    found: dict[str, Any] = {"verify": "none" if said.get("insecure_skip_verify") else "system"}
    for name in ("insecure_skip_verify", "server_name"):
        if name in said:
            caddy.fields.mapped((*at, name))
    if not said:
        caddy.fields.mapped(at)
    chain = authorities(caddy, at)
    if chain and found["verify"] == "system":
        found = {"verify": "ca", "ca": chain}
    name = str(said.get("server_name") or host)
    try:
        found["server_name"] = server_host(name.lower())
    except GrammarError:
        if "server_name" in said:
            caddy.fields.impossible((*at, "server_name"), "The name of a server is one host name.")
    own = said.get("client_certificate_file")
    if own is not None:
        if stands := caddy.context.options.certificates.get(str(own)):
            caddy.fields.mapped((*at, "client_certificate_file"))
            caddy.fields.mapped((*at, "client_certificate_key_file"))
            return found | {"client_certificate": stands}
        caddy.fields.differs((*at, "client_certificate_file"), f"Name the certificate: --certificate {own}=NAME.")
        caddy.fields.mapped((*at, "client_certificate_key_file"))
        caddy.context.need(f"The certificate {own} (--certificate {own}=NAME).")
    return found


def authorities(caddy: Caddy, at: Path) -> str:
    """Certificates of authorities, in PEM."""
    lists = (("ca", "trusted_ca_certs"), ("trusted_ca_certs",), ("root_ca_pool",))
    inline = [each for names in lists for each in caddy.fields.texts(*at, *names)]
    files = [*caddy.fields.texts(*at, "ca", "pem_files"), *caddy.fields.texts(*at, "root_ca_pem_files")]
    if caddy.fields.at(*at, "ca", "provider") in ("inline", "file"):
        caddy.fields.mapped((*at, "ca", "provider"))
    found = ""
    for path, text in inline:
        caddy.fields.mapped(path)
        found += pem_of(text)
    for path, name in files:
        caddy.fields.mapped(path)
        chain = caddy.context.files.text(name)
        if chain is None:
            caddy.fields.differs(path, f"The file {name} was not given.")
            caddy.context.need(f"The file {name} (--files).")
        found += chain or ""
    return found


def pem_of(text: str) -> str:
    """A certificate in base64 as PEM; empty where it is none."""
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error:
        return ""
    body = "\n".join(textwrap.wrap(base64.b64encode(raw).decode(), 64))
    return f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"
