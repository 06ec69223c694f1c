"""Certificates of a server: loaded from files, or ordered by themselves for its hosts; and rules for connections."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing.caddy.context import Caddy
from apps.importing.caddy.pools.reaching import authorities
from apps.importing.masking import HIDDEN
from apps.importing.values.fields import listed, mapping
from apps.importing.values.parsing import Path

TLS: Path = ("apps", "tls")
MODES = {"require_and_verify": "required", "verify_if_given": "optional"}
NO_NAME = "No authority gives a certificate for {0}; say one of ours with --certificate {0}=NAME."
OWN_NAMES = (".localhost", ".local", ".internal", ".home.arpa")
OF_NODES = ("alpn", "curves", "cipher_suites", "default_sni", "fallback_sni", "match", "certificate_selection")


def certificates_of(caddy: Caddy, server: Path, hosts: tuple[str, ...]) -> list[str]:
    """Names of ours for the certificates of a server, which were given, are ordered, or are asked for."""
    loaded = [name for at, _ in caddy.fields.each(*TLS, "certificates", "load_files") if (name := _file(caddy, at))]
    said = mapping(caddy.fields.at(*server, "automatic_https"))
    skipped = {str(each).lower() for each in listed(said.get("skip_certificates"))}
    chosen = _with_files(caddy, server)
    if said.get("disable_certificates"):
        return loaded
    ordered = [_ordered(caddy, host) for host in hosts if host not in skipped and not (loaded and host in chosen)]
    return [*loaded, *ordered]


def _with_files(caddy: Caddy, server: Path) -> set[str]:
    """Hosts whose connections take a certificate that is chosen by a tag: those of files have one."""
    return {
        str(host).lower()
        for _, policy in caddy.fields.each(*server, "tls_connection_policies") if "certificate_selection" in policy
        for host in listed(mapping(policy.get("match")).get("sni"))
    }  # fmt: skip


def _file(caddy: Caddy, at: Path) -> str:
    path, key = (str(caddy.fields.at(*at, name)) for name in ("certificate", "key"))
    caddy.fields.mapped(at)
    if stands := caddy.context.options.certificates.get(path):
        return stands
    name = caddy.context.name("Certificate", PurePosixPath(path).stem)
    chain, private = caddy.context.files.text(path), caddy.context.files.text(key)
    if chain and private:
        caddy.made.certificates[name] = {"chain": chain, "key": private}
        for line in caddy.fields.below(at):
            caddy.ledger.belongs(line, f"Certificate {name}")
    else:
        why = f"Create the certificate {name}, give the file {path} and its key, or say --certificate {path}=NAME."
        caddy.fields.differs((*at, "certificate"), why)
        caddy.context.need(f"The certificate {path} (--certificate {path}=NAME).")
    return name


def _ordered(caddy: Caddy, host: str) -> str:
    """A certificate that Spillway orders and renews, as Caddy did."""
    if stands := caddy.context.options.certificates.get(host):
        return stands
    name = caddy.context.name("Certificate", host.replace("*", "any"))
    try:
        hostname = grammar.hostname(host)
    except GrammarError:
        hostname = ""
    if hostname and not hostname.endswith(OWN_NAMES):
        caddy.made.certificates[name] = {"automatic": {"hostnames": [hostname]}}
    else:
        caddy.context.need(NO_NAME.format(host))
    return name


def policies_of(caddy: Caddy, path: Path) -> dict[str, Any]:
    """`tls_connection_policies`: versions, and certificates that clients present."""
    tls: dict[str, Any] = {}
    found: list[dict[str, Any]] = []
    for at, policy in caddy.fields.each(*path):
        for name in OF_NODES:
            if name in policy:
                caddy.fields.mapped((*at, name))
        if "protocol_min" in policy:
            caddy.fields.mapped((*at, "protocol_min"))
            tls |= {"minimum_version": "1.3"} if policy["protocol_min"] == "tls1.3" else {}
        if "client_authentication" in policy:
            found += _clients(caddy, (*at, "client_authentication"), listed(mapping(policy.get("match")).get("sni")))
        if not policy:
            caddy.fields.mapped(at)
    return ({"tls": tls} if tls else {}) | ({"client_certificates": found} if found else {})


def _clients(caddy: Caddy, at: Path, hosts: list[str]) -> list[dict[str, Any]]:
    said = mapping(caddy.fields.at(*at))
    mode = MODES.get(str(said.get("mode", "require_and_verify")))
    chain = authorities(caddy, at)
    for name in ("mode", "trusted_ca_certs"):
        if name in said:
            caddy.fields.mapped((*at, name))
    if mode is None or not chain:
        caddy.fields.impossible(at, "Certificates of clients are verified by an authority that is named.")
        return []
    names = sorted({str(host).lower() for host in hosts})
    return [{"mode": mode, "ca": chain} | ({"hostnames": names} if names else {})]


def hidden(path: Path, text: str) -> str:
    """What the report shows of a value that may prove who somebody is."""
    secret = path[-1] in ("password", "key", "salt", "api_token", "secret", "mac_key") and "load_files" not in path
    return HIDDEN if secret else text
