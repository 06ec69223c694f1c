"""The shapes of a Region, a Fleet, a Node and a Grant, by which operators run the platform."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Annotated

from apps.compiler import grammar
from apps.compiler.addresses import ALL_PRIVATE, PRIVATE_NETWORKS, overlap
from apps.compiler.grammar import GrammarError
from apps.compiler.matching.names import network_block
from apps.core.errors import FieldError
from apps.definitions.shapes.base.networks import CIDR
from apps.definitions.shapes.base.shape import ALWAYS, SORTED, About, Check, Data, Distinct, Shape
from apps.definitions.shapes.base.words import (
    LISTED,
    Boolean,
    ByName,
    Hostname,
    Instant,
    Port,
    Tags,
    Title,
    at_most,
    read_tag,
    real,
    text,
    whole,
)
from apps.definitions.shapes.platform.node_settings import NodeSettingsSpec
from apps.definitions.shapes.platform.rollout_settings import RolloutSettingsSpec

MAX_PRIVATE_NETWORKS = 64
LATENCY_MS = real(0, 60_000)
FLEET_PORTS = ("peer_port", "overflow_port", "overflow_tcp_port")
_UNIX = re.compile(r"unix:///[A-Za-z0-9._/-]{1,96}")
_MEMORY = re.compile(r"memory://[a-z0-9-]{1,63}")
_HTTPS = re.compile(r"https://(?P<host>[a-z0-9.-]{1,253}|\[[0-9a-f:]{2,39}\]):(?P<port>[1-9][0-9]{0,4})")


@dataclass(frozen=True, slots=True)
class LatencySpec(Shape):
    """The round trip to another region, as somebody set it."""

    to: Annotated[ByName, About("The other region.", example="us-central1")]
    ms: Annotated[float, LATENCY_MS, About("The round-trip time in ms.", example=98)]


@dataclass(frozen=True, slots=True)
class RegionSpec(Shape):
    """Where fleets and clients are; degrees. `drained` and `latency` stay as they are where they are left out."""

    title: Annotated[Title, About("The name shown on pages.", "Title", "", "Iowa")]
    latitude: Annotated[
        float | None, real(-90, 90), About("Used to estimate the distance to other regions.", "Latitude")
    ] = None
    longitude: Annotated[
        float | None, real(-180, 180), About("Used to estimate the distance to other regions.", "Longitude")
    ] = None
    drained: Annotated[Boolean | None, About("Other regions serve its traffic.", stays=False)] = None
    latency: Annotated[
        tuple[LatencySpec, ...] | None,
        LISTED,
        Distinct(("to",)),
        About("Round-trip times to other regions. Default: measured by the nodes.", stays=[]),
    ] = None


def _private_network(value: object) -> str:
    network = ip_network(network_block(value))
    if any(overlap(network, each) and network.prefixlen >= each.prefixlen for each in PRIVATE_NETWORKS):
        return str(value)
    known = ", ".join(ALL_PRIVATE)
    raise GrammarError("not_private", f"Use a network within {known}; servers may have public addresses.")


def _own(port: int, data: Data) -> None:
    if port in [data.get(name) for name in FLEET_PORTS]:
        raise GrammarError("twice", f"This fleet already uses port {port} internally. Use three different ports.")


@dataclass(frozen=True, slots=True)
class FleetSpec(Shape):
    """The nodes of a region that run the same."""

    region: Annotated[ByName, About("The region of its nodes.", "Region", "", "europe-west1")]
    local_development: Annotated[Boolean, About("Allows servers on loopback addresses.", "Local development")] = False
    private_networks: Annotated[
        tuple[Annotated[str, text(_private_network, "a private network in CIDR", pattern=CIDR)], ...],
        LISTED,
        Distinct(),
        at_most(MAX_PRIVATE_NETWORKS, "networks"),
        SORTED,
        About(
            "Private networks that may contain servers. Default: all.",
            "Private networks",
            note="private networks in which servers may be, all of them by default; [] for none",
            most=MAX_PRIVATE_NETWORKS,
        ),
    ] = tuple(sorted(ALL_PRIVATE))
    peer_port: Annotated[Port, About("The port on which nodes share their counters.", "Peer port")] = 9700
    overflow_port: Annotated[
        Port, Check(_own), ALWAYS, About("The port for requests from other regions.", "Overflow port")
    ] = 9800
    overflow_tcp_port: Annotated[
        Port, Check(_own), ALWAYS, About("The port for TCP connections from other regions.", "Overflow port (TCP)")
    ] = 9900
    node_settings: Annotated[
        NodeSettingsSpec | None,
        About("The size of each node and its defaults.", "Node settings", absent_when_empty=True),
    ] = None
    rollout_settings: Annotated[
        RolloutSettingsSpec | None,
        About("How a change reaches the nodes.", "Rollout settings", absent_when_empty=True),
    ] = None


def agent_url(value: object) -> str:
    """Where a node's agent listens: `unix:///path/agent.sock`, `https://host:port`, `memory://name` for tests."""
    if isinstance(value, str) and value.isascii():
        if (_UNIX.fullmatch(value) or _MEMORY.fullmatch(value)) and ".." not in value:
            return value
        found = _HTTPS.fullmatch(value)
        if found and int(found["port"]) <= 65535:
            return value
    raise GrammarError("agent_url", "Write unix:///path/to/agent.sock or https://host:port.")


@dataclass(frozen=True, slots=True)
class NodeSpec(Shape):
    """One HAProxy with its agent."""

    fleet: Annotated[ByName, About("The fleet whose configuration it runs.", "Fleet", "", "europe-west1")]
    url: Annotated[
        str,
        text(agent_url, "`unix:///path/agent.sock` or `https://host:port`", 320),
        About(
            "The URL of its agent.",
            "Agent",
            example="https://10.0.0.1:9440",
            note="unix:///path/agent.sock or https://host:port",
        ),
    ]
    address: Annotated[
        str,
        text(grammar.listen_address, "an address", 45),
        About("The address of listeners without a static IP.", "Address"),
    ] = "127.0.0.1"
    port_offset: Annotated[
        int, whole(0, 60_000), About("Added to the ports of nodes that share one address.", "Port offset")
    ] = 0
    tags: Annotated[
        Tags,
        About(
            "Labels of your own, by which nodes are listed.",
            "Tags",
            "For example rack=a1, zone=b. They change nothing of what the node runs.",
            {"rack": "a1"},
        ),
    ] = ()


@dataclass(frozen=True, slots=True)
class GrantSpec(Shape):
    """What an operator lets an account use: exactly one of a hostname and a tag."""

    account: Annotated[ByName, About("The customer who gets the grant.", "Account", "", "acme")]
    hostname: Annotated[
        Hostname | None,
        About("The granted hostname; `*.` for all subdomains.", "Hostname", example="*.apps.example.net"),
    ] = None
    tag: Annotated[
        str | None, text(read_tag, "`key=value`", 127), About("The tag of the shared pools and zones.", "Tag")
    ] = None
    may_load_test: Annotated[Boolean, About("Whether capacity tests may use the hostname.", "Load tests")] = True
    expires_at: Annotated[Instant | None, About("The end of the grant.", "Expires")] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """Exactly one of the two."""
        if ("hostname" in sent) == ("tag" in sent):
            yield FieldError("", "one_of", "Grant exactly one of hostname and tag.")
