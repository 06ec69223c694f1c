"""Segments on disk: closed pieces of the log that wait until the console has stored them.

    <start>-<n>.raw          the piece that is being written; lines of the pipe land in it by one call of the kernel
    <start>-<n>.<lines>.z    a closed one, compressed; its id is `<start>-<n>`
    state.json               how many lines were dropped, and up to where a worker's own count was taken over

`<start>` are the nanoseconds of the agent's start in hex, so an id is never used twice and names sort by age. A raw
piece that a killed agent left is closed by the next one; a closed segment that cannot be read is dropped and counted.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apps.agent.release.releases import make_dir, write_json

CLOSED = re.compile(r"([0-9a-f]{16}-[0-9]{1,12})\.([0-9]{1,9})\.z")
LARGEST = 1024 * 1024  # of a segment's lines
MOST_NAMED = 1000  # segments in one answer
LEVEL = 1
OPEN_FOR, OPEN_FOR_LONG = 0.5, 60.0  # seconds from a segment's first line to its end
MANY = 100  # segments that wait: nobody is fetching them, so they need not be small


@dataclass(frozen=True)
class Closed:
    """A segment that waits: its lines, its bytes on disk, when it was closed."""

    lines: int
    size: int
    at: float


class Segments:
    """What waits, oldest first; beyond `ceiling` bytes the oldest are dropped. Safe between threads."""

    def __init__(self, folder: Path, ceiling: int) -> None:
        self.off = ""
        self._folder = folder
        self._ceiling = ceiling
        self._changed = threading.Condition()
        self._closed: dict[str, Closed] = {}
        self._total = 0
        self._start, self._number = f"{time.time_ns():016x}", 0
        make_dir(folder, -1)
        self._state = _read_state(folder / "state.json")
        self.raw = self._recover()

    # What the agent writes

    @property
    def open_for(self) -> float:
        """How long a segment stays open."""
        return OPEN_FOR if len(self._closed) < MANY else OPEN_FOR_LONG

    def close_raw(self) -> Path:
        """Turn the raw piece into a segment; answers with the next one, which begins with a line that is not whole."""
        raw, content = self.raw, self.raw.read_bytes()
        end = content.rfind(b"\n") + 1
        following = self._next_raw(content[end:])
        try:
            self._keep(raw, content[:end])
        except OSError:
            following.unlink(missing_ok=True)
            raise
        raw.unlink(missing_ok=True)
        self.raw = following
        return following

    def drop(self, lines: int) -> None:
        """Lines are lost; the count is on disk before anything else goes."""
        if lines:
            with self._changed:
                self._state["dropped"] += lines
                self._save()

    def take_over_count(self, worker: str, lost: int) -> None:
        """HAProxy's worker says how many lines it could not write since it was started."""
        with self._changed:
            before = self._state["counted"] if self._state["worker"] == worker else 0
            if lost > before:
                self._state.update(dropped=self._state["dropped"] + lost - before, worker=worker, counted=lost)
                self._save()

    # What the console asks

    def waiting(self, wait: float) -> dict[str, Any]:
        """GET /v1/log/segments: at once when there is one, else when one is closed or after `wait` seconds."""
        with self._changed:
            if not self._closed and wait > 0:
                self._changed.wait(wait)
            named = [
                {"id": name, "lines": each.lines, "bytes": each.size}
                for name, each in list(self._closed.items())[:MOST_NAMED]
            ]
            first = next(iter(self._closed.values()), None)
            age = max(0.0, time.time() - first.at) if first else 0.0
            return {"segments": named, "dropped": self._state["dropped"], "oldest": round(age, 3), "off": self.off}

    def read(self, name: str) -> bytes | None:
        """The compressed lines; a segment that is damaged is dropped here."""
        with self._changed:
            found = self._closed.get(name)
        if found is None:
            return None
        try:
            content = self._path(name, found).read_bytes()
            zlib.decompress(content)
        except (OSError, zlib.error):
            self.drop(found.lines)
            self.acknowledge(name)
            return None
        return content

    def acknowledge(self, name: str) -> bool:
        """Forget a segment; False when there is none of this name."""
        with self._changed:
            found = self._closed.pop(name, None)
            if found is None:
                return False
            self._total -= found.size
        self._path(name, found).unlink(missing_ok=True)
        return True

    # Inside

    def _path(self, name: str, closed: Closed) -> Path:
        return self._folder / f"{name}.{closed.lines}.z"

    def _next_raw(self, begins_with: bytes) -> Path:
        self._number += 1
        path = self._folder / f"{self._start}-{self._number:09}.raw"
        path.write_bytes(begins_with)
        return path

    def _keep(self, raw: Path, lines: bytes) -> None:
        """Compress and give it its name, which is when it exists."""
        if not lines:
            return
        content = zlib.compress(lines, LEVEL)
        closed = Closed(lines.count(b"\n"), len(content), time.time())
        draft, path = raw.with_suffix(".new"), self._path(raw.stem, closed)
        self._make_room(closed.size)
        draft.write_bytes(content)
        draft.replace(path)
        self._add(raw.stem, closed)

    def _add(self, name: str, closed: Closed) -> None:
        with self._changed:
            self._closed[name] = closed
            self._total += closed.size
            self._changed.notify_all()

    def _make_room(self, coming: int) -> None:
        while True:
            with self._changed:
                if self._total + coming <= self._ceiling or not self._closed:
                    return
                oldest = next(iter(self._closed))
                lines = self._closed[oldest].lines
            self.drop(lines)
            self.acknowledge(oldest)

    def _recover(self) -> Path:
        """Find what an agent before left; its raw pieces become segments."""
        for path in sorted(self._folder.iterdir()):
            found = CLOSED.fullmatch(path.name)
            if found:
                told = path.stat()
                self._add(found.group(1), Closed(int(found.group(2)), told.st_size, told.st_mtime))
                path.with_name(f"{found.group(1)}.raw").unlink(missing_ok=True)
            elif path.suffix == ".new":
                path.unlink()
        tail = b""
        for path in sorted(self._folder.glob("*.raw")):
            content = path.read_bytes()
            end = content.rfind(b"\n") + 1
            tail = content[end:]
            try:
                self._keep(path, content[:end])
            except OSError:  # a full disk must not keep the agent from its start
                self.drop(content.count(b"\n"))
            path.unlink()
        self._make_room(0)
        return self._next_raw(tail)

    def _save(self) -> None:
        with contextlib.suppress(OSError):  # a full disk: the count goes on in memory
            write_json(self._folder / "state.json", self._state)


def _read_state(path: Path) -> dict[str, Any]:
    """The counts of before; a missing or damaged file begins at zero."""
    state: dict[str, Any] = {"dropped": 0, "worker": "", "counted": 0}
    try:
        found = json.loads(path.read_text())
        state.update({key: found[key] for key in state if type(found[key]) is type(state[key])})
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return state
