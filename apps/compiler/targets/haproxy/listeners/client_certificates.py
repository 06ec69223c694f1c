"""Certificates of clients: asked for by the name in the TLS handshake, required by the host of each request.

A connection of tcp has no host but the name in its handshake: without a right certificate it is closed.

The handshake asks for a certificate and accepts any answer (`verify optional`, errors ignored): what counts is decided
for each request, so that clients get a sentence instead of a broken connection, and the agent's probe needs none.

* A client may ask for one name in the handshake and for another one in a request, or send requests for several hosts
  on one connection of HTTP/2. The authorities that hold for both names must be the same, otherwise it gets 421 and
  opens a connection for the host.
* Who asks for an unknown name would be judged by the authorities of the default certificate's first name. So a listener
  whose entries name hosts has no default certificate (checks/listeners.py).
* A session that is resumed keeps the certificate that was verified when it began, by whichever listener and
  authorities: HAProxy keeps the sessions of all listeners together. So a node with several authorities resumes none.
* Subjects can hold line feeds. The whole subject is written as RFC 2253 says, which escapes them; the common name is
  left out unless it is plain text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping

from apps.compiler.grammars.client_certificates import HEADERS
from apps.compiler.matching.clients import entry_for, wildcard_of
from apps.compiler.model.listener_options import ClientCertificates, ClientVerify
from apps.compiler.model.shared import Listener, LoadBalancer, Protocol
from apps.compiler.targets.haproxy.maps import Entries
from apps.compiler.targets.haproxy.writer import Section

NONE = "none"
MISDIRECTED = "This connection was opened for another host, which asks for other client certificates. Open a new one.\n"
REFUSED = "Present a valid client certificate for this host.\n"
_TEXT = ("content-type", "text/plain; charset=utf-8", "string")
_PLAIN = "^[!-~]([ -~]{0,510}[!-~])?$"
_VERIFIED = ("{", "var(txn.client_verified)", "-m", "bool", "}")
_OF_NONE = ("{", "var(txn.clients)", "-m", "str", NONE, "}")
Rule = tuple[str, ...]
REQUEST: Rule = ("http-request",)
CONTENT: Rule = ("tcp-request", "content")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def code_of(entry: ClientCertificates) -> str:
    """What stands for the entry in maps and rules."""
    return f"cc-{_digest(repr((entry.mode, entry.ca, entry.crl)))}"


def _files(entry: ClientCertificates) -> tuple[tuple[str, str, str], ...]:
    """Keyword, path and content of what the entry is verified by."""
    found = (("ca-file", f"certs/client-ca-{_digest(entry.ca)}.pem", entry.ca),)
    return (*found, ("crl-file", f"certs/client-crl-{_digest(entry.crl)}.pem", entry.crl)) if entry.crl else found


def client_files(listeners: Iterable[Listener]) -> dict[str, bytes]:
    """Authorities and revocation lists, by path."""
    entries = (entry for listener in listeners for entry in listener.client_certificates)
    return {path: text.encode("ascii") for entry in entries for _, path, text in _files(entry)}


def resumes_sessions(listeners: Iterable[Listener]) -> bool:
    """Whether a session may go on at any listener: not where certificates of several authorities are verified."""
    return len({(entry.ca, entry.crl) for each in listeners for entry in each.client_certificates}) < 2


def bind_words(listener: Listener) -> tuple[str, ...]:
    """A certificate that is not in order is judged by the rules of requests."""
    return ("ca-ignore-err", "all", "crt-ignore-err", "all") if listener.client_certificates else ()


def list_lines(listener: Listener, names: Mapping[str, Collection[str]]) -> Iterator[tuple[str, ...]]:
    """The lines of the listener's list: of each certificate (its path → host names) one for the names of each entry.

    A hostname of an entry for which certificates have a wildcard only stands there as well.
    """
    wanted = {host for entry in listener.client_certificates for host in entry.hostnames}
    alone = wanted.difference(*names.values())
    for path, own in names.items():
        by_words: dict[tuple[str, ...], list[str]] = {}
        for name in sorted({*own, *(host for host in alone if wildcard_of(host) in own)}):
            by_words.setdefault(_line_words(entry_for(listener, name)), []).append(name)
        for words, those in sorted(by_words.items()):
            yield (path, *words, *those)


def _line_words(entry: ClientCertificates | None) -> tuple[str, ...]:
    if entry is None:
        return ()
    words = ["verify", "optional", *(word for keyword, path, _ in _files(entry) for word in (keyword, path))]
    return (f"[{words[0]}", *words[1:-1], f"{words[-1]}]")


def hosts_path(listener_id: str) -> str:
    """Host → code of its entry: `maps/lst-1-clients.map`."""
    return f"maps/{listener_id}-clients.map"


def client_maps(front: LoadBalancer) -> dict[str, Entries]:
    """The map of each listener whose entries name hosts."""
    found: dict[str, Entries] = {}
    for listener in front.listeners:
        named = {host: code_of(entry) for entry in listener.client_certificates for host in entry.hostnames}
        found |= {hosts_path(listener.id): named} if named else {}
    return found


def add_client_rules(section: Section, listener: Listener) -> None:
    """Drop what clients claim; refuse who has no right certificate; tell servers about the rest."""
    section.add("http-request", "del-header", HEADERS, "-m", "beg")
    if listener.protocol is not Protocol.HTTPS or not listener.client_certificates:
        return
    of_hosts = _add_codes(section, listener, {"shaken": "ssl_fc_sni", "clients": "req.fhdr(host),host_only"})
    if of_hosts:
        refuse_other_hosts(section)
    _add_verification(section)
    for holds in _required(listener):
        section.add("http-request", "return", "status", "403", *_TEXT, REFUSED, "if", *holds, "!", *_VERIFIED)
    _add_headers(section)


def add_connection_rules(section: Section, listener: Listener) -> None:
    """Close connections of tcp that have not the certificate which the name in their handshake needs."""
    if listener.client_certificates:
        _add_codes(section, listener, {"clients": "ssl_fc_sni"}, CONTENT)
        _add_verification(section, CONTENT)
        for holds in _required(listener):
            section.add(*CONTENT, "reject", "if", *holds, "!", *_VERIFIED)


def _add_codes(section: Section, listener: Listener, names: Mapping[str, str], rule: Rule = REQUEST) -> bool:
    """`txn.clients`: which entry holds for a name; whether it depends on the name at all."""
    entries = listener.client_certificates
    rest = next((code_of(entry) for entry in entries if not entry.hostnames), NONE)
    if not any(entry.hostnames for entry in entries):
        section.add(*rule, "set-var(txn.clients)", f"str({rest})")
        return False
    for name, fetch in names.items():
        add_lookup(section, name, fetch, hosts_path(listener.id), rest, rule)
    return True


def _add_verification(section: Section, rule: Rule = REQUEST) -> None:
    valid = ("{", "ssl_c_used", "}", "{", "ssl_c_verify", "0", "}")
    section.add(*rule, "set-var(txn.client_verified)", "bool(true)", "if", "!", *_OF_NONE, *valid)


def _required(listener: Listener) -> list[tuple[str, ...]]:
    """Conditions: an entry holds that requires a certificate."""
    required = {code_of(each) for each in listener.client_certificates if each.mode is ClientVerify.REQUIRED}
    return [("{", "var(txn.clients)", "-m", "str", code, "}") for code in sorted(required)]


def add_lookup(section: Section, name: str, fetch: str, path: str, rest: str, rule: Rule = REQUEST) -> None:
    """`txn.<name>`: what a map has for a host or for its wildcard, else `rest`."""
    key, missing = f"txn.{name}_key", ("if", "!", "{", f"var(txn.{name})", "-m", "found", "}")
    lookup = f"var({key}),map_str({path})"
    section.add(*rule, f"set-var({key})", f"{fetch},lower")
    section.add(*rule, f"set-var(txn.{name})", lookup)
    section.add(*rule, f"set-var-fmt({key})", f"*.%[var({key}),field(2,.,0)]", *missing)
    section.add(*rule, f"set-var(txn.{name})", lookup, *missing)
    section.add(*rule, f"set-var(txn.{name})", f"str({rest})", *missing)


def refuse_other_hosts(section: Section) -> None:
    """A connection is for hosts of the entry that the name in its handshake has."""
    differs = ("!", "{", "var(txn.shaken),strcmp(txn.clients)", "-m", "int", "eq", "0", "}")
    section.add("http-request", "return", "status", "421", *_TEXT, MISDIRECTED, "if", *differs)


def _add_headers(section: Section) -> None:
    """Whether a certificate was verified, and whose it is; nothing for hosts that ask for none."""
    section.add("http-request", "set-header", "X-Client-Cert-Verified", "no", "if", "!", *_OF_NONE, "!", *_VERIFIED)
    section.add("http-request", "set-header", "X-Client-Cert-Verified", "yes", "if", *_VERIFIED)
    subject, fingerprint = "%[ssl_c_s_dn(,0,rfc2253)]", "%[ssl_c_der,sha2(256),hex,lower]"
    section.add("http-request", "set-header", "X-Client-Cert-Subject", subject, "if", *_VERIFIED)
    plain = ("{", "ssl_c_s_dn(CN)", "-m", "reg", _PLAIN, "}")
    section.add("http-request", "set-header", "X-Client-Cert-Name", "%[ssl_c_s_dn(CN)]", "if", *_VERIFIED, *plain)
    section.add("http-request", "set-header", "X-Client-Cert-Fingerprint", fingerprint, "if", *_VERIFIED)
