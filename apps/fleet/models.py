"""Places as rows: regions, fleets of HAProxy nodes, and the static IPs that listeners bind."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Account


class Region(models.Model):
    """A place: has fleets and client traffic; coordinates in degrees for distance to the others."""

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="regions")
    name = models.CharField(max_length=63, unique=True)
    title = models.CharField(max_length=120)
    latitude = models.FloatField(null=True)
    longitude = models.FloatField(null=True)
    manager = models.CharField(max_length=63, blank=True, default="")
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Fleet(models.Model):
    """HAProxy nodes of one region that run the same configuration.

    `desired_generation` rises in the transaction of every change that may concern the fleet; it is the intent.
    `local_development` allows loopback server addresses.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="fleets")
    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="fleets")
    name = models.CharField(max_length=63, unique=True)
    local_development = models.BooleanField(default=False)
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
