"""Rows: samples in time buckets, the last report of every node, conditions."""

from __future__ import annotations

from django.db import models

from apps.definitions.models import Pool, Route
from apps.fleet.models import Node


class NodeReport(models.Model):
    """What a node last said it runs, and when it was last reached; the collector keeps it.

    `admitted` is how many requests each node of the region took in the ten seconds before `counted_at`, as far as this
    one was told: `{"pool-17/node-5": 93, "pool-17/node-5/guest": 7}`, without zeros. `peers` says of every other node
    whether the two exchange counters: `{"node-6": true}`. Both are empty where nothing is counted together. `addresses`
    are its static IPs that move: `{"10.0.0.100": "held"}`, or standby, announced, withdrawn. `ticket_secrets` is the
    digest of the secrets of its session tickets; empty where its agent knows of none. `certificate_sha256` (hex) is of
    the certificate that the node showed last; empty where it shows none. `features` are what its HAProxy was built with
    (`["QUIC"]`) and `tls_library` what it runs on, both empty where the agent does not tell; `protocols` are the oldest
    and the newest version of the protocol that the agent speaks (drivers/proxy/protocol.py).
    """

    node = models.OneToOneField(Node, on_delete=models.CASCADE, related_name="report")
    seen_at = models.DateTimeField(null=True)
    generation = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=64, blank=True)
    on_disk = models.CharField(max_length=64, blank=True)
    haproxy_version = models.CharField(max_length=40, blank=True)
    http3 = models.BooleanField(default=False)
    features = models.JSONField(default=list, db_default=[])
    tls_library = models.CharField(max_length=80, blank=True, db_default="")
    protocols = models.JSONField(default=list, db_default=[])
    agent_version = models.CharField(max_length=40, blank=True)
    boot_id = models.CharField(max_length=64, blank=True)
    workers = models.PositiveIntegerField(default=0)
    serving = models.BooleanField(default=False)
    reloads = models.PositiveIntegerField(default=0)
    drift = models.JSONField(default=list)
    addresses = models.JSONField(default=dict)
    ticket_secrets = models.CharField(max_length=64, blank=True)
    certificate_sha256 = models.CharField(max_length=64, blank=True, db_default="")
    certificate_ends_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=1000, blank=True)
    last_contact_error = models.CharField(max_length=400, blank=True)
    admitted = models.JSONField(default=dict)
    peers = models.JSONField(default=dict)
    counted_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"report of {self.node}"


class Sample(models.Model):
    """Numbers observed on one object of one node in one bucket of `resolution` seconds (10 or 60) from `at`.

    Counts are of the bucket (not cumulative) and were made in `seconds` (less than `resolution` where nobody looked for
    a while); `*_now` are the last value seen in it; `latency_buckets` counts requests per upper bound in ms ("-1" is
    above all). `kind` is frontend, rejected (connections that a listener closed at once), backend, server, route, node
    (the sum of a node's frontends) or flow; `object_id` is a model id (`pool-17`, `srv-4`, `lst-2`, `route-9`,
    `node-3`), of a flow `pool-17/to/rgn-2/rate`.
    """

    at = models.DateTimeField()
    resolution = models.PositiveSmallIntegerField()
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="samples")
    kind = models.CharField(max_length=8)
    object_id = models.CharField(max_length=80)
    parent_id = models.CharField(max_length=30, blank=True)
    seconds = models.FloatField(default=0)
    requests = models.PositiveBigIntegerField(default=0)
    status_2xx = models.PositiveBigIntegerField(default=0)
    status_3xx = models.PositiveBigIntegerField(default=0)
    status_4xx = models.PositiveBigIntegerField(default=0)
    status_5xx = models.PositiveBigIntegerField(default=0)
    connections = models.PositiveBigIntegerField(default=0)
    connections_now = models.PositiveIntegerField(default=0)
    queue_now = models.PositiveIntegerField(default=0)
    bytes_in = models.PositiveBigIntegerField(default=0)
    bytes_out = models.PositiveBigIntegerField(default=0)
    errors = models.PositiveBigIntegerField(default=0)
    latency_ms = models.PositiveIntegerField(default=0)
    latency_buckets = models.JSONField(default=dict)
    status = models.CharField(max_length=20, blank=True)
    check_text = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("resolution", "at", "node", "kind", "object_id"), name="one_sample_per_bucket"
            ),
        )
        indexes = (models.Index(fields=("kind", "object_id", "resolution", "at")),)

    def __str__(self) -> str:
        return f"{self.object_id} on {self.node_id} at {self.at:%H:%M:%S}"


class Tally(models.Model):
    """How the requests of what has an objective ended in the five minutes from `at`, or in the whole day (UTC).

    `minutes` are those of which something is known. `failed` of `total` were refused or ended with 5xx. `slow` of
    `timed` took longer than `latency_ms`, the bound of the objective at that time; without one both are zero.
    """

    at = models.DateTimeField()
    whole_day = models.BooleanField(default=False)
    minutes = models.PositiveSmallIntegerField(default=0)
    total = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    latency_ms = models.PositiveIntegerField(null=True)
    timed = models.PositiveBigIntegerField(default=0)
    slow = models.PositiveBigIntegerField(default=0)

    class Meta:
        abstract = True


class PoolTally(Tally):
    """A tally of a pool, made of its samples."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="tallies")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("pool", "whole_day", "at"), name="one_tally_at_a_time"),)
        indexes = (models.Index(fields=("at",)),)

    def __str__(self) -> str:
        return f"{self.pool_id} at {self.at:%H:%M}"


class RouteTally(Tally):
    """A tally of a route, made of its request lines in apps/logs/objectives/; without minutes nothing can be known."""

    route = models.ForeignKey(Route, on_delete=models.CASCADE, related_name="tallies")

    class Meta:
        constraints = (models.UniqueConstraint(fields=("route", "whole_day", "at"), name="one_route_tally_at_a_time"),)
        indexes = (models.Index(fields=("at",)),)

    def __str__(self) -> str:
        return f"{self.route_id} at {self.at:%H:%M}"


class Condition(models.Model):
    """A verdict on an object: type, status, reason (closed list in evaluate/conditions.py), message, since when.

    A status of None means that nobody knows: what was observed is too old. `generation` is the one that the verdict
    speaks about.
    """

    object_kind = models.CharField(max_length=20)
    object_id = models.BigIntegerField()
    type = models.CharField(max_length=20)
    status = models.BooleanField(null=True)
    reason = models.CharField(max_length=40)
    message = models.CharField(max_length=1000)
    generation = models.PositiveBigIntegerField(default=0)
    since = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("object_kind", "object_id", "type"), name="one_verdict_per_type"),
        )

    def __str__(self) -> str:
        return f"{self.type}={self.status} {self.reason}"


class Console(models.Model):
    """A machine of the control plane, as its collector said last: by how much its clock is ahead of the database's."""

    name = models.CharField(max_length=80, unique=True)
    clock_ahead_ms = models.BigIntegerField(default=0)
    heard_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class CollectorMember(models.Model):
    """A collector process, alive until `until` by database time, and what its nodes together say.

    `facts` are those of apps/observe/evaluate/facts.py; `turn` is higher each time they are others.
    """

    holder = models.CharField(max_length=80, unique=True)
    until = models.DateTimeField()
    facts = models.JSONField(default=dict)
    turn = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return self.holder


class CollectorLease(models.Model):
    """Which collector process reads the nodes of a shard, until when (database time); nobody since `until` is over."""

    shard = models.PositiveSmallIntegerField(unique=True)
    holder = models.CharField(max_length=80)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"shard {self.shard}: {self.holder}"
