"""`return` as a redirect or as a fixed response."""

from __future__ import annotations

from dataclasses import dataclass

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing.haproxy.rules.redirects import CODES
from apps.importing.logic.decisions import Effect, fixed
from apps.importing.logic.targets import HOST, Target
from apps.importing.nginx.rules.targets import Captured, as_target

TEXT = "text/plain; charset=utf-8"
CLOSED = "Clients get 403 instead of a closed connection."
NO_HOST = "Redirects lead to whole host names, so clients get 503."
OTHER_TARGET = "Redirects name scheme, host, port, path and query; this is more, so clients get 503."


@dataclass(frozen=True, slots=True)
class Answered:
    """The effect; `why` says what of it differs, or why there is none."""

    effect: Effect | None
    why: str = ""


def answer_of(args: tuple[str, ...], captured: Captured, server_name: str, content_type: str) -> Answered:
    """What `return` with these words answers."""
    code, text = (args[0], args[1] if len(args) > 1 else "") if args else ("", "")
    if code.startswith(("http://", "https://", "$scheme")):
        code, text = "302", code
    if not code.isdecimal():
        return Answered(None, "This is no status.")
    status = int(code)
    if status in CODES and text:
        target = as_target(text, captured, server_name)
        return redirected(status, target)
    if status == 444:
        return Answered(fixed(403, "The request was refused (403).\n"), CLOSED)
    if not 200 <= status <= 599 or 300 <= status <= 399:
        return Answered(None, f"A fixed response has a status from 200 to 599 without 3xx, not {status}.")
    return _fixed(status, text, content_type)


def redirected(status: int, target: Target | None) -> Answered:
    """A redirect to the target, if it names a host that clients can ask for."""
    if target is None:
        return Answered(None, OTHER_TARGET)
    if target.host and HOST not in target.host:
        try:
            grammar.redirect_host(target.host)
        except GrammarError as error:
            return Answered(None, f"{NO_HOST} {error.message}")
    return Answered(Effect("redirect", (status, target)))


def _fixed(status: int, text: str, content_type: str) -> Answered:
    if not text:
        return Answered(fixed(status, f"The request was refused ({status}).\n" if status >= 400 else ""))
    why = "The body is sent as it is written, without variables." if "$" in text else ""
    try:
        kind = grammar.content_type(content_type)
    except GrammarError:
        kind = TEXT
    try:
        return Answered(fixed(status, grammar.body(text), kind), why)
    except GrammarError as error:
        return Answered(fixed(status), error.message)
