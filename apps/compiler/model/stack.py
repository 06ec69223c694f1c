"""The input for clouds: frozen definitions of one stack, as plain data that knows no provider.

A :class:`StackSnapshot` is everything that one cloud account must run in one of its regions. Routes, listeners and
servers are those of `shared.py`, so that the same definition stands on a fleet and in a cloud.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from apps.compiler.model.servers import OverflowMode
from apps.compiler.model.shared import NO_LIMIT, AnyPool, Certificate, Limit, LoadBalancer, Server, Unreadable


class Cloud(StrEnum):
    """Whose load balancers they are."""

    AWS = "aws"
    GOOGLE = "google"


class AddressKind(StrEnum):
    """What keeps a static IP where it is.

    node: bound by each node as it is, whoever routes it there; vip: VRRP moves it among the nodes of a fleet; anycast:
    each healthy node announces it by BGP; elastic: Elastic IPs of AWS, one for each subnet; accelerator: AWS Global
    Accelerator; google: a global address of Google.
    """

    NODE = "node"
    VIP = "vip"
    ANYCAST = "anycast"
    ELASTIC = "elastic"
    ACCELERATOR = "accelerator"
    GOOGLE = "google"


class PlanApproval(StrEnum):
    """Which plans wait for a person: all (by_hand), those that delete or replace something, or none."""

    BY_HAND = "by_hand"
    AUTOMATIC_SAFE = "automatic_safe"
    AUTOMATIC = "automatic"


ON_FLEETS = frozenset({AddressKind.NODE, AddressKind.VIP, AddressKind.ANYCAST})
OF_CLOUD = {
    Cloud.AWS: frozenset({AddressKind.ELASTIC, AddressKind.ACCELERATOR}),
    Cloud.GOOGLE: frozenset({AddressKind.GOOGLE}),
}


class RecordType(StrEnum):
    """Types of DNS records that can be managed."""

    A = "A"
    AAAA = "AAAA"
    CNAME = "CNAME"
    MX = "MX"
    TXT = "TXT"
    SRV = "SRV"
    CAA = "CAA"
    NS = "NS"


@dataclass(frozen=True, slots=True)
class Network:
    """Where load balancers of the stack stand.

    AWS: `vpc` and `subnets` (ids; an ALB needs two in different zones), `log_bucket` for access logs where it is not
    empty; `vpc_networks` are the VPC's own CIDR blocks, by which servers outside of it are known: without them those in
    the stack's own region count as inside, all others as outside. Google: `vpc` is the network's self link or name,
    `zones` says in which zone the endpoints of each region of ours are registered. `client_networks` are CIDR blocks
    whose clients may connect.
    """

    vpc: str = ""
    subnets: tuple[str, ...] = ()
    client_networks: tuple[str, ...] = ("0.0.0.0/0",)
    log_bucket: str = ""
    zones: tuple[tuple[str, str], ...] = ()
    vpc_networks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CloudBackend:
    """A pool's share in one of our regions. `weight` (0–1000) is its part of the pool's traffic where weights decide.

    A drained region has a `capacity_scaler` of 0.
    """

    id: str
    region: str
    servers: tuple[Server, ...] = ()
    limit: Limit = NO_LIMIT
    capacity_scaler: float = 1.0
    weight: int = 0


@dataclass(frozen=True, slots=True)
class CloudPool(AnyPool):
    """One service in all its regions: the stack's own first, then in the order in which overflow tries them."""

    backends: tuple[CloudBackend, ...] = ()
    overflow_mode: OverflowMode = OverflowMode.ANYWHERE


@dataclass(frozen=True, slots=True)
class CloudAddress:
    """A static IP of the stack; a protected one is never released by a plan. `load_balancer_id` is empty when free."""

    id: str
    label: str
    account: str
    kind: AddressKind
    protected: bool = True
    load_balancer_id: str = ""


@dataclass(frozen=True, slots=True)
class CloudRecord:
    """One set of DNS records: `name` below the zone's domain, `@` for the domain itself.

    `address_id` or `load_balancer_id` instead of values: the record follows a static IP or is an alias.
    """

    id: str
    name: str
    type: RecordType
    ttl: int
    values: tuple[str, ...] = ()
    address_id: str = ""
    load_balancer_id: str = ""

    @property
    def label(self) -> str:
        """What findings call it: `www A`."""
        return f"{self.name} {self.type}"


@dataclass(frozen=True, slots=True)
class CloudZone:
    """A DNS zone that the stack keeps; `domain` without the final dot."""

    id: str
    label: str
    account: str
    domain: str
    records: tuple[CloudRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class StackSnapshot:
    """Everything that one stack must run.

    `id` is `stk-3`; `cloud_region` is the cloud's word (`eu-central-1`; `global` on Google), `region` ours, empty where
    the stack stands for all of them. `project` is Google's, `endpoint_url` replaces the cloud's own API (private
    clouds, tests). Listeners' `address` holds the id of a static IP (`ip-4`) here, since the cloud chooses the address.
    """

    id: str
    label: str
    cloud: Cloud
    cloud_region: str
    region: str = ""
    project: str = ""
    endpoint_url: str = ""
    network: Network = Network()
    load_balancers: tuple[LoadBalancer, ...] = ()
    pools: tuple[CloudPool, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    addresses: tuple[CloudAddress, ...] = ()
    zones: tuple[CloudZone, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
