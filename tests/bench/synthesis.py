"""`python -m tests.bench.synthesis`: what a stack costs: compiled, and synthesized, in time and memory.

Memory is counted twice: the largest process at its peak (VmHWM), and all processes together without counting shared
pages twice (PSS), looked at a hundred times a second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from apps.compiler.compile import compile_stack
from apps.compiler.model.shared import WeightedPool
from tests.pure.aws_fixtures import front, pool, stack
from tests.pure.compiler_fixtures import route

ROOT = Path(__file__).resolve().parents[2]
BACKEND = "http://127.0.0.1:8000/state/1"
LOOK_S = 0.01


@dataclass(frozen=True)
class Cost:
    """What one stack took: `compile_seconds` are the processor's; the rest is the synthesis in a process of its own."""

    routes: int
    compile_seconds: float
    seconds: float
    largest_mb: float
    together_mb: float


def compiled(routes: int) -> tuple[dict[str, Any], float]:
    """A load balancer with so many split routes as the compiler for AWS writes it, and processor seconds of that."""
    shares = (WeightedPool("pool-1", 90), WeightedPool("pool-2", 10))
    given = [route(number, f"h{number}.example.com", "/a", pools=shares) for number in range(1, routes + 1)]
    snapshot = stack(front(*given), pools=(pool(1), pool(2)))
    began = time.process_time()
    found = compile_stack(snapshot)
    seconds = time.process_time() - began
    assert not found.left_out
    return found.output.as_json(), seconds


def measure(routes: int) -> Cost:
    """Compile, then synthesize twice: looking at memory takes time, so time is measured without it."""
    document, compile_s = compiled(routes)
    seconds, _, _ = _synthesized(document, routes, looked_at=False)
    _, largest, together = _synthesized(document, routes, looked_at=True)
    return Cost(routes, round(compile_s, 2), round(seconds, 2), round(largest / 1024, 1), round(together / 1024, 1))


def _synthesized(document: dict[str, Any], routes: int, *, looked_at: bool) -> tuple[float, int, int]:
    """Once, in a process as the driver starts it: seconds, KiB of the largest process, KiB of all together."""
    given = json.dumps({"document": document, "backend": BACKEND}).encode()
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "apps.drivers.infra.synthesize", directory]
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, start_new_session=True)
        assert process.stdin is not None
        process.stdin.write(given)
        process.stdin.close()
        together = largest = 0
        while looked_at and process.poll() is None:
            pids = _pids_of(process.pid)
            together = max(together, sum(_kib(pid, "smaps_rollup", "Pss:") for pid in pids))
            largest = max([largest, *(_kib(pid, "status", "VmHWM:") for pid in pids)])
            time.sleep(LOOK_S)
        assert process.wait() == 0
        seconds = time.monotonic() - began
        made = json.loads((Path(directory) / "stacks" / "stack" / "cdk.tf.json").read_bytes())
        assert len(made["resource"]["aws_lb_listener_rule"]) == routes
    return seconds, largest, together


def _pids_of(session: int) -> list[int]:
    """The processes of a session."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if _is_of(pid, session)]


def _is_of(pid: int, session: int) -> bool:
    try:
        return os.getsid(pid) == session
    except OSError:
        return False


def _kib(pid: int, file: str, word: str) -> int:
    """A number of KiB that the kernel tells of a process; 0 once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(word)), 0)


def main() -> None:
    """Few routes and many."""
    for routes in (1, 300, 3000):
        print(json.dumps(asdict(measure(routes))))


if __name__ == "__main__":
    main()
