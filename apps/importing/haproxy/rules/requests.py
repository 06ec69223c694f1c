"""Rules of `http-request`, of `redirect` and `block`, as effects under conditions."""

from __future__ import annotations

import re
from collections.abc import Callable

from apps.compiler import grammar, header_text
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars.servers import MOST_RETRIES
from apps.importing.haproxy.rules.formats import as_header_text
from apps.importing.haproxy.rules.redirects import redirect_effect
from apps.importing.haproxy.rules.rewriting import read_replace_path, read_set_path
from apps.importing.haproxy.text.durations import time_limit
from apps.importing.logic.certainty import answered
from apps.importing.logic.decisions import Effect, change, fixed
from apps.importing.logic.formulas import Formula

Read = tuple[list[Effect], str]
"""Effects, and what of them differs; no effects and a reason where it is not possible, neither where all is well."""
STANDARD = {"x-forwarded-for", "x-forwarded-proto", "x-forwarded-port", "x-forwarded-host", "x-real-ip", "x-request-id"}
OURS = STANDARD | {"forwarded"}
FIXED = {"x-forwarded-proto": "https?", "x-forwarded-port": "[0-9]{1,5}"}
# Words of a refusal that has an answer of its own.
ANSWERS = frozenset({"string", "lf-string", "file", "lf-file", "errorfile", "errorfiles", "hdr"})
# Expressions that take the whole value, whatever it is.
WHOLE = frozenset({".*", "^.*$", "(.*)", "^.*", "^(.*)$", "^(.*)", "(.*)$", ".*$", ".+", "(.+)", "^.+$", "^(.+)$"})
AT_ONCE = "different:Nobody is made to wait."
EACH = "different:The header is set in every request, whether the client sent it or not."
KEPT_OPEN = "different:Nodes say themselves which connections stay open."
NO_NAME = "dead:No header has such a name."
IN_ORDER = "different:Requests that wait for a server are served in the order in which they came."
# `hdr` is what follows the last comma; the host has none.
LAST_PART = re.compile(r"\[(?:req\.)?hdr\((?!host\b)", re.IGNORECASE)
CIPHERS = "different:Nodes prefer the ciphers of their TLS preset, so clients may agree on another one."
_CUTS_PORT = re.compile(r"\^?\((?:\[\^:\][+*]\)(?:\$|\(?:.*)?|\.[+*]\??\)\(?:.*)")
COMMAS = "different:The whole value of the other header is written; HAProxy takes what follows its last comma."
WITH_PORT = "different:Servers get the host as clients write it, with a port that stands behind it."
COLON = "different:The name of a header has no colon; HAProxy sends two."


def read_request(action: str, words: tuple[str, ...]) -> Read | None:
    """What an action of `http-request` does; None for one that is not read here."""
    reader = _ACTIONS.get(action.partition("(")[0])
    return reader(words) if reader else None


def has_own_text(effect: Effect) -> bool:
    """Whether a refusal answers with a text of the file, which a policy that refuses has no place for."""
    text = str(effect.data[2]) if effect.kind == "fixed" else ""
    return text != "" and not text.startswith("The request was refused (")


def _deny(words: tuple[str, ...]) -> Read:
    status = _number_after(words, ("deny_status", "status"), 403)
    if set(words) & ANSWERS:
        return _return(("status", str(status), *words))
    if not 400 <= status <= 599:
        return [fixed(status)], ""
    return [fixed(status, f"The request was refused ({status}).\n")], ""


def _tarpit(words: tuple[str, ...]) -> Read:
    status = _number_after(words, ("deny_status", "status"), 500)
    return [fixed(status, f"The request was refused ({status}).\n")], "Clients are answered at once, without a delay."


def _drop(_: tuple[str, ...]) -> Read:
    return [fixed(403, "The request was refused (403).\n")], "Clients get an answer instead of a closed connection."


def _number_after(words: tuple[str, ...], names: tuple[str, ...], default: int) -> int:
    for name in names:
        if name in words[:-1] and words[words.index(name) + 1].isdecimal():
            return int(words[words.index(name) + 1])
    return default


def _after(words: tuple[str, ...], name: str) -> str | None:
    return words[words.index(name) + 1] if name in words[:-1] else None


