"""A model of sections and lines that becomes text, every argument quoted by its origin.

Four kinds of argument, so that a reader sees where a word came from:

* a plain `str` is ours, written in this package; it is quoted when it has to be and keeps its meaning;
* :class:`Value` came from a definition; it is quoted so that HAProxy reads it as that very text;
* :class:`Opaque` as well, at the few places where HAProxy looks for no structure at all;
* :class:`Expanded` is ours and holds `${VARIABLE}`, which HAProxy replaces when it starts.

A :class:`Call` joins them into one argument, such as `req.fhdr(<Value>)`. The writer also predicts the structure
of what it wrote (see :class:`Shape`); `targets/haproxy/verify/config_verification.py` reads the text back and compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_BARE = re.compile(r"[A-Za-z0-9_./:@=,()<>*+|{}!~-]+")
_STRUCTURE = re.compile(r"%\[|[(),]")
STRUCTURAL_WORDS = frozenset({"{", "}", "||", "or", "if", "unless", "!"})


@dataclass(frozen=True, slots=True)
class Value:
    """One text that came from a definition."""

    text: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """One text from a definition at a place where HAProxy takes any word as it is, such as the body after `string`."""

    text: str


@dataclass(frozen=True, slots=True)
class Expanded:
    """One word of ours in which HAProxy replaces `${VARIABLE}`."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """One argument made of several parts, such as a fetch with a name from a definition."""

    parts: tuple[str | Value, ...]


Argument = str | Value | Opaque | Expanded | Call


@dataclass(frozen=True, slots=True)
class Shape:
    """The structure of one line: its section, its keyword, how many arguments, and how many marks of structure.

    A mark is anything by which HAProxy sees more than plain text: a brace or `if` as a word, a word that begins
    with `-` or `!`, `%[`, a parenthesis, a comma, an expansion. Values from definitions contribute none.
    """

    section: str
    keyword: str
    arguments: int
    marks: int


def marks_in(word: str) -> int:
    """How many marks of structure one word carries (expansions are counted by those who know the quotes)."""
    flag = word in STRUCTURAL_WORDS or word.startswith(("-", "!"))
    return int(flag) + len(_STRUCTURE.findall(word))


@dataclass(frozen=True, slots=True)
class Line:
    """A keyword and its arguments; `owner` is the id of the object that wanted it."""

    keyword: str
    arguments: tuple[Argument, ...]
    owner: str = ""


@dataclass(slots=True)
class Section:
    """One section of haproxy.cfg: `backend pool-17 from http` and its lines."""

    kind: str
    arguments: tuple[str, ...] = ()
    owner: str = ""
    lines: list[Line] = field(default_factory=list)

    def add(self, keyword: str, *arguments: Argument, owner: str = "") -> None:
        """Append one line; its owner is the section's unless another is named."""
        self.lines.append(Line(keyword, arguments, owner or self.owner))

    @property
    def title(self) -> str:
        """Kind and name, by which config verification speaks of the section."""
        return " ".join((self.kind, *self.arguments[:1]))


def quote(text: str) -> str:
    """One HAProxy word for this exact text, in ASCII: bare, or in single quotes with escapes for the rest."""
    if _BARE.fullmatch(text):
        return text
    pieces = re.findall(r"[^\n\t'\x80-\U0010ffff]+|[\n\t'\x80-\U0010ffff]", text)
    return "".join(map(_quote_piece, pieces)) or '""'


def _quote_piece(piece: str) -> str:
    if piece == "'":
        return "\\'"
    if piece.isascii() and piece.isprintable():
        return f"'{piece}'"
    return "".join(f"\\x{byte:02x}" for byte in piece.encode())


def _written(argument: Argument) -> str:
    """The text of one argument as it stands in the file."""
    match argument:
        case Expanded(text):
            return f'"{text}"'
        case Value(text) | Opaque(text):
            return quote(text)
        case Call(parts):
            return quote("".join(part if isinstance(part, str) else part.text for part in parts))
        case _:
            return quote(argument)


def _predicted_marks(argument: Argument) -> int:
    """The marks that our own words bring; a value is not allowed any."""
    match argument:
        case Value():
            return 0
        case Opaque(text):
            return marks_in(text)
        case Expanded(text):
            return marks_in(text) + text.count("${")
        case Call(parts):
            return sum(marks_in(part) for part in parts if isinstance(part, str))
        case _:
            return marks_in(argument)


def _shape(section: str, line: Line) -> Shape:
    marks = sum(map(_predicted_marks, line.arguments))
    return Shape(section, line.keyword, len(line.arguments), marks)


@dataclass(slots=True)
class Document:
    """All sections of one haproxy.cfg."""

    sections: list[Section] = field(default_factory=list)

    def section(self, kind: str, *arguments: str, owner: str = "") -> Section:
        """Open a new section at the end."""
        self.sections.append(Section(kind, arguments, owner))
        return self.sections[-1]

    def shapes(self) -> Iterator[Shape]:
        """What `targets/haproxy/verify/config_verification.py` must find in the text, in order."""
        for section in self.sections:
            yield _shape(section.title, Line(section.kind, section.arguments))
            for line in section.lines:
                yield _shape(section.title, line)

    def render(self) -> tuple[str, dict[int, str]]:
        """The text, and which object owns which line (1-based)."""
        lines: list[str] = []
        owners: dict[int, str] = {}
        for section in self.sections:
            lines.append(" ".join((section.kind, *section.arguments)))
            if section.owner:
                owners[len(lines)] = section.owner
            for line in section.lines:
                lines.append("    " + " ".join((line.keyword, *map(_written, line.arguments))))
                if line.owner:
                    owners[len(lines)] = line.owner
            lines.append("")
        return "\n".join(lines), owners
