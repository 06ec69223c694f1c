"""Readers of configurations that are forked instead of started: still processes with ceilings, but quick.

A reader that is started spends a third of a second on its imports before it reads anything. Tests of how one is
started, and ended by the clock, start it.
"""

from __future__ import annotations

import atexit
import functools
import pickle
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from apps.importing import apart

# Asked once for each reader: with which words of the command line, and what is on its input.
MAKER = """
import os, pickle, sys, tempfile
from apps.importing import child

while True:
    try:
        words, order = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
        given.write(order)
        given.seek(0)
        reader = os.fork()
        if not reader:
            try:
                os.setsid()
                os.dup2(given.fileno(), 0)
                os.dup2(said.fileno(), 1)
                sys.argv, sys.stdin, sys.stdout = ["", *words], open(0), open(1, "w")
                child.main()
                sys.stdout.flush()
                os._exit(0)
            finally:
                os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1])
        said.seek(0)
        pickle.dump((code, said.read()), sys.stdout.buffer)
        sys.stdout.buffer.flush()
"""


@functools.cache
def _maker() -> subprocess.Popen[bytes]:
    """One for each process of tests; like a reader it gets neither settings nor secrets."""
    made = subprocess.Popen(
        [sys.executable, "-c", MAKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=apart.REPOSITORY,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
    )
    atexit.register(_end, made)
    return made


def _end(maker: subprocess.Popen[bytes]) -> None:
    maker.kill()
    maker.wait()


def _run(command: list[str], *, input: bytes, **_: Any) -> subprocess.CompletedProcess[bytes]:  # noqa: A002
    """In place of `subprocess.run`; a reader ends at its ceiling of processor time, so that nothing else ends it."""
    assert command[:3] == [sys.executable, "-m", apart.MODULE]
    maker = _maker()
    assert maker.stdin is not None
    assert maker.stdout is not None
    pickle.dump((command[3:], input), maker.stdin)
    maker.stdin.flush()
    code, said = pickle.load(maker.stdout)  # noqa: S301 - what we wrote
    return subprocess.CompletedProcess(command, code, said)


@pytest.fixture
def forked_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever imports in this test forks a reader."""
    instead = SimpleNamespace(run=_run, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL, TimeoutExpired=TimeoutError)
    monkeypatch.setattr(apart, "subprocess", instead)
