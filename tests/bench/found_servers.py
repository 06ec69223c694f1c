"""Bench of sources of servers: from a new DNS record to the first response of the new server, through both nodes.

`python -m tests.bench.found_servers [--changes 30]`: a real name server, SQLite, Redis, one Celery worker, the
scheduler, two agents with HAProxy. A source is asked every two seconds, so half of that is waited for on average.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.bench.route_live import percentile
from tests.e2e.installation import HOST, Installation, built, wait_until
from tests.e2e.name_server import NameServer, name_server
from tests.ports import spare_port

NAME = "app.internal"
FIRST, SECOND, NEW = "127.0.0.1", "127.0.0.2", "127.0.0.3"
NODES = ("us-1", "us-2")


class _Answer(BaseHTTPRequestHandler):
    """Its address."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """200."""
        body = str(self.connection.getsockname()[0]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
        """Quiet."""


class _Server(ThreadingHTTPServer):
    """Connections that a HAProxy cut while it ended are nothing to report."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Quiet."""


def serve(address: str, port: int) -> ThreadingHTTPServer:
    """A server at an address of this machine."""
    server = _Server((address, port), _Answer)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server


def answered_by(installation: Installation, node: str) -> str:
    """The server behind one new connection to a node; empty when nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", installation.ports[node], timeout=5)
    try:
        connection.request("GET", "/", headers={"host": HOST})
        return connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()


def until(installation: Installation, *, there: bool) -> float:
    """The instant at which both nodes send requests to the new server, or none does for so many in a row."""
    for node in NODES:
        deadline, without = time.perf_counter() + 60, 0
        while without < 12 if not there else answered_by(installation, node) != NEW:
            without = 0 if not there and answered_by(installation, node) == NEW else without + 1
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{node} never noticed")
            time.sleep(0.005)
    return time.perf_counter()


def document(installation: Installation, port: int) -> list[dict[str, Any]]:
    """What an installation starts from, with a pool that is looked up."""
    found = [each for each in installation.document() if each["name"] != "green"]
    for each in found:
        if each["kind"] == "Pool":
            each["spec"] = {
                "protocol": "http",
                "balance": "roundrobin",
                "backends": [{"region": "us", "servers_from": f"dns://{NAME}:{port}"}],
            }
    return found


def measure(changes: int) -> dict[str, float]:
    """One server comes and goes `changes` times."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="sw-"))
        names = stack.enter_context(name_server())
        port = spare_port()
        for address in (FIRST, SECOND, NEW):
            stack.callback(serve(address, port).shutdown)
        names.addresses[NAME] = [FIRST, SECOND]
        os.environ["SPILLWAY_RESOLVERS"] = names.address
        url = f"sqlite:///{Path(folder) / 'bench.sqlite3'}"
        installation = stack.enter_context(built(url, "redis", *NODES))
        os.environ.update(installation.environment, DJANGO_SETTINGS_MODULE="controlplane.settings")
        import django

        django.setup()
        return _measure(installation, names, port, changes)


def _measure(installation: Installation, names: NameServer, port: int, changes: int) -> dict[str, float]:
    from django.core.management import call_command

    from apps.accounts.models import Account
    from apps.definitions.services import apply_document
    from tests.conftest import actor_of

    call_command("migrate", verbosity=0)
    installation.start("worker")
    installation.start("schedule")
    apply_document(actor=actor_of("operator", Account.Kind.OPERATOR), objects=document(installation, port))
    wait_until(lambda: all(answered_by(installation, node) in (FIRST, SECOND) for node in NODES), "both nodes answer")
    moments, came = random.Random(1), list[float]()
    for _ in range(changes):
        time.sleep(moments.uniform(0, 2))
        began = time.perf_counter()
        names.addresses[NAME] = [FIRST, SECOND, NEW]
        came.append(until(installation, there=True) - began)
        print(f"{came[-1]:.2f} s", file=sys.stderr, flush=True)
        names.addresses[NAME] = [FIRST, SECOND]
        until(installation, there=False)
    return {
        "changes": float(changes),
        "p50_s": statistics.median(came),
        "p99_s": percentile(came, 0.99),
        "max_s": max(came),
        "load": os.getloadavg()[0],
    }


def main() -> int:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--changes", type=int, default=30)
    results = measure(parser.parse_args().changes)
    for name, value in results.items():
        print(f"{name:12} {value:10.2f}")
    print(json.dumps(results, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
