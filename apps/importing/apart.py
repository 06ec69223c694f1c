"""Reads a configuration in a process of its own: no file keeps a thread, the memory or the lock of this process."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from apps.importing.contract import Import
from apps.importing.formats import Format
from apps.importing.options import ImportOptions
from apps.importing.verdicts import LineReport, Verdict

REPOSITORY = Path(__file__).resolve().parents[2]
MODULE = "apps.importing.child"
# A file of 10 000 hosts takes longer and belongs to the console; one of 5 000 takes two seconds.
PROCESSOR_S, MEMORY_MB = 8, 1024
# Where the machine is busy the same work takes longer, but nobody waits for ever.
WAIT_S = 25
# Of the 4 threads of a process.
AT_ONCE = 1

_turns = threading.BoundedSemaphore(AT_ONCE)


class TooMuchWork(Exception):
    """The file takes more time or memory than a request may use."""


class Busy(Exception):
    """As many imports as may be are under way."""


class Unreadable(Exception):
    """The reader failed; `kind` is the class of the error."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@contextmanager
def turn() -> Iterator[None]:
    """For one import from reading to its plan, so that imports never have every thread. Raises Busy."""
    if not _turns.acquire(blocking=False):
        raise Busy
    try:
        yield
    finally:
        _turns.release()


def read_apart(
    form: Format, text: str, files: Mapping[str, str], options: ImportOptions, *, processor_s: int = PROCESSOR_S
) -> Import:
    """What the reader of the format answers; its report has no secrets. Raises TooMuchWork, Unreadable."""
    order = {"format": form.name, "text": text, "files": dict(files), "options": asdict(options)}
    return _import(_answer(json.dumps(order).encode(), processor_s))


def _answer(order: bytes, processor_s: int) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [sys.executable, "-m", MODULE, str(processor_s), str(MEMORY_MB)],
            input=order,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=REPOSITORY,
            env={"PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,
            timeout=WAIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TooMuchWork from error
    if done.returncode < 0:  # the kernel ended it
        raise TooMuchWork
    if done.returncode:
        raise Unreadable("no answer")
    answer: dict[str, Any] = json.loads(done.stdout)
    if answer.get("error") == "MemoryError":
        raise TooMuchWork
    if "error" in answer:
        raise Unreadable(answer["error"])
    return answer


def _import(answer: Mapping[str, Any]) -> Import:
    report = tuple(
        LineReport(
            **line
            | {
                "verdict": Verdict(line["verdict"]),
                "reasons": tuple(line["reasons"]),
                "objects": tuple(line["objects"]),
            }
        )
        for line in answer["report"]
    )
    return Import(tuple(answer["documents"]), report, tuple(answer["needs"]))
