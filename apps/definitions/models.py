"""Rows: what should be balanced, exactly as people and pipelines said it.

Every row belongs to an account and carries a `version` that rises with each change: the ETag of the API and
the conflict check of the pages. Choices are those of `apps.compiler.model.fleet`, so there is one list of each.
"""

from __future__ import annotations

from enum import StrEnum
from types import SimpleNamespace

from django.db import models
from django.db.models import Q

from apps.accounts.models import Account, Hostname
from apps.compiler.model import shared as model
from apps.compiler.model.servers import CheckKind, HttpVersion, OverflowMode, ProxyProtocol, Reuse
from apps.compiler.model.stack import RecordType
from apps.definitions.alerting.models import AlertChannel as AlertChannel  # noqa: PLC0414 - Django looks for rows here
from apps.definitions.alerting.models import AlertRule as AlertRule  # noqa: PLC0414
from apps.definitions.alerting.models import StatusPage as StatusPage  # noqa: PLC0414
from apps.definitions.countries.models import Country as Country  # noqa: PLC0414 - as above
from apps.definitions.definition import Definition
from apps.definitions.issuing.models import CertificateAuthority as CertificateAuthority  # noqa: PLC0414 - as above
from apps.definitions.issuing.models import CertificateOrder as CertificateOrder  # noqa: PLC0414
from apps.definitions.key_sets.models import KeySet as KeySet  # noqa: PLC0414 - Django looks for rows here
from apps.definitions.server_sources.models import Heartbeat as Heartbeat  # noqa: PLC0414 - as above
from apps.definitions.server_sources.models import ServerSource as ServerSource  # noqa: PLC0414 - as above
from apps.definitions.shapes.traffic.pool import LimitSpec, Overflow
from apps.definitions.shapes.traffic.zone import ZoneDriver
from apps.definitions.writing.stored_plan import StoredPlan as StoredPlan  # noqa: PLC0414 - as above
from apps.fleet.models import Fleet, Region, Stack, StaticIP


def _choices(enum: type[StrEnum]) -> list[tuple[str, str]]:
    return [(member.value, member.value) for member in enum]


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

    protocol = models.CharField(max_length=5, choices=_choices(model.Protocol), default=model.Protocol.HTTP)
    balance = models.CharField(max_length=10, choices=_choices(model.Balance), default=model.Balance.LEASTCONN)
    connect_timeout_ms = models.PositiveIntegerField(default=2000)
    server_timeout_ms = models.PositiveIntegerField(default=30_000)
    queue_timeout_ms = models.PositiveIntegerField(default=10_000)
    server_keepalive_ms = models.PositiveIntegerField(null=True)
    tunnel_timeout_ms = models.PositiveIntegerField(null=True)
    server_tls = models.JSONField(null=True)
    client_certificate = models.ForeignKey(Certificate, on_delete=models.PROTECT, null=True, related_name="pools")
    http_version = models.CharField(max_length=3, choices=_choices(HttpVersion), default=HttpVersion.HTTP1)
    host_header = models.CharField(max_length=253, blank=True, default="")
    request_headers = models.JSONField(default=dict)
    proxy_protocol = models.CharField(max_length=4, choices=_choices(ProxyProtocol), default=ProxyProtocol.NONE)
    connection_reuse = models.CharField(max_length=6, choices=_choices(Reuse), default=Reuse.SAFE)
    persistence = models.JSONField(null=True)
    agent_check = models.JSONField(null=True)
    outlier_ejection = models.JSONField(null=True)
    slow_start_ms = models.PositiveIntegerField(null=True)
    connections = models.JSONField(null=True)
    retries = models.JSONField(null=True)
    objective = models.JSONField(null=True)
    overflow_mode = models.CharField(max_length=8, choices=_choices(OverflowMode), default=OverflowMode.ANYWHERE)
    when_full = models.CharField(max_length=6, choices=_choices(model.WhenFull), default=model.WhenFull.SPREAD)
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
    kind = models.CharField(max_length=10, choices=_choices(CheckKind), default=CheckKind.HTTP)
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
    limit_kind = models.CharField(max_length=12, choices=_choices(model.LimitKind), default=model.LimitKind.NONE)
    limit_value = models.PositiveIntegerField(default=0)
    limit_scope = models.CharField(max_length=8, choices=_choices(model.LimitScope), default=model.LimitScope.BACKEND)
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

    def scaled_limit(self, ready: int) -> float:
        """What the region takes of its limit's kind, scaled, with this many servers that are ready."""
        return scaled_limit(self.limit_value, self.limit_scope, self.capacity_scaler, ready)


def scaled_limit(value: float, scope: str, scaler: float, ready: int) -> float:
    """What a limit means with this many servers that are ready."""
    servers = ready if scope == model.LimitScope.SERVER else 1
    return value * servers * scaler


class Server(models.Model):
    """One address that answers, with weight (0–256) and administrative state; its source says that it is `leaving`."""

    account = models.ForeignKey(Account, on_delete=models.PROTECT)
    backend = models.ForeignKey(Backend, on_delete=models.CASCADE, related_name="servers")
    name = models.CharField(max_length=63)
    address = models.CharField(max_length=253)
    port = models.PositiveIntegerField()
    weight = models.PositiveIntegerField(default=100)
    state = models.CharField(max_length=11, choices=_choices(model.ServerState), default=model.ServerState.READY)
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
    protocol = models.CharField(max_length=5, choices=_choices(model.Protocol))
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
    path_kind = models.CharField(max_length=6, choices=_choices(model.PathKind), default=model.PathKind.PREFIX)
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


