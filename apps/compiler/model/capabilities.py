"""What HAProxy can do from some version on, or by how it was built: asked of what each node reported.

A bundle is one for all nodes of a fleet: what only some can do stands in it under HAProxy's own conditions (`.if`), so
each node takes what it can. Only what clients would see half done waits until every node can.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class NodeBuild:
    """The HAProxy that a node of the fleet reported last; `http3`: it is built for that."""

    node: str
    version: tuple[int, int]
    http3: bool = False


class Reach(StrEnum):
    """What becomes of a feature where not every node of a fleet can do it."""

    NODE = "node"
    """Each node that can does it."""
    FLEET = "fleet"
    """No node does it, since a client may come to another node next."""


@dataclass(frozen=True, slots=True)
class Capability:
    """`since` is the first version with it, `quic`: the binary must have QUIC; `without` is what happens else."""

    label: str
    since: tuple[int, int]
    reach: Reach
    without: str
    quic: bool = False

    def has(self, build: NodeBuild) -> bool:
        """Whether this HAProxy can."""
        return build.version >= self.since and (build.http3 or not self.quic)

    @property
    def condition(self) -> str:
        """How a bundle asks the node's own HAProxy, behind `.if`."""
        return f"version_atleast({'.'.join(map(str, self.since))})"

    @property
    def needs(self) -> str:
        """`HAProxy 2.8 or later with QUIC`."""
        return f"HAProxy {'.'.join(map(str, self.since))} or later{' with QUIC' if self.quic else ''}"


RELOAD_ANSWERS = Capability(
    "Says what came of a reload",
    (2, 7),
    Reach.NODE,
    "the agent asks the new worker until it answers",
)
BANDWIDTH = Capability("Limits bandwidth", (2, 7), Reach.NODE, "this node serves without limits of bandwidth")
ROUTE_RETRIES = Capability("Counts retries by route", (3, 2), Reach.NODE, "this node retries as often as the pool says")
GLITCHES = Capability(
    "Closes abusive HTTP/2 connections",
    (3, 0),
    Reach.NODE,
    "such a connection lasts until its client ends it",
)
HTTP3 = Capability("Speaks HTTP/3", (2, 8), Reach.FLEET, "clients of the whole fleet use HTTP/2", quic=True)
CAPABILITIES = (RELOAD_ANSWERS, BANDWIDTH, HTTP3, GLITCHES, ROUTE_RETRIES)


def named(builds: Iterable[NodeBuild]) -> str:
    """`us-1 (HAProxy 2.6), us-2 (HAProxy 3.0)`."""
    return ", ".join(f"{each.node} (HAProxy {each.version[0]}.{each.version[1]})" for each in builds)


def unable(capability: Capability, builds: Iterable[NodeBuild]) -> str:
    """The nodes that cannot do it; empty when all can."""
    return named(each for each in builds if not capability.has(each))
