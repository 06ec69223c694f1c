r"""Regular expressions that routes may use: read by a small parser of our own, and refused where an engine could stall.

HAProxy's engine tries one way after the other. With two repeats that overlap what follows them it spent 8 s on 8 kB
(PCRE2 10.42), and then gave up. So what is allowed is what RE2 reads as well, and less of it:

* letters, digits and some signs, `.`, classes, groups, alternatives, `?`, `*`, `+`, `{2,4}`; escapes of signs and
  `\d \w \s \D \W \S`. No anchors (the whole text is compared), references, look-around or lazy repeats.
* a repeat without an end stands at one sign or class, never at a group;
* at most one of them may overlap what follows it (`.*x`), and it leaves few ways besides; `[^/]*/` overlaps nothing.

A text of more than 1 024 characters matches nothing. The worst that is allowed took 0.6 ms at that length, most take
a few microseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from apps.compiler.grammar import GrammarError, printable

LONGEST = 256
LONGEST_TEXT = 1024
MOST_SIGNS = 1000
MOST_REPEATS = 64
MOST_WAYS = 16
MOST_WAYS_OF_OVERLAP = 4

Signs = frozenset[int]
_END: Signs = frozenset({256})
_ALL: Signs = frozenset(range(256)) - {10}
_DIGITS = frozenset(b"0123456789")
_WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
_SPACE = frozenset(b" \t\n\r\f\v")
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 /_~!@&=:%,;<>-")
_ESCAPED = frozenset(r".^$|?*+()[]{}\/-")
_BOUNDS = re.compile(r"\{([0-9]{1,3})(?:(,)([0-9]{1,3})?)?\}")


@dataclass(frozen=True, slots=True)
class One:
    """One sign out of a set."""

    signs: Signs


@dataclass(frozen=True, slots=True)
class All:
    """Parts in a row."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of several."""

    choices: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part several times; `most` None is without end."""

    part: Part
    least: int
    most: int | None


Part = One | All | Either | Repeat


@dataclass(frozen=True, slots=True)
class Effort:
    """What matching may cost: signs to begin with, ways to try, how many repeats overlap what follows, signs in all."""

    begins: Signs
    ways: int = 1
    overlaps: int = 0
    signs: int = 0


def pattern(value: object) -> str:
    """A regular expression as it is written here. Raises GrammarError with what to write instead."""
    text = printable(value, LONGEST)
    if "%[" in text:
        raise _wrong("Write [%] for a percent sign before a class.")
    _read(text)
    return text


def matches(text: str, value: str) -> bool:
    """Whether the pattern takes the whole value, as HAProxy decides it."""
    wanted = value.encode()
    return len(wanted) <= LONGEST_TEXT and _compiled(text).fullmatch(wanted) is not None


def replaced(text: str, replacement: str, value: str) -> str:
    r"""The replacement with the groups of the value (`\\1`) where the pattern takes all of it, else the value."""
    wanted = value.encode()
    found = _compiled(text).fullmatch(wanted) if len(wanted) <= LONGEST_TEXT else None
    if found is None:
        return value
    return re.sub(r"\\([1-9])", lambda group: (found[int(group[1])] or b"").decode(), replacement)


def example_of(text: str) -> str:
    """A short text that the pattern takes."""
    return _example(_read(text))


def whole(text: str) -> str:
    """The pattern as PCRE gets it: the whole text, and no long one."""
    return f"^(?!.{{{LONGEST_TEXT + 1}}})(?:{text})$"


@lru_cache(maxsize=4096)
def _compiled(text: str) -> re.Pattern[bytes]:
    return re.compile(text.encode())


@lru_cache(maxsize=4096)
def _read(text: str) -> Part:
    reader = _Reader(text)
    part = reader.either()
    if reader.at < len(text):
        raise _wrong("Close every group that you open, and open every group that you close.")
    effort = _effort(part, _END)
    if effort.signs > MOST_SIGNS:
        raise _wrong(f"Repeat less: this pattern stands for more than {MOST_SIGNS} signs.")
    if effort.overlaps > 1:
        raise _slow("Let at most one endless repeat overlap what follows it; write [^/]* instead of .* between slashes")
    if effort.ways > (MOST_WAYS_OF_OVERLAP if effort.overlaps else MOST_WAYS):
        raise _slow("Write fewer alternatives and options that begin alike")
    return part


def _wrong(message: str) -> GrammarError:
    return GrammarError("regex", message)


def _slow(what: str) -> GrammarError:
    return GrammarError("regex_slow", f"{what}: a long text would be tried in too many ways.")


class _Reader:
    """Walks over the text once; `at` is the next sign."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def next(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def either(self) -> Part:
        choices = [self.row()]
        while self.next() == "|":
            self.at += 1
            choices.append(self.row())
        return choices[0] if len(choices) == 1 else Either(tuple(choices))

    def row(self) -> Part:
        parts = []
        while self.next() not in ("", "|", ")"):
            parts.append(self.repeated(self.one()))
        return All(tuple(parts))

    def one(self) -> Part:
        sign = self.take()
        if sign == "(":
            return self.group()
        if sign == "[":
            return One(self.members())
        if sign == ".":
            return One(_ALL)
        if sign == "\\":
            return One(self.escape())
        if sign in ("^", "$"):
            raise _wrong(f"Leave out {sign}: the whole text is compared.")
        if sign not in _PLAIN:
            raise _wrong(f"Write a backslash before {sign}, or leave it out.")
        return One(frozenset(sign.encode()))

    def group(self) -> Part:
        if self.next() == "?" and self.text[self.at : self.at + 2] != "?:":
            raise _wrong("Leave out (?…): look-around, names and flags are not for routes.")
        self.at += 2 if self.next() == "?" else 0
        self.depth += 1
        if self.depth > 10:
            raise _wrong("Put at most 10 groups into each other.")
        inner = self.either()
        self.depth -= 1
        if self.take() != ")":
            raise _wrong("Close every group that you open, and open every group that you close.")
        return inner

    def escape(self) -> Signs:
        sign = self.take()
        if sign in _CLASSES:
            return _CLASSES[sign]
        if sign.lower() in _CLASSES:
            return frozenset(range(256)) - _CLASSES[sign.lower()]
        if sign and sign in _ESCAPED:
            return frozenset(sign.encode())
        raise _wrong(f"Leave out \\{sign}: a backslash stands before signs, and before d, w, s, D, W, S.")

    def members(self) -> Signs:
        negated = self.next() == "^"
        self.at += negated
        begin = self.at
        found: set[int] = set()
        while self.next() != "]":
            found |= self.member()
        if not found:
            raise _wrong("Put at least one sign into [ ].")
        if any(twice in self.text[begin : self.at] for twice in ("--", "&&", "~~", "||")):
            raise _wrong("Write each sign once in [ ]; engines differ about doubled ones.")
        self.at += 1
        return frozenset(range(256)) - found if negated else frozenset(found)

    def member(self) -> Signs:
        first = self.sign()
        if self.next() != "-" or self.text[self.at + 1 : self.at + 2] == "]":
            return first
        self.at += 1
        last = self.sign()
        if len(first) != 1 or len(last) != 1 or min(first) > min(last):
            raise _wrong("Write a range in [ ] from a lower to a higher sign, such as a-z.")
        return frozenset(range(min(first), min(last) + 1))

    def sign(self) -> Signs:
        sign = self.take()
        if sign == "\\":
            return self.escape()
        if sign in ("", "[") or (sign not in _PLAIN and sign not in ".$|?*+(){}"):
            raise _wrong("Close every [, and write a backslash before [ and ^ inside of it.")
        return frozenset(sign.encode())

    def repeated(self, part: Part) -> Part:
        least, most = self.bounds()
        if (least, most) == (1, 1):
            return part
        if self.next() in ("?", "*", "+", "{"):
            raise _wrong("Repeat a part once: no ?, * or + after another repeat.")
        if most is None and not isinstance(part, One):
            raise _wrong("Repeat a group a limited number of times, such as {0,8}; only a sign or class has no end.")
        return Repeat(part, least, most)

    def bounds(self) -> tuple[int, int | None]:
        sign = self.next()
        if sign in ("?", "*", "+") and sign:
            self.at += 1
            return {"?": (0, 1), "*": (0, None), "+": (1, None)}[sign]
        if sign != "{":
            return 1, 1
        found = _BOUNDS.match(self.text, self.at)
        if not found:
            raise _wrong("Write a number of times as {2}, {2,} or {2,4}.")
        self.at = found.end()
        least = int(found[1])
        most = least if not found[2] else int(found[3]) if found[3] else None
        if max(least, most or 0) > MOST_REPEATS or (most is not None and (most < least or most == 0)):
            raise _wrong(f"Repeat 1 to {MOST_REPEATS} times, the lower number first.")
        return least, most


