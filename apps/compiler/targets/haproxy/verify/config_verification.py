"""Config verification; an independent reader says what the text really means before anybody runs it.

It shares no code with the writer's quoting: :func:`tokenize` follows HAProxy's own rules for words, quotes, escapes
and comments, so a value that broke out of its quotes, whatever let it through, shows up as a surplus line, word or
mark of structure. Map and certificate-list files have a reader of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from apps.compiler.model.shared import Finding
from apps.compiler.targets.haproxy.writer import Shape, marks_in

_SECTIONS = frozenset(
    {
        "global", "defaults", "frontend", "backend", "listen", "resolvers", "peers", "userlist", "cache",
        "program", "ring", "mailers", "http-errors", "fcgi-app", "log-forward",
    }
)  # fmt: skip
_MAP = re.compile(r"(?:[!-\"$-~][!-~]* [!-~]+\n)*+")  # a key begins with anything but `#`
_MEANS_MORE = re.compile(r"[\\\"'#$]")
_PLAIN = re.compile(r"[^\\\"'#$ \t]+")  # in any state, these are themselves
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Token:
    """One word as HAProxy understands it, and how many environment expansions it asks for."""

    text: str
    expansions: int = 0


class TokenError(ValueError):
    """The text is not a sequence of words."""


def tokenize_line(line: str) -> list[Token]:
    """The words of one line by HAProxy's rules (management of quotes and escapes as in its section 2.2)."""
    if not _MEANS_MORE.search(line):
        return [Token(word) for word in line.split()]
    return list(_words(line))


def _words(line: str) -> Iterator[Token]:
    """Walk the line once: state is the open quote, if any, and the word so far, None between words."""
    word: list[str] | None = None
    quote, expansions, position = "", 0, 0
    while position < len(line):
        if plain := _PLAIN.match(line, position):
            word = [*(word or ()), plain[0]]
            position = plain.end()
            continue
        sign = line[position]
        position += 1
        if quote != "'" and sign == "\\":
            text, position = _escaped(line, position, quoted=bool(quote))
            word = [*(word or ()), text]
        elif sign in "\"'" and quote in ("", sign):
            quote = "" if quote else sign
            word = word if word is not None else []
        elif not quote and sign in " \t":
            if word is not None:
                yield Token("".join(word), expansions)
            word, expansions = None, 0
        elif not quote and sign == "#":
            break
        else:
            expansions += sign == "$" and quote != "'"
            word = word if word is not None else []
            word.append(sign)
    if quote:
        raise TokenError("a quote is not closed")
    if word is not None:
        yield Token("".join(word), expansions)


def _escaped(line: str, position: int, *, quoted: bool) -> tuple[str, int]:
    """What follows a backslash outside single quotes, and where reading goes on."""
    sign = line[position : position + 1]
    if not sign:
        raise TokenError("a backslash ends the line")
    if quoted and sign not in '\\"$':
        return "\\", position
    if sign == "x":
        return chr(int(line[position + 1 : position + 3], 16)), position + 3
    return _ESCAPES.get(sign, sign), position + 1


def read_shapes(text: str) -> Iterator[Shape]:
    """The structure of a whole file: one shape for every line that is not blank."""
    section = ""
    for line in text.split("\n"):
        if (found := _shape_of(line)) is None:
            continue
        opens, keyword, words, marks = found
        section = opens or section
        yield Shape(section, keyword, words, marks)


@lru_cache(maxsize=16_384)  # from one revision to the next, nearly all lines of a fleet are the same
def _shape_of(line: str) -> tuple[str, str, int, int] | None:
    """The section that a line opens, its keyword, its other words and their marks; None for a blank one."""
    tokens = tokenize_line(line)
    if not tokens:
        return None
    keyword, *rest = tokens
    opens = " ".join(token.text for token in tokens[:2]) if keyword.text in _SECTIONS else ""
    return opens, keyword.text, len(rest), sum(marks_in(token.text) + token.expansions for token in rest)


def check_config(text: str, predicted: Iterable[Shape]) -> list[Finding]:
    """Compare the text with what the model meant to say; empty when they agree, else the first disagreement."""
    if "\r" in text or "\0" in text or not text.isascii():
        return [_finding("haproxy.cfg", "holds a carriage return, a NUL or a character outside ASCII")]
    try:
        for number, (found, wanted) in enumerate(zip_longest(read_shapes(text), predicted), 1):
            if found != wanted:
                return [_finding("haproxy.cfg", f"statement {number} reads as {found}, meant was {wanted}")]
    except (TokenError, ValueError) as error:
        return [_finding("haproxy.cfg", str(error))]
    return []


def check_map(path: str, content: bytes, entries: Mapping[str, str]) -> list[Finding]:
    """A map file says exactly its entries: one `key value` per line, each key once, no comment, no third word."""
    text = content.decode("ascii", "replace")
    if not _MAP.fullmatch(text):
        return [_finding(path, "holds a line that is not one key and one value")]
    words = text.split()
    if len(words) != 2 * len(entries) or dict(zip(words[::2], words[1::2], strict=True)) != entries:
        return [_finding(path, "does not hold exactly the entries that were meant")]
    return []


def check_certificate_list(path: str, content: bytes, wanted: tuple[tuple[str, ...], ...]) -> list[Finding]:
    """A certificate list has exactly the wanted words in each line: files, what is asked of clients, host names."""
    found = tuple(tuple(line.split()) for line in content.decode("ascii", "replace").splitlines())
    if found != wanted:
        return [_finding(path, "does not say what was meant")]
    return []


def _finding(path: str, what: str) -> Finding:
    return Finding("config_verification", path, path, f"Config verification refuses {path}: it {what}.")