class Schedule(Definition):
    """When something should happen: at most one of `cron`, `every_s` and `at`; none of them waits for its trigger.

    `at` is a local time of `zone` without offset. `target` is the document of its kind, as its shape says. `next_at` is
    the next instant that no scheduler has booked yet (UTC, None for never); it and `missed` move without a new version.
    Times in whole seconds; `starts_at` and `ends_at` bound the instants, the end excluded.
    """

    class Overlap(models.TextChoices):
        SKIP = "skip"
        QUEUE = "queue"
        ALLOW = "allow"

    class CatchUp(models.TextChoices):
        SKIP = "skip"
        ONCE = "once"
        ALL = "all"

    class TargetKind(models.TextChoices):
        WEBHOOK = "webhook"
        TOPIC = "topic"
        CAPACITY_TEST = "capacity_test"
        ROLLOUT = "rollout"
        CHANGE = "change"

    cron = models.CharField(max_length=200, blank=True, default="")
    every_s = models.PositiveIntegerField(null=True)
    at = models.CharField(max_length=19, blank=True, default="")
    zone = models.CharField(max_length=63, default="UTC")
    starts_at = models.DateTimeField(null=True)
    ends_at = models.DateTimeField(null=True)
    window_s = models.PositiveIntegerField(default=0)
    jitter_s = models.PositiveIntegerField(default=0)
    overlap = models.CharField(max_length=5, choices=Overlap.choices, default=Overlap.SKIP)
    catch_up = models.CharField(max_length=4, choices=CatchUp.choices, default=CatchUp.ONCE)
    catch_up_window_s = models.PositiveIntegerField(default=300)
    attempts = models.PositiveIntegerField(default=3)
    backoff_s = models.PositiveIntegerField(default=5)
    timeout_s = models.PositiveIntegerField(default=30)
    paused = models.BooleanField(default=False)
    target_kind = models.CharField(max_length=13, choices=TargetKind.choices)
    target = models.JSONField(default=dict)
    next_at = models.DateTimeField(null=True)
    missed = models.PositiveIntegerField(default=0)

    class Meta(Definition.Meta):
        indexes = (models.Index(fields=("next_at",), condition=Q(paused=False), name="schedules_due"),)


class CapacityTest(Definition):
    """What to load and how: a pool in a region through its load balancer, or one of its servers directly.

    `hostname` and `path` are what the generators ask for; an empty `server` means through the load balancer. `load`,
    `objective`, `guards` and `policy` are documents (shapes/operations/capacity_test.py).
    """

    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="capacity_tests")
    region = models.ForeignKey(Region, on_delete=models.PROTECT, related_name="capacity_tests")
    hostname = models.CharField(max_length=253)
    path = models.CharField(max_length=1024, default="/")
    server = models.CharField(max_length=63, blank=True, default="")
    load = models.JSONField(default=dict)
    objective = models.JSONField(default=dict)
    guards = models.JSONField(default=dict)
    policy = models.JSONField(default=dict)

    @property
    def target(self) -> CapacityTest:
        """What is loaded, as documents have it: pool, region, hostname, path, server."""
        return self


class Zone(Definition):
    """A DNS zone of the operator: `domain` (no final dot), which server serves it, and how it is written there.

    `driver` rfc2136 (server `host:port`, TSIG key `key_name`), powerdns (server is the URL of its API), route53 (the
    `stack` keeps it), or memory (tests). `credentials` is a reference (`env:NAME`). A grant of a tag (`key=value` of
    `tags`) lets another account see the zone and keep records of its own in it. `resolvers` are asked what is really
    served (`address` or `address:port`). `desired_generation` rises with every change of the zone or its records.
    """

    Driver = ZoneDriver

    domain = models.CharField(max_length=253, unique=True)
    driver = models.CharField(max_length=8, choices=[(each.value, each.name.title()) for each in Driver])
    server = models.CharField(max_length=400, blank=True, default="")
    key_name = models.CharField(max_length=253, blank=True, default="")
    key_algorithm = models.CharField(max_length=20, blank=True, default="hmac-sha256")
    credentials = models.CharField(max_length=2048, blank=True, default="")
    stack = models.ForeignKey(Stack, on_delete=models.PROTECT, null=True, related_name="zones")
    resolvers = models.JSONField(default=list)
    tags = models.JSONField(default=dict)
    desired_generation = models.PositiveBigIntegerField(default=0)


class Record(Definition):
    """One set of DNS records of a zone: all values of one name and type.

    `label` is the name below the zone's domain (`www`, `*.api`, `@` for the domain itself). Exactly one of `values`,
    `static_ip` (the record follows the address) and `load_balancer` (its addresses; an alias on Route 53) says what
    is served.
    """

    zone = models.ForeignKey(Zone, on_delete=models.PROTECT, related_name="records")
    label = models.CharField(max_length=253)
    type = models.CharField(max_length=5, choices=_choices(RecordType))
    ttl = models.PositiveIntegerField(default=300)
    values = models.JSONField(default=list)
    static_ip = models.ForeignKey(StaticIP, on_delete=models.PROTECT, null=True, related_name="records")
    load_balancer = models.ForeignKey(LoadBalancer, on_delete=models.PROTECT, null=True, related_name="records")
    tags = models.JSONField(default=dict)

    class Meta(Definition.Meta):
        constraints = (  # type: ignore[assignment]  # one more than every definition has
            *Definition.Meta.constraints,
            models.UniqueConstraint(fields=("zone", "label", "type"), name="one_record_set_per_name_and_type"),
        )
        indexes = (models.Index(fields=("zone", "label", "type")),)
