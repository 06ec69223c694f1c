"""Files that come along with a configuration, read from a folder: texts, neither large nor many."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

MOST_FILES = 5_000
LARGEST = 16 * 1024 * 1024


class TooMuch(Exception):
    """A folder holds more than an import reads."""


def texts_below(paths: Iterable[Path], endings: tuple[str, ...] = ("",)) -> dict[str, str]:
    """Path → text for each file, and for each file below a folder; what is no text is left out. Raises TooMuch.

    `endings` are those of files of a folder that are read.
    """
    found: dict[str, str] = {}
    for path in paths:
        below = (each for each in sorted(path.rglob("*")) if each.name.endswith(endings)) if path.is_dir() else [path]
        for file in below:
            if not file.is_file() or file.stat().st_size > LARGEST:
                continue
            if len(found) == MOST_FILES:
                raise TooMuch(f"{path} holds more than {MOST_FILES} files; name those that the configuration needs.")
            text = _text(file)
            if text is not None:
                found[str(file)] = text
    return found


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        return None
