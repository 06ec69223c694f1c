"""What would happen to a request."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.definitions.shapes.base.words import METHODS

REASONS = ["host", "path_kind", "path", "method", "header", "query", "cookie", "client", "scheme", "order"]


class Trace(words.Sent):
    """A request as a client would send it."""

    host = serializers.CharField(max_length=253)
    path = serializers.CharField(max_length=2048, required=False)
    method = words.word(METHODS, required=False)
    scheme = words.word(["http", "https"], required=False)
    headers = serializers.DictField(child=words.text(1024), required=False)
    client = words.text(45, required=False, help_text="The client's address, for routes that match client networks.")
    load_balancer = words.name(required=False)


class TracedRoute(words.Shown):
    """The route that gets it."""

    id = words.ident()
    name = words.reference()
    url = serializers.CharField()


class TracedShare(words.Shown):
    """A pool and the part of such requests that it gets, 0 to 1."""

    pool = words.reference()
    share = words.number(0, 1)


class PassedOver(words.Shown):
    """A route of the same host that does not get it, and why."""

    route = words.reference()
    reason = words.word(REASONS)
    message = serializers.CharField()


class ServedIn(words.Shown):
    """Where the servers are that a region sends it to, null where none is ready."""

    region = words.name()
    pool = words.reference()
    served_in = words.name(allow_null=True)
    ready_servers = words.count()


class TracedTimes(words.Shown):
    """How long it may take at a pool and how often it is sent again, as the route or the pool says."""

    pool = words.reference()
    connect_ms = words.count()
    queue_ms = words.count()
    response_ms = words.count()
    tunnel_ms = words.count(allow_null=True, help_text="Null: one hour.")
    retries = words.count(help_text="Attempts after the first.")
    retried_after = serializers.ListField(child=words.text(16))
    retry_budget_percent = words.whole(1, 100, allow_null=True)


class Traced(words.Shown):
    """What one load balancer does with it."""

    load_balancer = words.name()
    listener = words.name(allow_null=True)
    route = TracedRoute(allow_null=True)
    pools = TracedShare(many=True)
    mirror = words.reference(allow_null=True, help_text="The pool that gets a copy.")
    path = words.text(4096, allow_null=True, help_text="The path that the pool receives.")
    status = words.whole(200, 599, allow_null=True)
    location = serializers.CharField(allow_null=True)
    message = serializers.CharField(source="sentence")
    passed_over = PassedOver(many=True)
    regions = ServedIn(many=True, source="served")
    times = TracedTimes(many=True)
    guards = serializers.ListField(
        child=words.text(16), help_text="Blocks of policies that may reject the request before, such as `jwt`."
    )


class TraceAnswer(words.Shown):
    """What would happen, for each load balancer with routes of the host."""

    answers = Traced(many=True)
    waits_for_verification = serializers.BooleanField(
        help_text="Whether routes of this host go live only when its hostname is verified."
    )
