"""An empty console with all its programs behind its own front, in TLS, as a machine that enrols finds it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from apps.fleet import pki
from tests.conformance.real_agent import short_folder
from tests.e2e.installation import ROOT
from tests.ports import spare_port

PYTHON = (sys.executable, "-m")
QUEUES = "default,push,webhooks,verifications,dns"


@dataclass
class WholeConsole:
    """Its folder, its port and its processes; each of them says what it does in `<name>.log`."""

    folder: Path
    port: int
    environment: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where people and machines open it."""
        return f"https://localhost:{self.port}"

    def start(self, name: str, *command: str) -> None:
        """Start a process."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)

    def logs(self) -> str:
        """The end of what everybody said."""
        return "\n".join(f"--- {path.name}\n{path.read_text()[-2000:]}" for path in sorted(self.folder.glob("*.log")))

    def end(self) -> None:
        """End everything, the last that was started first."""
        for process in reversed(self.processes.values()):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(15)


def _settings(folder: Path, port: int, database_url: str) -> dict[str, str]:
    """A fresh installation's, as the package writes them, with a certificate of its own."""
    authority = pki.make_authority(datetime.now(UTC), "the console")
    pair = pki.issue(authority, "localhost", client=False, now=datetime.now(UTC))
    (folder / "ca.pem").write_bytes(authority.certificate)
    (folder / "tls.pem").write_bytes(pair.certificate + pair.key)
    ours = {
        "SPILLWAY_DATABASE_URL": database_url,
        "SPILLWAY_REDIS_URL": f"redis://127.0.0.1:{spare_port()}/0",
        "SPILLWAY_CONSOLE_URL": f"https://localhost:{port}",
        "SPILLWAY_ORIGINS": f"https://localhost:{port}",
        "SPILLWAY_ALLOWED_HOSTS": "localhost",
        "SPILLWAY_CONSOLE_CA": str(folder / "ca.pem"),
        "SPILLWAY_VAR": str(folder),
        "SPILLWAY_RUN": str(folder),
        "SPILLWAY_BIND": f"127.0.0.1:{port} ssl crt {folder}/tls.pem",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
    return kept | ours


def _start(console: WholeConsole) -> None:
    redis_port = console.environment["SPILLWAY_REDIS_URL"].rpartition(":")[2].removesuffix("/0")
    where = ("--bind", "127.0.0.1", "--dir", str(console.folder), "--save", "")
    console.start("redis", "redis-server", "--port", redis_port, *where)
    web = ("gunicorn", "--config", "python:controlplane.web_server", "--bind", f"unix:{console.folder}/web.sock")
    console.start("web", *PYTHON, *web, "--workers", "1", "--threads", "8")
    console.start("events", *PYTHON, "uvicorn", "controlplane.events:app", "--uds", f"{console.folder}/events.sock")
    worker = ("celery", "-A", "controlplane.celery", "worker", "--pool", "threads", "--concurrency", "4")
    console.start("worker", *PYTHON, *worker, "-Q", QUEUES, "--without-mingle")
    for name in ("collect", "collect_logs", "schedule"):
        console.start(name, sys.executable, "manage.py", name)
    console.start("front", "haproxy", "-W", "-db", "-f", "deploy/console/haproxy.cfg")


@contextmanager
def whole_console(database_url: str) -> Iterator[WholeConsole]:
    """One on a free port, on this database; all of it is ended and removed afterwards."""
    folder, port = short_folder(), spare_port()
    console = WholeConsole(folder, port, _settings(folder, port, database_url))
    try:
        _start(console)
        yield console
    finally:
        print(console.logs())
        console.end()
        shutil.rmtree(folder, ignore_errors=True)
