"""Many agents in one process: the protocol of nodes over mutual TLS, each on its own port with its own certificate.

`python -m tests.bench.light_agents <folder> <first> <last>` serves the nodes of `<folder>/nodes.json` from number
`first` up to `last`, whose certificates lie beside it, until it is killed. They have counters that grow, take bundles
and runtime operations as fast as they come, and need no HAProxy.
"""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import os
import secrets
import ssl
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from apps.agent.process.changes import FIELDS
from apps.drivers.proxy.protocol import SPOKEN
from apps.fleet import pki

COUNTED = ("requests", "status_2xx", "connections", "bytes_in", "bytes_out")
ZERO = dict.fromkeys(("status_3xx", "status_4xx", "status_5xx", "connections_now", "queue_now", "errors"), 0)
END = b"\r\n\r\n"
READS_A_MINUTE = 30


@dataclass(frozen=True, slots=True)
class LightNode:
    """What a light agent is told: its port, its objects as kind, id and parent, and how many of them have traffic."""

    name: str
    port: int
    objects: Sequence[tuple[str, str, str]]
    busy: int


@dataclass(slots=True)
class Agent:
    """The answers of one node."""

    node: LightNode
    generation: int = 1
    digest: str = "d" * 64
    reads: int = 0
    pushed_at: float = 0.0
    idle: str = field(init=False)
    turn: int = 0
    began: float = field(default_factory=time.time)
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    told_pushed_at: float = -1.0

    def __post_init__(self) -> None:
        rows = [row(each, 0) for each in self.node.objects[self.node.busy :]]
        self.idle = json.dumps(rows)[1:-1]

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and JSON."""
        path, _, since = path.partition("?since=")
        if path == "/v1/samples":
            self.reads += 1
            return 200, self._samples()
        if path == "/v1/reading":
            self.reads += 1
            return 200, self._reading(since)
        if path in ("/v1/bundle", "/v1/runtime"):
            self._take(json.loads(body))
        elif path != "/v1/state":
            return 404, b"{}"
        return 200, json.dumps(self._state()).encode()

    def _take(self, body: dict[str, Any]) -> None:
        manifest = body.get("manifest")
        self.digest = json.loads(base64.b64decode(manifest))["digest"] if manifest else body["digest"]
        self.generation, self.pushed_at = body["generation"], time.time()

    def _state(self) -> dict[str, Any]:
        return {
            "generation": self.generation, "digest": self.digest, "on_disk": self.digest, "haproxy_version": "2.6.12",
            "agent_version": "light", "boot_id": self.node.name, "workers": 1, "serving": True, "reloads": 0,
            "drift": [], "clock": time.time(), "pushed_at": self.pushed_at, "protocols": list(SPOKEN),
        }  # fmt: skip

    def _reading(self, since: str) -> bytes:
        """As a node tells it whose idle servers change nothing but, each once in a minute, how long a check took."""
        known = since == f"{self.name}-{self.turn}" and self.told_pushed_at == self.pushed_at
        self.turn, self.told_pushed_at = self.turn + 1, self.pushed_at
        # As if it was asked each two seconds, however slow the machine is.
        moment = self.began + 2.0 * self.turn
        rows = [row(each, 20 * self.turn) for each in self.node.objects[: self.node.busy]]
        rest = self.node.objects[self.node.busy :]
        if known:
            rest = [
                each for at, each in enumerate(rest) if each[0] == "server" and (at + self.turn) % READS_A_MINUTE == 0
            ]
        rows += [row(each, 0, self.turn // READS_A_MINUTE) for each in rest]
        samples = {
            "epoch": self.name, "read_at": moment, "latency_buckets": {}, "admitted": {}, "peers": {}, "gone": [],
            "fields": FIELDS, "rows": [[each[name] for name in FIELDS] for each in rows],
        }  # fmt: skip
        state = self._state()
        answer = {"token": f"{self.name}-{self.turn}", "base": since if known else "", "clock": state.pop("clock")}
        return json.dumps(answer | {"state": None if known else state, "samples": samples}).encode()

    def _samples(self) -> bytes:
        moment = time.time()
        busy = json.dumps([row(each, int(moment * 10)) for each in self.node.objects[: self.node.busy]])[1:-1]
        rows = ",".join(filter(None, (busy, self.idle)))
        head = f'{{"epoch":"one","read_at":{moment},"latency_buckets":{{}},"admitted":{{}},"peers":{{}},"rows":['
        return f"{head}{rows}]}}".encode()


def row(described: tuple[str, str, str], count: int, took_ms: int = 0) -> dict[str, Any]:
    """One object with this many requests, whose check took so long."""
    kind, object_id, parent_id = described
    server = kind == "server"
    names = {"kind": kind, "object_id": object_id, "parent_id": parent_id}
    words = {"status": "UP" if server else "OPEN", "check": f"L7OK/200 in {took_ms} ms" if server else ""}
    return names | dict.fromkeys(COUNTED, count) | ZERO | {"latency_ms": 3} | words


class Connection(asyncio.Protocol):
    """HTTP/1.1 with bodies of a known length, one question at a time."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer as soon as a question is there as a whole."""
        self._received += data
        head, found, rest = self._received.partition(END)
        if not found:
            return
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if len(rest) < length:
            return
        self._received = rest[length:]
        path = head.split(b" ", 2)[1]
        status, body = self._agent.answer(path.decode(), rest[:length])
        answer = f"HTTP/1.1 {status} OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        assert self._transport is not None
        self._transport.write(answer.encode() + body)


async def serve(folder: Path, nodes: Sequence[LightNode]) -> None:
    """Listen for all of them until cancelled."""
    loop = asyncio.get_running_loop()
    for node in nodes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(folder / "ca.pem")
        context.load_cert_chain(folder / f"{node.name}.pem", folder / f"{node.name}.key")
        await loop.create_server(partial(Connection, Agent(node)), "127.0.0.1", node.port, ssl=context)
    (folder / f"ready-{os.getpid()}").touch()
    await asyncio.Event().wait()


def write(folder: Path, nodes: Sequence[LightNode]) -> None:
    """What the processes of these nodes need: an authority, a pair for each node and one for the control plane."""
    moment = dt.datetime.now(dt.UTC)
    authority = pki.make_authority(moment)
    pairs = {node.name: pki.issue(authority, node.name, client=False, now=moment) for node in nodes}
    pairs["console"] = pki.issue(authority, "console", client=True, now=moment)
    (folder / "ca.pem").write_bytes(authority.certificate)
    for name, pair in pairs.items():
        (folder / f"{name}.pem").write_bytes(pair.certificate)
        (folder / f"{name}.key").write_bytes(pair.key)
    described = [[node.name, node.port, node.objects, node.busy] for node in nodes]
    (folder / "nodes.json").write_text(json.dumps(described))


def run() -> None:
    """The command line above."""
    folder, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    nodes = [LightNode(*each) for each in json.loads((folder / "nodes.json").read_text())[first:last]]
    asyncio.run(serve(folder, nodes))


if __name__ == "__main__":
    run()
