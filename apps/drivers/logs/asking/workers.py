"""Processes that ask DuckDB: started, given one question at a time, and killed by the clock.

Whatever is asked, this process reads only lines of JSON, never more than a ceiling of bytes, and goes on.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from apps.drivers.logs import contract
from apps.drivers.logs.asking.pipe import Lender
from apps.drivers.logs.ceilings import MOST_BYTES, Ceilings, Turns
from apps.drivers.logs.contract import LogStoreError, TooLarge, Unavailable, Whose, each_of
from apps.drivers.logs.files.folder import FolderFiles
from apps.drivers.logs.files.port import Files

REPOSITORY = Path(__file__).resolve().parents[4]
KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
MODULE = "apps.drivers.logs.asking"
QUESTIONS_EACH = 500
SPARE = 2


class Workers:
    """The processes of this process; threads may share it, forks make their own."""

    def __init__(self, files: Files, ceilings: Ceilings) -> None:
        self.ceilings = ceilings
        self._files = files
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._turns = Turns(ceilings)
        self._process = os.getpid()

    def ask(self, account: Whose, ask: str, given: Sequence[object], *, alone: bool = False) -> dict[str, Any]:
        """The answer. With `alone` the process is new and ends with the question. Raises LogStoreError."""
        exports = ask == "export"
        seconds = self.ceilings.export_seconds if exports else self.ceilings.seconds
        accounts = each_of(account)
        question = {"ask": ask, "accounts": accounts, "given": list(given), "seconds": seconds}
        worker = None
        with self._turns.taken(account, exports=exports):
            try:
                worker = _Worker(self._files, self.ceilings) if alone else self._take()
                with ExitStack() as held:
                    answer = worker.ask(question, seconds, Lender(self._files, accounts, held))
                if not alone:
                    self._give_back(worker)
                    worker = None
            finally:
                if worker is not None:
                    worker.kill()
        if "error" in answer:
            error = getattr(contract, answer["error"], LogStoreError)
            raise error(answer["message"])
        found: dict[str, Any] = answer["answer"]
        return found

    def close(self) -> None:
        """End the idle processes."""
        while self._idle:
            self._idle.pop().kill()

    def _take(self) -> _Worker:
        with self._lock:
            if self._process != os.getpid():  # a fork leaves them to who started them
                self._idle, self._process = [], os.getpid()
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive():
                    return worker
                worker.kill()
        return _Worker(self._files, self.ceilings)

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if len(self._idle) < SPARE and worker.asked < QUESTIONS_EACH:
                self._idle.append(worker)
                return
        worker.kill()


class _Worker:
    """One process, with neither settings nor secrets of this one."""

    def __init__(self, files: Files, ceilings: Ceilings) -> None:
        self.asked = 0
        where = "here" if isinstance(files, FolderFiles) else "elsewhere"
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(files.root), where, str(ceilings.memory_mb), str(ceilings.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=REPOSITORY,
            env={name: os.environ[name] for name in KEPT if name in os.environ},
            start_new_session=True,
        )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._process.wait()

    def ask(self, question: dict[str, Any], seconds: float, lender: Lender) -> dict[str, Any]:
        """Its answer, or why there is none; after an error the process must not be used again."""
        self.asked += 1
        until = time.monotonic() + seconds
        try:
            answer = self._said(question, until, seconds)
            while "need" in answer:
                answer = self._said(lender.answer(answer, until - time.monotonic()), until, seconds)
        except OSError as error:
            raise Unavailable("The process that searches ended before it was asked: ask again.") from error
        return answer

    def _said(self, words: dict[str, Any], until: float, seconds: float) -> dict[str, Any]:
        """What it says to this."""
        assert self._process.stdin is not None  # noqa: S101 - opened above
        self._process.stdin.write(json.dumps(words).encode() + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._line(until, seconds))
        return answer

    def _line(self, until: float, seconds: float) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - opened above
        number, found, size = self._process.stdout.fileno(), [], 0
        while True:
            if not select.select([number], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TooLarge(f"The question took longer than {seconds:g} seconds: take a shorter time.")
            piece = os.read(number, 2**18)
            if not piece:
                raise TooLarge("The question took more than one may use and was ended: take a shorter time.")
            found.append(piece)
            size += len(piece)
            if piece.endswith(b"\n"):
                return b"".join(found)
            if size > MOST_BYTES:
                raise TooLarge(f"The answer is longer than {MOST_BYTES // 2**20} MB: ask for less.")
