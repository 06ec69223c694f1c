"""How slow the processors of a run are: machines of one type do the same work in half or twice the time."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# What a test does most: it runs Python that it has to read and compile first, in memory that is new to the process.
WORK = "import asyncio, http.server, pydoc, unittest.mock, xml.dom.minidom, xmlrpc.client, _pydecimal"
# Processor seconds of one turn where the budgets of the suite were set, with Debian's Python 3.11. A Python compiled
# without optimisations takes 0.55 on the same cores, and 1.30 on slower ones of the same type.
REFERENCE_S = 0.4
TURNS = 3


def slowness(cores: int) -> float:
    """Processor seconds of a fixed piece of work on all cores at once, as a multiple of the reference; at least 1."""
    before = _of_ended_children()
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(_turn, range(TURNS * cores)))
    return max((_of_ended_children() - before) / (TURNS * cores) / REFERENCE_S, 1.0)


def _turn(_: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-I", "-X", f"pycache_prefix={folder}", "-c", WORK], check=True)


def _of_ended_children() -> float:
    times = os.times()
    return times.children_user + times.children_system
