"""The agent's node in this process, with real haproxy and any safeguard taken away."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from apps.agent.bodies import read_runtime
from apps.agent.events import Events
from apps.agent.node import Node
from apps.agent.push import Push
from apps.agent.safeguards import Safeguards
from apps.agent.settings import Settings, default_user
from apps.compiler.bundle import MANIFEST, Bundle
from apps.compiler.model.operations import Operation
from apps.drivers.proxy.agent import encode
from tests.conformance.real_agent import PATIENCE, short_folder
from tests.conformance.slow_haproxy import SlowHaproxy
from tests.ports import spare_port


class Inside:
    """A node, its port, and the two requests that change it, as a driver would send them."""

    def __init__(
        self,
        folder: Path,
        safeguards: Safeguards,
        settings: Mapping[str, Any] | None = None,
        slow: SlowHaproxy | None = None,
    ) -> None:
        self.folder = folder
        self.port = spare_port()
        self.slow = slow
        usual: dict[str, Any] = {"user": default_user(), "reload_gap": 0, "confirm_timeout": PATIENCE}
        binary = {"haproxy": str(slow.path)} if slow else {}
        self.settings = Settings("us-1", folder / "n", **{**usual, **binary, **(settings or {})})
        self.node = Node(self.settings, Events(), safeguards)
        self._push = Push(self.node)

    def push(self, bundle: Bundle, generation: int) -> dict[str, Any]:
        """PUT /v1/bundle."""
        body = {"generation": generation, "digest": bundle.digest, "files": encode(bundle.files)}
        return self._push.push(self._push.read(json.dumps(body).encode()))

    def operate(
        self, operations: tuple[Operation, ...], bundle: Bundle, base_digest: str, generation: int, *paths: str
    ) -> dict[str, Any]:
        """POST /v1/runtime with the full text of `paths`."""
        body = {
            "generation": generation,
            "base_digest": base_digest,
            "manifest": encode({MANIFEST: bundle.files[MANIFEST]})[MANIFEST],
            "operations": [asdict(each) for each in operations],
            "files": encode({path: bundle.files[path] for path in paths}),
        }
        return self._push.operate(read_runtime(json.dumps(body).encode()))

    def get(self, host: str = "a.example") -> tuple[int, str]:
        """One request through the node: status and body; status 0 when nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE / 4)
        try:
            connection.request("GET", "/", headers={"host": host})
            response = connection.getresponse()
            return response.status, response.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    @property
    def live(self) -> str:
        """Name of the release that `live` points to."""
        found = self.node.releases.live()
        return found.name if found else ""


@contextmanager
def inside(
    settings: Mapping[str, Any] | None = None, slow: Callable[[Path], SlowHaproxy] | None = None, **taken_away: Any
) -> Iterator[Inside]:
    """A node with every safeguard but those named, whose stand-ins are given; ended and removed afterwards.

    `settings` are other than a test's usual ones; `slow` puts a program before haproxy that can make it slow.
    """
    folder = short_folder()
    found = Inside(folder, replace(Safeguards(), **taken_away), settings, slow(folder) if slow else None)
    try:
        yield found
    finally:
        found.node.close()
        shutil.rmtree(folder, ignore_errors=True)


def nothing(*_: object) -> None:
    """What stands in for a safeguard that raises."""


def always(*_: object) -> bool:
    """What stands in for a safeguard that says yes or no."""
    return True
