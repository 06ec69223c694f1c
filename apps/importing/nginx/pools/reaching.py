"""`proxy_pass` and `grpc_pass` as a pool: its servers, and how the place says that they are reached."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Any

from apps.compiler.grammar import GrammarError, server_host
from apps.importing.nginx.pools.upstreams import servers_of
from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.nginx.text.units import time_of
from apps.importing.nginx.traffic.context import Nginx
from apps.importing.values.pem import chain_in
from apps.importing.verdicts import Verdict

_PLACE = r"unix:[^:]+:?|\[[^\]]+\](?::[0-9]+)?|[^/?:\[]+(?::[0-9]+)?"
_URL = re.compile(rf"(https?|grpcs?)://({_PLACE})((?:[/?$].*)?)", re.DOTALL)
SAME_PATH = ("$request_uri", "$uri$is_args$args", "$uri")
RETRIES = {
    "error": ("connect", "no_answer"), "timeout": ("timeout",), "invalid_header": ("junk",), "http_404": ("404",),
    "http_500": ("500",), "http_502": ("502",), "http_503": ("503",), "http_504": ("504",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Url:
    """Scheme, upstream or address, and what stands behind it."""

    scheme: str
    target: str
    uri: str

    @property
    def is_encrypted(self) -> bool:
        """Whether servers speak TLS."""
        return self.scheme in ("https", "grpcs")


def read_url(text: str, *, is_grpc: bool) -> Url | None:
    """The parts of the word behind `proxy_pass`; None for what is none."""
    if is_grpc and "://" not in text:
        text = f"grpc://{text}"
    same = next((each for each in SAME_PATH if text.endswith(each)), "")
    found = _URL.fullmatch(text.removesuffix(same))
    return Url(found[1], found[2], found[3] + same) if found else None


def pool_key(nginx: Nginx, scope: Directive, directive: Directive, url: Url) -> str:
    """The key of the pool; one that is reached in another way is another pool."""
    word = "grpc" if directive.name == "grpc_pass" else "proxy"
    spec: dict[str, Any] = {"protocol": "http"}
    upstream = nginx.upstreams.get(url.target)
    spec |= servers_of(nginx, upstream, url.target, directive, 443 if url.is_encrypted else 80)
    spec |= _times(nginx, scope, word)
    spec |= _retries(nginx, scope, word)
    if url.is_encrypted:
        spec["server_tls"] = _tls(nginx, scope, word, url)
    if word == "grpc":
        spec["http_version"] = "2"
    _say_host(nginx, scope, directive, word, url)
    key = nginx.made.pool(nginx.context, url.target, spec)
    owner = f"Pool {nginx.made.names[key]}"
    nginx.ledger.belongs(directive.line, owner)
    for each in (upstream, *(upstream.block or ())) if upstream is not None else ():
        nginx.ledger.belongs(each.line, owner)
    return key


def _times(nginx: Nginx, scope: Directive, word: str) -> dict[str, int]:
    found = {"connect_timeout_ms": 60_000, "server_timeout_ms": 60_000}
    connect = time_of(scope.inherited(f"{word}_connect_timeout"), nginx.ledger)
    read = time_of(scope.inherited(f"{word}_read_timeout"), nginx.ledger)
    sent = scope.inherited(f"{word}_send_timeout")
    if connect is not None:
        found["connect_timeout_ms"] = connect
    if read is not None:
        found |= {"server_timeout_ms": read, "tunnel_timeout_ms": read}
    if time_of(sent, nginx.ledger) not in (None, found["server_timeout_ms"]) and sent is not None:
        nginx.ledger.differs(sent.line, "One time is for both directions, that of reading.")
    return found


def _retries(nginx: Nginx, scope: Directive, word: str) -> dict[str, Any]:
    directive, tries = scope.inherited(f"{word}_next_upstream"), scope.inherited(f"{word}_next_upstream_tries")
    until = scope.inherited(f"{word}_next_upstream_timeout")
    if until is not None:
        nginx.ledger.mapped(until.line)
    if until is not None and value_of(until) != "0":
        nginx.ledger.differs(until.line, "Retries are bounded by their number, not by time.")
    if directive is None and tries is None:
        return {}
    said = directive.args if directive is not None else ("error", "timeout")
    found: dict[str, Any] = {"attempts": 3}
    if tries is not None and value_of(tries).isdecimal():
        nginx.ledger.mapped(tries.line)
        found["attempts"] = min(max(0, int(value_of(tries)) - 1), 10) if value_of(tries) != "0" else 3
    if directive is not None:
        nginx.ledger.mapped(directive.line)
        if odd := [each for each in said if each not in RETRIES and each != "off"]:
            nginx.ledger.differs(directive.line, f"Nothing is sent again after {', '.join(odd)}.")
    if "off" in said:
        return {"retries": {"attempts": 0, "on": []}}
    found["on"] = list(dict.fromkeys(one for each in said for one in RETRIES.get(each, ())))
    return {"retries": found}


def _tls(nginx: Nginx, scope: Directive, word: str, url: Url) -> dict[str, Any]:
    """TLS to servers; nginx verifies nothing unless it is told to."""
    verify, file = scope.inherited(f"{word}_ssl_verify"), scope.inherited(f"{word}_ssl_trusted_certificate")
    found: dict[str, Any] = {"verify": "none"}
    for each in (verify, scope.inherited(f"{word}_ssl_server_name"), scope.inherited(f"{word}_ssl_verify_depth")):
        if each is not None:
            nginx.ledger.mapped(each.line)
    if verify is not None and value_of(verify) == "on":
        text = nginx.context.files.text(value_of(file)) if file is not None else None
        chain = chain_in(text or "")
        found = {"verify": "ca", "ca": chain} if chain else {"verify": "system"}
        if file is not None and not chain:
            nginx.ledger.differs(file.line, f"The file {value_of(file)} was not given.")
            nginx.context.need(f"The file {value_of(file)} (--files).")
    if file is not None:
        nginx.ledger.mapped(file.line)
    return found | _server_name(nginx, scope, word, url) | _own_certificate(nginx, scope, word)


def _server_name(nginx: Nginx, scope: Directive, word: str, url: Url) -> dict[str, str]:
    name = scope.inherited(f"{word}_ssl_name")
    asked = value_of(name, url.target.partition(":")[0])
    try:
        found = {"server_name": server_host(asked.lower())}
    except GrammarError:
        found = {}
    if name is not None and (found or asked in ("$host", "$http_host")):
        nginx.ledger.mapped(name.line)
    elif name is not None:
        nginx.ledger.impossible(name.line, "The name of a server is one host name.")
    return found


def _own_certificate(nginx: Nginx, scope: Directive, word: str) -> dict[str, str]:
    """What servers ask of us; the certificate is one of ours."""
    own, key = scope.inherited(f"{word}_ssl_certificate"), scope.inherited(f"{word}_ssl_certificate_key")
    if key is not None:
        nginx.ledger.mapped(key.line)
    if own is None:
        return {}
    if stands := nginx.context.options.certificates.get(value_of(own)):
        nginx.ledger.mapped(own.line)
        return {"client_certificate": stands}
    nginx.ledger.differs(own.line, f"Name the certificate: --certificate {value_of(own)}=NAME.")
    nginx.context.need(f"The certificate {value_of(own)} (--certificate {value_of(own)}=NAME).")
    return {}


def _say_host(nginx: Nginx, scope: Directive, directive: Directive, word: str, url: Url) -> None:
    """Without proxy_set_header nginx sends the name of the upstream as Host."""
    if any(each.args[:1] and each.args[0].lower() == "host" for each in scope.all_inherited(f"{word}_set_header")):
        return
    if proxy_host(url) is None:
        why = f"Servers get the Host of the client; nginx sent {url.target}, as no {word}_set_header says another one."
        nginx.ledger.differs(directive.line, why)
    elif url.target != url.target.lower():
        nginx.ledger.differs(directive.line, "Servers get this name in lower case as Host.")


def proxy_host(url: Url) -> str | None:
    """The Host that nginx sends where none is said; None where ours cannot say it."""
    host, _, port = url.target.partition(":")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return None
    try:
        return server_host(host.lower()) if port in ("", "443" if url.is_encrypted else "80") else None
    except GrammarError:
        return None


def note_websocket(nginx: Nginx, scope: Directive) -> None:
    """`proxy_http_version` says nothing that nodes do not do anyway."""
    for each in scope.all_inherited("proxy_http_version"):
        nginx.ledger.note(each.line, Verdict.NODE_SETTING, "Nodes speak HTTP/1.1 with servers, also WebSockets.")
