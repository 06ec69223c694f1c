"""Places as rows: regions and how far apart, fleets of HAProxy nodes, and the static IPs that listeners bind."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from apps.accounts.models import Account


class Region(models.Model):
    """A place: has fleets and client traffic; coordinates in degrees for distance to the others.

    A drained region takes no traffic, neither its own nor that of others: all of it goes to the next region.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="regions")
    name = models.CharField(max_length=63, unique=True)
    title = models.CharField(max_length=120)
    latitude = models.FloatField(null=True)
    longitude = models.FloatField(null=True)
    drained = models.BooleanField(default=False)
    manager = models.CharField(max_length=63, blank=True, default="")
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


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


class Fleet(models.Model):
    """HAProxy nodes of one region that run the same configuration.

    `desired_generation` rises in the transaction of every change that may concern the fleet; it is the intent.
    `local_development` allows loopback server addresses. The three ports are those of the nodes among themselves, to
    which each node adds its offset: for counting together, for overflow of requests and for that of TCP connections.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="fleets")
    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="fleets")
    name = models.CharField(max_length=63, unique=True)
    local_development = models.BooleanField(default=False)
    peer_port = models.PositiveIntegerField(default=9700)
    overflow_port = models.PositiveIntegerField(default=9800)
    overflow_tcp_port = models.PositiveIntegerField(default=9900)
    desired_generation = models.PositiveBigIntegerField(default=0)
    manager = models.CharField(max_length=63, blank=True, default="")
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """One HAProxy instance with its agent at `url` (`unix:///…` or `https://host:port`).

    Listeners without a static IP are reached at `address`:(port + `port_offset`).
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="nodes")
    fleet = models.ForeignKey(Fleet, on_delete=models.PROTECT, related_name="nodes")
    name = models.CharField(max_length=63, unique=True)
    url = models.CharField(max_length=400)
    address = models.CharField(max_length=45, default="127.0.0.1")
    port_offset = models.PositiveIntegerField(default=0)
    manager = models.CharField(max_length=63, blank=True, default="")
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class StaticIP(models.Model):
    """An address that stays with its owner whatever stands behind it; listeners bind it."""

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="static_ips")
    name = models.CharField(max_length=63, unique=True)
    address = models.GenericIPAddressField(unique=True)
    region = models.ForeignKey(Region, on_delete=models.PROTECT, null=True, related_name="static_ips")
    manager = models.CharField(max_length=63, blank=True, default="")
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ("name",)
        verbose_name = "static IP"

    def __str__(self) -> str:
        return f"{self.name} ({self.address})"
