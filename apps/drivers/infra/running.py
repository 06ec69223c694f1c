"""One command of Terraform: started by a guard, heard while it works, interrupted gently, killed at last.

Its words go to files rather than pipes: a worker that dies must not take an apply with it, which would lose what the
cloud has just made. What the guard does then stands in process_guard.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from apps.drivers.infra.contract import InfraError, MayGoOn, Stopped

POLL_S = 0.05
ASK_S = 0.5
# How long Terraform may take to end what it has begun: a load balancer of a cloud is minutes in the making.
END_S = 300.0
GUARD = Path(__file__).with_name("process_guard.py")

HeardLine = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of a command."""

    code: int
    out: bytes
    errors: bytes


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs commands in one directory with one environment; `may_go_on` is asked twice a second.

    `outlives` is the address of the state where the command must not end with its worker.
    """

    binary: str
    directory: Path
    environment: Mapping[str, str]
    may_go_on: MayGoOn
    longest_s: float
    end_s: float = END_S
    outlives: str = ""

    def run(self, *arguments: str, heard: HeardLine | None = None) -> Finished:
        """Run to the end. Raises Stopped when it was interrupted, InfraError after `longest_s`."""
        out, errors = self.directory / "out.log", self.directory / "errors.log"
        with out.open("wb") as told, errors.open("wb") as complained, out.open("rb") as reading:
            process = self._start(arguments, told, complained)
            try:
                why = self._follow(process, reading, heard)
            except BaseException:
                if not self.outlives:
                    self._end(process)
                raise
            if why is not None:
                self._end(process)
                _read_lines(reading, heard)
                raise why
            _read_lines(reading, heard)
        return Finished(process.returncode, out.read_bytes(), errors.read_bytes())

    def _start(self, arguments: Sequence[str], out: BinaryIO, errors: BinaryIO) -> subprocess.Popen[bytes]:
        how = ["apply", self.outlives] if self.outlives else ["plan", str(os.getpid())]
        guard = [sys.executable, "-I", "-S", str(GUARD), *how]
        try:
            return subprocess.Popen(
                [*guard, self.binary, *arguments],
                cwd=self.directory,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise InfraError(f"{self.binary} cannot be started: {error.strerror}.") from None

    def _follow(
        self, process: subprocess.Popen[bytes], reading: BinaryIO, heard: HeardLine | None
    ) -> InfraError | None:
        """Until the end, or the reason for which it must end."""
        began = asked = time.monotonic()
        while process.poll() is None:
            _read_lines(reading, heard)
            moment = time.monotonic()
            if moment - asked >= ASK_S:
                asked = moment
                if not self.may_go_on():
                    return Stopped("Stopped before the end; what was begun was finished.")
            if moment - began > self.longest_s:
                return InfraError(f"Terraform took longer than {self.longest_s:.0f} s and was stopped.")
            time.sleep(POLL_S)
        return None

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Ask once, wait, and kill whatever is left of its group."""
        if process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + self.end_s
        while process.poll() is None and time.monotonic() < deadline:
            self.may_go_on()  # keeps the lease of whoever still has it, while Terraform writes what it has made
            time.sleep(POLL_S)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _read_lines(reading: BinaryIO, heard: HeardLine | None) -> None:
    """Hand out whole lines that came since; a half one is left for the next time."""
    if heard is None:
        return
    while True:
        at = reading.tell()
        line = reading.readline()
        if not line.endswith(b"\n"):
            reading.seek(at)
            return
        heard(line)
