"""Headers that servers and clients get: proxy_set_header, add_header, proxy_hide_header."""

from __future__ import annotations

import re
from collections.abc import Iterator

from apps.compiler import header_text
from apps.compiler.grammar import GrammarError, server_host
from apps.compiler.grammars import rewriting
from apps.importing.haproxy.rules.requests import OURS, STANDARD, not_set
from apps.importing.logic.decisions import Effect, change
from apps.importing.nginx.rules.variables import Variables
from apps.importing.nginx.text.directives import Directive
from apps.importing.nginx.text.units import milliseconds
from apps.importing.verdicts import Ledger, Verdict

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_OURS = {
    **dict.fromkeys(("host", "http_host"), "host"),
    **dict.fromkeys(("remote_addr", "realip_remote_addr", "proxy_protocol_addr"), "client_address"),
    **dict.fromkeys(("uri", "document_uri"), "path"), "request_uri": "uri",
    "scheme": "scheme", "request_method": "method", "request_id": "request_id", "ssl_protocol": "tls_version",
    "ssl_cipher": "tls_cipher", "server_port": "port",
}  # fmt: skip
# What a connection owns, or nodes set themselves from what they know.
CONNECTION = {"connection", "upgrade", "te", "transfer-encoding", "content-length", "expect", "keep-alive"}
USUAL = {
    "x-forwarded-for": ("$proxy_add_x_forwarded_for", "$remote_addr", "$http_x_forwarded_for,$remote_addr"),
    "x-forwarded-proto": ("$scheme", "http", "https"),
    "x-forwarded-port": ("$server_port",),
    "x-forwarded-host": ("$host", "$http_host", "$host:$server_port"),
}
EXPIRY = "A policy has headers and no times of expiry: set Cache-Control there, or let the server set it."
WITHOUT_EXPIRES = "Cache-Control says it alone, without Expires, and in responses with errors as well."
TEN_YEARS_S = 315_360_000
_OWN_HOST = re.compile(r"^\$scheme://\$(?:http_)?host(?::\$server_port)?(?=/|$)")
WITH_ERRORS = "Responses with errors have it as well, as if it said always."

NO_LENGTH = "Nodes say the length of what they answer themselves."


def header_value(text: str) -> str | None:
    """The text with our variables; None where it says what ours cannot."""
    if header_text.begins_variable(_VARIABLE.sub("", text)):
        return None
    try:
        return header_text.header_text(_VARIABLE.sub(lambda found: _ours(found[1] or found[2]), text))
    except GrammarError:
        return None


def _ours(name: str) -> str:
    """Our variable; `$http_x_tenant` is the header X-Tenant."""
    header = name.removeprefix("http_").replace("_", "-") if name.startswith("http_") else ""
    return header_text.written(_OURS.get(name) or header_text.of_request(header))


def request_headers(scope: Directive, word: str, variables: Variables, ledger: Ledger) -> Iterator[Effect]:
    """`proxy_set_header`; those of the nearest block that has any, and the Host that nginx would send without one."""
    for each in scope.all_inherited(word):
        if len(each.args) < 2:
            ledger.impossible(each.line, "The directive lacks the name or value of the header.")
            continue
        name, text = each.args[0], _constant(each.args[1], variables)
        effect, said = _request_header(name, text)
        ledger.mapped(each.line)
        if said.startswith("!"):
            ledger.impossible(each.line, said[1:])
        elif said:
            ledger.differs(each.line, said)
        if effect is not None:
            yield effect


def sets_host(scope: Directive, word: str) -> bool:
    """Whether a directive that counts says the Host header."""
    return any(each.args[:1] and each.args[0].lower() == "host" for each in scope.all_inherited(word))


def _constant(text: str, variables: Variables) -> str:
    choices = variables.choices(text)
    return choices[0][1] if len(choices) == 1 else text


def _request_header(name: str, text: str) -> tuple[Effect | None, str]:
    """The change, and what of it differs; a reason after `!` where it is not possible."""
    lower = name.lower()
    if lower in CONNECTION:
        return None, ""
    if lower == "host":
        return _host(text)
    if lower in USUAL:
        usual = text.replace(" ", "") in USUAL[lower]
        return None, "" if usual else f"Spillway sets {name} itself, from the connection of the client."
    try:
        header_text.request_header(name)
    except GrammarError as error:
        return None, _of_ours(name, error)
    if text == "":
        return change("request_headers", "remove", name), ""
    if (same := re.fullmatch(r"\$http_(\w+)", text)) and same[1].replace("_", "-") == lower:
        return None, ""
    alone = text.replace("$proxy_add_x_forwarded_for", "$remote_addr")
    value = header_value(alone)
    if value is None:
        return None, f"!The value of {name} is made of what header texts have no variable for."
    said = "" if alone == text else f"{name} has the address of the client alone."
    if "proxy_protocol_addr" in text:
        said = f"{name} has the address of the client, also of one that speaks no PROXY protocol."
    return change("request_headers", "set", (name, value)), said


