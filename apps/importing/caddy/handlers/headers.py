"""Headers that servers and clients get: the handler `headers`, and those of `reverse_proxy`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from apps.compiler import header_text
from apps.compiler.grammar import GrammarError, server_host
from apps.importing.caddy.context import Caddy
from apps.importing.caddy.placeholders import header_value
from apps.importing.haproxy.rules.requests import OURS
from apps.importing.logic.decisions import Effect, change
from apps.importing.nginx.rules.headers import CONNECTION
from apps.importing.values.fields import mapping
from apps.importing.values.parsing import Path

REPLACED = "A header gets a new value or is removed; parts of one are not replaced."
NO_VARIABLE = "The value of {} is made of what header texts have no variable for."
FORWARDED = ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port")
OF_CLIENT = ("{http.request.remote.host}", "{http.request.remote}", "{http.request.scheme}", "{http.request.host}",
             "{http.request.hostport}", "{http.request.port}")  # fmt: skip
UPSTREAM = ("{http.reverse_proxy.upstream.hostport}", "{http.reverse_proxy.upstream.host}")


def header_changes(caddy: Caddy, path: Path, upstream: str = "") -> Iterator[Effect]:
    """What `request` and `response` at the path change; `upstream` is the first server of a pool."""
    yield from _requests(caddy, (*path, "request"), upstream)
    yield from _responses(caddy, (*path, "response"))


def _requests(caddy: Caddy, at: Path, upstream: str) -> Iterator[Effect]:
    for word in ("set", "add"):
        for path, name, text in _said(caddy, (*at, word)):
            caddy.fields.mapped(path)
            yield from _request_header(caddy, path, word, name, text, upstream)
    for path, name in caddy.fields.texts(*at, "delete"):
        yield from _removed(caddy, path, name, "request_headers")
    _replaced(caddy, at)


def _request_header(
    caddy: Caddy, path: Path, word: str, name: str, text: str, upstream: str
) -> Iterator[Effect]:  # fmt: skip
    lower = name.lower()
    if lower in CONNECTION or text == f"{{http.request.header.{name}}}":
        return
    if lower == "host":
        yield from _host(caddy, path, text, upstream)
        return
    if lower in FORWARDED:
        if text not in OF_CLIENT:
            caddy.fields.differs(path, f"Spillway sets {name} itself, from the connection of the client.")
        return
    try:
        header_text.request_header(name)
    except GrammarError as error:
        if lower not in OURS:
            caddy.fields.impossible(path, error.message)
        return
    value = header_value(text)
    if value is None:
        caddy.fields.impossible(path, NO_VARIABLE.format(name))
    elif value:
        yield change("request_headers", word, (name, value))
    else:
        yield change("request_headers", "remove", name)


def _host(caddy: Caddy, path: Path, text: str, upstream: str) -> Iterator[Effect]:
    """The Host of the request, a fixed one, or that of the server."""
    if text in ("{http.request.host}", "{http.request.hostport}"):
        return
    name = text
    if text in UPSTREAM:
        name, _, port = upstream.partition(":")
        if port not in ("", "80", "443") or _is_address(name):
            caddy.fields.differs(path, f"Servers get the Host of the client; Caddy sent {upstream}.")
            return
    try:
        yield change("rewrite", "host", server_host(name.lower()))
    except GrammarError:
        caddy.fields.impossible(path, "Servers get the host of the request or one fixed name.")


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _responses(caddy: Caddy, at: Path) -> Iterator[Effect]:
    said = mapping(caddy.fields.at(*at))
    if "deferred" in said:
        caddy.fields.mapped((*at, "deferred"))
    if "require" in said:
        why = "Headers are set on every response; Caddy looked at the response first."
        for name in ("require", "set", "add", "delete"):
            caddy.fields.impossible((*at, name), why)
        return
    for word in ("set", "add"):
        for path, name, text in _said(caddy, (*at, word)):
            yield from response_header(caddy, path, word, name, text)
    for path, name in caddy.fields.texts(*at, "delete"):
        yield from _removed(caddy, path, name, "response_headers")
    _replaced(caddy, at)


def response_header(caddy: Caddy, path: Path, word: str, name: str, text: str) -> Iterator[Effect]:
    """A header that clients get."""
    caddy.fields.mapped(path)
    if name.lower() == "server":
        caddy.fields.node_setting(path, "Nodes do not name themselves.")
        return
    value = header_value(text)
    try:
        header_text.response_header(name)
    except GrammarError as error:
        caddy.fields.impossible(path, error.message)
        return
    if value is None:
        caddy.fields.impossible(path, NO_VARIABLE.format(name))
    elif value:
        yield change("response_headers", word, (name, value))


def _removed(caddy: Caddy, path: Path, name: str, block: str) -> Iterator[Effect]:
    caddy.fields.mapped(path)
    lower = name.lower()
    if lower in CONNECTION or (block == "request_headers" and lower in FORWARDED):
        caddy.fields.differs(path, f"Spillway sets {name} itself.")
        return
    try:
        (header_text.request_header if block == "request_headers" else header_text.response_header)(name)
    except GrammarError as error:
        caddy.fields.impossible(path, error.message)
        return
    yield change(block, "remove", name)


def _said(caddy: Caddy, at: Path) -> Iterator[tuple[Path, str, str]]:
    """Each value of each header."""
    values: Mapping[str, Any] = mapping(caddy.fields.at(*at))
    for name in values:
        for path, text in caddy.fields.texts(*at, name):
            yield path, name, text


def _replaced(caddy: Caddy, at: Path) -> None:
    if caddy.fields.at(*at, "replace") is not None:
        caddy.fields.impossible((*at, "replace"), REPLACED)
