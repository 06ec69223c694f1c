"""Runs of capacity tests with what they measured, comparisons, blackouts and sizing."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.capacity.models import Run as RunRow


class CapacityRun(words.Shown):
    """One run; `plan` is the test as it was, `result` what was found (null before).

    `generator` is up to which rate (requests/s) it keeps what it is asked for within 1 %, as it found out before the
    first packet, with the circumstances; null before.
    """

    id = words.ident()
    name = words.name()
    account = words.name(source="account.name")
    test = words.name(allow_null=True, source="test.name")
    test_id = serializers.IntegerField(allow_null=True)
    pool = words.name(allow_null=True, source="pool.name")
    pool_id = serializers.IntegerField(allow_null=True)
    region = words.name(allow_null=True, source="region.name")
    comparison_id = serializers.IntegerField(allow_null=True)
    state = words.word(RunRow.State.values)
    terminal = serializers.BooleanField()
    waits_for_approval = serializers.BooleanField()
    phase = words.text(400)
    message = words.text(400)
    actor = serializers.CharField()
    approved_by = words.text(150)
    stopped_by = words.text(150)
    created_at = words.instant()
    started_at = words.instant(allow_null=True)
    ended_at = words.instant(allow_null=True)
    plan = words.Anything()
    generator = words.Anything()
    result = words.Anything()
    limit_set_at = words.instant(allow_null=True)
    limit_set_by = words.text(150)


class CreateRun(words.Sent):
    """Operators may approve with the request what would wait for them."""

    approve = serializers.BooleanField(required=False)


class SetLimit(words.Sent):
    """What is taken off the measured capacity first (0–0.9); the test's policy says it where it is left out."""

    margin = words.number(0, 0.9, required=False)


class Check(words.Shown):
    """One question before a run; a `passing` no may be a yes in a moment."""

    code = serializers.CharField()
    ok = serializers.BooleanField()
    message = serializers.CharField()
    passing = serializers.BooleanField()


class Checks(words.Shown):
    """Whether a test may run now."""

    may_run = serializers.BooleanField()
    checks = Check(many=True)


class CapacityStep(words.Shown):
    """One rate that was held; `histogram` is HDR, base64, microseconds."""

    ordinal = words.count()
    purpose = serializers.CharField()
    rate = words.share_of_traffic()
    users = words.count()
    started_at = words.instant()
    seconds = serializers.FloatField()
    offered = words.share_of_traffic()
    answered = words.share_of_traffic()
    errors = words.Anything()  # type: ignore[assignment] # a field, not the serializer's own property
    error_rate = serializers.FloatField()
    p50_ms = serializers.FloatField(allow_null=True)
    p95_ms = serializers.FloatField(allow_null=True)
    p99_ms = serializers.FloatField(allow_null=True)
    max_ms = serializers.FloatField(allow_null=True)
    histogram = words.text(1_000_000)
    status = serializers.CharField()
    message = words.text(400)


class CapacitySecond(words.Shown):
    """One second of a run: counts of that second, latencies in ms."""

    at = words.instant()
    target = words.share_of_traffic()
    offered = words.count()
    answered = words.count()
    errors = words.count()  # type: ignore[assignment] # as above
    in_flight = words.count()
    p50_ms = serializers.FloatField(allow_null=True)
    p95_ms = serializers.FloatField(allow_null=True)
    p99_ms = serializers.FloatField(allow_null=True)


class Blackout(words.Shown):
    """From when until when nothing may be tested, whoever it belongs to."""

    id = words.ident()
    starts_at = words.instant()
    ends_at = words.instant()
    reason = words.text(200)
    set_by = serializers.CharField()
    set_at = words.instant()


class CreateBlackout(words.Sent):
    """A new blackout."""

    starts_at = words.instant()
    ends_at = words.instant()
    reason = serializers.CharField(max_length=200)


class Comparison(words.Shown):
    """Two tests in turn, A B A B; `result` has the differences with their confidence, null while they run."""

    id = words.ident()
    account = words.name(source="account.name")
    first = words.name(source="first.name")
    first_id = words.ident()
    second = words.name(source="second.name")
    second_id = words.ident()
    rounds = words.count()
    actor = serializers.CharField()
    created_at = words.instant()
    runs = serializers.ListField(child=serializers.IntegerField())
    result = words.Anything()


class CreateComparison(words.Sent):
    """Which tests to compare, and how often each is run."""

    first_id = words.ident()
    second_id = words.ident()
    rounds = words.whole(1, 100, required=False)


class Need(words.Shown):
    """One region: servers now and needed, what they take (requests/s), what they cost more, and doubts."""

    region = words.name()
    servers = words.count()
    needed = words.count()
    more = serializers.IntegerField()
    takes = words.share_of_traffic()
    per_server = words.share_of_traffic()
    source = serializers.CharField(allow_blank=True)  # type: ignore[assignment] # a field of ours, too
    doubt = serializers.CharField(allow_blank=True)
    cost = serializers.FloatField(allow_null=True)


class ServerShare(words.Shown):
    """One server's share of its region: of the requests, and what its weight asks for (0 to 1)."""

    server = words.name()
    requests = words.count()
    share = words.number(0, 1)
    due = words.number(0, 1)
    error_rate = words.number(0, 1)


class Balance(words.Shown):
    """How a region's servers shared the last ten minutes; `spread` is the busiest against the idlest, by due."""

    region = words.name()
    status = words.word(("even", "uneven", "unknown"))
    message = serializers.CharField()
    shares = ServerShare(many=True)
    spread = serializers.FloatField(allow_null=True)
    requests = words.count()


class Sizing(words.Shown):
    """How many servers a rate needs; `possible` is false where nothing was ever measured."""

    possible = serializers.BooleanField()
    message = serializers.CharField()
    rate = words.share_of_traffic()
    n_minus_1 = serializers.BooleanField()
    needs = Need(many=True)
    doubts = serializers.ListField(child=serializers.CharField())
    cost = serializers.FloatField(allow_null=True)
    takes_now = serializers.FloatField(allow_null=True)
    balance = Balance(many=True)
