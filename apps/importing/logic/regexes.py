"""Regular expressions as others write them: as few plain texts where they are some, else as a pattern of ours."""

from __future__ import annotations

import re

from apps.compiler.grammar import GrammarError
from apps.compiler.matching import patterns

MOST = 64
ANY, END = "\0", "\1"
_QUANTIFIED = re.compile(r"(?:\.\*|\.\+)\??")


class _TooRich(Exception):
    """It stands for more texts than can be listed."""


class _Expander:
    """Every text that an expression takes, with ANY for `.*` and END for `$`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def either(self) -> list[str]:
        found = self.row()
        while self.text[self.at : self.at + 1] == "|":
            self.at += 1
            found = found + self.row()
        if len(found) > MOST:
            raise _TooRich
        return found

    def row(self) -> list[str]:
        found = [""]
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            part = self.one()
            found = [left + right for left in found for right in part]
            if len(found) > MOST:
                raise _TooRich
        return found

    def one(self) -> list[str]:
        if any_text := _QUANTIFIED.match(self.text, self.at):
            self.at = any_text.end()
            if any_text[0].startswith(".+"):
                raise _TooRich
            return [ANY]
        part = self.single()
        sign = self.text[self.at : self.at + 1]
        if sign == "?":
            self.at += 1
            return [*part, ""]
        if sign and sign in "*+{":
            raise _TooRich
        return part

    def single(self) -> list[str]:
        sign = self.text[self.at]
        self.at += 1
        if sign == "(":
            return self.group()
        if sign == "\\":
            return self.escaped()
        if sign == "[":
            return self.members()
        if sign == "$":
            return [END]
        if sign in ".^*+?{":
            raise _TooRich
        return [sign]

    def group(self) -> list[str]:
        if self.text.startswith("?:", self.at):
            self.at += 2
        elif self.text[self.at : self.at + 1] == "?":
            raise _TooRich
        found = self.either()
        if self.text[self.at : self.at + 1] != ")":
            raise _TooRich
        self.at += 1
        return found

    def escaped(self) -> list[str]:
        sign = self.text[self.at : self.at + 1]
        self.at += 1
        if sign.isalnum() or not sign:
            raise _TooRich
        return [sign]

    def members(self) -> list[str]:
        end = self.text.find("]", self.at + 1)
        signs = self.text[self.at : end]
        if end < 0 or signs.startswith("^") or "-" in signs or "\\" in signs or len(signs) > 8:
            raise _TooRich
        self.at = end + 1
        return list(signs)


def as_texts(expression: str) -> list[tuple[str, str]] | None:
    """(`str`, `beg`, `end` or `sub`; text) for each of the texts that the expression takes; None where it takes more.

    `^/(api|v1)(/|$)` is `str /api`, `beg /api/`, `str /v1`, `beg /v1/`.
    """
    bare = expression.removeprefix("(?i)")
    begins = bare.startswith("^")
    try:
        expander = _Expander(bare.removeprefix("^"))
        found = expander.either()
    except _TooRich:
        return None
    if expander.at < len(expander.text) or (begins and _top_level_choice(bare)):
        return None
    texts = [_as_match(text, begins=begins) for text in found]
    return None if None in texts else [each for each in texts if each is not None]


def _top_level_choice(text: str) -> bool:
    """Whether a `|` stands outside of groups, where `^` holds for the first part alone."""
    depth = 0
    for at, sign in enumerate(text):
        if text[at - 1 : at] == "\\":
            continue
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "|" and depth == 0:
            return True
    return False


def _as_match(text: str, *, begins: bool) -> tuple[str, str] | None:
    ends = text.endswith(END)
    text = text.rstrip(END)
    begins = begins and not text.startswith(ANY)
    ends = ends and not text.endswith(ANY)
    text = text.strip(ANY)
    if ANY in text or END in text:
        return None
    return {(True, True): "str", (True, False): "beg", (False, True): "end", (False, False): "sub"}[begins, ends], text


_UNCOUNTED = re.compile(r"(?<!\\)((?:\\\\)*)\(\?:")
_NAMED = re.compile(r"(?<!\\)((?:\\\\)*)\(\?P?<[A-Za-z_]\w*>")


# `/\.(?!well-known)` to the end: a text that goes on in any way but this one.
_BUT = re.compile(r"\(\?!((?:[A-Za-z0-9_/-]|\\[/.-])+)\)(?:\.\*\$?)?")


def _but(text: str) -> str:
    """A pattern of all texts that do not begin so."""
    first, rest = text[:1], text[1:]
    return f"([^{first}].*|{literal(first)}{_but(rest)})?" if rest else f"([^{first}].*)?"


def unnamed(expression: str) -> str:
    """The same groups without names, which ours do not have and Python writes otherwise."""
    return _NAMED.sub(r"\1(", expression)


def as_pattern(expression: str, *, ignore_case: bool = False, counts_groups: bool = False) -> str | None:
    """The expression as a pattern that takes the same whole texts; None where ours have no such form.

    Ours count every group, so that `(?:` is one only for who asks for no groups (`counts_groups`).
    """
    ignore_case |= expression.startswith("(?i)")
    text = expression.removeprefix("(?i)")
    text = text if counts_groups else _UNCOUNTED.sub(r"\1(", text)
    if not counts_groups and (but := _BUT.search(text)) is not None and but.end() == len(text):
        text = text[: but.start()] + _but(but[1].replace("\\", "")) + "$"
    if not counts_groups and text.endswith("(/|$)"):
        text = text.removesuffix("(/|$)") + "(/.*)?$"
    if _top_level_choice(text) and "^" not in text and "$" not in text:
        text = f"({text})"
    begin = text.startswith("^")
    end = text.endswith("$") and not text.endswith("\\$")
    text = text.removeprefix("^")
    text = text[:-1] if end else text
    text = ("" if begin or text.startswith(".*") else ".*") + text + ("" if end or text.endswith(".*") else ".*")
    text = text.replace("\\_", "_").replace("\\:", ":").replace("\\=", "=").replace("\\&", "&").replace("\\%", "%")
    return checked(either_case(text) if ignore_case else text)


def checked(text: str) -> str | None:
    """The pattern where ours allow it."""
    try:
        return patterns.pattern(text)
    except GrammarError:
        return None


_CLASS = re.compile(r"\[(\^?)((?:\\.|[^\]\\])+)\]|\\.|[A-Za-z]")
_MEMBER = re.compile(r"([a-z])-([a-z])|([A-Z])-([A-Z])|\\.|[A-Za-z]")


def either_case(text: str) -> str:
    """Each letter in both cases, also those of classes."""

    def both(found: re.Match[str]) -> str:
        if found[2]:
            more = "".join(_other_case(each) for each in _MEMBER.finditer(found[2]))
            own = found[2].removesuffix("-")  # a hyphen stays at the end, where it begins no range
            return f"[{found[1]}{own}{more}{found[2][len(own) :]}]"
        return found[0] if found[0].startswith("\\") else f"[{found[0].upper()}{found[0].lower()}]"

    return _CLASS.sub(both, text)


def _other_case(member: re.Match[str]) -> str:
    return "" if member[0].startswith("\\") else member[0].swapcase()


def literal(text: str, *, ignore_case: bool = False) -> str:
    """A pattern that takes this text alone."""
    escaped = "".join(f"\\{sign}" if sign in ".^$|?*+()[]{}\\" else sign for sign in text)
    return either_case(escaped) if ignore_case else escaped
