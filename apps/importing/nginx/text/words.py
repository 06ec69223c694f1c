"""The words of nginx.conf, as crossplane divides them, with escapes resolved as nginx resolves them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

import crossplane.lexer

_ESCAPED = re.compile(r"""\\(["'\\tnr])""")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r"}
_PLAIN = re.compile(r"""[^\s;{}"'#]+""")


@dataclass(frozen=True, slots=True)
class Word:
    """A word, or one of `{`, `}` and `;` where it `ends` something."""

    text: str
    line: int
    ends: bool = False


def words_of(text: str) -> Iterator[Word]:
    """All words without comments. Nothing is opened: the lexer gets the text itself."""
    for token, line, quoted in crossplane.lexer._lex_file_object(io.StringIO(text + "\n")):
        if not quoted and token.startswith("#"):
            continue
        if not quoted and token in ("{", "}", ";"):
            yield Word(token, line, ends=True)
        else:
            yield Word(_ESCAPED.sub(_resolved, token), line)


def _resolved(found: re.Match[str]) -> str:
    return _CONTROL.get(found[1], found[1])


def shown(name: str, args: tuple[str, ...]) -> str:
    """A directive on one line, as people write it."""
    return " ".join([name, *(arg if _PLAIN.fullmatch(arg) else _quoted(arg) for arg in args)])


def _quoted(text: str) -> str:
    escaped = text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return '"' + escaped.replace('"', '\\"') + '"'
