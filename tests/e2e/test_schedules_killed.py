"""Schedules with real processes: schedulers, workers and the database die, and every instant has its one effect."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]  # minutes of kills
ROOT = Path(__file__).resolve().parents[2]


def test_nothing_is_missed_or_doubled_while_everything_is_killed() -> None:
    """Few kills; `make bench-schedules` has two hundred. The control: without the key of the rows it doubles."""
    command = [sys.executable, "-m", "tests.bench.schedules", "--quick"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["kills"]["expected"] == 240
    assert (found["kills"]["missed"], found["kills"]["doubled"], found["kills"]["unfinished"]) == (0, 0, 0)
    assert found["control_doubled"] > 0
