"""Bench of the API under many hands: 10 000 routes of 100 customers, 32 clients, PostgreSQL that syncs to disk.

`python -m tests.bench.many_customers [--seconds 20] [--rate 1 2]`: gunicorn with two processes; each client is
another customer's pipeline that lists its routes and changes one of them in turn, at a fixed rate (requests/s per
client). Latency counts from the instant at which a request was due. No worker runs: what is measured is the API.
Goals: list p95 below 100 ms and write p95 below 150 ms at one request per second and client.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests import waiting
from tests.bench.tables import facts, table
from tests.ports import spare_port
from tests.servers import postgresql, redis

ROUTES, ACCOUNTS, CLIENTS = 10_000, 100, 32
GOALS_MS = {"list": 100.0, "write": 150.0}
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
TUTORIAL = DEPLOY / "examples" / "tutorial.yaml"
# What every client sends in turn: three lists for one write, as pipelines and dashboards do.
TURNS = ("list", "list", "list", "write")


class Client(threading.Thread):
    """One customer's pipeline: a kept connection, a token, and a diary of (what, seconds, status)."""

    def __init__(
        self, port: int, account: str, token: str, *, rate: float, until: float, offset: float, turn: int
    ) -> None:
        super().__init__(daemon=True)
        self.account, self.rate, self.until, self.offset = account, rate, until, offset
        self.turn = turn
        self.diary: list[tuple[str, float, int]] = []
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def run(self) -> None:
        """Ask at every due instant; whoever is late asks at once and the delay counts."""
        document = self._ask("GET", f"/api/v1/routes/{self.account}/shop-1")[1]
        due, turn = time.monotonic() + self.offset, self.turn
        while due < self.until:
            time.sleep(max(0.0, due - time.monotonic()))
            what = TURNS[turn % len(TURNS)]
            status = self._list() if what == "list" else self._write(document, turn)
            self.diary.append((what, time.monotonic() - due, status))
            due, turn = due + 1 / self.rate, turn + 1

    def _list(self) -> int:
        return self._ask("GET", "/api/v1/routes?limit=100")[0]

    def _write(self, document: dict[str, object], turn: int) -> int:
        spec = {**dict(document["spec"]), "methods": [["GET"], ["POST"]][turn // len(TURNS) % 2]}  # type: ignore[call-overload]
        body = json.dumps({"spec": spec}).encode()
        return self._ask("PUT", f"/api/v1/routes/{self.account}/shop-1", body, {"If-Match": "*"})[0]

    def _ask(
        self, method: str, path: str, body: bytes | None = None, more: dict[str, str] | None = None
    ) -> tuple[int, dict[str, object]]:
        self._connection.request(method, path, body, self._headers | (more or {}))
        answer = self._connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content) if content else {}


def fill() -> dict[str, str]:
    """The tutorial and the routes; a token of each of the first customers by account."""
    from django.core.management import call_command
    from django.db import connection

    from apps.accounts.bootstrap import found_operator, replace_token
    from apps.accounts.models import Account
    from apps.audit.chain import link_pending

    call_command("migrate", verbosity=0)
    found_operator(username="bench", password="a password of the bench")
    call_command("apply", str(TUTORIAL), verbosity=0)
    call_command("seed", routes=ROUTES, accounts=ACCOUNTS, verbosity=0)
    # What the sweep and the database do by themselves in the minutes after so many changes.
    while link_pending():
        pass
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    chosen = Account.objects.filter(name__startswith="customer-").order_by("name")[:CLIENTS]
    return {account.name: replace_token(account=account, name="pipeline") for account in chosen}


@contextmanager
def console(port: int) -> Iterator[None]:
    """Gunicorn as in production, where `deploy/systemd` says how many processes and threads."""
    command = [sys.executable, "-m", "gunicorn", "--config", "python:controlplane.web_server"]
    command += ["--bind", f"127.0.0.1:{port}"]
    unit = (DEPLOY / "systemd" / "spillway-web.service").read_text()
    threads = re.findall(r"SPILLWAY_WEB_THREADS=(\d+)", unit)[0]
    command += [*re.findall(r"--workers \d+", unit)[0].split(), "--threads", threads]
    command += ["--log-level", "error", "--keep-alive", "60"]
    server = subprocess.Popen(command, env=os.environ | {"SPILLWAY_WEB_THREADS": threads})
    try:
        waiting.until(lambda: listens(port))
        yield
    finally:
        server.terminate()
        server.wait(20)


def listens(port: int) -> bool:
    """Whether a process takes connections there."""
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


def load(port: int, tokens: dict[str, str], *, rate: float, seconds: float) -> dict[str, dict[str, float]]:
    """Milliseconds per kind of request, and how many were answered otherwise than with 200."""
    until = time.monotonic() + seconds
    clients = [
        Client(port, account, token, rate=rate, until=until, offset=index / len(tokens) / rate, turn=index)
        for index, (account, token) in enumerate(tokens.items())
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    spent: dict[str, list[float]] = defaultdict(list)
    wrong = 0
    for what, elapsed, status in (entry for client in clients for entry in client.diary):
        spent[what].append(1000 * elapsed)
        wrong += status != 200
    found = {what: _figures(times) for what, times in sorted(spent.items())}
    return found | {"all": {"count": sum(map(len, spent.values())), "other_answers": wrong}}


def _figures(times: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100)
    return {"count": len(times), "p50_ms": cuts[49], "p95_ms": cuts[94], "p99_ms": cuts[98], "max_ms": max(times)}


def main() -> int:
    """Print a table per rate and one line of JSON; 1 when a goal is missed at the first rate."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rate", type=float, nargs="+", default=[1.0])
    options = parser.parse_args()
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="sw-"))
        folders = [Path(directory) / name for name in ("database", "redis")]
        for folder in folders:
            folder.mkdir()
        Path(directory).chmod(0o755)
        os.environ["SPILLWAY_DATABASE_URL"] = stack.enter_context(postgresql(folders[0], durable=True))
        os.environ["SPILLWAY_REDIS_URL"] = stack.enter_context(redis(folders[1]))
        os.environ |= {"SPILLWAY_VAR": directory, "SPILLWAY_LOG_LEVEL": "ERROR"}
        os.environ["DJANGO_SETTINGS_MODULE"] = "controlplane.settings"
        import django

        django.setup()
        tokens, port = fill(), spare_port()
        print(facts())
        stack.enter_context(console(port))
        load(port, tokens, rate=1, seconds=10)  # processes, connections and caches are warm afterwards
        found = {f"{rate:g}/s": load(port, tokens, rate=rate, seconds=options.seconds) for rate in options.rate}
    rows = [
        [
            rate,
            what,
            f"{each['count']:.0f}",
            *(f"{each[name]:.0f}" for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")),
        ]
        for rate, kinds in found.items()
        for what, each in kinds.items()
        if what != "all"
    ]
    print(table(["each client", "request", "count", "p50 ms", "p95 ms", "p99 ms", "max ms"], rows))
    print(json.dumps(found))
    first = next(iter(found.values()))
    good = all(first[what]["p95_ms"] < goal for what, goal in GOALS_MS.items()) and not first["all"]["other_answers"]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
