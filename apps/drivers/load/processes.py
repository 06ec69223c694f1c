"""Processes of its own: how they are started, without settings or secrets, and what they do first."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop

ROOT = Path(__file__).resolve().parents[3]
# What a process gets of the environment: where programs are and which language it speaks, no settings, no secrets.
KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
PRIORITY = -10


def words_of(module: str, *words: str) -> tuple[str, ...]:
    """The command that runs a module of ours, from `ROOT`."""
    return (sys.executable, "-m", module, *words)


def environment() -> dict[str, str]:
    """What a process may know of the one that starts it."""
    return {name: os.environ[name] for name in KEPT if name in os.environ}


def live(work: Coroutine[Any, Any, None]) -> None:
    """Many files, no garbage collected of what was imported, the fast loop; and first in line for the processor.

    A generator that waits for its turn measures itself. Where the priority is not allowed, records say how late it was.
    """
    with suppress(OSError):
        os.nice(PRIORITY)
        if os.getsid(0) == os.getpid():  # Linux weighs sessions against each other; this one is the generator's alone
            Path("/proc/self/autogroup").write_text(str(PRIORITY))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.collect()
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)
