"""Rows of the way from clients to pools: load balancers, their listeners, routes and policies."""

from __future__ import annotations

from types import SimpleNamespace

from django.db import models
from django.db.models import Q

from apps.accounts.models import Account, Hostname
from apps.compiler.model import shared as model
from apps.compiler.model.listener_options import ClientProtocol
from apps.definitions.definition import Definition, choices
from apps.definitions.models.pools import Certificate, Pool
from apps.fleet.models import Fleet, Stack, StaticIP


class LoadBalancer(Definition):
    """The front: listeners on the nodes of its fleets and in its clouds' stacks, and the routes that they all serve."""

    fleets = models.ManyToManyField(Fleet, related_name="load_balancers")
    stacks = models.ManyToManyField(Stack, related_name="load_balancers")


class Listener(models.Model):
    """Where clients connect: a port on a static IP, or on each node's own address.

    What it is told beyond that (`tls` and the like) are documents of its shape; null is as it always was.
    """

    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    load_balancer = models.ForeignKey(LoadBalancer, on_delete=models.CASCADE, related_name="listeners")
    name = models.CharField(max_length=63)
    protocol = models.CharField(max_length=5, choices=choices(model.Protocol))
    port = models.PositiveIntegerField()
    static_ip = models.ForeignKey(StaticIP, on_delete=models.PROTECT, null=True, related_name="listeners")
    certificates = models.ManyToManyField(Certificate, related_name="listeners")
    default_pool = models.ForeignKey(Pool, on_delete=models.PROTECT, null=True, related_name="listeners")
    default_certificate = models.ForeignKey(Certificate, on_delete=models.PROTECT, null=True, related_name="default_of")
    tls = models.JSONField(null=True)
    client_certificates = models.JSONField(null=True)
    access = models.JSONField(null=True)
    client_address = models.JSONField(null=True)
    connections = models.JSONField(null=True)
    client_limit = models.JSONField(null=True)
    compression = models.JSONField(null=True)
    cache = models.JSONField(null=True)
    tracing = models.JSONField(null=True)
    monitor_path = models.CharField(max_length=1024, null=True)

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("load_balancer", "name"), name="listener_name_in_balancer"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.protocol} :{self.port})"


class SniRoute(models.Model):
    """Connections of TLS to a tcp listener that ask for a hostname, and the pool that gets them.

    With `passthrough` a listener that ends TLS passes these on as they are.
    """

    listener = models.ForeignKey(Listener, on_delete=models.CASCADE, related_name="sni_routes")
    hostname = models.CharField(max_length=253)
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="sni_routes")
    passthrough = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ("hostname",)
        constraints = (models.UniqueConstraint(fields=("listener", "hostname"), name="sni_route_of_listener"),)

    def __str__(self) -> str:
        return f"{self.hostname} → {self.pool}"


class ProtocolRoute(models.Model):
    """Connections to a tcp listener that begin as this protocol, or offer this name of ALPN, and their pool."""

    listener = models.ForeignKey(Listener, on_delete=models.CASCADE, related_name="protocol_routes")
    protocol = models.CharField(max_length=9, choices=choices(ClientProtocol), null=True)
    alpn = models.CharField(max_length=64, blank=True, default="")
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="protocol_routes")

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.protocol or self.alpn} → {self.pool}"


class NetworkList(Definition):
    """Networks `[{network, expires_at?, reason?}]`, or `countries`; at `next_expiry` nodes are told who has left."""

    entries = models.JSONField(default=list)
    countries = models.JSONField(default=list, db_default=[])
    next_expiry = models.DateTimeField(null=True, db_index=True)


class Policy(Definition):
    """Settings that many routes share: `rules` is their document (shapes/traffic/policy.py), by block.

    It holds for the routes that name it, and without being named for all routes of its account (`whole_account`), for
    those of some hostnames, and for all routes of load balancers that are its account's.
    """

    rules = models.JSONField(default=dict)
    whole_account = models.BooleanField(default=False)
    hostnames = models.JSONField(default=list)
    load_balancers = models.ManyToManyField(LoadBalancer, related_name="policies")

    @property
    def default_for(self) -> SimpleNamespace:
        """For whom it holds without being named, as documents have it."""
        return SimpleNamespace(account=self.whole_account, hostnames=self.hostnames, load_balancers=self.load_balancers)


