"""Accounts, regions, fleets, nodes and grants."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.accounts.models import Account as AccountRow
from apps.accounts.quotas import DEFAULTS, bounds
from apps.api.v1.schemas import words
from apps.api.v1.schemas.envelopes import Definition, Envelope
from apps.definitions.reading.fleets import MAX_PRIVATE_NETWORKS
from apps.definitions.shapes.base.networks import CIDR


class Quotas(serializers.Serializer[Any]):
    """How many of each an account may have; what is left out is as by default."""

    may_be_absent = tuple(DEFAULTS)

    def get_fields(self) -> dict[str, Any]:
        """One field per quota."""
        return {noun: words.whole(*bounds(noun), required=False) for noun in DEFAULTS}


class AccountSpec(serializers.Serializer[Any]):
    """A tenant."""

    title = words.title()
    kind = words.word(AccountRow.Kind.values, required=False)
    quotas = Quotas(required=False)
    suspended = serializers.BooleanField(required=False)


class LatencySpec(serializers.Serializer[Any]):
    """The round trip to another region, as somebody set it."""

    to = words.name()
    ms = words.number(0, 60_000)


class RegionSpec(serializers.Serializer[Any]):
    """A place; degrees. `drained` and `latency` stay as they are where they are left out."""

    title = words.title()
    latitude = words.number(-90, 90, required=False, allow_null=True)
    longitude = words.number(-180, 180, required=False, allow_null=True)
    drained = serializers.BooleanField(required=False)
    latency = LatencySpec(many=True, required=False)


class FleetSpec(serializers.Serializer[Any]):
    """The nodes of a region that run the same."""

    region = words.name()
    local_development = serializers.BooleanField(required=False)
    private_networks = serializers.ListField(
        child=serializers.RegexField(CIDR),
        required=False,
        max_length=MAX_PRIVATE_NETWORKS,
        help_text="private networks in which servers may be, all of them by default; [] for none",
    )
    peer_port = words.port(required=False)
    overflow_port = words.port(required=False)
    overflow_tcp_port = words.port(required=False)


class NodeSpec(serializers.Serializer[Any]):
    """One HAProxy with its agent."""

    fleet = words.name()
    url = serializers.CharField(max_length=320, help_text="unix:///path/agent.sock or https://host:port")
    address = serializers.CharField(max_length=45, required=False)
    port_offset = words.whole(0, 60_000, required=False)


class GrantSpec(serializers.Serializer[Any]):
    """What an operator lets an account use: exactly one of a hostname and a tag."""

    account = words.name()
    hostname = words.hostname(required=False, allow_null=True)
    tag = serializers.CharField(max_length=127, required=False, allow_null=True)
    may_load_test = serializers.BooleanField(required=False)
    expires_at = words.instant(required=False, allow_null=True)


class Account(Definition):
    """An account."""

    kind = words.word(["Account"])
    spec = AccountSpec()


class MeasuredLatency(words.Shown):
    """The round trip to another region, as nodes measured it."""

    to = words.name()
    ms = words.number(0, 60_000)
    at = words.instant()


class Region(Definition):
    """A region."""

    kind = words.word(["Region"])
    spec = RegionSpec()
    measured_latency = MeasuredLatency(many=True)


class Fleet(Definition):
    """A fleet."""

    kind = words.word(["Fleet"])
    spec = FleetSpec()
    desired_generation = words.whole(0, 2**53)


class Node(Definition):
    """A node."""

    kind = words.word(["Node"])
    spec = NodeSpec()


class Grant(Definition):
    """A grant."""

    kind = words.word(["Grant"])
    spec = GrantSpec()


class GrantEnvelope(Envelope):
    """A new grant."""

    kind = words.word(["Grant"], required=False)
    name = words.name()
    spec = GrantSpec()


class AccountEnvelope(Envelope):
    """A new account."""

    kind = words.word(["Account"], required=False)
    name = words.name()
    spec = AccountSpec()


class RegionEnvelope(Envelope):
    """A new region."""

    kind = words.word(["Region"], required=False)
    name = words.name()
    spec = RegionSpec()


class FleetEnvelope(Envelope):
    """A new fleet."""

    kind = words.word(["Fleet"], required=False)
    name = words.name()
    spec = FleetSpec()


class NodeEnvelope(Envelope):
    """A new node."""

    kind = words.word(["Node"], required=False)
    name = words.name()
    spec = NodeSpec()
