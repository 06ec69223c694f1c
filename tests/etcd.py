"""A real etcd on loopback, of one member or three; what is written into it goes the way that Spillway reads it."""

from __future__ import annotations

import base64
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.definitions.server_sources.etcd.client import Etcd
from tests.ports import spare_port


@dataclass
class RealEtcd:
    """Its members by number; `etcd` is how Spillway reaches them."""

    folder: Path
    clients: list[int]
    peers: list[int]
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def etcd(self) -> Etcd:
        """All members, without a user."""
        return Etcd(tuple(f"http://127.0.0.1:{port}" for port in self.clients))

    def start(self, number: int) -> None:
        """Start a member; one that ran before has its data."""
        at, peers = f"http://127.0.0.1:{self.clients[number]}", [f"http://127.0.0.1:{port}" for port in self.peers]
        words = ["--name", f"m{number}", "--data-dir", str(self.folder / f"m{number}")]
        words += ["--listen-client-urls", at, "--advertise-client-urls", at]
        words += ["--listen-peer-urls", peers[number], "--initial-advertise-peer-urls", peers[number]]
        words += ["--initial-cluster", ",".join(f"m{at}={url}" for at, url in enumerate(peers))]
        words += ["--unsafe-no-fsync"]  # whoever is killed here has a machine that goes on
        if len(peers) == 1:  # nobody else could be elected
            words += ["--heartbeat-interval", "10", "--election-timeout", "50"]
        with (self.folder / f"m{number}.log").open("ab") as log:
            self.running[number] = subprocess.Popen(["etcd", *words], stdout=log, stderr=log)

    def wait(self) -> None:
        """Until it takes what is written."""
        deadline = time.monotonic() + 60
        while True:
            try:
                self.put("/ready", "1")
            except OSError:
                assert time.monotonic() < deadline, (self.folder / "m0.log").read_text()[-2000:]
                time.sleep(0.05)
            else:
                return

    def kill(self, number: int) -> None:
        """kill -9."""
        process = self.running.pop(number)
        process.kill()
        process.wait()

    def call(self, path: str, **body: Any) -> dict[str, Any]:
        """One call of the first member that answers."""
        for number in self.running:
            url = f"http://127.0.0.1:{self.clients[number]}{path}"
            request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310 - our own
                    found: dict[str, Any] = json.load(response)
                    return found
            except (OSError, ValueError):
                continue
        raise OSError("no member answers")

    def put(self, key: str, value: str) -> int:
        """Write a key; the revision after it."""
        said = self.call("/v3/kv/put", key=_base64(key), value=_base64(value))
        return int(said["header"]["revision"])

    def delete(self, key: str) -> None:
        """Delete a key."""
        self.call("/v3/kv/deleterange", key=_base64(key))

    def compact(self, revision: int) -> None:
        """Forget what was before this revision."""
        self.call("/v3/kv/compaction", revision=str(revision), physical=True)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@contextmanager
def real_etcd(folder: Path, members: int = 1) -> Iterator[RealEtcd]:
    """A cluster that answers; everything is ended afterwards."""
    found = RealEtcd(folder, [spare_port() for _ in range(members)], [spare_port() for _ in range(members)])
    try:
        for number in range(members):
            found.start(number)
        found.wait()
        yield found
    finally:
        for number in list(found.running):
            found.kill(number)