def _return(words: tuple[str, ...]) -> Read:
    status = _number_after(words, ("status",), 200)
    content_type = _after(words, "content-type") or "text/plain; charset=utf-8"
    body = _after(words, "string") or _after(words, "lf-string") or ""
    if any(word in words for word in ("file", "lf-file", "errorfile", "errorfiles")):
        return [fixed(status)], "The body is a file of the old machine; write it into the fixed response."
    if not 200 <= status <= 599 or 300 <= status <= 399:
        return [], f"A fixed response has a status from 200 to 599 without 3xx, not {status}."
    try:
        grammar.content_type(content_type)
        grammar.body(body)
    except GrammarError as error:
        return [fixed(status)], error.message
    said = "The body is sent as it is written, without variables." if "%[" in body else ""
    headers = [words[at + 1 : at + 3] for at, word in enumerate(words) if word == "hdr"]
    effects = [change("response_headers", "set", pair) for words in headers if (pair := _answered(words))]
    if len(effects) < len(headers):
        said = "Not every header of the answer can be set."
    return [*effects, fixed(status, body, content_type)], said


def _answered(words: tuple[str, ...]) -> tuple[str, str] | None:
    """Name and value of a header of an answer; None where it cannot be said."""
    if len(words) != 2 or (text := as_header_text(words[1])) is None:
        return None
    try:
        return header_text.response_header(words[0]), text
    except GrammarError:
        return None


def _set_header(words: tuple[str, ...], operation: str = "set") -> Read:
    if len(words) < 2:
        return [], "The line lacks the name or value of the header."
    name, value = words[0], " ".join(words[1:])
    if name.endswith(":"):
        effects, said = _set_header((name.rstrip(":"), value), operation)
        return effects, said or COLON
    if name.lower() == "host":
        return _set_host(value)
    if name.lower() in STANDARD | {"connection"}:
        return [], _about_ours(name, value)
    try:
        header_text.request_header(name)
    except GrammarError as error:
        return [], f"different:{not_set(name)}" if name.lower() in OURS else error.message
    if value in ("", '""'):
        return [change("request_headers", "remove", name)], ""
    text = as_header_text(value)
    if text is None:
        return [], f"The value of {name} is made of what header texts have no variable for."
    said = CIPHERS if "{tls_cipher}" in text else COMMAS if LAST_PART.search(value) else ""
    return [change("request_headers", operation, (name, text))], said


def names_client(words: tuple[str, ...]) -> Read:
    """`option forwardfor header X-Client-IP`: the address of the client under one more name."""
    name = words[words.index("header") + 1] if "header" in words[:-1] else ""
    if name.lower() in ("", "x-forwarded-for", "x-real-ip"):
        return [], ""
    effects, _ = _set_header((name, "%[src]"))
    said = f"What clients send as {name} is replaced." if effects else "The client is in X-Forwarded-For and X-Real-IP."
    return effects, f"different:{said}"


def not_set(name: str) -> str:
    """What servers get instead of such a header."""
    return f"Nodes set no {name}, but X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Port and X-Forwarded-Host."


def _about_ours(name: str, value: str) -> str:
    """Spillway sets these itself; what they would say otherwise is said."""
    if name.lower() == "connection":
        return KEPT_OPEN
    usual = {
        "x-forwarded-for": r"%\[src\]|%ci",
        "x-real-ip": r"%\[src\]|%ci",
        "x-forwarded-proto": r"https?|%\[.*",
        "x-forwarded-port": r"%\[dst_port\]|[0-9]+|%fp",
        "x-forwarded-host": r"%\[(?:req\.)?f?hdr\([Hh]ost\).*\]",
        "x-request-id": r".*",
    }
    if re.fullmatch(usual[name.lower()], value):
        return ""
    return f"different:Spillway sets {name} itself, from the connection of the client."


def told(action: str, words: tuple[str, ...], formula: Formula) -> Effect | None:
    """A fixed scheme or port that servers are told; None where the condition asks for just that."""
    name = words[0].lower() if words else ""
    if action not in ("set-header", "add-header") or len(words) != 2 or name not in FIXED:
        return None
    value = words[1].lower()
    if not re.fullmatch(FIXED[name], value):
        return None
    if value in ("https", "443") and answered(formula, "scheme", answer=False) is False:
        return None
    if value in ("http", "80") and answered(formula, "scheme", answer=True) is False:
        return None
    return change("told", name, value)


def _set_host(value: str) -> Read:
    try:
        return [change("rewrite", "host", grammar.server_host(value.lower()))], ""
    except GrammarError:
        if found := re.fullmatch(r"%\[(?:req\.)?f?hdr\([Hh]ost\)((?:,lower|,host_only|,field\(1,:\))*)\]", value):
            as_written = "different:Servers get the host as clients write it." if found[1] else ""
            return [], as_written if found[1] in ("", ",lower") else WITH_PORT
        if value == "%[ssl_fc_sni]":
            return [], "different:Servers get the host that was asked for, not the TLS name."
        return [], "Servers get the host of the request or one fixed name; this value is neither."


