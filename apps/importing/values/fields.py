"""The values of one object by path, and what became of each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.importing.masking import HIDDEN
from apps.importing.values.parsing import Path
from apps.importing.verdicts import Ledger, Line, Verdict

LONGEST_SHOWN = 200
_SECRET_NAME = re.compile(r"authorization|cookie|token|secret|passw|api-?_?key|credential|session", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class Fields:
    """`data` is the whole object; `lines` are its leaves by path."""

    data: Mapping[str, Any]
    ledger: Ledger
    lines: dict[Path, Line] = field(default_factory=dict)
    _inside: dict[Path, list[Path]] = field(default_factory=dict, repr=False)

    def at(self, *path: str | int) -> Any:
        """The value at a path, None where there is none."""
        found: Any = self.data
        for part in path:
            if isinstance(part, int):
                found = found[part] if isinstance(found, list) and part < len(found) else None
            else:
                found = found.get(part) if isinstance(found, Mapping) else None
        return found

    def each(self, *path: str | int) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """The mappings of a list, each with its path."""
        found = self.at(*path)
        for at, value in enumerate(found if isinstance(found, list) else ()):
            if isinstance(value, Mapping):
                yield (*path, at), value

    def texts(self, *path: str | int) -> list[tuple[Path, str]]:
        """The texts of a list, each with its path."""
        found = self.at(*path)
        return [((*path, at), str(value)) for at, value in enumerate(found if isinstance(found, list) else ())]

    def below(self, path: Path) -> Iterator[Line]:
        """The lines of a field and of all that it holds."""
        yield from (self.lines[key] for key in self._leaves(path))

    def known(self, path: Path) -> Iterator[Line]:
        """The same without fields that have no meaning here."""
        yield from (self.lines[key] for key in self._leaves(path) if self.is_known(key))

    def is_known(self, path: Path) -> bool:  # noqa: ARG002 - who knows the fields of a kind says so
        """Whether a field has a meaning."""
        return True

    def _leaves(self, path: Path) -> list[Path]:
        """The paths of the leaves at and below a path; found once, as large objects are asked for each of theirs."""
        if not self._inside:
            for key in self.lines:
                for length in range(len(key) + 1):
                    self._inside.setdefault(key[:length], []).append(key)
        return self._inside.get(path, [])

    def mapped(self, path: Path, *objects: str) -> None:
        """It works as it did."""
        for line in self.known(path):
            self.ledger.mapped(line, *objects)

    def differs(self, path: Path, reason: str) -> None:
        """It works, and differs."""
        for line in self.known(path):
            self.ledger.differs(line, reason)

    def impossible(self, path: Path, reason: str) -> None:
        """It has no place here."""
        for line in self.below(path):
            self.ledger.impossible(line, reason)

    def node_setting(self, path: Path, reason: str) -> None:
        """It is a setting of the old program's own, or done by itself."""
        for line in self.below(path):
            self.ledger.note(line, Verdict.NODE_SETTING, reason)

    def dead(self, path: Path, reason: str) -> None:
        """Nothing uses it."""
        for line in self.below(path):
            self.ledger.note(line, Verdict.DEAD, reason)
            self.ledger.outdone(line, reason)

    def open_lines(self) -> list[tuple[Path, Line]]:
        """Fields of which nobody said anything."""
        return [(path, line) for path, line in self.lines.items() if self.ledger.verdict_of(line) is None]


def mapping(value: Any) -> Mapping[str, Any]:
    """The value, if it is a mapping; else an empty one."""
    return value if isinstance(value, Mapping) else {}


def listed(value: Any) -> list[Any]:
    """The value, if it is a list; else an empty one."""
    return value if isinstance(value, list) else []


def whole(value: Any, default: int) -> int:
    """The value, if it is a number above zero; else another one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default


def names_secret(text: str) -> bool:
    """Whether what is called so may hold a secret."""
    return _SECRET_NAME.search(text) is not None


def shown_path(path: Path) -> str:
    """A path as reports show it: `spec.ports[0].name`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "document"


def shown_value(value: Any) -> str:
    """A value as reports show it: no key, and a text of several lines by its first one."""
    text = as_text(value)
    if " KEY-----" in text:
        return HIDDEN
    first = text.strip().partition("\n")[0]
    return first if first == text.strip() and len(first) <= LONGEST_SHOWN else f"{first[:LONGEST_SHOWN]} {HIDDEN}"


def as_text(value: Any) -> str:
    """A scalar as it is written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
