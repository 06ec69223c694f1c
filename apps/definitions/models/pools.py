"""Rows of pools: a service, its servers in each region, how they are checked, and certificates."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Account
from apps.compiler.model import shared as model
from apps.compiler.model.servers import CheckKind, HttpVersion, OverflowMode, ProxyProtocol, Reuse
from apps.definitions.definition import Definition, choices
from apps.definitions.shapes.traffic.pool import LimitSpec, Overflow
from apps.fleet.models import Region


class Certificate(Definition):
    """A PEM chain with its private key; the key is encrypted at rest and never read back through any interface.

    `automatic` is what documents call so (`{hostnames}`), null where somebody brought the chain. Until the first one
    is issued there is no chain, and nobody presents the certificate: `hostnames`, those of the chain, are empty.
    """

    chain_pem = models.TextField(blank=True, default="")
    encrypted_key = models.BinaryField(default=bytes)
    hostnames = models.JSONField(default=list)
    not_before = models.DateTimeField(null=True)
    not_after = models.DateTimeField(null=True)
    fingerprint = models.CharField(max_length=64, blank=True, default="")
    automatic = models.JSONField(null=True)

    @property
    def chain(self) -> str | None:
        """The chain, as documents have it: what was ordered is no part of them."""
        return None if self.automatic else self.chain_pem


class Pool(Definition):
    """One service; a backend in each region says with which servers.

    What a region has no room for goes to the regions of `overflow_order` (names), then to the others, nearest first,
    as far as `overflow_mode` lets it; `when_full` says what happens when no region has any. A grant of a tag
    (`key=value` of `tags`) lets another account see the pool and send its routes to it. The JSON columns from
    `server_tls` on hold objects as documents write them; `client_certificate` is the row that `server_tls` names.
    """

    protocol = models.CharField(max_length=5, choices=choices(model.Protocol), default=model.Protocol.HTTP)
    balance = models.CharField(max_length=10, choices=choices(model.Balance), default=model.Balance.LEASTCONN)
    connect_timeout_ms = models.PositiveIntegerField(default=2000)
    server_timeout_ms = models.PositiveIntegerField(default=30_000)
    queue_timeout_ms = models.PositiveIntegerField(default=10_000)
    server_keepalive_ms = models.PositiveIntegerField(null=True)
    tunnel_timeout_ms = models.PositiveIntegerField(null=True)
    server_tls = models.JSONField(null=True)
    client_certificate = models.ForeignKey(Certificate, on_delete=models.PROTECT, null=True, related_name="pools")
    http_version = models.CharField(max_length=3, choices=choices(HttpVersion), default=HttpVersion.HTTP1)
    host_header = models.CharField(max_length=253, blank=True, default="")
    request_headers = models.JSONField(default=dict)
    proxy_protocol = models.CharField(max_length=4, choices=choices(ProxyProtocol), default=ProxyProtocol.NONE)
    connection_reuse = models.CharField(max_length=6, choices=choices(Reuse), default=Reuse.SAFE)
    persistence = models.JSONField(null=True)
    agent_check = models.JSONField(null=True)
    outlier_ejection = models.JSONField(null=True)
    slow_start_ms = models.PositiveIntegerField(null=True)
    connections = models.JSONField(null=True)
    retries = models.JSONField(null=True)
    objective = models.JSONField(null=True)
    overflow_mode = models.CharField(max_length=8, choices=choices(OverflowMode), default=OverflowMode.ANYWHERE)
    when_full = models.CharField(max_length=6, choices=choices(model.WhenFull), default=model.WhenFull.SPREAD)
    overflow_order = models.JSONField(default=list)
    tags = models.JSONField(default=dict)

    @property
    def overflow(self) -> Overflow:
        """Where its traffic goes that a region has no room for, as documents have it."""
        return Overflow(OverflowMode(self.overflow_mode), model.WhenFull(self.when_full), tuple(self.overflow_order))


class HealthCheck(models.Model):
    """How a pool's servers are asked whether they work; an empty path is a bare TCP connect. Times in ms.

    `headers` are pairs of name and value.
    """

    pool = models.OneToOneField(Pool, on_delete=models.CASCADE, related_name="health_check")
    path = models.CharField(max_length=1024, blank=True, default="")
    method = models.CharField(max_length=10, default="GET")
    host = models.CharField(max_length=253, blank=True, default="")
    expect_status = models.PositiveIntegerField(default=200)
    interval_ms = models.PositiveIntegerField(default=2000)
    timeout_ms = models.PositiveIntegerField(default=2000)
    rise = models.PositiveIntegerField(default=2)
    fall = models.PositiveIntegerField(default=3)
    kind = models.CharField(max_length=10, choices=choices(CheckKind), default=CheckKind.HTTP)
    headers = models.JSONField(default=list)
    body = models.CharField(max_length=512, blank=True, default="")
    expect_statuses = models.JSONField(default=list)
    expect_body = models.CharField(max_length=512, blank=True, default="")
    send = models.CharField(max_length=512, blank=True, default="")
    expect = models.CharField(max_length=512, blank=True, default="")
    service = models.CharField(max_length=255, blank=True, default="")
    user = models.CharField(max_length=32, blank=True, default="")
    port = models.PositiveIntegerField(null=True)

    def __str__(self) -> str:
        return f"check of {self.pool}"


class Backend(models.Model):
    """A pool's share in one region: servers, a limit with where it came from, a capacity scaler (0–1).

    `limit_measured_by` names the capacity run that found the limit; `servers_from` is where servers are looked up.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="backends")
    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="backends")
    limit_kind = models.CharField(max_length=12, choices=choices(model.LimitKind), default=model.LimitKind.NONE)
    limit_value = models.PositiveIntegerField(default=0)
    limit_scope = models.CharField(max_length=8, choices=choices(model.LimitScope), default=model.LimitScope.BACKEND)
    limit_set_by = models.CharField(max_length=150, blank=True, default="")
    limit_set_at = models.DateTimeField(null=True)
    limit_measured_by = models.CharField(max_length=63, blank=True, default="")
    capacity_scaler = models.FloatField(default=1.0)
    servers_from = models.CharField(max_length=400, blank=True, default="", db_default="")

    class Meta:
        ordering = ("region__name",)
        constraints = (models.UniqueConstraint(fields=("pool", "region"), name="one_backend_per_region"),)

    def __str__(self) -> str:
        return f"{self.pool} in {self.region}"

    @property
    def limit(self) -> LimitSpec:
        """What it takes, as documents have it."""
        kind, scope = model.LimitKind(self.limit_kind), model.LimitScope(self.limit_scope)
        return LimitSpec(kind, self.limit_value, scope, self.limit_measured_by)

    def scaled_limit(self, servers: int) -> float:
        """What the region takes of its limit's kind, scaled, with so many servers that a limit per server counts."""
        return scaled_limit(self.limit_value, self.limit_scope, self.capacity_scaler, servers)


def scaled_limit(value: float, scope: str, scaler: float, servers: int) -> float:
    """What a limit means with so many servers that a limit per server counts."""
    return value * (servers if scope == model.LimitScope.SERVER else 1) * scaler


class Server(models.Model):
    """One address that answers, with weight (0–256) and administrative state; its source says that it is `leaving`."""

    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    backend = models.ForeignKey(Backend, on_delete=models.CASCADE, related_name="servers")
    name = models.CharField(max_length=63)
    address = models.CharField(max_length=253)
    port = models.PositiveIntegerField()
    weight = models.PositiveIntegerField(default=100)
    state = models.CharField(max_length=11, choices=choices(model.ServerState), default=model.ServerState.READY)
    backup = models.BooleanField(default=False)
    leaving = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("backend", "name"), name="server_name_in_backend"),
            models.UniqueConstraint(fields=("backend", "address", "port"), name="server_address_in_backend"),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.address}:{self.port})"

    @property
    def usable(self) -> bool:
        """Whether it gets requests as far as definitions say (:func:`apps.definitions.serving.usable`)."""
        return self.state == model.ServerState.READY and self.weight > 0 and not self.leaving
