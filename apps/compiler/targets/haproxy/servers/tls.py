"""TLS and HTTP/2 to servers.

Without a name of its own for the servers, their certificates must be for the host that the request asks for, after it
was rewritten. Health checks have no request: they are told the same name, else the check's host.
"""

from __future__ import annotations

from collections.abc import Iterable

from apps.compiler.model.fleet import Pool
from apps.compiler.model.servers import HttpVersion, ServerTls, TlsVersion, Verify
from apps.compiler.model.shared import Protocol
from apps.compiler.routing import number_of
from apps.compiler.targets.haproxy.settings import HTTP
from apps.compiler.targets.haproxy.writer import Argument, Call, Document, Expanded, Section, Value

UNOPENED = "certificates"
SYSTEM_AUTHORITIES = "@system-ca"
_VERSIONS = {TlsVersion.V1_2: "TLSv1.2", TlsVersion.V1_3: "TLSv1.3"}
_HOST = "req.fhdr(host),host_only"


def certificate_path(certificate_id: str) -> str:
    """`crt-3` → `certs/crt-3.pem`."""
    return f"certs/{certificate_id}.pem"


def authorities_path(pool_id: str) -> str:
    """`pool-17` → `certs/ca-pool-17.pem`."""
    return f"certs/ca-{pool_id}.pem"


def authority_files(pools: Iterable[Pool]) -> dict[str, bytes]:
    """The authorities that pools bring along, by path."""
    given = ((pool.id, pool.server_tls) for pool in pools)
    return {authorities_path(key): tls.ca.encode("ascii") for key, tls in given if tls and tls.verify is Verify.CA}


def certificates_shown(pools: Iterable[Pool]) -> list[str]:
    """The ids of the certificates that servers are shown."""
    found = {pool.server_tls.client_certificate_id for pool in pools if pool.server_tls}
    return sorted((key for key in found if key is not None), key=number_of)


def add_certificates_shown(document: Document, pools: Iterable[Pool]) -> None:
    """Have them read while the file is parsed, from where it lies: servers look theirs up only after that.

    A listener would read them in time; this one is never opened.
    """
    shown = certificates_shown(pools)
    if not shown:
        return
    section = document.section("frontend", UNOPENED, "from", HTTP)
    section.add("disabled")
    for key in shown:
        socket = Expanded(f"unix@${{SPILLWAY_RUN}}/{UNOPENED}.sock")
        section.add("bind", socket, "ssl", "crt", certificate_path(key))


def add_tls(section: Section, pool: Pool) -> None:
    """One line for all servers of the backend; nothing where they are spoken to in the clear, with HTTP/1.1."""
    is_http, http2 = pool.protocol is not Protocol.TCP, pool.http_version is HttpVersion.HTTP2
    if pool.server_tls is not None:
        alpn = ("alpn", "h2,http/1.1") if is_http and http2 else ()
        section.add("default-server", *_words(pool, pool.server_tls, is_http=is_http), *alpn)
    elif pool.protocol is Protocol.HTTPS:
        check = ("check-ssl",) if section.arguments[0] == pool.id else ()
        section.add("default-server", "ssl", "verify", "none", "sni", _HOST, *check)
    elif is_http and http2:
        section.add("default-server", "proto", "h2")


def _words(pool: Pool, tls: ServerTls, *, is_http: bool) -> list[Argument]:
    words: list[Argument] = ["ssl", "verify", "none"]
    if tls.verify is not Verify.NONE:
        authorities = authorities_path(pool.id) if tls.verify is Verify.CA else SYSTEM_AUTHORITIES
        words = ["ssl", "verify", "required", "ca-file", authorities]
    words += ["ssl-min-ver", _VERSIONS[tls.min_version]]
    if tls.client_certificate_id is not None:
        words += ["crt", certificate_path(tls.client_certificate_id)]
    if tls.server_name:
        words += ["sni", Call(("str(", Value(tls.server_name), ")"))]
    elif is_http:
        words += ["sni", _HOST]
    name = tls.server_name or (pool.health_check.host if pool.health_check else "")
    return [*words, "check-sni", Value(name)] if name else words
