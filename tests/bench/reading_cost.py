"""Bench of OBSERVE: processor time of a collector for one read of a node, part by part.

`python -m tests.bench.reading_cost`: a light agent over mutual TLS with one object, and one with 301, of which 30 have
traffic. Only processor time of this process is counted, which other work on the machine changes little.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.light_agents import LightNode, write
from tests.bench.tables import facts, table
from tests.ports import spare_port

ROOT = Path(__file__).resolve().parents[2]
TIMES = 40


def cost_ms(work: Callable[[], object], times: int = TIMES) -> float:
    """Mean processor time of one call, after one that does not count."""
    work()
    began = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - began) / times * 1000


def measure(folder: Path, nodes: list[LightNode]) -> dict[str, float]:
    """Milliseconds by what is done."""
    from apps.core.clock import now
    from apps.drivers.proxy import connections
    from apps.drivers.proxy.agent import AgentDriver
    from apps.drivers.proxy.contract import NodeTarget
    from apps.observe.collect.readings import Reading, sound
    from apps.observe.collect.recorder import Recorder
    from apps.observe.live import store

    pem = [str(folder / name) for name in ("ca.pem", "console.pem", "console.key")]
    small, large = (AgentDriver(NodeTarget(each.name, f"https://127.0.0.1:{each.port}", *pem)) for each in nodes)

    def anew(context: bool) -> None:
        for ask in (small.read_state, small.read_counters):
            connections.CONNECTIONS.close()
            if context:
                connections._context.cache_clear()
            ask()

    found = {
        "state and samples, one object, kept connection": cost_ms(lambda: (small.read_state(), small.read_counters())),
        "the same on two new connections": cost_ms(lambda: anew(context=False)),
        "the same, each with a context of its own": cost_ms(lambda: anew(context=True)),
        "state and samples, 301 objects, kept connection": cost_ms(lambda: (large.read_state(), large.read_counters())),
    }
    state, reading, recorder = large.read_state(), large.read_counters(), Recorder()
    waiting = []
    for _ in range(TIMES + 1):
        waiting.append(large.read_counters())
        time.sleep(0.11)

    def gather() -> None:
        moment = now()
        recorder.gather([Reading(1, moment, moment, state, waiting.pop(0))])

    found["look whether they are sound"] = cost_ms(lambda: sound(reading))
    found["differences, bucket and window"] = cost_ms(gather)
    rows = recorder.windows[1].values()
    found["live numbers as text"] = cost_ms(lambda: [store.encode(each) for each in rows])
    found["counters for metrics as text"] = cost_ms(lambda: store.totals_of(reading))
    return found


def main() -> int:
    """Print a table and one line of JSON."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "controlplane.settings"
    import django

    django.setup()
    objects = [("frontend", "lst-1", "")]
    for number in range(1, 101):
        pool = f"pool-{number}"
        objects += [("backend", pool, ""), *(("server", f"srv-{2 * number + at}", pool) for at in (0, 1))]
    nodes = [LightNode("small", spare_port(), objects[:1], 1), LightNode("large", spare_port(), objects, 30)]
    with tempfile.TemporaryDirectory(prefix="sw-") as name:
        folder = Path(name)
        write(folder, nodes)
        command = [sys.executable, "-m", "tests.bench.light_agents", name, "0", "2"]
        agents = subprocess.Popen(command, cwd=ROOT)
        try:
            while not (folder / f"ready-{agents.pid}").exists():
                time.sleep(0.05)
            found = measure(folder, nodes)
        finally:
            agents.kill()
            agents.wait()
    print(facts())
    print(table(("what", "ms of processor time"), [(what, f"{ms:.2f}") for what, ms in found.items()]))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
