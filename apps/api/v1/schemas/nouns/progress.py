"""Revisions, rollouts, replacements of servers, canaries, and the flow of overflow."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.api.v1.schemas.writing import WaitsFor
from apps.canaries.models import Canary as CanaryRow
from apps.definitions.shapes.kinds import SHAPES
from apps.replacements.models import ReplacedServer as ReplacedServerRow
from apps.replacements.models import Replacement as ReplacementRow
from apps.rollouts.models import Rollout as RolloutRow
from apps.rollouts.push.states import RolloutState, StepState


class Revision(words.Shown):
    """A numbered snapshot of a fleet; what was left out of it, and why."""

    id = words.ident()
    fleet = words.name(source="fleet.name")
    number = words.whole(1, 2**31)
    digest = serializers.CharField()
    summary = words.Anything()
    actor = serializers.CharField()
    quarantined = words.Anything()
    created_at = words.instant()


class Step(words.Shown):
    """What happened on one node."""

    node = words.name(source="node.name")
    wave = words.count()
    state = words.word(StepState.values)
    how = words.text(400)
    generation = words.count()
    message = words.text(100_000)
    started_at = words.instant(allow_null=True)
    finished_at = words.instant(allow_null=True)


class Gate(words.Shown):
    """The verdict on the nodes of a wave after they were watched."""

    wave = words.whole(1, 100)
    passed = serializers.BooleanField()
    message = words.text(100_000)
    at = words.instant()


class Rollout(words.Shown):
    """One rollout of a revision to the nodes of its fleet; `terminal` says whether it is over."""

    id = words.ident()
    fleet = words.name(source="fleet.name")
    revision = words.whole(1, 2**31, source="revision.number")
    revision_id = words.ident()
    previous = words.whole(1, 2**31, allow_null=True, source="previous.number")
    kind = words.word(RolloutRow.Kind.values)
    generation = words.count()
    state = words.word(RolloutState.values)
    terminal = serializers.BooleanField()
    actor = serializers.CharField()
    reason = words.text(400)
    message = words.text(100_000)
    object = words.text(400, source="object_label", help_text="The rejected object.")
    line = words.text(100_000, help_text="The rejected line.")
    wave = words.whole(
        0,
        100,
        help_text="Nodes of this wave and of earlier ones may have the revision; 0 while earlier stages come first.",
    )
    waves = words.whole(1, 100)
    soaks_until = words.instant(allow_null=True, help_text="The nodes of the wave are watched at least until then.")
    gates = Gate(many=True)
    created_at = words.instant()
    finished_at = words.instant(allow_null=True)
    steps = Step(many=True)


class Quarantined(words.Shown):
    """An object that nodes of a fleet refuse: it runs as it was before, or not at all."""

    id = words.ident()
    fleet = words.name(source="fleet.name")
    kind = words.word(("Certificate", "Pool", "Route", "Server"))
    object = words.text(400, source="label", help_text="`account/name`; for a server `account/pool/server`.")
    message = words.text(1000)
    haproxy_versions = serializers.ListField(
        child=serializers.CharField(), help_text="The version on the nodes at that time."
    )
    since = words.instant()


class ChangedObject(words.Shown):
    """One object of a change."""

    action = words.word(("create", "update", "delete"))
    kind = words.word(list(SHAPES))
    account = words.name(allow_null=True)
    name = words.text(400)


class FleetProgress(words.Shown):
    """How far a change has come on one fleet."""

    fleet = words.name()
    state = words.word(RolloutState.values)
    terminal = serializers.BooleanField()
    nodes = words.count()
    nodes_done = words.count()
    created_at = words.instant()
    finished_at = words.instant(allow_null=True)


class ChangeProgress(words.Shown):
    """What one request of the caller changed, whether that is live, and what it waits for."""

    change = serializers.CharField()
    at = words.instant(allow_null=True)
    objects = ChangedObject(many=True)
    live = serializers.BooleanField()
    waits_for = WaitsFor(many=True)
    rollouts = FleetProgress(many=True)


class Capacity(words.Shown):
    """What a pool may take in a region, and where the number comes from; null without a limit.

    Null as well for several pools together, because the room of one is of no use to another.
    """

    rps = words.share_of_traffic(allow_null=True, source="capacity_rps")
    unlimited = serializers.BooleanField()
    in_flight = words.whole(0, 2**53, allow_null=True)
    in_flight_limit = words.whole(0, 2**53, allow_null=True, source="flight_limit")
    set_by = words.text(400, source="capacity_set_by")
    set_at = words.instant(allow_null=True, source="capacity_set_at")
    measured_by = words.text(400)


class PoolUse(words.Shown):
    """One of several pools in a region; `used` is the part of its limit that it uses, 1 is all of it."""

    pool = serializers.CharField()
    served_rps = words.share_of_traffic()
    overflow_out_rps = words.share_of_traffic()
    rejected_rps = words.share_of_traffic()
    capacity = Capacity()
    used = words.share_of_traffic(allow_null=True)
    healthy = serializers.BooleanField()


class RegionFlow(words.Shown):
    """One region: what its clients want, what became of it, and what came from others; per second."""

    region = serializers.CharField()
    demand_rps = words.share_of_traffic()
    local_rps = words.share_of_traffic()
    served_rps = words.share_of_traffic()
    overflow_out_rps = words.share_of_traffic()
    overflow_in_rps = words.share_of_traffic()
    rejected_rps = words.share_of_traffic()
    capacity = Capacity()
    pools = words.count()
    pools_at_limit = words.count()
    pools_down = words.count()
    worst_pools = PoolUse(many=True, help_text="With several pools, up to 20, worst first.")
    drained = serializers.BooleanField()
    healthy = serializers.BooleanField()
    reasons = serializers.ListField(child=serializers.CharField())


def _lane() -> dict[str, serializers.Field]:  # type: ignore[type-arg] # generic in the stubs only
    return {
        "from": words.name(),
        "to": words.name(),
        "rps": words.share_of_traffic(),
        "added_ms": words.number(0, 10**6, allow_null=True),
        "reason": words.text(63),
    }


class Lane(words.Shown):
    """Traffic of one region's clients that another region serves."""

    def get_fields(self) -> dict[str, serializers.Field]:  # type: ignore[type-arg] # generic in the stubs only
        """Written as a mapping: `from` is a word of Python."""
        return _lane()


