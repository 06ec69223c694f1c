"""The cloud border: what every reader of a cloud promises. Reading only: Terraform alone writes.

Readers stand behind it for AWS (`aws.py`, boto3) and Google (`google.py`, google-cloud-compute and -monitoring), chosen
in `registry.py`; `memory.py` is an honest fake. Readers know the world and nothing of Django.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol


class CloudError(Exception):
    """The cloud did not answer or said no; `message` is a sentence for operators, without any secret."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class CloudAccess:
    """Where to ask: the cloud's region, its project (Google), another endpoint where it is not empty.

    `credentials` is a reference (`env:NAME`, `role:ARN`, `profile:NAME`, empty for the process's own). What is ours
    carries the tag `spillway-stack` with the value `stack`. Where a person waits, a call is `brief`: it is made once.
    """

    cloud: str
    region: str
    project: str = ""
    endpoint_url: str = ""
    credentials: str = ""
    stack: str = ""
    brief: bool = False


def endpoints_of(access: CloudAccess) -> list[str]:
    """The URLs that are asked instead of the cloud's own."""
    return [access.endpoint_url] if access.endpoint_url else []


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """One server as the cloud's check sees it; `group` is the cloud's id of the target group or backend service.

    `object_id` is ours (`bkd-4`) by the tag or name that we gave the group, empty where it is not ours.
    """

    group: str
    object_id: str
    address: str
    port: int
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What one group or load balancer did in the minute that ends at `at`; counts, and percentiles in ms or None."""

    group: str
    object_id: str
    at: datetime
    requests: int = 0
    status_2xx: int = 0
    status_3xx: int = 0
    status_4xx: int = 0
    status_5xx: int = 0
    connections: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None


@dataclass(frozen=True, slots=True)
class FoundLoadBalancer:
    """An existing load balancer with everything below it, as the cloud described it (plain data, without secrets)."""

    kind: str
    name: str
    id: str
    described: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FoundSubnet:
    """A part of a network; `zone` is where it is, a region at Google."""

    id: str
    name: str = ""
    zone: str = ""
    block: str = ""


@dataclass(frozen=True, slots=True)
class FoundNetwork:
    """A network that load balancers can stand in: a VPC of AWS, a network of Google, whose name is its id."""

    id: str
    name: str = ""
    block: str = ""
    subnets: tuple[FoundSubnet, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """One thing of a stack that its cloud has: Terraform's type (`kind`), and the id by which Terraform imports it.

    `address` is what its tag says (`aws_eip.ip_4_subnet_1`). What has no such tag is known by its `parent` (the id of
    what it belongs to) and by `facts`, which are attributes that its resource has in the stack's document.
    """

    kind: str
    id: str
    address: str = ""
    parent: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stranger:
    """What somebody added by hand below a thing of ours (`parent`, its id in the cloud); `message` says what it is."""

    kind: str
    id: str
    parent: str
    message: str


def target_id(group: str, target: str, port: int) -> str:
    """A target of a group has no id of its own: this one stands for it."""
    return f"{group} {target} {port}"


class CloudReader(Protocol):
    """One cloud account in one region. Every call may raise CloudError; none blocks longer than its timeout."""

    def target_health(self) -> Sequence[TargetHealth]:
        """Every target of the groups that are ours."""

    def numbers(self, since: datetime) -> Sequence[Numbers]:
        """Whole minutes since then, oldest first, of the groups and load balancers that are ours."""

    def load_balancers(self) -> Sequence[FoundLoadBalancer]:
        """Load balancers that could be adopted: names and ids only (`described` is empty)."""

    def describe(self, found_id: str) -> FoundLoadBalancer:
        """One of them with all that it does."""

    def regions(self) -> Sequence[str]:
        """The cloud's words for the regions that the account may use."""

    def networks(self) -> Sequence[FoundNetwork]:
        """Networks of the region that a stack could stand in, with their subnets."""

    def buckets(self) -> Sequence[str]:
        """Names of the region's buckets, which access logs can go to."""

    def standing(self, mark: str, kinds: Collection[str]) -> Iterator[Standing]:
        """What carries the mark of a stack, of these kinds and what belongs to them, as it is found; parents first."""

    def strangers(self, known: Collection[str]) -> Iterator[Stranger]:
        """What stands below things of these ids (`target_id` for targets), and has none of them."""