def _effort(part: Part, follows: Signs) -> Effort:
    """What the part may cost where these signs follow; `begins` holds them too where it may be empty."""
    match part:
        case One(signs):
            return Effort(signs, signs=1)
        case All(parts):
            return _of_row(parts, follows)
        case Either(choices):
            return _of_choices([_effort(each, follows) for each in choices])
        case Repeat(One(signs), least, None):
            overlaps = 0 if signs.isdisjoint(follows) else 1
            return Effort(signs if least else signs | follows, overlaps=overlaps, signs=least + 1)
        case Repeat(inner, least, most):
            return _of_repeat(inner, least, most or 0, follows)


def _of_row(parts: tuple[Part, ...], follows: Signs) -> Effort:
    ways, overlaps, signs = 1, 0, 0
    for part in reversed(parts):
        found = _effort(part, follows)
        follows, ways, overlaps, signs = (
            found.begins, ways * found.ways, overlaps + found.overlaps, signs + found.signs,
        )  # fmt: skip
    return Effort(follows, ways, overlaps, signs)


def _of_choices(found: list[Effort]) -> Effort:
    """Choices that begin alike are all tried, of others one at most."""
    begins = frozenset[int]().union(*(each.begins for each in found))
    alike = len(begins) < sum(len(each.begins) for each in found)
    ways = sum(each.ways for each in found) if alike else max(each.ways for each in found)
    return Effort(begins, ways, max(each.overlaps for each in found), sum(each.signs for each in found))


def _of_repeat(inner: Part, least: int, most: int, follows: Signs) -> Effort:
    begins = _effort(inner, follows).begins
    once = _effort(inner, follows if most == 1 else follows | begins)
    if once.overlaps and most > 1:
        raise _slow("Take the endless repeat out of the part that is repeated")
    stops = 1 if begins.isdisjoint(follows) or least == most else most - least + 1
    ways = min(once.ways**most * stops, 1 << 20)
    return Effort(begins | follows if least == 0 else begins, ways, once.overlaps, once.signs * most)


def _example(part: Part) -> str:
    match part:
        case One(signs):
            wished = next((sign for sign in b"a0/-A" if sign in signs), None)
            visible = (sign for sign in sorted(signs) if 33 <= sign <= 126)
            return chr(wished if wished is not None else next(visible, 32))
        case All(parts):
            return "".join(map(_example, parts))
        case Either(choices):
            return _example(choices[0])
        case Repeat(inner, least, _):
            return _example(inner) * least