class Route(Definition):
    """Hostname + path (+ methods, headers …) → weighted pools, a redirect or a fixed response.

    `headers`, `query` and `cookies` are `[{name, match, value}]`, `methods` `["GET", …]`, `client_networks` CIDR
    blocks, all of them empty for every request; `scheme` is empty for a route of http and https;
    exactly one of the rows in `pools`, `redirect` and `fixed_response` says what happens, named by `action`.
    `assertions` say of requests what must happen to them, and keep every revision from being pushed in which it does
    not. `rules` are settings of its own (shapes/traffic/policy.py), nearer than those of its policies.
    """

    class Action(models.TextChoices):
        POOLS = "pools"
        REDIRECT = "redirect"
        FIXED_RESPONSE = "fixed_response"

    load_balancer = models.ForeignKey(LoadBalancer, on_delete=models.PROTECT, related_name="routes")
    hostname = models.ForeignKey(Hostname, on_delete=models.PROTECT, related_name="routes")
    path = models.CharField(max_length=1024)
    path_kind = models.CharField(max_length=6, choices=choices(model.PathKind), default=model.PathKind.PREFIX)
    methods = models.JSONField(default=list)
    headers = models.JSONField(default=list)
    query = models.JSONField(default=list)
    cookies = models.JSONField(default=list)
    client_networks = models.JSONField(default=list)
    scheme = models.CharField(max_length=5, blank=True, default="")
    action = models.CharField(max_length=14, choices=Action.choices)
    redirect = models.JSONField(null=True)
    fixed_response = models.JSONField(null=True)
    prefix_rewrite = models.CharField(max_length=1024, null=True)
    assertions = models.JSONField(default=list)
    rules = models.JSONField(null=True)
    objective = models.JSONField(null=True)

    class Meta(Definition.Meta):
        indexes = (
            models.Index(fields=("load_balancer", "hostname", "path")),
            models.Index(fields=("hostname", "path", "id")),
        )

    @property
    def shares(self) -> list[RoutePool]:
        """The weighted pools in the order in which they were made; no query where the selectors brought them along."""
        return [each for each in self._pools if not each.mirror]

    @property
    def mirror(self) -> Pool | None:
        """The pool that gets copies of its requests."""
        return next((each.pool for each in self._pools if each.mirror), None)

    @property
    def _pools(self) -> list[RoutePool]:
        fetched: list[RoutePool] | None = getattr(self, "fetched_pools", None)
        return list(self.pools.select_related("pool__account").order_by("id")) if fetched is None else fetched

    @property
    def policies(self) -> list[Policy]:
        """The policies that it names, nearest first; no query where the selectors brought them along."""
        fetched: list[RoutePolicy] | None = getattr(self, "fetched_policies", None)
        links = self.policy_links.select_related("policy__account").order_by("id") if fetched is None else fetched
        return [link.policy for link in links]


class RoutePool(models.Model):
    """One share of a route: weight (0–1000) out of the sum of the route's weights.

    `mirror` is no share: the pool gets copies of all requests, and its weight is 0.
    """

    route = models.ForeignKey(Route, on_delete=models.CASCADE, related_name="pools")
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="route_shares")
    weight = models.PositiveIntegerField(default=100)
    mirror = models.BooleanField(default=False)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("route", "pool"), name="pool_once_per_route"),
            models.UniqueConstraint(fields=("route",), condition=Q(mirror=True), name="one_mirror_per_route"),
            models.CheckConstraint(condition=Q(weight__lte=1000), name="route_weight_at_most_1000"),
            models.CheckConstraint(condition=Q(mirror=False) | Q(weight=0), name="mirror_has_no_weight"),
        )

    def __str__(self) -> str:
        return f"{self.pool} {self.weight}"


class RoutePolicy(models.Model):
    """A policy that a route names; the older link is nearer."""

    route = models.ForeignKey(Route, on_delete=models.CASCADE, related_name="policy_links")
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="route_links")

    class Meta:
        ordering = ("id",)
        constraints = (models.UniqueConstraint(fields=("route", "policy"), name="policy_once_per_route"),)

    def __str__(self) -> str:
        return f"{self.policy} of {self.route}"
