"""Starts the front of ClickHouse's engine for a test session, and empties its database between tests."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3

from tests.ports import spare_port

PYTHON = Path(__file__).resolve().parents[2] / "var/clickhouse-venv/bin/python"
needs_clickhouse = pytest.mark.skipif(
    not PYTHON.exists(), reason="NOT TESTED: ClickHouse's engine is not installed; run make var/clickhouse-venv/.stamp."
)


class Front:
    """A process of it with a folder; it may be killed and started again on the same lines."""

    def __init__(self) -> None:
        self.port = spare_port()
        self._folder = tempfile.mkdtemp(prefix="spillway-clickhouse-")
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)
        self.start()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Wait until it answers."""
        program = Path(__file__).with_name("front.py")
        command = [str(PYTHON), str(program), str(self.port), self._folder]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def kill(self) -> None:
        """As by the kernel: nothing is written any more."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End it and forget its lines."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def told(self, text: str) -> bytes:
        """What the engine answers its operator."""
        headers = {"X-ClickHouse-User": "operator"}
        response = urllib3.request("POST", self.url, body=text, headers=headers, timeout=600)
        assert response.status == 200, response.data
        return response.data

    def store(self, reader: str = "spillway_reader", **given: Any) -> Any:
        """A store there, whose database is made already."""
        from apps.drivers.logs.clickhouse.asking import Endpoint, User
        from apps.drivers.logs.clickhouse.store import ClickHouseStore

        who = User(reader, "") if reader else None
        return ClickHouseStore(Endpoint(self.url, "spillway", User("spillway", ""), who), **given)


@functools.cache
def front() -> Front:
    """The one of this session."""
    return Front()


@contextmanager
def in_clickhouse(**given: Any) -> Iterator[Any]:
    """A store in an empty database."""
    front().told("DROP DATABASE IF EXISTS spillway SYNC")
    front().told("CREATE DATABASE spillway")
    yield front().store(**given)
