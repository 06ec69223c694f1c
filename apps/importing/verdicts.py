"""What became of each line: exactly one verdict, with its reasons, and the objects that came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """What became of a line, the weakest first: of several that a line is given the last one counts."""

    DEAD = "dead"
    NODE_SETTING = "node_setting"
    MAPPED = "mapped"
    DIFFERENT = "different"
    NOT_POSSIBLE = "not_possible"


WEIGHT = {verdict: weight for weight, verdict in enumerate(Verdict)}


@dataclass(frozen=True, slots=True)
class Line:
    """One directive: where it stands, and its words; `section` is `frontend www`, `at` its place on the line."""

    number: int
    words: tuple[str, ...]
    text: str
    section: str = ""
    file: str = ""
    at: int = 0

    @property
    def position(self) -> tuple[str, int, int]:
        """Where it stands, which no other directive does."""
        return self.file, self.number, self.at

    @property
    def keyword(self) -> str:
        """The first word."""
        return self.words[0] if self.words else ""


@dataclass(frozen=True, slots=True)
class LineReport:
    """A line of the old file, what became of it, why, and the objects (`Pool shop`) that it is part of.

    `number` is zero of what is no line of a text, such as a row of a database.
    """

    number: int
    text: str
    section: str
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    file: str = ""


@dataclass(slots=True)
class _Entry:
    line: Line
    verdict: Verdict | None = None
    reasons: list[str] = field(default_factory=list)
    objects: dict[str, None] = field(default_factory=dict)


class Ledger:
    """Every line once; who reads a line says what became of it."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int, int], _Entry] = {}
        self._unset: dict[tuple[str, int, int], dict[str, None]] = {}

    def add(self, line: Line) -> None:
        """A line that must end with a verdict; one of a file that is read twice is one."""
        self._entries.setdefault(line.position, _Entry(line))

    def note(self, line: Line, verdict: Verdict, reason: str = "") -> None:
        """A verdict; the strongest of all stays, with the reasons of all that are as strong as `different`."""
        entry = self._entries[line.position]
        if verdict is Verdict.NOT_POSSIBLE and self.has_unset(line):
            verdict = Verdict.DIFFERENT
        if entry.verdict is None or WEIGHT[verdict] > WEIGHT[entry.verdict]:
            if entry.verdict is not None and WEIGHT[entry.verdict] < WEIGHT[Verdict.DIFFERENT]:
                entry.reasons.clear()
            entry.verdict = verdict
        elif WEIGHT[verdict] < WEIGHT[entry.verdict] and WEIGHT[verdict] < WEIGHT[Verdict.DIFFERENT]:
            return
        if reason and reason not in entry.reasons:
            entry.reasons.append(reason)

    def unset(self, line: Line, name: str) -> None:
        """A variable of the line that nobody gave: what the line is worth shows once it is there."""
        self._unset.setdefault(line.position, {})[name] = None
        self.differs(line, f"The variable {name} is not set; give it with --env {name}=….")

    def has_unset(self, line: Line) -> bool:
        """Whether the line has such a variable."""
        return line.position in self._unset

    def variables_asked_for(self) -> tuple[str, ...]:
        """Variables that nobody gave, of lines that count."""
        counts = [names for key, names in self._unset.items() if self._entries[key].verdict is not Verdict.DEAD]
        return tuple(dict.fromkeys(name for names in counts for name in names))

    def mapped(self, line: Line, *objects: str) -> None:
        """It works as it did."""
        self.note(line, Verdict.MAPPED)
        self.belongs(line, *objects)

    def differs(self, line: Line, reason: str) -> None:
        """It works, and differs."""
        self.note(line, Verdict.DIFFERENT, reason)

    def impossible(self, line: Line, reason: str) -> None:
        """It has no place here."""
        self.note(line, Verdict.NOT_POSSIBLE, reason)

    def outdone(self, line: Line, reason: str) -> None:
        """It was read, and never decides anything."""
        entry = self._entries[line.position]
        if entry.verdict is Verdict.MAPPED:
            entry.verdict, entry.reasons = Verdict.DEAD, [reason]

    def belongs(self, line: Line, *objects: str) -> None:
        """The line is part of these objects."""
        self._entries[line.position].objects.update(dict.fromkeys(objects))

    def is_part(self, line: Line) -> bool:
        """Whether the line is part of any object."""
        return bool(self._entries[line.position].objects)

    def verdict_of(self, line: Line) -> Verdict | None:
        """What was said of it until now."""
        return self._entries[line.position].verdict

    def has(self, line: Line) -> bool:
        """Whether a line stands there already."""
        return line.position in self._entries

    def open_lines(self) -> list[Line]:
        """Lines without a verdict."""
        return [entry.line for entry in self._entries.values() if entry.verdict is None]

    def report(self) -> tuple[LineReport, ...]:
        """All lines in order. Each has a verdict: who forgets one is told here."""
        return tuple(
            LineReport(
                entry.line.number,
                entry.line.text,
                entry.line.section,
                entry.verdict or Verdict.NOT_POSSIBLE,
                tuple(entry.reasons) if entry.verdict else ("This line was not read.",),
                tuple(entry.objects),
                entry.line.file,
            )
            for entry in self._entries.values()
        )
