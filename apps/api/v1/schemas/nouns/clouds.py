"""Stacks with their runs and states, static IPs, and what a cloud cannot do."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.stacks.models import StackRun as RunRow
from apps.stacks.selectors import STATUSES


class StaticIPFacts(words.Shown):
    """The addresses that it has, and the load balancer that it serves."""

    addresses = serializers.ListField(child=serializers.CharField(max_length=45))
    load_balancer = words.name(allow_null=True)


class AddressMove(words.Sent):
    """Which load balancer the address shall serve; without listeners those on the ports that it serves now."""

    load_balancer = words.name()
    listeners = serializers.ListField(child=words.name(), min_length=1, max_length=1000, required=False)


class Incompatibility(words.Shown):
    """What a target refuses or does otherwise for one object, and the remedy."""

    target = words.word(["haproxy", "aws", "google"])
    severity = words.word(["refused", "lossy"])
    code = serializers.CharField()
    object = serializers.CharField(source="label")
    field = words.text(100)
    message = serializers.CharField()
    remedy = words.text(400)


class Portability(words.Shown):
    """Every incompatibility of a load balancer; a target without one supports all of it."""

    load_balancer = words.name()
    incompatibilities = Incompatibility(many=True)


class StackRun(words.Shown):
    """One run that brings a revision to its cloud."""

    id = words.ident()
    url = words.Url("stack-runs")
    stack = words.name(source="stack.name")
    revision = words.ident(source="revision.number")
    kind = words.word(RunRow.Kind.values)
    state = words.word(RunRow.State.values)
    actor = serializers.CharField()
    reason = words.text(400)
    approved_by = words.text(150)
    to_add = words.count()
    to_change = words.count()
    to_replace = words.count()
    to_delete = words.count()
    drifted = words.count()
    plan_digest = words.text(64)
    message = words.text(2000)
    created_at = words.instant()
    finished_at = words.instant(allow_null=True)


class PlannedDifference(words.Shown):
    """One resource that a plan touches, in our words."""

    address = serializers.CharField()
    action = serializers.CharField()
    object = words.text(400, source="label")
    weights_only = serializers.BooleanField()
    sentences = serializers.ListField(child=serializers.CharField())


class StackRunDetail(StackRun):
    """A run with its plan."""

    changes = PlannedDifference(many=True)
    drift = PlannedDifference(many=True)


class StackRunEvent(words.Shown):
    """One thing that Terraform said while it worked; `address` is Terraform's, `object` ours."""

    number = words.count()
    kind = serializers.CharField()
    address = words.text(400)
    object = words.text(400, source="label")
    action = words.text(10)
    seconds = serializers.FloatField(min_value=0)
    message = words.text(2000)
    at = words.instant()


class StackRevision(words.Shown):
    """A numbered document of a stack."""

    number = words.ident()
    generation = words.count()
    digest = words.text(64)
    summary = words.text(400)
    actor = serializers.CharField()
    created_at = words.instant()


class StackRevisionDetail(StackRevision):
    """A revision with what Terraform is told."""

    document = words.Anything(help_text="Resources, providers, outputs and names of variables, by address.")


class RevisionChange(words.Shown):
    """One part of a document that differs; null where a revision does not have it."""

    address = serializers.CharField()
    object = words.text(400, source="label")
    before = words.Anything(allow_null=True)
    after = words.Anything(allow_null=True)


class RevisionDifferences(words.Shown):
    """How a revision differs from another one; `against` is null where there is none before."""

    number = words.ident()
    against = serializers.IntegerField(min_value=1, allow_null=True)
    changes = RevisionChange(many=True)


class StateContent(words.Shown):
    """What one version of a state holds, without secrets."""

    number = words.ident()
    state = words.Anything(help_text="As written by Terraform.")


class CloudFinding(words.Shown):
    """What the cloud of a stack cannot do of what is wanted, or does otherwise."""

    code = serializers.CharField()
    object = words.text(400, source="label")
    message = serializers.CharField()


class Leftover(words.Shown):
    """What a run made that nobody heard the end of, and no definition wants any more."""

    kind = serializers.CharField()
    id = serializers.CharField()
    object = words.text(400, source="label")


class Addition(Leftover):
    """What somebody added in the cloud to a thing of the stack, as the last look for drift found it."""

    message = serializers.CharField(help_text="The kind of resource: a rule, an opened port, a server.")


class CloudTarget(words.Shown):
    """One server as the cloud's own check sees it."""

    address = serializers.CharField()
    port = words.port()
    state = serializers.CharField()
    reason = words.text(400)


class CloudBackend(words.Shown):
    """The servers of a pool in one region; numbers are of the newest minute, null where nothing was counted lately."""

    pool = words.reference()
    region = words.name(source="backend.region.name")
    health = words.word(["healthy", "degraded", "down", "unknown"], source="state")
    targets = CloudTarget(many=True)
    requests_rps = words.share_of_traffic(allow_null=True, source="rps")
    error_rate = words.number(0, 1, allow_null=True)
    p95_ms = serializers.FloatField(min_value=0, allow_null=True)
    counted_at = words.instant(allow_null=True)
    weight = words.whole(
        0, 1000, allow_null=True, source="weight.weight", help_text="Only where weights control overflow."
    )
    weight_reason = words.text(400)


class StackState(words.Shown):
    """How a stack stands: its status with a message, its revisions, what it answered, and what its cloud says."""

    stack = words.name(source="stack.name")
    status = words.word(STATUSES)
    message = words.text(4000)
    wanted_revision = serializers.IntegerField(min_value=1, allow_null=True, source="wanted_number")
    applied_revision = serializers.IntegerField(min_value=1, allow_null=True, source="applied_number")
    applied_at = words.instant(allow_null=True)
    resources = words.count()
    outputs = words.Anything(help_text="Names and addresses, by resource.")
    refused = CloudFinding(many=True)
    warnings = CloudFinding(many=True)
    unknown = Leftover(many=True)
    added_by_hand = Addition(many=True)
    read_at = words.instant(allow_null=True)
    read_error = words.text(1000)
    backends = CloudBackend(many=True)


class StateVersion(words.Shown):
    """One version of a stack's Terraform state, without what is in it."""

    number = words.ident()
    serial = words.count()
    lineage = words.text(64)
    resources = words.count()
    written_by = serializers.CharField()
    run = serializers.IntegerField(min_value=1, allow_null=True, source="run_id")
    created_at = words.instant()


class StateLock(words.Shown):
    """Who may write the state now."""

    held = serializers.BooleanField()
    id = serializers.CharField(allow_null=True, source="lock_id")
    held_by = serializers.CharField(allow_null=True)
    run = serializers.IntegerField(min_value=1, allow_null=True, source="run_id")
    since = words.instant(allow_null=True, source="created_at")


class ForceUnlock(words.Sent):
    """The lock that was seen."""

    id = serializers.CharField(max_length=64)


class Approval(words.Sent):
    """The plan that was looked at."""

    plan_digest = words.text(64)
