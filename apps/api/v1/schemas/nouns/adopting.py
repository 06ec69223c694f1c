"""What stands in a cloud, and what one of it would be here."""

from __future__ import annotations

from rest_framework import serializers

from apps.adoption.contract import Verdict
from apps.api.v1.schemas import words
from apps.api.v1.schemas.operations.building import READ_REFUSALS, Operation, Table

# 409 is what the cloud says.
REFUSALS = (*READ_REFUSALS, 404, 409)


class FoundInCloud(words.Shown):
    """A load balancer that stands in a cloud: an ALB, NLB or Classic of AWS, a URL map or TCP proxy of Google."""

    kind = serializers.CharField()
    name = serializers.CharField()
    id = serializers.CharField()


class CloudRegion(words.Shown):
    """What could be adopted in one region of a cloud account."""

    region = serializers.CharField()
    load_balancers = FoundInCloud(many=True)


class Adopt(words.Sent):
    """Which one to read, and what the cloud cannot know; maps lead from the cloud's words to names of ours."""

    region = serializers.CharField(max_length=40, help_text="The cloud's name of the region; global on Google.")
    id = serializers.CharField(max_length=2048)
    name = words.name(help_text="The name of the load balancer in Spillway.")
    account = words.name(required=False, help_text="The account that owns the routes and pools. Default: your own.")
    regions = serializers.DictField(
        child=words.name(), required=False, help_text="The cloud's region or zone → Spillway region."
    )
    certificates = serializers.DictField(
        child=words.name(),
        required=False,
        help_text="ARN or name → certificate in Spillway. Clouds never return private keys.",
    )
    addresses = serializers.DictField(child=words.name(), required=False, help_text="Address → static IP in Spillway.")
    stack = words.name(required=False, help_text="The stack that the load balancer belongs to.")


class AdoptedLine(words.Shown):
    """What became of one thing: mapped works as it did, lossy differs as the reason says, left_out is gone."""

    found = serializers.CharField(help_text="As the cloud names it.")
    verdict = words.word([str(each) for each in Verdict])
    reason = words.text(4000, help_text="Empty if it was mapped.")
    kind = words.text(40, help_text="The object in Spillway, if there is one.")
    name = words.text(400)


class Adopted(words.Shown):
    """Objects as `PUT /apply` takes them, in an order in which they can be applied, and the report."""

    objects = serializers.ListField(child=serializers.DictField())
    report = AdoptedLine(many=True)


OPERATIONS: Table = {
    ("cloud-accounts-load-balancers", "GET"): Operation(
        summary="List the load balancers in a cloud account",
        shown={200: CloudRegion},
        query=("region-word-cloud",),
        refuses=REFUSALS,
    ),
    ("cloud-accounts-adopt", "POST"): Operation(
        summary="Import a cloud load balancer as definitions; nothing is stored",
        shown={200: Adopted},
        sent=Adopt,
        refuses=(400, *REFUSALS, 413, 415),
    ),
}
