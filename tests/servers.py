"""A private PostgreSQL and a private Redis for tests and benches, each in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from tests.ports import spare_port


def as_user() -> tuple[list[str], str]:
    """How to run PostgreSQL, which refuses root: a command prefix and the user's name."""
    if os.geteuid() != 0:
        return [], pwd.getpwuid(os.geteuid()).pw_name
    return ["runuser", "-u", "postgres", "--"], "postgres"


def postgresql_bin() -> Path:
    """The newest PostgreSQL of the machine."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not versions:
        raise SystemExit("PostgreSQL is missing: apt install postgresql")
    return versions[-1].parent


@contextmanager
def postgresql(directory: Path, *, durable: bool = False, small: bool = False) -> Iterator[str]:
    """A private cluster on a Unix socket in `directory`; yields its database URL.

    `durable` syncs every commit. `small` is for tables of a few rows, where planning takes longer than the query: joins
    stay in the order in which they are written.
    """
    prefix, user = as_user()
    shutil.chown(directory, user)
    tools, data = postgresql_bin(), directory / "data"
    initdb = [*prefix, str(tools / "initdb"), "-D", str(data), "-U", "spillway", "-A", "trust", "-E", "UTF8"]
    subprocess.run([*initdb, "--no-sync", "--locale=C.UTF-8"], check=True, stdout=subprocess.DEVNULL, cwd=directory)
    options = f"-c listen_addresses= -c unix_socket_directories={directory} -c max_connections=200 -c jit=off"
    if small:
        options += " -c join_collapse_limit=1 -c from_collapse_limit=1"
    if not durable:  # it is not what is tested, and costs minutes on a slow disk
        options += " -c fsync=off -c full_page_writes=off -c synchronous_commit=off"
    url = f"postgresql://spillway@{str(directory).replace('/', '%2F')}/postgres"
    # A child of ours, unlike what pg_ctl starts: the processor time of the suite is to hold that of its database.
    with (directory / "log").open("ab") as log:
        command = [str(tools / "postgres"), "-D", str(data), *shlex.split(options)]
        owner = user if prefix else None
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory, user=owner, group=owner)
    try:
        _wait_for_database(url, server)
        yield url
    finally:
        server.send_signal(signal.SIGQUIT)  # at once, without a checkpoint
        server.wait()


@contextmanager
def redis(directory: Path) -> Iterator[str]:
    """A private Redis on a free port; yields its URL."""
    port = spare_port()
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory), "--save", ""]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for_port(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait()


def _wait_for_database(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(psycopg.OperationalError):
            psycopg.connect(url).close()
            return
        time.sleep(0.05)
    raise SystemExit("PostgreSQL does not answer; what it said is in `log` beside its data.")


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"Redis does not answer on port {port}.")
