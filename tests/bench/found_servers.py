"""Bench of sources of servers: from what a source says of a new one to its first response, through both nodes.

`python -m tests.bench.found_servers [--changes 30] [--source kubernetes]`: a real name server, or an API server of ours
that speaks as Kubernetes does, SQLite, Redis, one Celery worker, the scheduler, two agents with HAProxy. Names are
asked for every two seconds, so half of that is waited for on average; EndpointSlices are watched.
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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.api_server import api_server, clusters_file, endpoint, endpoint_slice
from tests.bench.route_live import percentile
from tests.e2e.installation import HOST, Installation, built, wait_until
from tests.e2e.name_server import name_server
from tests.ports import spare_port

NAME = "app.internal"
FIRST, SECOND, NEW = "127.0.0.1", "127.0.0.2", "127.0.0.3"
NODES = ("us-1", "us-2")
Say = Callable[..., None]


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


def document(installation: Installation, source: str) -> list[dict[str, Any]]:
    """What an installation starts from, with a pool that is looked up."""
    found = [each for each in installation.document() if each["name"] != "green"]
    for each in found:
        if each["kind"] == "Pool":
            each["spec"] = {
                "protocol": "http",
                "balance": "roundrobin",
                "backends": [{"region": "us", "servers_from": source}],
            }
    return found


@contextmanager
def records(folder: Path, port: int) -> Iterator[tuple[str, Say]]:
    """A source by DNS, and how to say which addresses it lists."""
    del folder
    with name_server() as names:
        os.environ["SPILLWAY_RESOLVERS"] = names.address
        yield f"dns://{NAME}:{port}", lambda *addresses: names.addresses.__setitem__(NAME, list(addresses))


@contextmanager
def slices(folder: Path, port: int) -> Iterator[tuple[str, Say]]:
    """A source by EndpointSlices, of the account of the bench."""
    with api_server() as api:
        os.environ["SPILLWAY_REGISTRIES"] = str(clusters_file(folder, api, shop=["operator"]))
        ports = [{"name": "http", "port": port, "protocol": "TCP"}]
        yield (
            "kubernetes://prod/shop/web",
            lambda *addresses: api.put(endpoint_slice("web-a", "web", *map(endpoint, addresses), ports=ports)),
        )


def measure(changes: int, source: str) -> dict[str, float]:
    """One server comes and goes `changes` times."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="sw-"))
        port = spare_port()
        for address in (FIRST, SECOND, NEW):
            stack.callback(serve(address, port).shutdown)
        named, say = stack.enter_context(SOURCES[source](Path(folder), port))
        say(FIRST, SECOND)
        url = f"sqlite:///{Path(folder) / 'bench.sqlite3'}"
        installation = stack.enter_context(built(url, "redis", *NODES))
        os.environ.update(installation.environment, DJANGO_SETTINGS_MODULE="controlplane.settings")
        import django

        django.setup()
        return _measure(installation, named, say, changes)


def _measure(installation: Installation, source: str, say: Say, changes: int) -> dict[str, float]:
    from django.core.management import call_command

    from apps.accounts.models import Account
    from apps.definitions.services import apply_document
    from tests.conftest import actor_of

    call_command("migrate", verbosity=0)
    installation.start("worker")
    installation.start("schedule")
    apply_document(actor=actor_of("operator", Account.Kind.OPERATOR), objects=document(installation, source))
    wait_until(lambda: all(answered_by(installation, node) in (FIRST, SECOND) for node in NODES), "both nodes answer")
    time.sleep(3)  # the pool's first servers need a reload, which an agent counts once it is confirmed
    moments, came, began_with = random.Random(1), list[float](), [installation.state(node).reloads for node in NODES]
    for _ in range(changes):
        time.sleep(moments.uniform(0, 2))
        began = time.perf_counter()
        say(FIRST, SECOND, NEW)
        came.append(until(installation, there=True) - began)
        print(f"{came[-1]:.2f} s", file=sys.stderr, flush=True)
        say(FIRST, SECOND)
        until(installation, there=False)
    reloads = [installation.state(node).reloads for node in NODES]
    return {
        "changes": float(changes),
        "p50_s": statistics.median(came),
        "p99_s": percentile(came, 0.99),
        "max_s": max(came),
        "reloads": float(sum(reloads) - sum(began_with)),
        "load": os.getloadavg()[0],
    }


SOURCES = {"dns": records, "kubernetes": slices}


def main() -> int:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--changes", type=int, default=30)
    parser.add_argument("--source", choices=SOURCES, default="dns")
    words = parser.parse_args()
    results = measure(words.changes, words.source)
    for name, value in results.items():
        print(f"{name:12} {value:10.2f}")
    print(json.dumps(results, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
