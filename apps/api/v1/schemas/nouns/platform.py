"""How far regions are from each other, and how machines are let in as nodes."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words


class MeasuredLatency(words.Shown):
    """The round trip to another region, as nodes measured it."""

    to = words.name()
    ms = words.number(0, 60_000)
    at = words.instant()


class RegionFacts(words.Shown):
    """How far other regions are."""

    measured_latency = MeasuredLatency(many=True)


class NodeToken(words.Shown):
    """What lets one machine in as a node, once; `token` is shown this once."""

    node = words.name(source="node_name")
    fleet = words.name(source="fleet.name")
    expires_at = words.instant()
    token = serializers.CharField()
    command = serializers.CharField(help_text="What to run on the machine.")


class CreateNodeToken(words.Sent):
    """The fleet that the node is to be in, and its tags."""

    fleet = words.name()
    tags = serializers.DictField(child=serializers.CharField(max_length=63), required=False)


class NodeCertificate(words.Shown):
    """A certificate of a node, by its SHA-256."""

    sha256 = serializers.CharField()
    issued_at = words.instant()
    ends_at = words.instant()
    revoked_at = words.instant(allow_null=True)
    revoked_by = words.text(150)


class NodeCertificates(words.Shown):
    """The certificates of a node, the newest first."""

    node = words.name()
    certificates = NodeCertificate(many=True)


class NodeRevoked(words.Shown):
    """How many certificates of a node were revoked."""

    node = words.name()
    revoked = words.count()


class NodeAuthority(words.Shown):
    """An authority of nodes' certificates: whether it signs, and how many nodes still depend on it."""

    id = words.ident()
    created_at = words.instant()
    created_by = words.text(150)
    signs = serializers.BooleanField()
    nodes = words.count()


class NodeAuthorities(words.Shown):
    """The authorities that are believed, the oldest first."""

    authorities = NodeAuthority(many=True)
