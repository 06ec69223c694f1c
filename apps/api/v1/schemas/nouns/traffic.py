"""Load balancers, listeners, routes and certificates."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.api.v1.schemas.envelopes import Conditioned, Definition, Envelope
from apps.definitions.models import Listener as ListenerRow
from apps.definitions.models import Route as RouteRow
from apps.definitions.shapes.base.words import METHODS


def words_of(model: Any, field: str) -> list[str]:
    """The choices of a column."""
    return [value for value, _ in model._meta.get_field(field).choices]


class ListenerSpec(serializers.Serializer[Any]):
    """Where clients connect; certificates and pools of others are not shown to customers."""

    may_be_absent = ("certificates", "default_pool")

    name = words.name()
    protocol = words.word(words_of(ListenerRow, "protocol"))
    port = words.port()
    static_ip = words.name(required=False, allow_null=True)
    certificates = serializers.ListField(child=words.reference(), max_length=1000, required=False)
    default_pool = words.reference(required=False, allow_null=True)


class LoadBalancerSpec(serializers.Serializer[Any]):
    """A front: the fleets that run it, the stacks that it stands in, and its ports."""

    fleets = words.names_list(required=False)
    stacks = words.names_list(required=False)
    listeners = ListenerSpec(many=True, required=False)


class HeaderCondition(serializers.Serializer[Any]):
    """A header that a request must have."""

    name = serializers.RegexField(r"^[A-Za-z][A-Za-z0-9-]*$", max_length=64)
    match = words.word(["equals", "present", "absent"], required=False)
    value = words.text(256, required=False)


class Share(serializers.Serializer[Any]):
    """A pool's share of a route: its weight out of the sum of the weights."""

    pool = words.reference()
    weight = words.whole(0, 1000, required=False)


class Redirect(serializers.Serializer[Any]):
    """Where a redirect leads: another scheme, host or path."""

    code = words.word([301, 302, 303, 307, 308])
    scheme = words.word(["http", "https"], required=False, allow_null=True)
    host = words.hostname(required=False, allow_null=True)
    path = words.path(required=False, allow_null=True)
    keep_query = serializers.BooleanField(required=False)


class FixedResponse(serializers.Serializer[Any]):
    """An answer that no server gives."""

    status = words.whole(200, 599)
    content_type = serializers.CharField(max_length=128, required=False)
    body = words.text(8192, required=False)


class Action(serializers.Serializer[Any]):
    """What happens: exactly one of the three."""

    may_be_absent = ("pools", "redirect", "fixed_response")

    pools = Share(many=True, required=False)
    redirect = Redirect(required=False)
    fixed_response = FixedResponse(required=False)


class AssertedHeader(serializers.Serializer[Any]):
    """A header of the request that is spoken of."""

    name = serializers.RegexField(r"^[A-Za-z][A-Za-z0-9-]*$", max_length=64)
    value = words.text(256)


class Expectation(serializers.Serializer[Any]):
    """What must happen: exactly one of the four; `redirect` is a location, or true for any."""

    may_be_absent = ("pool", "route", "redirect", "status")

    pool = words.reference(required=False)
    route = words.name(required=False)
    redirect = words.Anything(required=False)
    status = words.whole(200, 599, required=False)


class Assertion(serializers.Serializer[Any]):
    """A request, and what must happen to it: no revision goes out in which it does not."""

    method = words.word(METHODS, required=False)
    host = words.hostname(required=False, allow_null=True)
    path = words.path()
    headers = AssertedHeader(many=True, required=False)
    expect = Expectation()


class RouteSpec(serializers.Serializer[Any]):
    """Hostname and path (and methods, and headers), and what happens to what matches them."""

    load_balancer = words.name()
    hostname = words.hostname()
    path = words.path(required=False)
    path_kind = words.word(words_of(RouteRow, "path_kind"), required=False)
    methods = serializers.ListField(child=words.word(METHODS), max_length=1000, required=False)
    scheme = words.word(
        ["http", "https"], required=False, allow_null=True, help_text="For requests of this scheme only; null for both."
    )
    headers = HeaderCondition(many=True, required=False)
    action = Action()
    prefix_rewrite = words.path(required=False, allow_null=True)
    assertions = serializers.ListField(
        child=Assertion(), max_length=20, required=False, help_text="Left out, they stay as they are."
    )


class CertificateSpec(serializers.Serializer[Any]):
    """A PEM chain and its key; the key is never shown, and may be left out when the stored one still fits."""

    chain = serializers.CharField(max_length=64 * 1024)
    key = serializers.CharField(max_length=64 * 1024, required=False, write_only=True)


class LoadBalancer(Definition):
    """A load balancer."""

    kind = words.word(["LoadBalancer"])
    spec = LoadBalancerSpec()


class Route(Conditioned):
    """A route."""

    kind = words.word(["Route"])
    spec = RouteSpec()
    serving = serializers.BooleanField(help_text="False while the hostname waits for verification.")
    hostname_id = words.ident()


class Certificate(Conditioned):
    """A certificate, with what its chain says."""

    kind = words.word(["Certificate"])
    spec = CertificateSpec()
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
    spec = RouteSpec()


class LoadBalancerEnvelope(Envelope):
    """A new load balancer."""

    kind = words.word(["LoadBalancer"], required=False)
    name = words.name()
    spec = LoadBalancerSpec()


class CertificateEnvelope(Envelope):
    """A new certificate."""

    kind = words.word(["Certificate"], required=False)
    name = words.name()
    spec = CertificateSpec()
