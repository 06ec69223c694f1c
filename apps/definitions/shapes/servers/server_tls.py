"""The shape of TLS to servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars.servers import MAX_CA, ca_bundle
from apps.compiler.model.servers import TlsVersion, Verify
from apps.definitions.shapes.base.shape import About, Shape
from apps.definitions.shapes.base.words import ByName, text, word
from apps.definitions.values.authorities import complaint_about_authorities
from apps.definitions.values.certificates import canonical_pem

VERIFY = {
    Verify.SYSTEM: "By the authorities of the nodes",
    Verify.CA: "By these authorities",
    Verify.NONE: "No verification",
}
VERSIONS = {TlsVersion.V1_2: "TLS 1.2", TlsVersion.V1_3: "TLS 1.3"}


def _authorities(value: object) -> str:
    pem = ca_bundle(canonical_pem(value) if isinstance(value, str) else value)
    complaint = complaint_about_authorities(pem)
    if complaint:
        raise GrammarError(*complaint)
    return pem


@dataclass(frozen=True, slots=True)
class ServerTls(Shape):
    """TLS to servers; their certificates are verified by default."""

    verify: Annotated[
        Verify,
        word(Verify, VERIFY),
        About("The authorities that must have issued the servers' certificates; `none` accepts any.", "Verify", ""),
    ] = Verify.SYSTEM
    ca: Annotated[
        str,
        text(_authorities, "PEM text", MAX_CA, blank=True),
        About("The certificates of the authorities for `verify: ca`, in PEM.", "Authorities"),
    ] = ""
    server_name: Annotated[
        str,
        text(grammar.server_host, "a host name without port", 253, blank=True),
        About(
            "The name that is sent as SNI and that certificates must contain. Default: the host of the request.",
            "Server name",
            "Default: the host that the client requests.",
            "shop.internal.example",
        ),
    ] = ""
    min_version: Annotated[
        TlsVersion, word(TlsVersion, VERSIONS), About("The oldest accepted version.", "Least version", "")
    ] = TlsVersion.V1_2
    client_certificate: Annotated[
        ByName | None,
        About("A certificate of the same account, for servers that require one.", "Client certificate"),
    ] = None
