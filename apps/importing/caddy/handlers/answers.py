"""Answers without a server: `static_response` and `error`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing.caddy.context import Caddy
from apps.importing.caddy.handlers.headers import response_header
from apps.importing.caddy.placeholders import as_nginx, names_in
from apps.importing.haproxy.rules.redirects import CODES
from apps.importing.logic.decisions import NOWHERE, Effect, fixed
from apps.importing.nginx.rules.returning import CLOSED, OTHER_TARGET, TEXT
from apps.importing.nginx.rules.targets import Captured, as_target
from apps.importing.values.fields import mapping
from apps.importing.values.parsing import Path

EMPTY = fixed(200)
"""What Caddy answers where no handler does."""
AS_WRITTEN = "The body is sent as it is written, without placeholders."


def answer(caddy: Caddy, path: Path) -> Iterator[Effect]:
    """`static_response`: a redirect, or a status with a body and headers."""
    for name in ("handler", "status_code", "body", "close", "abort"):
        if caddy.fields.at(*path, name) is not None:
            caddy.fields.mapped((*path, name))
    if caddy.fields.at(*path, "abort"):
        caddy.fields.differs((*path, "abort"), CLOSED)
        yield fixed(403, "The request was refused (403).\n")
        return
    status = _status(caddy, (*path, "status_code"))
    kind = TEXT
    for name in mapping(caddy.fields.at(*path, "headers")):
        for at, text in caddy.fields.texts(*path, "headers", name):
            caddy.fields.mapped(at)
            if name.lower() == "location":
                yield _redirect(caddy, at, status, text)
                return
            if name.lower() == "content-type":
                kind = _content_type(text)
            elif name.lower() not in ("connection", "cache-control") or status not in CODES:
                yield from response_header(caddy, at, "set", name, text)
    yield _fixed(caddy, (*path, "body"), status, kind)


def refusal(caddy: Caddy, path: Path) -> Effect:
    """`error`: its status; what error routes make of it is said at them."""
    for name in ("handler", "error", "status_code"):
        if caddy.fields.at(*path, name) is not None:
            caddy.fields.mapped((*path, name))
    status = caddy.fields.at(*path, "status_code") or 500
    number = _number(status)
    if number is None or not 400 <= number <= 599:
        why = f"An error has a status from 400 to 599, not {str(status)[:20]}."
        caddy.fields.impossible((*path, "status_code"), why)
        return NOWHERE
    return fixed(number, f"The request was refused ({number}).\n")


def _status(caddy: Caddy, path: Path) -> int:
    said: Any = caddy.fields.at(*path)
    if said is None:
        return 200
    if (number := _number(said)) is not None:
        return number
    caddy.fields.impossible(path, "The status is a number of three digits here.")
    return 503


def _number(status: object) -> int | None:
    """A status of three digits; a number may have any length in JSON, and Python reads no text of thousands."""
    text = f"{status}" if isinstance(status, str) or (isinstance(status, int) and 0 <= status < 1000) else ""
    return int(text) if len(text) == 3 and text.isdecimal() else None


def _redirect(caddy: Caddy, path: Path, status: int, text: str) -> Effect:
    words = as_nginx(text)
    target = as_target(words, Captured(), "") if words is not None else None
    if target is None or status not in CODES:
        caddy.fields.impossible(path, OTHER_TARGET)
        return NOWHERE
    return Effect("redirect", (status, target))


def _fixed(caddy: Caddy, path: Path, status: int, kind: str) -> Effect:
    text = str(caddy.fields.at(*path) or "")
    if not 200 <= status <= 599 or 300 <= status <= 399:
        caddy.fields.impossible(path[:-1], f"A fixed response has a status from 200 to 599 without 3xx, not {status}.")
        return NOWHERE
    if names_in(text):
        caddy.fields.differs(path, AS_WRITTEN)
    try:
        return fixed(status, grammar.body(text) if text else "", kind)
    except GrammarError as error:
        caddy.fields.differs(path, error.message)
        return fixed(status, "", kind)


def _content_type(text: str) -> str:
    try:
        return grammar.content_type(text)
    except GrammarError:
        return TEXT
