"""The demo's environment: the tutorial's document with this machine's ports, and what must run to make it true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from deploy.demo.config import TUTORIAL, DemoConfig

Document = dict[str, Any]
DEFAULT_HTTP_PORT = 8080
DEFAULT_BACKEND_PORT = 9100
DEFAULT_OVERFLOW_PORT = 9700
# What nodes use among themselves, by the field of their fleet.
AMONG_NODES = {"peer_port": "counting", "overflow_port": "overflow", "overflow_tcp_port": "TCP overflow"}
# What the clients ask for, with weights: most of it the shop, some of it what has been moved or is not there.
REQUESTS = (
    "shop.acme.example/=5",
    "shop.acme.example/checkout=3",
    "www.acme.example/=1",
    "api.globex.example/v1/orders=3",
    "api.globex.example/robots.txt=1",
    "api.globex.example/v2=0.2",
)


@dataclass(frozen=True)
class DemoNode:
    """A HAProxy node with its agent."""

    name: str
    region: str
    url: str
    address: str
    port_offset: int
    fleet: str


@dataclass(frozen=True)
class DemoServer:
    """A virtual machine that the pools name."""

    name: str
    region: str
    port: int


class DemoTopology:
    """The document that is applied, and the nodes, servers and ports that it names."""

    def __init__(self, config: DemoConfig, source: Path = TUTORIAL) -> None:
        self.config = config
        self.document: Document = yaml.safe_load(source.read_text())
        for spec in self._specs("Node"):
            self._move_agent(spec)
        for spec in self._specs("LoadBalancer"):
            for listener in spec["listeners"]:
                listener["port"] += config.http_port - DEFAULT_HTTP_PORT
        for spec in self._specs("Fleet"):
            for name in AMONG_NODES:
                spec[name] += config.overflow_port - DEFAULT_OVERFLOW_PORT
        for _, server in self._servers():
            server["port"] += config.backend_port - DEFAULT_BACKEND_PORT

    def objects(self, kind: str) -> Iterator[dict[str, Any]]:
        """The document's objects of one kind."""
        return (entry for entry in self.document["objects"] if entry["kind"] == kind)

    def _specs(self, kind: str) -> Iterator[dict[str, Any]]:
        return (entry["spec"] for entry in self.objects(kind))

    def _servers(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for pool in self._specs("Pool"):
            for backend in pool["backends"]:
                for server in backend["servers"]:
                    yield backend["region"], server

    def _move_agent(self, spec: dict[str, Any]) -> None:
        """Sockets go where this demo keeps them, HTTPS ports count from SPILLWAY_AGENT_PORT."""
        if spec["url"].startswith("unix://"):
            name = Path(spec["url"]).parent.name
            spec["url"] = f"unix://{self.config.run / name / 'agent.sock'}"
        else:
            base, _, port = spec["url"].rpartition(":")
            spec["url"] = f"{base}:{int(port) - 9440 + self.config.agent_port}"

    def nodes(self) -> list[DemoNode]:
        """The nodes, in the order of the document."""
        region_of = {fleet["name"]: fleet["spec"]["region"] for fleet in self.objects("Fleet")}
        return [
            DemoNode(
                entry["name"],
                region_of[entry["spec"]["fleet"]],
                entry["spec"]["url"],
                entry["spec"]["address"],
                entry["spec"]["port_offset"],
                entry["spec"]["fleet"],
            )
            for entry in self.objects("Node")
        ]

    def servers(self) -> list[DemoServer]:
        """Each server once, however many pools name it."""
        found = {
            server["port"]: DemoServer(server["name"], region, server["port"]) for region, server in self._servers()
        }
        return [found[port] for port in sorted(found)]

    def listener_ports(self) -> list[int]:
        """Ports of the listeners before a node adds its offset."""
        return [listener["port"] for spec in self._specs("LoadBalancer") for listener in spec["listeners"]]

    def urls_of(self, node: DemoNode) -> list[str]:
        """Where clients reach the node."""
        return [f"http://{node.address}:{port + node.port_offset}" for port in self.listener_ports()]

    def ports(self) -> dict[int, str]:
        """Every TCP port that the demo takes on 127.0.0.1, and for what."""
        taken: dict[int, str] = {}
        for port, what in self._ports():
            if port in taken:
                raise SystemExit(f"Port {port} would be for {taken[port]} and for {what}: choose another one.")
            taken[port] = what
        return taken

    def _ports(self) -> Iterator[tuple[int, str]]:
        config = self.config
        yield config.console_port, "the console"
        yield config.redis_port, "Redis"
        yield config.client_port, "the clients' control"
        among = {fleet["name"]: fleet["spec"] for fleet in self.objects("Fleet")}
        for node in self.nodes():
            for port in self.listener_ports():
                yield port + node.port_offset, f"node {node.name}"
            for name, what in AMONG_NODES.items():
                yield among[node.fleet][name] + node.port_offset, f"{what} of node {node.name}"
            if node.url.startswith("https://"):
                yield int(node.url.rpartition(":")[2]), f"the agent of {node.name}"
        for server in self.servers():
            yield server.port, f"server {server.name}"
