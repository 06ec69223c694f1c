"""What servers get instead of what the client asked for: another host, another path, another query or none."""

from __future__ import annotations

from apps.compiler.matching import patterns
from apps.compiler.model.policy import Rewrite
from apps.compiler.targets.haproxy.actions import IS_REDIRECT
from apps.compiler.targets.haproxy.writer import Argument, Call, Opaque, Section, Value

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
