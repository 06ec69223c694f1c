"""Placeholders such as `{http.request.host}` in the words that other readers of ours know."""

from __future__ import annotations

import re

from apps.compiler import header_text
from apps.compiler.grammar import GrammarError

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
# What nginx calls them: targets of redirects and new paths are read as its texts are.
_OF_NGINX = {
    "http.request.host": "$host", "http.request.hostport": "$host", "http.request.uri": "$request_uri",
    "http.request.uri.path": "$uri", "http.request.orig_uri": "$request_uri", "http.request.orig_uri.path": "$uri",
    "http.request.scheme": "$scheme", "http.request.uri.query": "$args",
}  # fmt: skip
_OF_HEADER = "http.request.header."
_OURS = {
    "http.request.host": "host", "http.request.hostport": "host", "http.request.remote.host": "client_address",
    "http.vars.client_ip": "client_address", "http.request.client_ip": "client_address",
    "http.request.uri.path": "path", "http.request.orig_uri.path": "path", "http.request.scheme": "scheme",
    "http.request.uri": "uri", "http.request.orig_uri": "uri",
    "http.request.port": "port", "http.request.method": "method",
    "http.request.uuid": "request_id", "http.request.tls.version": "tls_version",
}  # fmt: skip


def names_in(text: str) -> list[str]:
    """The placeholders of a text."""
    return _PLACEHOLDER.findall(text)


def as_nginx(text: str, more: dict[str, str] | None = None) -> str | None:
    """The text with variables of nginx, `more` of them for other placeholders; None where one is of another kind."""
    known = _OF_NGINX | (more or {})
    if "$" in text or any(name not in known for name in names_in(text)):
        return None
    return _PLACEHOLDER.sub(lambda found: known[found[1]], text)


def header_value(text: str) -> str | None:
    """The text with our variables; None where it says what ours cannot."""
    try:
        return header_text.header_text(_PLACEHOLDER.sub(lambda found: _ours(found[1]), text))
    except GrammarError:
        return None


def _ours(placeholder: str) -> str:
    """Our variable; what no text of a header may have where there is none."""
    header = placeholder.removeprefix(_OF_HEADER) if placeholder.startswith(_OF_HEADER) else ""
    return header_text.written(_OURS.get(placeholder) or header_text.of_request(header))
