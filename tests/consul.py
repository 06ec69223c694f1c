"""A real Consul on loopback, built from Go's module proxy: one server, which keeps what it knows when it is killed."""

from __future__ import annotations

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

from apps.definitions.server_sources.consul.client import Consul
from tests import golang
from tests.ports import spare_port

MODULE = Path(__file__).parent / "conformance" / "consul_server"
PROGRAM = golang.CACHE.with_name("bin") / "consul"
ROOT = "00000000-0000-0000-0000-000000000001"
# The names of its ports; the others are off.
LISTENS = ("http", "server", "serf_lan", "serf_wan")


def why_not_built() -> str:
    """Why there is no program; empty where there is one."""
    return golang.why_not_built(PROGRAM, "github.com/hashicorp/consul", MODULE)


@dataclass
class RealConsul:
    """`consul` is how Spillway reaches it, with no token."""

    folder: Path
    ports: dict[str, int] = field(default_factory=lambda: {name: spare_port() for name in LISTENS})
    process: subprocess.Popen[bytes] | None = None

    @property
    def consul(self) -> Consul:
        return Consul((f"http://127.0.0.1:{self.ports['http']}",))

    def start(self, *, closed: bool = False) -> None:
        """Start it, with the data that it had; `closed` to whoever has no token. Waits for its leader."""
        settings: dict[str, Any] = {
            "server": True, "bootstrap_expect": 1, "node_name": "n1", "bind_addr": "127.0.0.1",
            "data_dir": str(self.folder / "data"), "ports": {**self.ports, "dns": -1, "grpc": -1},
            "performance": {"raft_multiplier": 1}, "disable_update_check": True,
        }  # fmt: skip
        if closed:
            settings["acl"] = {"enabled": True, "default_policy": "deny", "tokens": {"master": ROOT}}
        (self.folder / "consul.json").write_text(json.dumps(settings))
        with (self.folder / "log").open("ab") as log:
            words = [str(PROGRAM), "agent", "-config-file", str(self.folder / "consul.json")]
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while self._leader() in ("", None):
            assert time.monotonic() < deadline, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.05)

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One call as its administrator. Raises OSError."""
        url = f"http://127.0.0.1:{self.ports['http']}/v1{path}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"X-Consul-Token": ROOT}, method=method)
        with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310 - our own
            return json.loads(response.read() or b"null")

    def register(self, name: str, address: str, *, tags: tuple[str, ...] = (), weight: int = 1) -> None:
        """An instance of the service web, with a check that says what it is told to."""
        check = {"CheckID": f"of-{name}", "Name": "told", "TTL": "10m", "Status": "passing"}
        weights = {"Passing": weight, "Warning": 1}
        service = {"Name": "web", "ID": name, "Address": address, "Port": 8080, "Tags": tags, "Weights": weights}
        self.call("PUT", "/agent/service/register", {**service, "Check": check})

    def tell(self, name: str, status: str) -> None:
        """The check of an instance is passing, warning or critical."""
        self.call("PUT", f"/agent/check/update/of-{name}", {"Status": status})

    def _leader(self) -> Any:
        try:
            return self.call("GET", "/status/leader")
        except (OSError, urllib.error.HTTPError):
            return None


@contextmanager
def real_consul(folder: Path, *, closed: bool = False) -> Iterator[RealConsul]:
    """One that answers; it is ended afterwards."""
    found = RealConsul(folder)
    try:
        found.start(closed=closed)
        yield found
    finally:
        found.kill()
