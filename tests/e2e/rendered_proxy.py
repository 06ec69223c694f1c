"""A real HAProxy that runs a bundle in a private directory, for tests that ask it questions."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from apps.compiler.bundle import Bundle
from apps.logs.lines import Line, read_segment
from tests.ports import spare_port

PROBE = "probe-of-the-test"
OF_THREADS = re.compile(r"threads (?:running on|to) a total of")
PATIENCE_S = 120.0  # of a busy machine


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client got."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def json(self) -> dict[str, object]:
        """The echo of a backend."""
        document: dict[str, object] = json.loads(self.body)
        return document


@dataclass(frozen=True, slots=True)
class RenderedProxy:
    """Ports by listener id, and the directory."""

    directory: Path
    ports: Mapping[str, int]
    process: subprocess.Popen[bytes]

    def wait_for_start(self) -> None:
        """Wait until each port takes connections and the Runtime API answers; its socket is there before it listens."""
        until, waiting = time.monotonic() + PATIENCE_S, set(self.ports.values())
        while waiting or not self._worker():
            if self.process.poll() is not None or time.monotonic() > until:
                raise AssertionError((self.directory / "log").read_text())
            waiting = {port for port in waiting if not takes_connections(port)}
            time.sleep(0.02)

    def reload(self) -> None:
        """Have a new worker, which answers on the sockets of the old one."""
        before, until = self._worker(), time.monotonic() + PATIENCE_S
        # A master that has just been started holds signals back, and forgets them.
        while "SigBlk:\t0000000000000000" not in Path(f"/proc/{self.process.pid}/status").read_text():
            time.sleep(0.05)
        self.process.send_signal(signal.SIGUSR2)
        while self._worker() in ("", before):
            assert time.monotonic() < until, (self.directory / "log").read_text()
            time.sleep(0.05)

    def _worker(self) -> str:
        try:
            return next(line for line in self.command("show info").splitlines() if line.startswith("Pid:"))
        except (OSError, StopIteration):
            return ""

    def states(self) -> dict[str, str]:
        """Each server with the word that HAProxy has for its state: `srv-1` → `UP`."""
        rows = [row.split(",") for row in self.command("show stat -1 4 -1").splitlines() if row]
        return {row[1]: row[rows[0].index("status")] for row in rows[1:]}

    def last_checks(self) -> dict[str, str]:
        """Each server with what its last check found: `srv-1` → `L7OK`."""
        rows = [row.split(",") for row in self.command("show stat -1 4 -1").splitlines() if row]
        return {row[1]: row[rows[0].index("check_status")].removeprefix("* ") for row in rows[1:]}

    def until_checked(self, server: str, state: str) -> None:
        """Wait until a server has that state."""
        self.until(lambda: self.states().get(server, "").startswith(state), f"{server} is {state}")

    def until(self, true: Callable[[], bool], what: str) -> None:
        """Wait for something."""
        until = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < until, f"waited in vain until {what}: {self.states()}"
            time.sleep(0.05)

    def ask(
        self, listener_id: str, host: str, path: str, method: str = "GET", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request on a new connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[listener_id], timeout=PATIENCE_S / 4)
        try:
            connection.request(method, path, headers={"Host": host, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read().decode())
        finally:
            connection.close()

    def lines(self, count: int) -> list[Line]:
        """The request log, once it has so many lines."""
        read = (self.directory / "requests").read_bytes
        self.until(lambda: len(list(read_segment(read()))) >= count, f"there are {count} lines in {read()!r}")
        found = read_segment(read())
        lines = list(found)
        assert not found.damaged, read()
        return lines

    def command(self, line: str) -> str:
        """One Runtime API command."""
        with socket.socket(socket.AF_UNIX) as runtime:
            runtime.connect(str(self.directory / "worker.sock"))
            runtime.sendall(line.encode() + b"\n")
            return b"".join(iter(lambda: runtime.recv(65536), b"")).decode()


def write_bundle(bundle: Bundle, directory: Path, connections: int = 0) -> dict[str, int]:
    """Lay the files out as the agent does, with a node.cfg of free ports; returns the ports by listener id.

    `connections` are those that the node can have; 0 leaves it to HAProxy.
    """
    for path, content in bundle.files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)
    ports = {bind.listener_id: spare_port() for bind in bundle.binds}
    settings = {
        "SPILLWAY_RUN": str(directory),
        "SPILLWAY_GENERATION": "7",
        "SPILLWAY_DIGEST": bundle.digest,
        "SPILLWAY_PROBE": PROBE,
        "SPILLWAY_LOG": "info",
    }
    settings |= {bind.variable: f"127.0.0.1:{ports[bind.listener_id]}" for bind in bundle.binds}
    settings |= {"SPILLWAY_CONNECTIONS": str(connections)} if connections else {}
    lines = ["global", *([f"    maxconn {connections}"] if connections else [])]
    lines += [f"    setenv {name} {value}" for name, value in settings.items()]
    node = next(iter(bundle.nodes.values()), "")
    lines += [f"    localpeer {node}", f"    setenv SPILLWAY_NODE {node}"] if node else []
    lines.append(f"    server-state-file {directory}/servers")
    (directory / "servers").write_text("1\n")
    (directory / "node.cfg").write_text("\n".join(lines) + "\n")
    return ports


def command_line(directory: Path, *options: str, program: str = "") -> list[str]:
    """`haproxy <options> -f node.cfg -f haproxy.cfg`, by the one that is installed unless another is named."""
    program = program or shutil.which("haproxy") or "/usr/sbin/haproxy"
    return [program, *options, "-f", str(directory / "node.cfg"), "-f", str(directory / "haproxy.cfg")]


def refusal_of(bundle: Bundle, directory: Path) -> str:
    """What `haproxy -c` says against the bundle; empty when it accepts without a warning.

    Since 3.0 it warns of more threads than this machine has processors, which is no fault of the bundle.
    """
    write_bundle(bundle, directory)
    done = subprocess.run(command_line(directory, "-c"), capture_output=True, text=True, check=False)
    warned = [line for line in done.stderr.splitlines() if "WARNING" in line and not OF_THREADS.search(line)]
    return "" if done.returncode == 0 and not warned else done.stderr


@contextmanager
def running(bundle: Bundle, directory: Path, connections: int = 0, program: str = "") -> Iterator[RenderedProxy]:
    """Start HAProxy on the bundle, wait until its sockets answer, stop it at the end."""
    ports = write_bundle(bundle, directory, connections)
    with (directory / "log").open("ab") as log, (directory / "requests").open("ab") as lines:
        process = subprocess.Popen(
            command_line(directory, "-W", "-S", f"{directory}/master.sock", "-db", program=program),
            stdout=lines,
            stderr=log,
        )
    try:
        proxy = RenderedProxy(directory, ports, process)
        proxy.wait_for_start()
        yield proxy
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def takes_connections(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


class _Echo(BaseHTTPRequestHandler):
    """Answers with what arrived."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a small body waits for the proxy's acknowledgement of the head, 40 ms

    def do_GET(self) -> None:
        """Say who answers, and what the proxy sent."""
        # A body left unread would be the beginning of the next request on this connection: 501, to somebody else.
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        port = self.connection.getsockname()[1]
        body = json.dumps({"port": port, "path": self.path, "headers": headers}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Echo-Port", str(port))
        self.send_header("X-Echo-Path", self.path)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET  # noqa: N815  # the base class's spelling

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Keep quiet."""


class EchoServers(ThreadingHTTPServer):
    """A small server that answers with what arrived."""

    daemon_threads = True
    request_queue_size = 1024  # five, as it is usually, are soon more than a busy machine has taken

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, _Echo)

    def handle_error(self, request: object, client_address: object) -> None:
        """A proxy that closes an idle connection is no error of this server."""


@contextmanager
def echo_servers(count: int) -> Iterator[list[int]]:
    """That many small servers on 127.0.0.1; yields their ports."""
    servers = [EchoServers(("127.0.0.1", 0)) for _ in range(count)]
    for each in servers:
        threading.Thread(target=each.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield [each.server_address[1] for each in servers]
    finally:
        for each in servers:
            each.shutdown()
            each.server_close()
