"""What the request log costs a node and its agent.

`python -m tests.bench.request_log_cost [--rounds 4] [--seconds 5]`: wrk against one node each, by turns:

* *no line*: the node writes none;
* *bare log*: HAProxy's own `log` of a line as long as ours to a datagram socket that somebody reads, the usual way;
* *ours*: our line into the pipe, read by the agent's reader, compressed, on disk; nobody fetches;
* *silent*: our line, of a route that writes none;
* *errors only*: our line, of a route whose policy logs errors, of which there are none;
* *traced*: our line, of a listener that keeps and begins traces; each request brings a traceparent.

CPU is the node's own and the reader's own: other work on the machine hardly moves it. The reader is the agent's code in
a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from apps.agent.events import Events
from apps.agent.log.pipe import Pipe
from apps.agent.log.reading import Reader
from apps.agent.log.segments import Segments
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import RegionNode, Snapshot
from apps.compiler.model.listener_options import Tracing
from apps.compiler.model.policy import Log, Rules
from apps.compiler.policies import rule_set
from tests.bench.backends import instant_backends, stop
from tests.bench.overflow_env import Node, PoolPlan, host, plain, rate, snapshot_of, write_node
from tests.bench.tables import facts, table
from tests.ports import spare_port

NONE, BARE, OURS, SILENT, ERRORS, TRACED = WAYS = ("no line", "bare log", "ours", "silent", "errors only", "traced")
READ = (BARE, OURS, SILENT, ERRORS, TRACED)
GOAL, GOAL_LINE_US, GOAL_MB, GOAL_ERRORS = 1.1, 5.0, 50.0, 1.1
PATH = "/shop/items/4711?colour=blue"
CONNECTIONS = 16
TRACEPARENT = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@dataclass(frozen=True, slots=True)
class Go:
    """One go of wrk; CPU in µs per request of the node, and per line of the reader."""

    way: str
    node_us: float
    reader_us: float
    reader_mb: float
    lines: int
    dropped: int
    line_bytes: float


@dataclass(slots=True)
class Way:
    """A node that runs, and the process that reads from it, if any."""

    name: str
    node: Node
    worker: int
    reader: subprocess.Popen[bytes] | None
    folder: Path


def spent(pid: int) -> float:
    """Seconds of CPU that all threads of a process have used."""
    return sum(int((each / "schedstat").read_text().split()[0]) for each in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def config_of(text: str, way: str, folder: Path, length: int) -> str:
    """The node's haproxy.cfg with another log."""
    if way in (OURS, ERRORS, TRACED):
        return text
    if way == SILENT:
        return text.replace("    use_backend", "    http-request set-log-level silent\n    use_backend", 1)
    text = re.sub(r"^    log-format .*\n", "", text, flags=re.MULTILINE)
    if way == NONE:
        return re.sub(r"^    log (?:global|stdout .*)\n", "", text, flags=re.MULTILINE)
    target = f"    log {folder}/log.sock len 4000 format raw local0 info"
    text = re.sub(r"^    log stdout .*$", target, text, flags=re.MULTILINE)
    return text.replace("    log global\n", f"    log global\n    log-format '{'x' * (length - 40)} %ci %ST %Ta %B'\n")


@contextmanager
def running(way: str, text_of: Callable[[str], str], node: Node, bundle: object) -> Iterator[Way]:
    """One HAProxy and its reader."""
    folder = node.directory
    write_node(bundle, node)  # type: ignore[arg-type]  # a Bundle
    config = folder / "haproxy.cfg"
    config.write_text(text_of(config.read_text()))
    own = folder / "node.cfg"
    own.write_text(own.read_text() + "    setenv SPILLWAY_LOG info\n    nbthread 1\n")
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    files = [str(folder / name) for name in ("node.cfg", "haproxy.cfg")]
    with ExitStack() as stack:
        output = Pipe(folder / "requests").open()
        stack.callback(os.close, output)
        reader = stack.enter_context(_reading(way, folder)) if way in READ else None
        log = stack.enter_context((folder / "log").open("wb"))
        words = [program, "-db", "-W", "-f", files[0], "-f", files[1]]
        process = subprocess.Popen(words, stdout=output, stderr=log)
        stack.callback(stop, process)
        until = time.monotonic() + 30
        while not (folder / "worker.sock").exists():
            assert time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.05)
        time.sleep(0.3)
        found = re.search(r"^Pid: (\d+)$", node.command("show info"), re.MULTILINE)
        assert found is not None
        yield Way(way, node, int(found[1]), reader, folder)


