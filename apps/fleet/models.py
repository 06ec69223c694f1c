"""Topology: regions, fleets of HAProxy nodes, cloud accounts and their stacks, static IPs that listeners bind."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from apps.accounts.models import Account
from apps.accounts.named import Named
from apps.compiler.addresses import ALL_PRIVATE
from apps.compiler.model.stack import AddressKind, Cloud, PlanApproval
from apps.core.clock import now
from apps.fleet.certificates.models import Authority, EnrolmentToken, NodeCertificate

__all__ = [
    "AddressPool", "Authority", "CloudAccount", "EnrolmentToken", "Fleet", "Node", "NodeCertificate", "Region",
    "RegionLatency", "Stack", "StaticIP",
]  # fmt: skip


class Region(Named):
    """A location: has fleets and client traffic; coordinates in degrees for distance to the others.

    A drained region takes no traffic, neither its own nor that of others: all of it goes to the next region.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="regions")
    title = models.CharField(max_length=120)
    latitude = models.FloatField(null=True)
    longitude = models.FloatField(null=True)
    drained = models.BooleanField(default=False)
    drained_at = models.DateTimeField(null=True)  # since when; of no meaning while it is not drained

    def set_drained(self, drained: bool) -> None:
        """Take its traffic away or give it back, and remember since when; the caller saves."""
        self.drained, self.drained_at = drained, now() if drained else None


class RegionLatency(models.Model):
    """Round trip between two regions in ms: what somebody set, and what the nodes of the first measured last.

    It holds for the way back as well, as long as nobody says something else about that.
    """

    from_region = models.ForeignKey(Region, on_delete=models.CASCADE, related_name="latencies")
    to_region = models.ForeignKey(Region, on_delete=models.CASCADE, related_name="latencies_to")
    set_ms = models.FloatField(null=True)
    measured_ms = models.FloatField(null=True)
    measured_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("from_region__name", "to_region__name")
        constraints = (
            models.UniqueConstraint(fields=("from_region", "to_region"), name="one_latency_per_pair"),
            models.CheckConstraint(condition=~Q(from_region=F("to_region")), name="latency_between_two_regions"),
        )

    def __str__(self) -> str:
        return f"{self.from_region} to {self.to_region}"


def all_private() -> list[str]:
    """Every private network: what a fleet allows until an operator says less."""
    return list(ALL_PRIVATE)


class Fleet(Named):
    """HAProxy nodes of one region that run the same configuration.

    `desired_generation` rises in the transaction of every change that may concern the fleet; it is the intent.
    `local_development` allows loopback server addresses; of private networks servers may only be in
    `private_networks` (CIDR). The three ports are those of the nodes among themselves, to
    which each node adds its offset: for counting together, for overflow of requests and for that of TCP connections.
    `node_settings` and `rollout_settings` are documents of their shapes; null is as it always was.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="fleets")
    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="fleets")
    local_development = models.BooleanField(default=False)
    private_networks = models.JSONField(default=all_private)
    peer_port = models.PositiveIntegerField(default=9700)
    overflow_port = models.PositiveIntegerField(default=9800)
    overflow_tcp_port = models.PositiveIntegerField(default=9900)
    node_settings = models.JSONField(null=True)
    rollout_settings = models.JSONField(null=True)
    desired_generation = models.PositiveBigIntegerField(default=0)


class Node(Named):
    """One HAProxy instance with its agent at `url` (`unix:///…` or `https://host:port`).

    Listeners without a static IP are reached at `address`:(port + `port_offset`). `tags` say what it is to those who
    run it, such as its rack; they change nothing of what it runs.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="nodes")
    fleet = models.ForeignKey(Fleet, on_delete=models.PROTECT, related_name="nodes")
    url = models.CharField(max_length=400)
    address = models.CharField(max_length=45, default="127.0.0.1")
    port_offset = models.PositiveIntegerField(default=0)
    tags = models.JSONField(default=dict, db_default={})


class CloudAccount(Named):
    """An account at a cloud, by a reference to its credentials: `env:NAME`, `profile:NAME`, `role:ARN`, or blank.

    A secret is never stored: the reference is resolved in the process that calls the cloud. `project` is Google's word
    for the account, `endpoint_url` replaces the cloud's own API (private clouds, tests).
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="cloud_accounts")
    cloud = models.CharField(max_length=6, choices=[(each.value, each.value) for each in Cloud])
    credentials = models.CharField(max_length=2048, blank=True, default="")
    project = models.CharField(max_length=63, blank=True, default="")
    endpoint_url = models.CharField(max_length=400, blank=True, default="")


class Stack(Named):
    """A part of a cloud account in one of its regions, kept as one Terraform state; an account may have several there.

    `region` is ours, null where the stack stands for all of them (Google's global load balancers); `cloud_region` is
    the cloud's word. `network` is what compiler/model/stack.py calls one (`zones` as an object). `approval` says
    which plans wait for a person: all (by_hand), those that delete or replace something (automatic_safe), or none
    (automatic). `desired_generation` rises in the transaction of every change that may concern the stack.
    """

    Approval = PlanApproval

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="stacks")
    cloud_account = models.ForeignKey(CloudAccount, on_delete=models.PROTECT, related_name="stacks")
    region = models.ForeignKey(Region, on_delete=models.PROTECT, null=True, related_name="stacks")
    cloud_region = models.CharField(max_length=40)
    network = models.JSONField(default=dict)
    approval = models.CharField(
        max_length=14,
        choices=[(each.value, each.name.replace("_", " ").title()) for each in PlanApproval],
        default=PlanApproval.BY_HAND,
    )
    desired_generation = models.PositiveBigIntegerField(default=0)


class AddressPool(Named):
    """Addresses that static IPs may be allotted from: CIDR blocks, of one region or of all."""

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="address_pools")
    region = models.ForeignKey(Region, on_delete=models.PROTECT, null=True, related_name="address_pools")
    blocks = models.JSONField(default=list)


class StaticIP(Named):
    """An address that stays with its owner whatever stands behind it; listeners bind it.

    `address` is null until a cloud has chosen it; `addresses` are all that a cloud allotted (one for each subnet). An
    address of a fleet is given or comes from `pool`. `owner` is whom it was given to: itself an operator's, or a
    customer's, who sees it. A `protected` address is not deleted and no plan releases it. `router_id` (1–255) names a
    vip to VRRP, unique among those of its region.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="static_ips")
    kind = models.CharField(max_length=11, choices=[(each.value, each.value) for each in AddressKind], default="node")
    address = models.GenericIPAddressField(unique=True, null=True)
    addresses = models.JSONField(default=list)
    region = models.ForeignKey(Region, on_delete=models.PROTECT, null=True, related_name="static_ips")
    pool = models.ForeignKey(AddressPool, on_delete=models.PROTECT, null=True, related_name="static_ips")
    stack = models.ForeignKey(Stack, on_delete=models.PROTECT, null=True, related_name="static_ips")
    owner = models.ForeignKey(Account, on_delete=models.PROTECT, null=True, related_name="owned_addresses")
    protected = models.BooleanField(default=False)
    router_id = models.PositiveSmallIntegerField(null=True)

    class Meta(Named.Meta):
        verbose_name = "static IP"

    def __str__(self) -> str:
        return f"{self.name} ({self.address or 'no address yet'})"
