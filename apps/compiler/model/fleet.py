"""The input of one fleet: a :class:`Snapshot` is everything that its nodes must run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from apps.compiler.addresses import ALL_PRIVATE
from apps.compiler.model.capabilities import NodeBuild
from apps.compiler.model.node_settings import NodeSettings
from apps.compiler.model.shared import (  # noqa: F401 - migrations find the closed lists here
    NO_LIMIT,
    AnyPool,
    Balance,
    Certificate,
    Limit,
    LimitKind,
    LimitScope,
    LoadBalancer,
    PathKind,
    Protocol,
    Server,
    ServerState,
    Unreadable,
    WhenFull,
)


@dataclass(frozen=True, slots=True)
class RegionShare:
    """A pool's backend in another region, as far as those who send overflow there must know it.

    `ready_servers` counts the servers that get requests (`limits.usable`): a limit per server is that many times its
    value. A drained region has a scaler of 0.
    """

    region_id: str
    limit: Limit = NO_LIMIT
    capacity_scaler: float = 1.0
    ready_servers: int = 0


@dataclass(frozen=True, slots=True)
class Pool(AnyPool):
    """One service as this fleet sees it: the servers of the fleet's own region, and how to treat them.

    `elsewhere` are its backends in other regions in the order in which overflow tries them, nearest first unless
    somebody ordered them; a pool may have servers elsewhere only. A drained region has a `capacity_scaler` of 0.
    """

    servers: tuple[Server, ...] = ()
    limit: Limit = NO_LIMIT
    capacity_scaler: float = 1.0
    elsewhere: tuple[RegionShare, ...] = ()


@dataclass(frozen=True, slots=True)
class RegionNode:
    """A node as the others reach it: each port with the node's own offset added.

    `id` is `node-5`, `name` what the node calls itself (its agent finds itself in the manifest by it).
    """

    id: str
    name: str
    address: str
    peer_port: int
    overflow_port: int
    overflow_tcp_port: int


@dataclass(frozen=True, slots=True)
class Region:
    """A region with the nodes of all its fleets, those that count together and take each other's overflow."""

    id: str
    label: str
    nodes: tuple[RegionNode, ...] = ()


@dataclass(frozen=True, slots=True)
class OverflowPorts:
    """Where each node of this fleet listens for its peers and for overflow, before the node's own offset."""

    peer: int = 9700
    http: int = 9800
    tcp: int = 9900


class FleetAddressKind(StrEnum):
    """How a static IP finds a node: VRRP moves it among the nodes, or every healthy node announces it by BGP."""

    VIP = "vip"
    ANYCAST = "anycast"


@dataclass(frozen=True, slots=True)
class FleetAddress:
    """A static IP that the nodes of a fleet hold or announce; listeners name it by `address`.

    `nodes` are the ids of those that stand in for each other (vip only; in the order of their ids), `router_id`
    (1–255) is the vip's name to VRRP.
    """

    id: str
    label: str
    address: str
    kind: FleetAddressKind
    router_id: int = 0
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BypassToken:
    """Requests of a running capacity test: whoever shows the token with this SHA-256 (hex) is served by the pool here.

    The pool's limit does not send them away; health and draining do. `run` is what lines of its requests name it.
    """

    digest: str
    pool_id: str
    run: str = ""

    @property
    def id(self) -> str:
        """What findings name it by."""
        return f"bypass token of {self.pool_id}"

    @property
    def label(self) -> str:
        """What it opens."""
        return self.pool_id


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a node answers to an authority that asks for `token` on `host` (RFC 8555, 8.3)."""

    host: str
    token: str
    answer: str

    @property
    def id(self) -> str:
        """What a difference names it by."""
        return f"{self.host}/{self.token}"

    @property
    def label(self) -> str:
        """Whom it proves."""
        return self.host


@dataclass(frozen=True, slots=True)
class AccountShare:
    """The most that the pools of an account (`id` is `acc-3`) together have of a node: percent of its connections, and
    requests (tcp: new connections) per second."""

    id: str
    account: str
    percent: int
    rps: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that the nodes of one fleet must run.

    `haproxy_version` is the oldest version that the fleet's nodes reported, (2, 6) when none did; `builds` are those of
    all nodes that reported one.
    `local_development` allows loopback server addresses (see security notes in THREAT_MODEL.md).
    `regions` are all regions that have nodes, the fleet's own (`region_id`) among them; `overflow_key` is the secret
    by which fleets know each other's overflow. Without them every limit is this fleet's alone and nothing overflows.
    `unreadable` are objects that could not even be frozen; they are left out and named like others that are refused.
    `bypass_tokens` are the bypass tokens of the capacity tests that run here now. `addresses` are the static IPs of
    listeners that are not simply there: the nodes hold or announce them only while they serve. `loop_mark` is the word
    by which forwarded requests are known when they come back; `own_addresses` are addresses, networks and names at
    which the installation itself is reached, where no server may be. Of private networks servers may only be in
    `private_networks`. `shares` are those of the accounts that have a ceiling.
    Without `node_settings` nodes are as they always were. `challenges` are those that authorities may ask for now; None
    where nobody issues certificates, so that nodes ask no map.
    """

    fleet: str
    region: str
    load_balancers: tuple[LoadBalancer, ...] = ()
    pools: tuple[Pool, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    haproxy_version: tuple[int, int] = (2, 6)
    local_development: bool = False
    region_id: str = ""
    regions: tuple[Region, ...] = ()
    overflow_key: str = ""
    overflow_ports: OverflowPorts = OverflowPorts()
    unreadable: tuple[Unreadable, ...] = ()
    bypass_tokens: tuple[BypassToken, ...] = ()
    addresses: tuple[FleetAddress, ...] = ()
    loop_mark: str = ""
    own_addresses: tuple[str, ...] = ()
    private_networks: tuple[str, ...] = ALL_PRIVATE
    shares: tuple[AccountShare, ...] = ()
    node_settings: NodeSettings | None = None
    builds: tuple[NodeBuild, ...] = ()
    challenges: tuple[Challenge, ...] | None = None
