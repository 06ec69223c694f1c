"""Sections of haproxy.cfg: their lines, the defaults that they inherit, and what `.if` leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from apps.importing.haproxy.text.blocks import Blocks
from apps.importing.haproxy.text.words import Words
from apps.importing.verdicts import Ledger, Line, Verdict

MARK = "\ufeff"
MARKED = "The mark before the first word (a byte order mark) is passed over; HAProxy does not start with it."
_ENDS = re.compile(r"\r\n|\n|\r")
_DEFINED = re.compile(r"\bdefined\((\w+)\)")
KINDS = frozenset(
    {
        *("global", "defaults", "frontend", "backend", "listen", "peers", "resolvers", "userlist", "mailers", "cache"),
        *("program", "http-errors", "ring", "log-forward", "fcgi-app", "crt-store", "traces", "acme", "log-profile"),
        *("ssl-f-use", "stats-file"),
    }
)
PROXIES = frozenset({"frontend", "backend", "listen"})


@dataclass(slots=True)
class Section:
    """One section; `inherited` are the lines of the defaults that hold for it, `header` is its own line."""

    kind: str
    name: str
    header: Line
    lines: list[Line] = field(default_factory=list)
    inherited: tuple[Line, ...] = ()
    defaults: Section | None = None

    def all_lines(self) -> Iterator[Line]:
        """Of the defaults first."""
        yield from self.inherited
        yield from self.lines

    def last(self, *keyword: str) -> Line | None:
        """The line that counts of those that begin with these words; `no …` takes it away."""
        found: Line | None = None
        for line in self.all_lines():
            if line.words[: len(keyword)] == keyword:
                found = line
            elif line.words[0] == "no" and line.words[1 : len(keyword) + 1] == keyword:
                found = None
        return found

    def each(self, *keyword: str) -> Iterator[Line]:
        """Own lines that begin with these words, and those of the defaults."""
        return (line for line in self.all_lines() if line.words[: len(keyword)] == keyword)


class Configuration:
    """All sections of a file, in order."""

    def __init__(self, text: str, environment: Mapping[str, str], ledger: Ledger, file: str = "") -> None:
        self.ledger = ledger
        self.file = file
        self.environment = dict(environment)
        self.sections: list[Section] = []
        self.stray: list[Line] = []
        self.unquoted: list[Line] = []
        self._proxies: dict[str, Section] = {}
        self._read(text)

    def of_kind(self, *kinds: str) -> Iterator[Section]:
        """Sections of these kinds."""
        return (each for each in self.sections if each.kind in kinds)

    def proxy(self, name: str) -> Section | None:
        """The backend or listen section of this name."""
        if len(self._proxies) == 0:
            self._proxies = {each.name: each for each in reversed(self.sections) if each.kind in ("backend", "listen")}
        return self._proxies.get(name)

    def with_one_server(self, backend: Section, server: str) -> Section | None:
        """The backend while a rule chooses one of its servers, for which the others stand in while it fails checks.

        None where it has no such server.
        """
        name = f"{backend.name} {server}"
        if (known := self.proxy(name)) is not None:
            return known
        chosen = next((line for line in backend.each("server") if line.words[1:2] == (server,)), None)
        if chosen is None:
            return None
        others = [line for line in backend.each("server") if line is not chosen]
        is_checked = any("check" in line.words for line in (chosen, *backend.each("default-server")))
        lines = [line for line in backend.lines if line not in others]
        for line in others:
            self.ledger.note(line, Verdict.DEAD, "Rules of this backend choose other servers.")
        lines += [replace(line, words=(*line.words, "backup")) for line in others] if is_checked else []
        self._proxies[name] = found = replace(backend, kind="backend", name=name, lines=lines)
        return found

    def _read(self, text: str) -> None:
        blocks = Blocks(self.environment)
        defaults: Section | None = None
        for number, raw in enumerate(_ENDS.split(text.removeprefix(MARK)), 1):
            words = Words(raw, self.environment)
            if not words.found:
                continue
            above = self.sections[-1] if self.sections else None
            section = f"{above.kind} {above.name}".strip() if above else ""
            begins = words.found[0] in KINDS and not (words.found[0] == "cache" and section.startswith("cache "))
            if begins:
                section = f"{words.found[0]} {_name_of(words.found)}".strip()
            line = Line(number, tuple(words.found), raw.strip(), section, self.file)
            self.ledger.add(line)
            if number == 1 and text.startswith(MARK):
                self.ledger.differs(line, MARKED)
            if blocks.reads(line, self.ledger):
                self._say_undecided(line, words)
                continue
            self._complain(line, words)
            if begins:
                defaults = self._begin(line, defaults)
            elif self.sections:
                self.sections[-1].lines.append(line)
                self._set_variable(line)
            else:
                self.stray.append(line)

    def _say_undecided(self, line: Line, words: Words) -> None:
        """Variables that a block asks for and nobody gave: what it leaves out may be wanted."""
        if line.keyword not in (".if", ".elif"):
            return
        for name in words.unknown:
            self.ledger.unset(line, name)
        for name in _DEFINED.findall(line.text):
            if name not in self.environment:
                self.ledger.differs(line, f"{name} is taken as not set; give it with --env {name}=….")

    def _complain(self, line: Line, words: Words) -> None:
        if words.open_quote:
            self.unquoted.append(line)
        for name in words.unknown:
            self.ledger.unset(line, name)

    def _set_variable(self, line: Line) -> None:
        """`setenv` and `presetenv` hold for what follows."""
        if line.keyword in ("setenv", "presetenv") and len(line.words) == 3:
            self.environment.setdefault(line.words[1], line.words[2])

    def _begin(self, line: Line, defaults: Section | None) -> Section | None:
        """A new section; the defaults that hold from here on are returned."""
        kind = line.words[0]
        section = Section(kind, _name_of(line.words), line)
        if kind in PROXIES or kind == "defaults":
            named = line.words[line.words.index("from") + 1] if "from" in line.words[1:-1] else None
            base = self._named(named) if named else (defaults if kind in PROXIES else None)
            if named and base is None:
                self.ledger.impossible(line, f"There are no defaults {named} above this line.")
            section.defaults = base
            section.inherited = tuple(base.all_lines()) if base else ()
        self.sections.append(section)
        return section if kind == "defaults" else defaults

    def _named(self, name: str) -> Section | None:
        return next((each for each in reversed(self.sections) if each.kind == "defaults" and each.name == name), None)


def _name_of(header: Sequence[str]) -> str:
    """The name that the words of a section's own line give it."""
    return header[1] if len(header) > 1 and header[1] != "from" else ""


def mark_unused_defaults(configuration: Configuration) -> None:
    """Defaults that no proxy inherits say nothing."""
    used: set[int] = set()
    for section in configuration.of_kind("frontend", "backend", "listen"):
        base = section.defaults
        while base is not None:
            used.add(base.header.number)
            base = base.defaults
    for section in configuration.of_kind("defaults"):
        if section.header.number not in used:
            for line in (section.header, *section.lines):
                configuration.ledger.note(line, Verdict.DEAD, "No section inherits these defaults.")
