"""Bench of PUSH: from an API call that changes a limit until every node of every region counts against the new one.

`python -m tests.bench.limit_live [--changes 30]`: a demo of its own, its clients over the limit and more load on two
nodes; the running workers are asked for their maps. Goal: within 1 s, no reload, no failed request.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from apps.agent.process.sockets import ask
from deploy.demo.ready import call
from tests.bench.route_live import percentile
from tests.e2e.demo import RunningDemo, running_demo

GOAL_S = 1.0
POOL = "pools/acme/shop"


def operate(demo: RunningDemo, method: str, path: str, body: object = None) -> str:
    """The answer to an operator's call that succeeded."""
    headers = {"Authorization": f"Bearer {demo.keys['operator_token']}", "If-Match": "*"}
    headers["Content-Type"] = "application/json"
    content = "" if body is None else json.dumps(body)
    status, text = call(f"{demo.config.console_url}/api/v1/{path}", method, headers=headers, body=content)
    assert status == 200, text
    return text


def workers(demo: RunningDemo) -> dict[str, str]:
    """Node → the limits that its running worker counts against."""
    sockets = {node.name: demo.config.run / node.name / "run" / "worker.sock" for node in demo.topology.nodes()}
    return {name: ask(path, "show map maps/limits.map") for name, path in sockets.items()}


def change(demo: RunningDemo, value: int) -> float:
    """Seconds from the call until the last node has the limit."""
    begin = time.perf_counter()
    operate(demo, "PATCH", f"{POOL}/limits/us-central1", {"value": value})
    wanted = f" {10 * value}|"
    while not all(wanted in shown for shown in workers(demo).values()):
        if time.perf_counter() - begin > 20:
            raise TimeoutError(f"no node waits 20 s for a limit of {value}")
        time.sleep(0.005)
    return time.perf_counter() - begin


def main() -> int:
    """Change the limit again and again under load; print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=30)
    arguments = parser.parse_args()
    with running_demo() as demo:
        call(f"http://127.0.0.1:{demo.config.client_port}/rate", "PUT", body='{"us-central1": 15}')
        change(demo, 50)
        before = [pid for node in demo.topology.nodes() for pid in demo.pids(f"{node.name}/", "haproxy")]
        assert before, "no HAProxy of the demo was found"
        with demo.watched_traffic("us-1", "eu-2") as failed:
            times = []
            for number in range(arguments.changes):
                times.append(change(demo, 51 + number))
                time.sleep(0.2)
        after = [pid for node in demo.topology.nodes() for pid in demo.pids(f"{node.name}/", "haproxy")]
    result = {
        "changes": len(times),
        "p50_s": round(percentile(times, 0.5), 3),
        "p99_s": round(percentile(times, 0.99), 3),
        "slowest_s": round(max(times), 3),
        "new_workers": len(set(after) - set(before)),
        "failed": len(failed),
        "goal_s": GOAL_S,
    }
    reached = max(times) <= GOAL_S and not failed and before == after
    print(f"a limit is on all nodes after {result['p50_s']} s (p50), {result['slowest_s']} s (slowest)")
    print(f"{result['new_workers']} new workers beside {len(before)}, {len(failed)} failed requests", end=": ")
    print("goal reached" if reached else "goal missed")
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
