"""The reader: moves lines from HAProxy's pipe into segments, in a thread of its own.

It looks at the pipe from time to time instead of waiting at it: nobody is woken by a line, and one call of the kernel
moves hundreds of them. They go from the pipe into a second one and from there into the file, inside the kernel, so a
killed agent loses none. The second pipe is there because the first one is locked while something is moved: HAProxy must
not wait for a disk.
"""

from __future__ import annotations

import os
import re
import select
import threading
import time
from collections.abc import Callable
from pathlib import Path

from apps.agent.events import Events
from apps.agent.log.segments import LARGEST, Segments

NAP = 0.05
IDLE = 0.5
MUCH = 256 * 1024  # in one look at the pipe: it fills fast
SHORT = 128 * 1024
ASK_EVERY = 5.0
SAID_EVERY = 60.0
WORKER = re.compile(r"^(Pid|Start_time_sec|DroppedLogs): (\d+)", re.MULTILINE)


class Reader:
    """HAProxy's pipe through a second one into a folder of segments; `ask_worker` asks HAProxy's Runtime API."""

    def __init__(
        self, pipes: tuple[int, int], segments: Segments, events: Events, ask_worker: Callable[[str], str]
    ) -> None:
        self._pipe, self._between = pipes
        self._segments = segments
        self._events = events
        self._ask_worker = ask_worker
        self._ended = threading.Event()
        self._woken, self._wake = os.pipe()  # wakes the thread that waits for lines
        self._raw, self._size = _continue(segments.raw)
        self._close_at = time.monotonic() if self._size else 0.0
        self._ask_at = 0.0
        self._said = 0.0
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Take what is there, close the segment, end."""
        self._ended.set()
        os.write(self._wake, b"\0")
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        looks = select.poll()
        looks.register(self._pipe, select.POLLIN)
        looks.register(self._woken, select.POLLIN)
        while not self._ended.is_set():
            until = max(0.0, self._close_at - time.monotonic()) if self._close_at else IDLE
            looks.poll(until * 1000)
            moved = self.look()
            if moved:
                self._ended.wait(NAP / 10 if moved >= MUCH else NAP)
        self.look(last=True)

    def look(self, *, last: bool = False) -> int:
        """Move what waits in the pipe; close the segment when it is due. Answers with the bytes that came."""
        try:
            moved = self._take()
            due = self._close_at and time.monotonic() >= self._close_at
            if self._size and (due or last or self._size >= LARGEST):
                self._close()
        except OSError as error:
            moved = self._discard(error)
        return moved

    def _take(self) -> int:
        moved = self._move(max(LARGEST - self._size, 4096))
        if moved and not self._close_at:
            self._close_at = time.monotonic() + self._segments.open_for
        self._size += moved
        return moved

    def _close(self) -> None:
        following = self._segments.close_raw()
        os.close(self._raw)
        self._raw, self._size = _continue(following)
        self._close_at = time.monotonic() + self._segments.open_for if self._size else 0.0
        if time.monotonic() >= self._ask_at:
            self._ask_at = time.monotonic() + ASK_EVERY
            self.count_lost()

    def count_lost(self) -> None:
        """Ask HAProxy how many lines it gave up: the pipe was full, or another thread was just writing."""
        try:
            found = dict(WORKER.findall(self._ask_worker("show info")))
        except OSError:
            return
        worker = f"{found.get('Pid', '')}-{found.get('Start_time_sec', '')}"
        self._segments.take_over_count(worker, int(found.get("DroppedLogs", 0)))

    def _discard(self, error: OSError) -> int:
        """The disk takes nothing: the pipe is emptied all the same, and what was in it is counted."""
        if time.monotonic() - self._said > SAID_EVERY:
            self._events.add("error", f"request lines are lost: {error}")
            self._said = time.monotonic()
        content = _read(self._between) + _read(self._pipe)
        self._segments.drop(content.count(b"\n"))
        self._ended.wait(NAP)
        return len(content)

    def _move(self, most: int) -> int:
        """Move up to so many bytes and what is on its way already; 0 when there is nothing.

        Where Python has no splice a moment is left in which a kill loses what was read.
        """
        if not hasattr(os, "splice"):
            return _write(self._raw, _read(self._pipe))
        _splice(self._pipe, self._between, most)
        moved = 0
        while some := _splice(self._between, self._raw, LARGEST):
            moved += some
        return moved


def _continue(raw: Path) -> tuple[int, int]:
    """The piece to write into, at its end, and what is in it."""
    descriptor = os.open(raw, os.O_WRONLY)
    return descriptor, os.lseek(descriptor, 0, os.SEEK_END)


def _splice(source: int, target: int, most: int) -> int:
    try:
        return int(os.splice(source, target, most, flags=os.SPLICE_F_NONBLOCK))
    except BlockingIOError:
        return 0


def _read(pipe: int) -> bytes:
    """What is there, up to a bound that keeps the pipe locked for microseconds only."""
    try:
        return os.read(pipe, SHORT)
    except BlockingIOError:
        return b""


def _write(file: int, content: bytes) -> int:
    written = 0
    while written < len(content):
        written += os.write(file, content[written:])
    return written