def is_no_name(name: str) -> bool:
    """Whether no header can have the name: `^Server:.*` is an expression where none is read."""
    return re.search(r"[^!#$%&'*+.^_`|~0-9A-Za-z-]", name) is not None


def _del_header(words: tuple[str, ...]) -> Read:
    name = words[0] if words else ""
    if name.lower() == "host":
        return [], "different:Servers get a host: that of the request, or the one that a line sets."
    if is_no_name(name):
        return [], NO_NAME
    if name.lower() in STANDARD | {"forwarded"}:
        return [], ""
    if "-m" in words[1:] and "str" not in words[1:]:
        return [], "Headers are removed by their whole name; list them."
    try:
        header_text.request_header(name)
    except GrammarError as error:
        return [], error.message
    return [change("request_headers", "remove", name)], ""


def _set_timeout(words: tuple[str, ...]) -> Read:
    fields = {"server": "response_ms", "tunnel": "tunnel_ms"}
    field = fields.get(words[0]) if words else None
    time, said = time_limit(words[1]) if len(words) > 1 else (None, "")
    if field is None or time is None:
        return [], "Timeouts of routes are fixed numbers for server and tunnel."
    return [change("timeouts", field, time)], said


def _set_retries(words: tuple[str, ...]) -> Read:
    if not words or not words[0].isdecimal():
        return [], "The number of retries of a route is fixed."
    count = min(int(words[0]), MOST_RETRIES)
    said = "" if count == int(words[0]) else f"different:A request is retried {MOST_RETRIES} times at most."
    return [change("retries", "attempts", count)], said


def _set_query(words: tuple[str, ...]) -> Read:
    if words and words[0] == "":
        return [change("rewrite", "drop_query", True)], ""
    return [], "Queries are changed parameter by parameter (query_keep, query_drop, query_set)."


def _wait_for_body(_: tuple[str, ...]) -> Read:
    return [change("body", "buffered", True)], ""


def _replace_header(words: tuple[str, ...]) -> Read:
    name = words[0] if words else ""
    if name.lower() in OURS:
        return [], f"different:Spillway sets {name} itself, from the connection of the client."
    text = " ".join(words[2:])
    if name.lower() == "host" and text == "\\1" and words[1] in WHOLE | {"(.+?)"}:
        return [], ""
    if name.lower() == "host" and text == "\\1" and _CUTS_PORT.fullmatch(words[1]):
        return [], WITH_PORT
    if words[1:2] and words[1] in WHOLE and text and not re.search(r"\\[0-9]", text):
        effects, said = _set_header((name, text))
        return effects, said or ("" if name.lower() == "host" else EACH)
    return [], "Headers are set, added or removed as a whole; no part of one is replaced."


def _redirect(words: tuple[str, ...]) -> Read:
    effect, said = redirect_effect(words)
    return ([effect] if effect else []), said


_ACTIONS: dict[str, Callable[[tuple[str, ...]], Read]] = {
    "allow": lambda _: ([Effect("allow")], ""),
    "deny": _deny,
    "block": _deny,
    "tarpit": _tarpit,
    "reject": _drop,
    "silent-drop": _drop,
    "redirect": _redirect,
    "return": _return,
    "set-header": _set_header,
    "add-header": lambda words: _set_header(words, "add"),
    "del-header": _del_header,
    "set-timeout": _set_timeout,
    "replace-header": _replace_header,
    "replace-value": _replace_header,
    "set-path": read_set_path,
    "set-pathq": read_set_path,
    "replace-path": read_replace_path,
    "replace-pathq": read_replace_path,
    "replace-uri": read_replace_path,
    "set-uri": read_set_path,
    "set-query": _set_query,
    "wait-for-body": _wait_for_body,
    "early-hint": lambda _: ([], "different:Clients get no early hints; they know what to load when the answer comes."),
    "pause": lambda _: ([], AT_ONCE),
    "normalize-uri": lambda _: ([], "different:Paths are compared and passed on as clients write them."),
    "set-retries": _set_retries,
    "set-priority-class": lambda _: ([], IN_ORDER),
    "set-priority-offset": lambda _: ([], IN_ORDER),
    "disable-l7-retry": lambda _: ([change("retries", "after_sending", False)], ""),
}
