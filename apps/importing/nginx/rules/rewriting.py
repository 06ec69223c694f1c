"""`rewrite` as a redirect or as another path for servers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import rewriting
from apps.importing.logic.decisions import Effect, change
from apps.importing.logic.regexes import as_pattern
from apps.importing.logic.targets import Target
from apps.importing.nginx.rules.targets import Captured, as_target, beginning_of

NOT_SAID = "Paths are rewritten by prefix, as a whole, or by a pattern with groups; this is another way."


_TEXT = re.compile(r"/(?:[\w/-](?![?*+{]))*")


def begun(expression: str, prefix: str) -> tuple[str, str]:
    """An expression without `^`, in a location of a prefix, as one that begins paths; and what differs then.

    `rewrite /api/(.*) /$1` looks for `/api/` anywhere, and finds it at the beginning of nearly all paths of `/api`.
    """
    text = found[0] if (found := _TEXT.match(expression)) else ""
    if not text or not prefix or not (prefix.startswith(text) or (text.startswith(prefix) and prefix != "/")):
        return expression, ""
    is_sure = prefix.startswith(text) and expression.removeprefix(text) in ("(.*)", "(.*)$")
    return f"^{expression}", "" if is_sure else f"Paths that have {text} further behind alone stay as they are."


@dataclass(frozen=True, slots=True)
class Moved:
    """Another path for the server: a fixed one, or `beginning` before what is left of the old one."""

    effects: tuple[Effect, ...]
    beginning: str
    is_fixed: bool


def redirect_of(expression: str, text: str, server_name: str) -> Target | None:
    """The target of `rewrite … permanent`; the query is added unless the text ends with `?`."""
    path = Captured(beginning_of(expression))
    drops = text.endswith("?")
    found = as_target(text.removesuffix("?"), path, server_name)
    if found is None or found.query:
        return None
    return Target(
        found.scheme, found.host, found.drop_from_host, found.port, found.path, found.before, found.strip,
        keeps_path=found.keeps_path, keep_query=not drops or found.keep_query, query="",
    )  # fmt: skip


def moved(expression: str, text: str) -> Moved | None:
    """What `rewrite … break` makes of the path; None where it cannot be said."""
    drops = text.endswith("?")
    text = text.removesuffix("?")
    if "?" in text or not text.startswith("/") or re.search(r"\$(?![1-9](?![0-9]))", text):
        return None
    more = (change("rewrite", "drop_query", True),) if drops else ()
    if "$" not in text:
        try:
            return Moved((change("rewrite", "path", grammar.path(text)), *more), text, is_fixed=True)
        except GrammarError:
            return None
    begins, before = beginning_of(expression), text.removesuffix("$1")
    if begins is not None and text.endswith("$1") and "$" not in before:
        old, rest = begins.old, begins.rest
        if rest == "" and old.endswith("/") and before.endswith("/"):
            return Moved((change("path", old, before), *more), before, is_fixed=False)
        if rest == "/" and not before.endswith("/") and old:
            return Moved((change("path", old + "/", before + "/"), *more), before + "/", is_fixed=False)
    return _by_pattern(expression, text, more)


def _by_pattern(expression: str, text: str, more: tuple[Effect, ...]) -> Moved | None:
    pattern = as_pattern(expression, counts_groups=True)
    replacement = re.sub(r"\$([1-9])", r"\\\1", text)
    try:
        most = rewriting.highest_group(rewriting.replacement(replacement))
        if pattern is None or most > rewriting.groups_of(pattern):
            return None
    except GrammarError:
        return None
    effects = (change("rewrite", "path_regex", pattern), change("rewrite", "path_replacement", replacement))
    return Moved((*effects, *more), text.partition("$")[0], is_fixed=False)
