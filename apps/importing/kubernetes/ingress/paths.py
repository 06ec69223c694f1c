"""Paths of an Ingress as paths of ours, with what the servers get instead of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import rewriting
from apps.compiler.matching import patterns

CASE = (
    "ingress-nginx compares the paths of this host without regard for case, as one of them is a pattern; case counts "
    "here, and a prefix ends where a segment ends."
)
ITSELF = "A prefix also takes {path} itself."
WHOLE_SEGMENTS = "ingress-nginx also took paths that go on in the same segment (/apiary for /api); a prefix does not."
# `/api(/|$)(.*)` and its like: a prefix, with the rest behind it as the last group.
_TAILS = {"(/|$)(.*)": 2, "/?(.*)": 1, "/(.*)": 1, "(/.*)?": 1, "/.*": 0, "(.*)": 1, ".*": 0, "(/|$)": 1}
_LITERAL = re.compile(r"/(?:[A-Za-z0-9_~=@&%/:!-]|\\?\.|\\-)*")


class Unsayable(Exception):
    """A path that no route can have."""


@dataclass(frozen=True, slots=True)
class PathOfOurs:
    """`rewrite` is a whole new path, `prefix_rewrite` one for the prefix, `replacement` one with groups of `regex`.

    `written` is the path as it stood there: controllers compare patterns by its length.
    """

    kind: str
    text: str
    written: str = ""
    rewrite: str = ""
    prefix_rewrite: str = ""
    regex: str = ""
    replacement: str = ""
    differs: tuple[str, ...] = ()

    def as_pattern(self) -> PathOfOurs:
        """The same prefix as a pattern, so that it stands in one order with other patterns."""
        text = re.sub(r"([.])", r"\\\1", self.text)
        if self.kind != "prefix" or self.text == "/":
            return self
        new = self.prefix_rewrite
        regex, replacement = (f"{text}/?(.*)", f"{new.rstrip('/')}/\\1") if new else (self.regex, self.replacement)
        return PathOfOurs("regex", f"{text}(/.*)?", self.written, self.rewrite, "", regex, replacement, self.differs)


def plain_path(text: str, kind: str) -> PathOfOurs:
    """`Exact` and `Prefix` as Kubernetes defines them. Raises Unsayable."""
    if kind == "Exact":
        return PathOfOurs("exact", _checked(text), text)
    return PathOfOurs("prefix", _checked(text.rstrip("/") or "/"), text)


def path_of_nginx(text: str, kind: str, rewrite: str, *, regex_host: bool) -> PathOfOurs:
    """A path as ingress-nginx reads it; one that is its own target is not rewritten. Raises Unsayable."""
    rewrite = "" if rewrite == text else rewrite
    tail = _tail_of(text) if regex_host else ""
    literal = text.removesuffix(tail) if tail else text
    goes_on = tail in ("(.*)", ".*") and not literal.endswith("/")  # /api(.*) goes on in the segment
    if regex_host and (goes_on or not _LITERAL.fullmatch(literal or "/")):
        return _pattern(text, rewrite)
    found = plain_path(re.sub(r"\\([.-])", r"\1", literal), "Prefix" if tail or kind != "Exact" else "Exact")
    differs: tuple[str, ...] = (CASE,) if regex_host else ()
    if tail in ("/(.*)", "/.*") and found.text != "/":
        differs += (ITSELF.format(path=found.text),)
    if kind == "ImplementationSpecific" and not regex_host and found.text != "/":
        differs = (WHOLE_SEGMENTS,)
    found = PathOfOurs(found.kind, found.text, text, differs=differs)
    return _rewritten(found, rewrite, tail) if rewrite else found


def _tail_of(text: str) -> str:
    return next((tail for tail in _TAILS if text.endswith(tail)), "")


def _rewritten(found: PathOfOurs, target: str, tail: str) -> PathOfOurs:
    """The target of a rewrite: fixed, or with the rest behind the prefix at its end."""
    groups = sorted({int(each) for each in re.findall(r"\$(\d)", target)})
    if not groups:
        return _with(found, rewrite=_checked(target))
    last = _TAILS.get(tail, 0)
    rest = [each for each in groups if each <= last]
    if found.kind == "prefix" and rest == [last] and last and target.endswith(f"${last}") and target.count("$") == 1:
        before = target.removesuffix(f"${last}")
        whole = "/" if tail == "(/.*)?" else ""  # this group begins with the slash
        if before.endswith("/") or whole:
            new = _checked(before.rstrip("/") or "/")
            return found if new == found.text else _with(found, prefix_rewrite=new)
    if not rest:
        return _with(found, rewrite=_checked(re.sub(r"\$\d", "", target) or "/"))
    raise Unsayable("Only what stands behind the prefix can be kept at the end of the new path.")


def _pattern(text: str, rewrite: str) -> PathOfOurs:
    """nginx looks for the pattern at the beginning of the path; ours takes all of it."""
    inner = text.removeprefix("^").replace("(?i)", "").replace("(?:", "(").replace("(/|$)", "/?")
    if "(?" in inner or (rewrite and ("(?:" in text or "(/|$)" in text)):
        raise Unsayable("This pattern has no place; write it with groups, classes and repeats alone.")
    ends = inner.endswith("$") and not inner.endswith("\\$")
    inner = inner.removesuffix("$") if ends else inner
    whole = inner if ends or inner.endswith((".*", ".*)", ".+", ".+)")) else f"{inner}.*"
    try:
        patterns.pattern(whole)
        if not rewrite:
            return PathOfOurs("regex", whole, text, differs=(CASE,))
        most = rewriting.groups_of(whole)  # a group that is not there is empty
        replacement = re.sub(r"\$(\d)", lambda each: f"\\{each[1]}" if int(each[1]) <= most else "", rewrite) or "/"
        if "\\" not in replacement:
            return PathOfOurs("regex", whole, text, rewrite=_checked(replacement), differs=(CASE,))
        return PathOfOurs(
            "regex", whole, text, regex=whole, replacement=rewriting.replacement(replacement), differs=(CASE,)
        )
    except GrammarError as error:
        raise Unsayable(error.message) from error


def _with(found: PathOfOurs, *, rewrite: str = "", prefix_rewrite: str = "") -> PathOfOurs:
    return PathOfOurs(found.kind, found.text, found.written, rewrite, prefix_rewrite, differs=found.differs)


def _checked(text: str) -> str:
    try:
        return grammar.path(text)
    except GrammarError as error:
        raise Unsayable(error.message) from error
