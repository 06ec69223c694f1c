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
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.light_agents import LightNode, write
from tests.bench.tables import facts, table
from tests.ports import spare_port

if TYPE_CHECKING:
    from apps.drivers.proxy.agent import AgentDriver

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
    from apps.drivers.proxy import connections
    from apps.drivers.proxy.agent import AgentDriver
    from apps.drivers.proxy.contract import NodeTarget

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
    return found | measure_changes(large)


def measure_changes(large: AgentDriver) -> dict[str, float]:
    """The same of what changed alone, and of what the collector makes of it."""
    from apps.core.clock import now
    from apps.drivers.proxy.contract import Observation, Seen
    from apps.observe.collect.readings import Reading, sound
    from apps.observe.collect.recorder import Recorder
    from apps.observe.live import store

    seen: Seen | None = None

    def observe() -> Observation:
        nonlocal seen
        observed = large.observe(seen)
        assert observed.counters is not None
        seen = Seen(observed.state, observed.counters.token)
        return observed

    found = {"the changes of 301 objects, 30 with traffic, in one question": cost_ms(observe)}
    seen, waiting = None, []
    for number in range(2 * TIMES):
        counters = observe().counters
        assert counters is not None
        waiting.append(replace(counters, read_at=2.0 * number))  # as if two seconds apart
        time.sleep(0.11)
    changes = waiting[-1]
    found["look whether they are sound"] = cost_ms(lambda: sound(changes))
    recorder, start, ticks = Recorder(), now(), iter(range(1000))

    def gather() -> None:
        moment = start + next(ticks) * timedelta(seconds=2)
        recorder.gather([Reading(1, moment, moment, state, waiting.pop(0))])

    state = large.read_state()
    for _ in range(10):
        gather()
    found["differences and bucket"] = cost_ms(gather)
    gatherer = recorder.gatherers[1]
    gatherer.change(0.0, changes)
    found["what live numbers show otherwise"] = cost_ms(lambda: gatherer.change(0.0, changes))
    change = gatherer.change(0.0, changes)
    rows = change.window.rows.values()
    found["live numbers as text"] = cost_ms(lambda: [store.encode(each) for each in rows])
    found["counters for metrics as text"] = cost_ms(lambda: store.totals_of(change.counters))
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
