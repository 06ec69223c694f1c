"""Paths that are rewritten: by `set-path`, `replace-path` and the `reqrep` of 1.x."""

from __future__ import annotations

import re

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import rewriting
from apps.importing.logic.decisions import Effect
from apps.importing.logic.regexes import as_pattern

NOT_SAID = "Paths are rewritten by prefix, as a whole, or by a pattern with groups; this is another way."
WHOLE = "Only whole segments are replaced ({})."
EMPTIED = "HAProxy sends servers an empty path for {} itself, which they refuse; here they get /."
_SUBSTITUTED = re.compile(r"%\[(?:pathq?|url),regsub\(\^(/[A-Za-z0-9._/-]*),(/[A-Za-z0-9._/-]*)(?:,[a-z]*)?\)\]")
_BEHIND = re.compile(r"%\[(?:pathq?|url|capture\.req\.uri)(?:,regsub\(\^?(/[A-Za-z0-9._/-]+),(/?)(?:,[a-z]*)?\))?\]")


# What stands behind the literal beginning of an expression: the group that holds the rest of the path.
_RESTS = {
    "/(.*)": "1", "(/.*)": "/1", "(/)?(.*)": "2", "(/?(.*))": "2", "/?(.*)": "1",
    "(/|$)(.*)": "2", "(/(.*))?": "2", "(/.*)?": "/1",
    "(.*)": "/1", "/(.+)": "1", "(/.+)": "/1", "(?:/)?(.*)": "1", "(/?)(.*)": "2", "(?:/|$)(.*)": "1", "(/.*|$)": "/1",
}  # fmt: skip
_LITERAL = re.compile(r"\^?((?:/[A-Za-z0-9._-]+)+)")


def _stripped(expression: str, text: str) -> Effect | None:
    """The change of a prefix that an expression and its replacement stand for; None where they are more than that."""
    found = _LITERAL.match(expression)
    rest = _RESTS.get(expression[found.end() :].removesuffix("$") if found else "")
    ending = re.fullmatch(r"((?:/[A-Za-z0-9._-]+)*/?)\\([1-9])", text)
    if found is None or rest is None or ending is None or ending[2] != rest[-1]:
        return None
    if rest.startswith("/") == ending[1].endswith("/"):
        return None
    below = "" if "?" in expression or "|" in expression or expression[found.end() :].startswith("(.*)") else "/"
    return strip(found[1].replace("\\", "") + below, ending[1])


def _of_stripped(old: str, expression: str, text: str) -> str:
    """What differs where the prefix `old` is changed, and not what the expression finds."""
    said = []
    if not old.endswith("/"):
        said.append(WHOLE.format(old))
        said += [EMPTIED.format(old)] if re.fullmatch(r"\\[1-9]", text) else []
    if not expression.startswith("^"):
        said.append(f"HAProxy also finds {old} in the middle of a path, where it stays here; begin the pattern with ^.")
    return f"different:{' '.join(said)}" if said else ""


def _change(block: str, name: str, value: object) -> Effect:
    return Effect("change", (block, name, value))


def strip(old: str, new: str) -> Effect:
    """The prefix `old` becomes `new`, for paths below it."""
    return _change("path", old or "/", new or "/")


def read_set_path(words: tuple[str, ...]) -> tuple[list[Effect], str]:
    """A fixed path, or a text before the path of the request."""
    text = words[0] if words else ""
    substituted = _SUBSTITUTED.fullmatch(text)
    if substituted and substituted[1].endswith("/") == substituted[2].endswith("/"):
        whole = substituted[1].endswith("/")
        return [strip(substituted[1], substituted[2])], "" if whole else f"different:{WHOLE.format(substituted[1])}"
    found = _BEHIND.search(text)
    if found and found.end() == len(text):
        before = text[: found.start()].rstrip("/")
        if found[1] is None:
            return [strip("/", before or "/")], ""
        doubled = found[2] and not found[1].endswith("/")
        said = "different:Servers get one slash where HAProxy sent two." if doubled else ""
        if not found[1].endswith("/"):
            said = said or f"different:Only whole segments are replaced ({found[1]}), and paths keep their first slash."
            said += "" if before + found[2] else f" {EMPTIED.format(found[1])}"
        return [strip(found[1], before + found[2])], said
    try:
        return [_change("rewrite", "path", grammar.path(text))], ""
    except GrammarError:
        return [], NOT_SAID


def read_replace_path(words: tuple[str, ...]) -> tuple[list[Effect], str]:
    """A regular expression and what takes its place."""
    if len(words) < 2:
        return [], NOT_SAID
    expression, text = words[0].replace("\\/", "/"), words[1].replace("\\/", "/")
    stripped = _stripped(expression, text)
    if stripped is not None:
        return [stripped], _of_stripped(str(stripped.data[1]), expression, text)
    pattern = as_pattern(expression, counts_groups=True)
    if pattern is None:
        return [], NOT_SAID
    try:
        replacement = rewriting.replacement(text)
    except GrammarError:
        return [], NOT_SAID
    if max(map(int, re.findall(r"\\([1-9])", text)), default=0) > re.compile(pattern).groups:
        return [], NOT_SAID
    return [_change("rewrite", "path_regex", pattern), _change("rewrite", "path_replacement", replacement)], ""
