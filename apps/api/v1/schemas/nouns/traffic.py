"""Load balancers, listeners, routes and certificates."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.api.v1.schemas.derived import serializer_of
from apps.api.v1.schemas.envelopes import Conditioned, Definition, Envelope
from apps.definitions.models import Listener as ListenerRow
from apps.definitions.shapes.traffic.access import NetworkListSpec
from apps.definitions.shapes.traffic.certificate import CertificateSpec
from apps.definitions.shapes.traffic.load_balancer import LoadBalancerSpec
from apps.definitions.shapes.traffic.policy import PolicySpec
from apps.definitions.shapes.traffic.route import RouteSpec


def words_of(model: Any, field: str) -> list[str]:
    """The choices of a column."""
    return [value for value, _ in model._meta.get_field(field).choices]


class LoadBalancer(Definition):
    """A load balancer."""

    kind = words.word(["LoadBalancer"])
    spec = serializer_of(LoadBalancerSpec)()


class FetchedKey(words.Shown):
    """A key of a key set."""

    algorithm = serializers.CharField()
    kid = words.text(128, help_text="The key id; empty where the set names none.")
    gone_at = words.instant(allow_null=True, help_text="When it left the set; null for a key that is in it.")


class KeySet(words.Shown):
    """What is known of the key set at `jwt.jwks_url`."""

    url = serializers.CharField()
    fetched_at = words.instant(allow_null=True, help_text="When the last successful fetch was; null: never.")
    tried_at = words.instant(allow_null=True)
    next_at = words.instant(help_text="When it is fetched again.")
    error = words.text(400, help_text="Why the last try failed; the keys before it still count.")
    ignored = words.text(400, help_text="Entries of the set that verify nothing.")
    keys = FetchedKey(many=True)


class Route(Conditioned):
    """A route."""

    kind = words.word(["Route"])
    spec = serializer_of(RouteSpec)()
    serving = serializers.BooleanField(help_text="False until the hostname is verified.")
    hostname_id = words.ident()
    key_set = KeySet(allow_null=True, help_text="Null where its own rules name no key set.")


class NetworkList(Definition):
    """Networks that policies let in or keep out."""

    kind = words.word(["NetworkList"])
    spec = serializer_of(NetworkListSpec)()


class LiftedBan(words.Sent):
    """The network that leaves a list, or an address alone."""

    network = serializers.CharField(max_length=43)


class Ban(LiftedBan):
    """The network that comes into a list, until when, and why."""

    expires_at = serializers.DateTimeField(required=False, allow_null=True)
    reason = serializers.CharField(required=False, max_length=120, allow_blank=True)


class NetworkListEnvelope(Envelope):
    """A new list of networks."""

    kind = words.word(["NetworkList"], required=False)
    name = words.name()
    spec = serializer_of(NetworkListSpec)()


class Policy(Definition):
    """Settings that many routes share."""

    kind = words.word(["Policy"])
    spec = serializer_of(PolicySpec)()
    key_set = KeySet(allow_null=True, help_text="Null where it names no key set.")


class PolicyEnvelope(Envelope):
    """A new policy."""

    kind = words.word(["Policy"], required=False)
    name = words.name()
    spec = serializer_of(PolicySpec)()


class Certificate(Conditioned):
    """A certificate, with what its chain says."""

    kind = words.word(["Certificate"])
    spec = serializer_of(CertificateSpec)()
    hostnames = serializers.ListField(child=words.hostname())
    fingerprint = serializers.CharField()
    not_before = words.instant()
    not_after = words.instant()


class Listener(words.Shown):
    """A port of a load balancer."""

    may_be_absent = ("certificates", "default_pool")

    id = words.ident()
    name = words.name()
    load_balancer = words.name()
    protocol = words.word(words_of(ListenerRow, "protocol"))
    port = words.port()
    static_ip = words.name(allow_null=True)
    certificates = serializers.ListField(child=words.reference())
    default_pool = words.reference(allow_null=True)


class RouteEnvelope(Envelope):
    """A new route."""

    kind = words.word(["Route"], required=False)
    name = words.name()
    spec = serializer_of(RouteSpec)()


class LoadBalancerEnvelope(Envelope):
    """A new load balancer."""

    kind = words.word(["LoadBalancer"], required=False)
    name = words.name()
    spec = serializer_of(LoadBalancerSpec)()


class CertificateEnvelope(Envelope):
    """A new certificate."""

    kind = words.word(["Certificate"], required=False)
    name = words.name()
    spec = serializer_of(CertificateSpec)()
