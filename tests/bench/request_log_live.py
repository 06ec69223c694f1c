"""Bench of the request log end to end: requests that two nodes answered, beside the lines that the store has.

`python -m tests.bench.request_log_live [--seconds 600] [--rate 5000]`: SQLite, Redis, a worker, the log collector and
four agents with HAProxy; wrk at a steady rate against two of the nodes. Nodes have a thread each, since two of them
share two cores here: of several threads one gives a line up while another one is held up in writing its own
(docs/decisions/0026-request-lines-go-through-a-pipe.md); `--threads 2` counts how many. Meanwhile the collector and
the worker, an agent and Redis are killed and started again. The truth is what HAProxy itself counted. All the while
single requests are made and looked up by their id: that is how soon a request is found.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.agent.process.sockets import ask
from apps.drivers.proxy.registry import open_driver
from tests.bench.backends import instant_backends, stop
from tests.bench.route_live import percentile
from tests.e2e.installation import FLEETS, HOST, NODES, Installation, built, route, wait_until

if TYPE_CHECKING:
    from apps.drivers.logs.contract import LogStore

LOADED = ("us-1", "eu-1")
CONNECTIONS = 50
# wrk begins its pause when an answer is there, which takes about so long on two cores that are all busy.
ANSWER_MS = 3
# How long each of them stays away. An agent is started again at once, as systemd does: what its pipe holds is bounded.
AWAY_S = {("collect_logs", "worker"): 5.0, (LOADED[0],): 0.0, ("redis",): 5.0}
GOAL_FOUND_S = 2.0
POOL = "instant"
COUNTED = f"SELECT count(*), count(DISTINCT id) FROM requests WHERE pool = '{POOL}'"  # noqa: S608 - nobody's words


def pacing(rate: int) -> str:
    """A script of wrk by which its connections together ask at least so often."""
    pause_ms = CONNECTIONS * 1000 / rate - ANSWER_MS
    return f'function delay() return {pause_ms:.0f} end\nrequest = function() return wrk.format("GET", "/shop") end\n'


@contextmanager
def load(installation: Installation, rate: int, seconds: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """wrk against each of the loaded nodes."""
    script = installation.folder / "pacing.lua"
    script.write_text(pacing(rate))
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(script), "-H", f"Host: {HOST}"]
    processes = [
        subprocess.Popen([*command, f"http://127.0.0.1:{installation.ports[node]}/"], stdout=subprocess.DEVNULL)
        for node in LOADED
    ]
    try:
        yield processes
    finally:
        for process in processes:
            stop(process)


class Lookups:
    """Makes a request now and then and waits until the store has it."""

    def __init__(self, installation: Installation, store: LogStore, account: int) -> None:
        self._installation, self._store, self._account = installation, store, account
        self._ended = threading.Event()
        self.seconds: list[float] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Lookups:
        self._thread.start()
        return self

    def __exit__(self, *words: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(1):
            made, identifier = time.monotonic(), self._ask()
            while self._store.one(self._account, identifier) is None and time.monotonic() - made < 60:
                time.sleep(0.05)
            self.seconds.append(time.monotonic() - made)

    def _ask(self) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self._installation.ports[LOADED[0]], timeout=10)
        connection.request("GET", "/shop", headers={"host": HOST})
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.headers["x-request-id"]


def handed_on(installation: Installation, pool: str) -> int:
    """Requests that all nodes handed to a pool since HAProxy started; what agents ask their own listeners is none."""
    total = 0
    for node in NODES:
        text = ask(installation.folder / node / "run" / "worker.sock", "show stat")
        for row in csv.DictReader(text.lstrip("# ").splitlines()):
            if row["svname"] == "BACKEND" and row["pxname"] == pool:
                total += int(row["req_tot"])
    return total


def given_up(installation: Installation) -> int:
    """Lines that HAProxy or an agent counted as lost."""
    return sum(open_driver(installation.target(node)).log_segments().dropped for node in NODES)


def interrupt(installation: Installation, seconds: int) -> None:
    """The collector and the worker, an agent and Redis go and come back, a quarter of the time after one another."""
    for names, away_s in AWAY_S.items():
        time.sleep(seconds / 4 - away_s)
        for name in names:
            installation.kill(name)
        time.sleep(away_s)
        for name in names:
            installation.start(name)


def measure(seconds: int, rate: int, threads: int) -> dict[str, Any]:
    """All nodes in sync, then the load."""
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        url = f"sqlite:///{Path(folder) / 'bench.sqlite3'}"
        with built(url, "redis", *NODES) as installation, instant_backends(Path(folder), list(FLEETS)) as ports:
            installation.environment["SPILLWAY_LOGS_URL"] = f"logs+file://{folder}/logs"
            os.environ.update(installation.environment, DJANGO_SETTINGS_MODULE="controlplane.settings")
            import django

            django.setup()
            return _measure(installation, ports, seconds, rate, threads)


def _measure(installation: Installation, ports: list[int], seconds: int, rate: int, threads: int) -> dict[str, Any]:
    from django.conf import settings
    from django.core.management import call_command

    from apps.accounts.models import Account
    from apps.definitions.models import Pool
    from apps.definitions.services import apply_document
    from apps.drivers.logs.registry import open_logs
    from tests.conftest import actor_of

    call_command("migrate", verbosity=0)
    for name in ("worker", "schedule", "collect_logs"):
        installation.start(name)
    operator = actor_of("operator", Account.Kind.OPERATOR)
    document = [*installation.document(), {"kind": "Pool", "name": POOL, "spec": _pool(ports)}]
    for each in document:
        if each["kind"] == "Fleet":
            each["spec"]["node_settings"] = {"threads": threads}
    document.append({"kind": "Route", "name": "shop", "spec": route("/shop", POOL)})
    apply_document(actor=operator, objects=document)
    wait_until(lambda: all(installation.get(node, "/shop")[0] == 200 for node in NODES), "all nodes answer")
    store, account = open_logs(settings.LOGS_URL), operator.account.pk
    reloads = sum(installation.state(node).reloads for node in NODES)
    with Lookups(installation, store, account) as lookups, load(installation, rate, seconds) as processes:
        interrupt(installation, seconds)
        for process in processes:
            process.wait()
    made = handed_on(installation, f"pool-{Pool.objects.get(name=POOL).pk}")
    assert sum(installation.state(node).reloads for node in NODES) == reloads, "counters began anew"
    lines, distinct = counted(store, account, made)
    return {
        "requests": made,
        "rate_rps": round(made / seconds),
        "missing": made - distinct,
        "counted_as_lost": given_up(installation),
        "doubled": lines - distinct,
        "lookups": len(lookups.seconds),
        "found_p50_s": round(percentile(lookups.seconds, 0.5), 2),
        "found_p95_s": round(percentile(lookups.seconds, 0.95), 2),
        "found_max_s": round(max(lookups.seconds), 2),
    }


def counted(store: LogStore, account: int, made: int) -> tuple[int, int]:
    """Lines and different ids in the store, once all requests are there or 60 s have passed."""
    deadline = time.monotonic() + 60
    while True:
        end = datetime.now(UTC)
        answer = store.sql(account, COUNTED, start=end - timedelta(hours=2), end=end + timedelta(minutes=1))
        lines, distinct = (int(str(value)) for value in answer.rows[0])
        if distinct >= made or time.monotonic() > deadline:
            return lines, distinct
        time.sleep(1)


def _pool(ports: list[int]) -> dict[str, Any]:
    backends = [
        {"region": region, "servers": [{"name": "s1", "address": "127.0.0.1", "port": port}]}
        for region, port in zip(FLEETS, ports, strict=True)
    ]
    return {"protocol": "http", "backends": backends}


def main() -> int:
    """Print a table and one line of JSON; 1 when a line is missing or doubled, or found late."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--threads", type=int, default=1)
    words = parser.parse_args()
    results = measure(words.seconds, words.rate, words.threads)
    for name, value in results.items():
        print(f"{name:20} {value:12}")
    print(json.dumps(results, sort_keys=True))
    good = not results["missing"] and not results["doubled"] and results["found_p95_s"] <= GOAL_FOUND_S
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