class Flow(words.Shown):
    """Who is served where; `at` null means that nothing was measured."""

    at = words.instant(allow_null=True)
    age_s = words.number(0, 10**9, allow_null=True)
    stale = serializers.BooleanField()
    unread_regions = serializers.ListField(
        child=serializers.CharField(),
        help_text="Regions with a silent node: it is at least so much.",
    )
    rejected_rps = words.share_of_traffic()
    regions = RegionFlow(many=True)
    lanes = Lane(many=True)


class FlowAnswer(words.Shown):
    """The flow, beside the plan for the same client traffic (not for a moment in the past)."""

    may_be_absent = ("predicted", "prediction_error")

    pool = words.reference(allow_null=True)
    actual = Flow()
    predicted = Flow()
    prediction_error = serializers.FloatField(allow_null=True)


class WhatIf(words.Sent):
    """What would be if: regions failed or drained, traffic times a factor, other limits."""

    pool = serializers.CharField(required=False, allow_blank=True, help_text="`account/name`. Default: all pools.")
    factor = words.number(0, 1000, required=False)
    failed_regions = serializers.ListField(child=words.name(), required=False)
    drained_regions = serializers.ListField(child=words.name(), required=False)
    limits = serializers.DictField(child=words.number(0, 1_000_000), required=False, help_text="Requests/s by region.")


class Simulation(words.Shown):
    """The current flow, the predicted one, and the differences in sentences."""

    current = Flow()
    predicted = Flow()
    differences = words.Anything()


class ReplacedServer(words.Shown):
    """One server of a replacement; `handed_over` says that its owner was asked to replace it."""

    region = words.name()
    name = words.name()
    address = serializers.CharField(allow_null=True, source="server.address")
    port = words.port(allow_null=True, source="server.port")
    state = words.word(ReplacedServerRow.State.values)
    batch = words.count(allow_null=True)
    handed_over = serializers.BooleanField()
    message = words.text(400)


class Replacement(words.Shown):
    """Servers of a pool that are replaced batch by batch; `plan` is what was asked for.

    While `waits_for_owner`, the servers that are `out` get no request: replace them, then continue with this `batch`.
    """

    id = words.ident()
    url = words.Url("replacements")
    account = words.name(source="account.name")
    pool = words.name(allow_null=True, source="pool.name")
    pool_id = serializers.IntegerField(allow_null=True)
    state = words.word(ReplacementRow.State.values)
    terminal = serializers.BooleanField()
    direction = words.word(ReplacementRow.Direction.values)
    step = words.word(ReplacementRow.Step.values)
    step_since = words.instant()
    waits_for_owner = serializers.BooleanField()
    batch = words.count()
    plan = words.Anything()
    actor = words.text(150)
    reason = words.text(400)
    message = words.text(400)
    created_at = words.instant()
    ended_at = words.instant(allow_null=True)
    servers = ReplacedServer(many=True)


class Canary(words.Shown):
    """A pool of a route whose share grows; `plan` is what was asked for, `step` counts its steps from 0.

    The step lasts from `live_at` (null: not yet) to `next_at`. `before` and `weights` are by pool.
    """

    id = words.ident()
    url = words.Url("canaries")
    account = words.name(source="account.name")
    route = words.name(allow_null=True, source="route.name")
    route_id = serializers.IntegerField(allow_null=True)
    state = words.word(CanaryRow.State.values)
    terminal = serializers.BooleanField()
    step = words.count()
    live_at = words.instant(allow_null=True)
    next_at = words.instant(allow_null=True)
    plan = words.Anything()
    before = words.Anything()
    weights = words.Anything()
    actor = words.text(150)
    reason = words.text(400)
    message = words.text(400)
    created_at = words.instant()
    ended_at = words.instant(allow_null=True)


class ContinueReplacement(words.Sent):
    """Which batch is replaced, and which of its servers could not be."""

    batch = words.whole(1, 2**31)
    failed = serializers.ListField(child=words.name(), required=False)
