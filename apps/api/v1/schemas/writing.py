"""Many objects at once, what a write would do, and refusals."""

from __future__ import annotations

from rest_framework import serializers

from apps.api.v1.schemas import words
from apps.definitions.previewing.portability import TARGETS
from apps.definitions.services import Decision
from apps.definitions.shapes.kinds import SHAPES

ACTIONS = ("create", "update", "delete", "unchanged")
KEPT = "Fields that keep the value of their owner instead of the document's value, and how to overwrite them."


class FieldChange(words.Shown):
    """One field that differs; `path` is a JSON pointer into the spec."""

    path = words.text(2000)
    before = words.Anything()
    after = words.Anything()


class Change(words.Shown):
    """What happens to one object."""

    action = words.word(ACTIONS)
    kind = words.word([*SHAPES, "Server", "Backend"])
    account = words.name(allow_null=True)
    name = words.text(400, help_text="For parts of a pool: `pool/server`, `pool in region`.")
    fields = FieldChange(many=True)  # type: ignore[assignment] # the API's word, not the serializer's fields


class Counts(words.Shown):
    """How many objects per action."""

    create = words.count()  # type: ignore[assignment] # the API's word, not the serializer's method
    update = words.count()  # type: ignore[assignment] # the API's word, not the serializer's method
    delete = words.count()
    unchanged = words.count()


class FleetDifference(words.Shown):
    """What the nodes of one fleet would run instead."""

    fleet = words.name()
    changes = serializers.ListField(child=serializers.CharField(), help_text="In sentences.")
    rendered = words.text(1_000_000, help_text="A unified difference of the files; keys are never shown.")
    warnings = serializers.ListField(child=serializers.CharField())


class StackDifference(words.Shown):
    """What a plan of one stack would hold; Terraform is not run, so it may find what somebody changed by hand.

    Customers are told, one entry for each cloud, what it makes of their own routes and pools, and nothing else.
    """

    stack = words.name(allow_null=True)
    target = words.word([each.value for each in TARGETS if each != "haproxy"])
    to_add = words.count(allow_null=True)
    to_change = words.count(allow_null=True)
    to_replace = words.count(allow_null=True)
    to_delete = words.count(allow_null=True)
    changes = serializers.ListField(child=serializers.CharField(), help_text="As sentences; `to_*` count resources.")
    refused = serializers.ListField(
        child=serializers.CharField(), help_text="What the cloud does not support, and why."
    )
    warnings = serializers.ListField(child=serializers.CharField(), help_text="What works differently in the cloud.")
    decision = words.word(
        [each.value for each in Decision],
        allow_null=True,
        help_text="Who approves it: `policy` or `person`; `nothing` without changes; `refused`, with a `reason`.",
    )
    reason = words.text(2000)


class RecordSide(words.Shown):
    """A set of records; without values it has nothing to say yet."""

    ttl = words.count()
    values = serializers.ListField(child=serializers.CharField())


class RecordDifference(words.Shown):
    """What becomes of one set of records."""

    action = words.word(ACTIONS[:3])
    name = serializers.CharField(help_text="The full name, without the final dot.")
    type = serializers.CharField()
    before = RecordSide(allow_null=True)
    after = RecordSide(allow_null=True)
    note = words.text(1000)


class ZoneDifference(words.Shown):
    """Which records of a zone would be served otherwise; no name server is asked."""

    zone = words.reference()
    domain = serializers.CharField()
    changes = RecordDifference(many=True)
    more = words.count(help_text="The number of further differences.")
    warnings = serializers.ListField(child=serializers.CharField())


class WaitsFor(words.Shown):
    """What keeps a change from being live, with the nodes that lack it where the caller may see them."""

    fleet = serializers.CharField()
    reason = words.word(["held", "refused", "not_compiled", "unreachable", "pending", "quarantined"])
    message = words.text(100_000)
    nodes = serializers.ListField(child=serializers.CharField())


class Applied(words.Shown):
    """What was done, or would be done, and the generation of each fleet that makes it live.

    The plan of an apply has a `plan_id`, by which exactly this can be done until `expires_at`.
    """

    may_be_absent = ("warnings", "live", "waits_for", "plan_id", "expires_at", "change")

    stored = serializers.BooleanField()
    counts = Counts()
    changes = Change(many=True)
    generations = serializers.DictField(child=words.count())
    fleets = FleetDifference(many=True)
    stacks = StackDifference(many=True)
    zones = ZoneDifference(many=True)
    kept = serializers.ListField(child=serializers.CharField(), help_text=KEPT)
    warnings = serializers.ListField(child=serializers.CharField())
    live = serializers.BooleanField(help_text="With `wait`: whether the change was live when the response was sent.")
    waits_for = WaitsFor(many=True)
    change = serializers.CharField(help_text="The ID for `changes/{change}` and for `revert`.")
    plan_id = serializers.RegexField("^[0-9a-f]{32}$")
    expires_at = words.instant()


class Objects(words.Sent):
    """A document of objects, each `{kind, name, account?, spec}`; references among them may go both ways."""

    objects = serializers.ListField(child=serializers.DictField(), max_length=20_000)


class FieldError(words.Shown):
    """One thing that is wrong with what was sent."""

    pointer = words.text(2000, help_text="A JSON pointer into the body, or `/` and the name of a parameter or header.")
    code = serializers.CharField(help_text="A stable code for programs.")
    detail = serializers.CharField(help_text="A sentence that says what to do.")


class BatchItem(words.Sent):
    """One thing to do with an object, named by its id or its name."""

    action = words.word(["create", "update", "delete"])
    id = words.whole(1, 2**63 - 1, required=False)
    name = words.name(required=False)
    account = words.name(required=False)
    version = words.whole(1, 2**31, required=False)
    spec = serializers.DictField(required=False)


class Batch(words.Sent):
    """Up to 1000 items."""

    items = serializers.ListField(child=BatchItem(), min_length=1, max_length=1000)


class OpenAPI(words.Shown):
    """This document."""

    openapi = serializers.CharField()
    info = serializers.DictField()
    paths = serializers.DictField()
    components = serializers.DictField()


class Problem(words.Shown):
    """A refusal (RFC 9457) that names each error."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField(min_value=400, max_value=599)
    detail = words.text(100_000)
    instance = serializers.CharField()
    request_id = serializers.CharField(help_text="Also in the header X-Request-ID and in the server log.")
    errors = FieldError(many=True)  # type: ignore[assignment] # the API's word, not the serializer's errors


class BatchResult(words.Shown):
    """What came of one item: its status, and its ETag or its problem."""

    action = words.word(["create", "update", "delete"])
    status = words.whole(200, 599)
    id = serializers.IntegerField(min_value=1, allow_null=True)
    account = words.name(allow_null=True)
    name = words.name(allow_null=True)
    url = serializers.CharField(allow_null=True)
    etag = serializers.CharField(allow_null=True)
    problem = Problem(allow_null=True)


class BatchDone(words.Shown):
    """A result per item, in the order of the items."""

    may_be_absent = ("live", "waits_for")

    results = BatchResult(many=True)
    generations = serializers.DictField(child=words.count())
    live = serializers.BooleanField()
    waits_for = WaitsFor(many=True)
