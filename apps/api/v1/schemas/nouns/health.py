"""The health of pools and their servers, of fleets and their nodes; how objectives are met."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words

POOL_STATUSES = ("healthy", "degraded", "down", "unknown")
NODE_STATUSES = ("healthy", "degraded", "unreachable", "unknown")
COUNTED_IN = {"pool": "node_counters", "route": "request_lines"}
SERVER_STATUSES = ("up", "down", "drain", "maintenance", "unchecked", "unknown")


class Traffic(words.Shown):
    """What is served now, over about ten seconds; null where nothing was measured, `stale` where it was long ago."""

    requests_rps = serializers.FloatField(allow_null=True)
    error_rate = serializers.FloatField(allow_null=True, help_text="Share of 5xx responses, 0 to 1.")
    p95_ms = serializers.FloatField(allow_null=True)
    connections = serializers.IntegerField(allow_null=True)
    age_s = serializers.FloatField(allow_null=True)
    stale = serializers.BooleanField()
    incomplete = serializers.BooleanField(
        source="partial", help_text="Whether a node that may serve some of it is silent: it is at least so much."
    )


class ServerHealth(words.Shown):
    """A server as one node sees it."""

    id = words.ident(source="server_id")
    name = words.name()
    region = words.name()
    node = serializers.CharField()
    status = words.word(SERVER_STATUSES)
    message = serializers.CharField(
        allow_blank=True, source="check_text", help_text="The result of HAProxy's last health check."
    )
    traffic = Traffic(source="numbers")


class PoolHealth(words.Shown):
    """A pool and its servers; `unknown` while no collector looks."""

    pool = words.reference()
    status = words.word(POOL_STATUSES, source="health")
    message = serializers.CharField(allow_blank=True)
    since = words.instant(allow_null=True)
    servers_up = words.count(
        allow_null=True, help_text="Null where nobody knows of any server whether it is up: it has no health check."
    )
    servers_total = words.count()
    traffic = Traffic(source="numbers")
    servers = ServerHealth(many=True)


class Verdict(words.Shown):
    """A verdict: `status` false is bad, null is not known."""

    type = serializers.CharField(help_text="Reachable, Serving, Supported, AgentSupported, TakesChanges, ClockRight, …")
    status = serializers.BooleanField(allow_null=True)
    reason = serializers.CharField(help_text="A stable code for programs.")
    message = serializers.CharField(allow_blank=True)
    since = words.instant()


class NodeHealth(words.Shown):
    """A node as it last spoke."""

    node = words.name()
    status = words.word(NODE_STATUSES)
    message = serializers.CharField(allow_blank=True)
    last_seen_at = words.instant(allow_null=True, source="seen_at")
    running_generation = words.count()
    haproxy_version = serializers.CharField(allow_blank=True)
    agent_version = serializers.CharField(allow_blank=True)
    drift = serializers.ListField(child=serializers.CharField())
    conditions = Verdict(many=True)
    traffic = Traffic(source="numbers")


class FleetHealth(words.Shown):
    """Every node of a fleet."""

    fleet = words.name()
    nodes = NodeHealth(many=True)


class ConsoleHealth(words.Shown):
    """A machine of the control plane that was heard of in the last minute."""

    console = serializers.CharField()
    conditions = Verdict(many=True)


class ConsolesHealth(words.Shown):
    """All of them."""

    consoles = ConsoleHealth(many=True)


class BurnRate(words.Shown):
    """How fast the error budget was used in a window: 1 uses it up in exactly 28 days, null is not known."""

    window = words.word(("5m", "30m", "1h", "6h", "3d"))
    rate = serializers.FloatField(allow_null=True)


class ObjectiveAim(words.Shown):
    """One half of an objective over 28 days; null is not known."""

    aim = words.word(("availability", "latency"), source="word")
    target = serializers.FloatField(help_text="Percent of the requests.")
    reached = serializers.FloatField(allow_null=True, help_text="Percent of the requests.")
    requests = words.count()
    missed = words.count()
    budget_remaining = serializers.FloatField(
        allow_null=True, help_text="1 is all of the error budget, 0 nothing, below it is overspent."
    )
    burn_rates = BurnRate(many=True)


class ObjectiveDay(words.Shown):
    """What was counted on a day (UTC): `failed` of `requests`, `slow` of `timed`."""

    day = serializers.DateField()
    requests = words.count(source="total")
    failed = words.count()
    timed = words.count()
    slow = words.count()


class ObjectiveStanding(words.Shown):
    """How a pool or a route stands to its objective.

    `known_percent` of the 28 days are counted. `complete` is false while something is missing or unknown, which
    `message` says.
    """

    counted_in = words.word(tuple(COUNTED_IN.values()))
    known_percent = serializers.FloatField(source="known")
    complete = serializers.BooleanField()
    message = serializers.CharField(allow_blank=True)
    latency_ms = serializers.IntegerField(allow_null=True)
    aims = ObjectiveAim(many=True)
    days = ObjectiveDay(many=True)
