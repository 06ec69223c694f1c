"""Accounts, regions, fleets, nodes and grants."""

from __future__ import annotations

from apps.api.v1.schemas import words
from apps.api.v1.schemas.derived import serializer_of
from apps.api.v1.schemas.envelopes import Definition, Envelope
from apps.definitions.shapes.platform.account import AccountSpec
from apps.definitions.shapes.platform.topology import FleetSpec, GrantSpec, NodeSpec, RegionSpec


class Account(Definition):
    """An account."""

    kind = words.word(["Account"])
    spec = serializer_of(AccountSpec)()


class MeasuredLatency(words.Shown):
    """The round trip to another region, as nodes measured it."""

    to = words.name()
    ms = words.number(0, 60_000)
    at = words.instant()


class Region(Definition):
    """A region."""

    kind = words.word(["Region"])
    spec = serializer_of(RegionSpec)()
    measured_latency = MeasuredLatency(many=True)


class Fleet(Definition):
    """A fleet."""

    kind = words.word(["Fleet"])
    spec = serializer_of(FleetSpec)()
    desired_generation = words.whole(0, 2**53)


class Node(Definition):
    """A node."""

    kind = words.word(["Node"])
    spec = serializer_of(NodeSpec)()


class Grant(Definition):
    """A grant."""

    kind = words.word(["Grant"])
    spec = serializer_of(GrantSpec)()


class GrantEnvelope(Envelope):
    """A new grant."""

    kind = words.word(["Grant"], required=False)
    name = words.name()
    spec = serializer_of(GrantSpec)()


class AccountEnvelope(Envelope):
    """A new account."""

    kind = words.word(["Account"], required=False)
    name = words.name()
    spec = serializer_of(AccountSpec)()


class RegionEnvelope(Envelope):
    """A new region."""

    kind = words.word(["Region"], required=False)
    name = words.name()
    spec = serializer_of(RegionSpec)()


class FleetEnvelope(Envelope):
    """A new fleet."""

    kind = words.word(["Fleet"], required=False)
    name = words.name()
    spec = serializer_of(FleetSpec)()


class NodeEnvelope(Envelope):
    """A new node."""

    kind = words.word(["Node"], required=False)
    name = words.name()
    spec = serializer_of(NodeSpec)()
