"""Bench of OBSERVE: what the counters of many routes on one node cost when one in a hundred moves between readings.

`python -m tests.bench.reading_routes [--routes 1000 10000 100000]`: the agent's part (what it tells of rows that it has
read; not HAProxy's own dump of its table) and the collector's (JSON, looking whether it is sound, differences), both in
this process, in processor time. Megabytes are what this process holds more with the node in the memory of both.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench.tables import facts, table

SHARE, ROUNDS = 100, 5
HEADS = (
    "routes",
    "agent, all, ms",
    "agent, ms",
    "collector, all, ms",
    "collector, ms",
    "all, MB",
    "changes, MB",
    "MB held",
)


def resident_mb() -> float:
    """What this process holds in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def samples(counts: list[int], at: float) -> dict[str, Any]:
    """What an agent reads of its HAProxy."""
    from apps.agent.process.counters import nothing

    rows = [{**nothing("route", f"route-{number}"), "requests": count} for number, count in enumerate(counts)]
    return {"epoch": "7-1", "read_at": at, "probes": {}, "rows": rows, "latency_buckets": {}}


def measure(routes: int) -> dict[str, float]:
    """Processor time, bytes and memory with so many routes."""
    from apps.agent.process.changes import Changes
    from apps.agent.process.totals import Totals
    from apps.drivers.proxy.agent import _rows, read_counter_reading
    from apps.observe.collect.buckets import Gatherer
    from apps.observe.collect.readings import sound

    gc.collect()
    empty, counts, told, gatherer = resident_mb(), [0] * routes, Changes(), Gatherer(1)
    totals = Totals()
    token, spent = "", {"agent": [0.0], "collector": [0.0], "bytes": [0.0]}
    for each in range(ROUNDS + 1):
        for number in range(each, routes, SHARE):
            counts[number] += 1
        found = samples(counts, 2.0 * each)
        moments = [time.process_time()]
        text = json.dumps(told.tell(token, {"clock": 0.0}, totals.add(found))).encode()
        moments.append(time.process_time())
        answer = json.loads(text)
        token, rows = answer["token"], _rows(answer["samples"])
        gatherer.put(2.0 * each, sound(read_counter_reading(answer["samples"], rows, token, answer["base"])))
        gatherer.window()
        moments.append(time.process_time())
        for name, value in zip(spent, (moments[1] - moments[0], moments[2] - moments[1], len(text)), strict=True):
            spent[name].append(value)
        del found, text, answer, rows
    gc.collect()
    held = resident_mb() - empty
    first, later = {k: v[1] for k, v in spent.items()}, {k: sum(v[2:]) / ROUNDS for k, v in spent.items()}
    return {
        "routes": routes,
        "agent_all_ms": first["agent"] * 1000,
        "agent_ms": later["agent"] * 1000,
        "collector_all_ms": first["collector"] * 1000,
        "collector_ms": later["collector"] * 1000,
        "all_mb": first["bytes"] / 1e6,
        "changes_mb": later["bytes"] / 1e6,
        "held_mb": held,
    }


def main() -> int:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--routes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    asked = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "controlplane.settings"
    import django

    django.setup()
    found = [measure(routes) for routes in asked.routes]
    print(facts())
    print(
        table(
            HEADS, [[f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}" for value in each.values()] for each in found]
        )
    )
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
