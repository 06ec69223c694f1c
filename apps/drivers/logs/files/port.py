"""What the store asks of the place where its files lie: a folder or a bucket.

A file never changes: it appears under its name with all of its bytes, or not at all, and goes as a whole. Who lists
names sees with a merged file the notes that were put before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# Longer than any question may take: what fetching for one may take.
LONGEST_S = 60.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that is there; `written` is seconds since 1970 by the clock of the place."""

    name: str
    size: int
    written: float


class Files(Protocol):
    """Files by name, such as `account=17/day=2026-11-23/hour=08/b-n1-7.200.parquet`.

    Reading raises FileNotFoundError for what is gone meanwhile; anything raises Unavailable when the place is away.
    """

    def __hash__(self) -> int:
        """What never changes is remembered by place and name."""

    @property
    def root(self) -> Path:
        """A folder of this machine: of the files themselves, or of copies of them."""

    @property
    def working(self) -> Path:
        """A folder of this machine for what is worth nothing after a crash."""

    @property
    def at_once(self) -> int:
        """How many files are put at once; a place far away answers late, not slowly."""

    @property
    def pause_s(self) -> float:
        """How long to leave the place alone between two times of tidying; asking what there is may cost money."""

    def folders(self) -> list[str]:
        """The folders at the top."""

    def entries(self, under: str, start: str = "", end: str = "") -> list[Entry]:
        """Files below a folder (whose name ends with /) from `start` on and before `end`, in order."""

    def read(self, name: str) -> bytes:
        """The content of a small file."""

    def local(self, entries: Sequence[Entry], seconds: float = LONGEST_S) -> AbstractContextManager[list[Path]]:
        """Where DuckDB finds these files, as long as the context is open."""

    def make_folder(self, folder: str) -> None:
        """Have a folder to put files into, where the place needs that."""

    def put(self, waiting: Path, name: str) -> None:
        """Move a finished file here; when this returns, it survives a crash."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete files one after the other; what is gone already is fine."""

    def remove(self, folder: str, groups: Sequence[Sequence[str]]) -> None:
        """Delete a folder with all of these files: at once, or one group after the other."""

    def only_one(self) -> AbstractContextManager[bool]:
        """True for one process of this machine at a time, False for others, which then leave tidying to it."""