@contextmanager
def _reading(way: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    kind = "dgram" if way == BARE else "pipe"
    words = [sys.executable, "-m", "tests.bench.request_log_cost", "--read", kind, "--folder", str(folder)]
    reader = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert reader.stdout is not None
        reader.stdout.readline()
        yield reader
    finally:
        stop(reader)


def load(way: Way, seconds: int) -> Go:
    """wrk for so long, then a second for the reader to finish."""
    words = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-H", f"Host: {host(1)}"]
    words += ["-H", TRACEPARENT] if way.name == TRACED else []
    before, mine = spent(way.worker), spent(way.reader.pid) if way.reader else 0.0
    dropped, lines = _dropped(way), _lines(way)
    words.append(f"http://127.0.0.1:{way.node.port}{PATH}")
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = re.search(r"(\d+) requests in", done.stdout)
    assert found is not None, done.stdout
    assert "Non-2xx" not in done.stdout, done.stdout
    count, used = int(found[1]), spent(way.worker) - before
    time.sleep(1.2)
    reader = (spent(way.reader.pid) - mine) if way.reader else 0.0
    came = _lines(way) - lines
    size = sum(path.stat().st_size for path in (way.folder / "segments").glob("*.z")) if way.name == OURS else 0
    return Go(
        way.name, used * 1e6 / count, reader * 1e6 / max(1, count), _megabytes(way.reader), came,
        _dropped(way) - dropped, size / max(1, _lines(way)),
    )  # fmt: skip


def _dropped(way: Way) -> int:
    found = re.search(r"^DroppedLogs: (\d+)$", way.node.command("show info"), re.MULTILINE)
    return int(found[1]) if found else 0


def _lines(way: Way) -> int:
    closed = (way.folder / "segments").glob("*.z")
    return sum(int(path.name.split(".")[1]) for path in closed) if way.name == OURS else 0


def _megabytes(reader: subprocess.Popen[bytes] | None) -> float:
    if reader is None:
        return 0.0
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{reader.pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def read_on(kind: str, folder: Path) -> None:
    """The reader's process: the agent's own code, or a datagram socket that is emptied."""
    if kind == "dgram":
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stream:
            stream.bind(str(folder / "log.sock"))
            print("ready", flush=True)
            while True:
                stream.recv(65536)
    reader = Reader(
        (Pipe(folder / "requests").open(), Pipe(folder / "taken").open()),
        Segments(folder / "segments", 2**30),
        Events(),
        lambda _: "",
    )
    reader.start()
    print("ready", flush=True)
    while True:
        time.sleep(3600)


def measure(rounds: int, seconds: int, directory: Path) -> list[Go]:
    """All ways by turns, so that the machine's moods fall on each of them."""
    with ExitStack() as stack:
        (port,) = stack.enter_context(instant_backends(directory, ("rgn-1",)))
        reach = RegionNode("node-0", "n0", "127.0.0.1", 0, 0, 0)
        snapshot = plain(snapshot_of([PoolPlan((rate(1),), ((port,),))], (), 0))
        told = {ERRORS: _errors_only(snapshot), TRACED: _traced(snapshot)}
        ways = []
        for name in WAYS:
            bundle = compile_snapshot(told.get(name, snapshot)).output
            folder = directory / name.replace(" ", "-")
            node = Node("node-0", "rgn-1", folder, spare_port(), reach)
            edited = running(name, lambda text, n=name, f=folder: config_of(text, n, f, 230), node, bundle)  # type: ignore[misc]
            ways.append(stack.enter_context(edited))
        for way in ways:
            load(way, 1)
        return [load(way, seconds) for turn in range(rounds) for way in (ways if turn % 2 else ways[::-1])]


def _errors_only(snapshot: Snapshot) -> Snapshot:
    """The same, with a policy on each route that logs errors only."""
    rules = rule_set(Rules(log=Log(requests="errors")))
    (front,) = snapshot.load_balancers
    routes = tuple(replace(route, rule_set=rules.id) for route in front.routes)
    return replace(snapshot, load_balancers=(replace(front, routes=routes, rule_sets=(rules,)),))


def _traced(snapshot: Snapshot) -> Snapshot:
    """The same, with traces on each listener, of which one in a hundred is sampled."""
    (front,) = snapshot.load_balancers
    listeners = tuple(replace(listener, tracing=Tracing()) for listener in front.listeners)
    return replace(snapshot, load_balancers=(replace(front, listeners=listeners),))


def main() -> int:
    """Print a table and one line of JSON; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--read", choices=("dgram", "pipe"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        read_on(given.read, given.folder)
    print(facts(), flush=True)
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:
        goes = measure(given.rounds, given.seconds, Path(folder))
    rows, found = [], {}
    for way in WAYS:
        own = [go for go in goes if go.way == way]
        node, reader = (statistics.median(getattr(go, name) for go in own) for name in ("node_us", "reader_us"))
        found[way] = (node, reader, max(go.reader_mb for go in own))
        dropped, size = sum(go.dropped for go in own), own[-1].line_bytes
        rows.append([way, f"{node:.1f}", f"{reader:.2f}", f"{found[way][2]:.0f}", str(dropped), f"{size:.0f}"])
    print(table(("way", "node µs/request", "reader µs/line", "reader MB", "dropped", "bytes/line on disk"), rows))
    ratio = found[OURS][0] / found[BARE][0]
    print(f"A node with our line costs {ratio:.2f} × one with HAProxy's bare log, goal {GOAL}.")
    errors = found[ERRORS][0] / found[NONE][0]
    print(f"A node whose routes log errors only costs {errors:.2f} × one without lines, goal {GOAL_ERRORS}.")
    traced = found[TRACED][0] - found[OURS][0]
    print(f"Traces cost a node {traced:.1f} µs a request, {traced / found[OURS][0]:.0%} of one with our line.")
    print(json.dumps(found))
    return int(errors > GOAL_ERRORS or ratio > GOAL or found[OURS][1] > GOAL_LINE_US or found[OURS][2] > GOAL_MB)


if __name__ == "__main__":
    sys.exit(main())