def _of_ours(name: str, error: GrammarError) -> str:
    """A header that nobody but nodes may set: they do, or set others."""
    if name.lower() in STANDARD:
        return ""
    return not_set(name) if name.lower() in OURS else f"!{error.message}"


def _host(text: str) -> tuple[Effect | None, str]:
    if text in ("$host", "$http_host", "$host:$server_port", "$http_host:$server_port"):
        return None, "" if ":" not in text else "Servers get the Host as the client sent it."
    try:
        return change("rewrite", "host", server_host(text.lower())), ""
    except GrammarError:
        return None, "!Servers get the host of the request or one fixed name."


def response_headers(scope: Directive, variables: Variables, ledger: Ledger, *, proxied: str = "") -> Iterator[Effect]:
    """`add_header`, and `proxy_hide_header` where a server answers (`proxied` is proxy or grpc)."""
    added: dict[str, tuple[str, str]] = {}
    for each in scope.all_inherited("add_header"):
        if (pair := _added(each, variables, ledger)) is None:
            continue
        before = added.get(pair[0].lower())
        if before is not None and before[0].lower() == "set-cookie":
            ledger.impossible(each.line, "One Set-Cookie is added; let the server set the others.")
            continue
        if before is not None:
            ledger.differs(each.line, f"{pair[0]} is sent once, with both values as one list.")
            pair = before[0], f"{before[1]}, {pair[1]}"
        added[pair[0].lower()] = pair
    yield from (change("response_headers", "add", pair) for pair in added.values())
    yield from _expiry(scope, ledger)
    if proxied:
        yield from _hidden(scope, proxied, ledger)
        yield from _redirected(scope, ledger)


def _added(directive: Directive, variables: Variables, ledger: Ledger) -> tuple[str, str] | None:
    """Name and value of one `add_header`; None where it adds nothing, which is said."""
    if len(directive.args) < 2:
        ledger.impossible(directive.line, "The directive lacks the name or value of the header.")
        return None
    name, text = directive.args[:2]
    value = header_value(_constant(text, variables))
    try:
        header_text.response_header(name)
    except GrammarError as error:
        if (name.lower(), value) == ("content-length", "0"):
            ledger.differs(directive.line, NO_LENGTH)
        else:
            ledger.impossible(directive.line, error.message)
        return None
    if text and value is None:
        ledger.impossible(directive.line, f"The value of {name} is made of what header texts have no variable for.")
        return None
    ledger.mapped(directive.line)
    if text and directive.args[-1] != "always":
        ledger.differs(directive.line, WITH_ERRORS)
    return (name, value) if text and value is not None else None


def _expiry(scope: Directive, ledger: Ledger) -> Iterator[Effect]:
    """`expires 30d` as the Cache-Control that it sends."""
    said = scope.inherited("expires")
    if said is None or said.args == ("off",):
        return
    caching = _caching(said.args)
    if not caching:
        ledger.impossible(said.line, EXPIRY)
        return
    ledger.mapped(said.line)
    ledger.differs(said.line, WITHOUT_EXPIRES)
    yield change("response_headers", "set", ("Cache-Control", caching))


def _caching(args: tuple[str, ...]) -> str:
    """Empty where it is made of more than a time."""
    text = args[0] if len(args) == 1 else ""
    if text == "epoch" or (text.startswith("-") and milliseconds(text[1:]) is not None):
        return "no-cache"
    time = milliseconds(text.removeprefix("+"))
    seconds = TEN_YEARS_S if text == "max" else None if time is None else time // 1000
    return "" if seconds is None else f"max-age={seconds}"


def _redirected(scope: Directive, ledger: Ledger) -> Iterator[Effect]:
    """`proxy_redirect http://app:8080/ /`, the first one of a block; a path alone says the host of the request."""
    said = [each for each in scope.all_inherited("proxy_redirect") if len(each.args) == 2]
    for each in said[1:]:
        ledger.impossible(each.line, "One beginning of Location is replaced for each route.")
    for each in said[:1]:
        prefix, text = each.args[0], _OWN_HOST.sub("", each.args[1])
        if text == "":
            prefix, text = f"{prefix}/", "/"
        try:
            pair = rewriting.location(prefix), rewriting.location(text)
        except GrammarError:
            ledger.impossible(each.line, "The beginning of a Location and what replaces it are texts like http://app/.")
            continue
        ledger.mapped(each.line)
        yield change("response_rewrite", "location_prefix", pair[0])
        yield change("response_rewrite", "location_replacement", pair[1])


def _hidden(scope: Directive, proxied: str, ledger: Ledger) -> Iterator[Effect]:
    for each in scope.all_inherited(f"{proxied}_hide_header"):
        name = each.args[0] if each.args else ""
        try:
            header_text.response_header(name)
        except GrammarError as error:
            ledger.impossible(each.line, error.message)
            continue
        ledger.mapped(each.line)
        yield change("response_headers", "remove", name)
    for each in scope.all_inherited(f"{proxied}_pass_header"):
        ledger.note(each.line, Verdict.NODE_SETTING, "Nodes pass on every header of servers.")
