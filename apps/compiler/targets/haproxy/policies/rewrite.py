"""What servers get instead of what the client asked for, and clients instead of what servers say.

Another host, another path, another query or none; a Location that begins otherwise, cookies for https only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from apps.compiler.matching import patterns
from apps.compiler.model.policy import ResponseRewrite, Rewrite
from apps.compiler.model.shared import Listener
from apps.compiler.targets.haproxy.actions import IS_REDIRECT
from apps.compiler.targets.haproxy.policies.headers import OVER_HTTPS, may_be_https
from apps.compiler.targets.haproxy.policies.lookup import Lookup
from apps.compiler.targets.haproxy.writer import Argument, Call, Opaque, Section, Value

_ORIGIN = re.compile(r"(https?://[^/]*)?(.*)")
_NOT_SECURE = r"^(?i)(?!.*;\s*secure\s*(?:;|$))(.*)$"
_HAS_QUERY = ("{", "var(txn.query)", "-m", "len", "gt", "0", "}")


def add(section: Section, when: tuple[str, ...], rewrite: Rewrite) -> None:
    """After every rule that compares host or path; X-Forwarded-Host keeps what was asked for.

    A redirect is made of what was asked for.
    """
    when = (*when, "!", *IS_REDIRECT)
    if rewrite.host is not None:
        section.add("http-request", "set-header", "Host", Value(rewrite.host), "if", *when)
    if rewrite.path is not None:
        section.add("http-request", "set-path", Opaque(rewrite.path.replace("%", "%%")), "if", *when)
    elif rewrite.path_regex is not None and rewrite.path_replacement is not None:
        pattern = Opaque(patterns.whole(rewrite.path_regex))
        section.add("http-request", "replace-path", pattern, Opaque(rewrite.path_replacement), "if", *when)
    if rewrite.query_keep is not None or rewrite.query_drop or rewrite.query_set:
        _add_query(section, when, rewrite)
    if rewrite.drop_query:
        section.add("http-request", "set-pathq", "%[path]", "if", *when)


def add_to_responses(
    section: Section, listener: Listener, lookup: Lookup, blocks: Mapping[str, ResponseRewrite]
) -> None:
    """Only of servers: redirects of our own name what clients asked for."""
    for code, said in blocks.items():
        holds = ("if", *lookup.holds(code))
        if said.location_prefix is not None and said.location_replacement is not None:
            text = Opaque(rf"{said.location_replacement}\1")
            pattern = Opaque(_beginning(said.location_prefix))
            section.add("http-response", "replace-header", "Location", pattern, text, *holds)
        if said.secure_cookies and may_be_https(listener):
            over = OVER_HTTPS if listener.has_forwarders else ()
            section.add("http-response", "replace-header", "Set-Cookie", _NOT_SECURE, r"\1; Secure", *holds, *over)


def _beginning(prefix: str) -> str:
    """Scheme and host have no case, paths have."""
    found = _ORIGIN.fullmatch(prefix)
    origin, path = (found[1] or "", found[2]) if found else ("", prefix)
    return f"^{f'(?i:{re.escape(origin)})' if origin else ''}{re.escape(path)}(.*)$"


def _add_query(section: Section, when: tuple[str, ...], rewrite: Rewrite) -> None:
    """In a variable, in which each parameter stands behind an `&`; of a parameter that is kept, the first value."""
    if rewrite.query_keep is None:
        section.add("http-request", "set-var(txn.query)", "query", "if", *when)
    for name in rewrite.query_keep or ():
        value = Call(("url_param(", Value(name), ")"))
        kept = Call(("%[var(txn.query)]&", Value(name), "=%[url_param(", Value(name), ")]"))
        section.add("http-request", "set-var-fmt(txn.query)", kept, "if", *when, "{", value, "-m", "found", "}")
    for name in (*(rewrite.query_drop or ()), *dict(rewrite.query_set or ())):
        gone = Call(('var(txn.query),regsub("(^|&)', Value(name.replace(".", "[.]")), '(=[^&]*)?(?=&|$)",,g)'))
        section.add("http-request", "set-var(txn.query)", gone, "if", *when, *_HAS_QUERY)
    for name, text in rewrite.query_set or ():
        more: Argument = Call(("%[var(txn.query)]&", Value(name), "=", Value(text.replace("%", "%%"))))
        section.add("http-request", "set-var-fmt(txn.query)", more, "if", *when)
    section.add("http-request", "set-var(txn.query)", 'var(txn.query),regsub("^&+",)', "if", *when, *_HAS_QUERY)
    section.add("http-request", "set-query", "%[var(txn.query)]", "if", *when, *_HAS_QUERY)
    section.add("http-request", "set-pathq", "%[path]", "if", *when, "!", *_HAS_QUERY)
