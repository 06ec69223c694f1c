"""Target health, numbers and existing load balancers by boto3. Reading only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from apps.drivers.clouds import aws_describing
from apps.drivers.clouds.aws_numbers import Counted, read_numbers
from apps.drivers.clouds.aws_session import client, in_words
from apps.drivers.clouds.aws_standing import standing_of
from apps.drivers.clouds.aws_strangers import strangers_of
from apps.drivers.clouds.contract import (
    CloudAccess,
    CloudError,
    FoundLoadBalancer,
    FoundNetwork,
    Numbers,
    Standing,
    Stranger,
    TargetHealth,
)

TAGS_IN_CALL = 20
OBJECT, STACK = "spillway-object", "spillway-stack"
# CloudWatch has a minute's counts complete a while after it ended.
SETTLED = timedelta(seconds=60)
STATES = {"initial": "unknown", "unused": "unused", "unavailable": "unknown"}


class AwsReader:
    """One AWS account in one region."""

    def __init__(self, access: CloudAccess) -> None:
        self._access = access
        self._balancing = client(access, "elbv2")

    def target_health(self) -> Sequence[TargetHealth]:
        """Every target of the groups that are ours; `state` healthy, unhealthy, draining, unused or unknown."""
        found = []
        with in_words():
            for group, object_id in self._our_groups():
                said = self._balancing.describe_target_health(TargetGroupArn=group["TargetGroupArn"])
                found += [_health(group, object_id, each) for each in said["TargetHealthDescriptions"]]
        return found

    def numbers(self, since: datetime) -> Sequence[Numbers]:
        """Whole minutes since then, as far as CloudWatch has them."""
        until = (datetime.now(UTC) - SETTLED).replace(second=0, microsecond=0)
        if since >= until:
            return []
        cloudwatch = client(self._access, "cloudwatch")
        with in_words():
            return read_numbers(cloudwatch, list(self._counted()), since, until)

    def load_balancers(self) -> Sequence[FoundLoadBalancer]:
        """Application, Network and Classic Load Balancers of the region."""
        with in_words():
            newer = [
                FoundLoadBalancer(aws_describing.KINDS[each["Type"]], each["LoadBalancerName"], each["LoadBalancerArn"])
                for each in self._pages("describe_load_balancers", "LoadBalancers")
                if each["Type"] in aws_describing.KINDS
            ]
            return sorted(
                [*newer, *aws_describing.classic_ones(client(self._access, "elb"))], key=lambda each: each.name
            )

    def describe(self, found_id: str) -> FoundLoadBalancer:
        """One of them with everything below it."""
        machines = client(self._access, "ec2")
        with in_words():
            if found_id.startswith(aws_describing.CLASSIC):
                return aws_describing.describe_classic(client(self._access, "elb"), machines, found_id)
            for each in self._pages("describe_load_balancers", "LoadBalancers"):
                if each["LoadBalancerArn"] == found_id:
                    return aws_describing.describe(self._balancing, machines, each)
        raise CloudError("AWS no longer has this load balancer in the region.")

    def regions(self) -> Sequence[str]:
        """Regions that the account has not left switched off."""
        with in_words():
            return sorted(each["RegionName"] for each in client(self._access, "ec2").describe_regions()["Regions"])

    def networks(self) -> Sequence[FoundNetwork]:
        """VPCs with their subnets."""
        with in_words():
            return aws_describing.networks(client(self._access, "ec2"))

    def buckets(self) -> Sequence[str]:
        """A load balancer writes to buckets of its own region only."""
        with in_words():
            pages = client(self._access, "s3").get_paginator("list_buckets").paginate(BucketRegion=self._access.region)
            return [each["Name"] for page in pages for each in page["Buckets"]]

    def standing(self, mark: str, kinds: Collection[str]) -> Iterator[Standing]:
        """By tags, and by what it belongs to; services are asked only where a kind of theirs is wanted."""
        return standing_of(self._access, mark, kinds)

    def strangers(self, known: Collection[str]) -> Iterator[Stranger]:
        """Listeners and rules, ways through security groups, targets."""
        return strangers_of(self._access, known)

    def _our_groups(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Target groups that carry our tags, with the id of ours."""
        groups = list(self._pages("describe_target_groups", "TargetGroups"))
        known = self._tags([group["TargetGroupArn"] for group in groups])
        for group in groups:
            tags = known.get(group["TargetGroupArn"], {})
            if tags.get(STACK) == self._access.stack and OBJECT in tags:
                yield group, tags[OBJECT]

    def _counted(self) -> Iterator[Counted]:
        for group, object_id in self._our_groups():
            for balancer in group.get("LoadBalancerArns", ()):
                if ":loadbalancer/app/" in balancer:
                    own = group["TargetGroupArn"].rpartition(":")[2]
                    dimensions = (("TargetGroup", own), ("LoadBalancer", _dimension(balancer)))
                    yield Counted(group["TargetGroupArn"], object_id, dimensions)
        balancers = [each["LoadBalancerArn"] for each in self._pages("describe_load_balancers", "LoadBalancers")]
        for arn, tags in self._tags(balancers).items():
            if tags.get(STACK) == self._access.stack and OBJECT in tags and ":loadbalancer/net/" in arn:
                yield Counted(arn, tags[OBJECT], (("LoadBalancer", _dimension(arn)),), is_tcp=True)

    def _tags(self, arns: Sequence[str]) -> dict[str, dict[str, str]]:
        found = {}
        for at in range(0, len(arns), TAGS_IN_CALL):
            said = self._balancing.describe_tags(ResourceArns=list(arns[at : at + TAGS_IN_CALL]))
            for each in said["TagDescriptions"]:
                found[each["ResourceArn"]] = {tag["Key"]: tag.get("Value", "") for tag in each["Tags"]}
        return found

    def _pages(self, call: str, field: str) -> Iterator[dict[str, Any]]:
        for page in self._balancing.get_paginator(call).paginate():
            yield from page[field]


def _dimension(arn: str) -> str:
    """`arn:…:loadbalancer/app/front/50dc6c` → `app/front/50dc6c`, as CloudWatch names it."""
    return arn.partition(":loadbalancer/")[2]


def _health(group: dict[str, Any], object_id: str, each: dict[str, Any]) -> TargetHealth:
    health = each["TargetHealth"]
    state = STATES.get(health["State"], health["State"].replace(".", "_"))
    reason = health.get("Description") or health.get("Reason", "")
    target = each["Target"]
    port = int(target.get("Port") or group.get("Port") or 0)
    return TargetHealth(group["TargetGroupArn"], object_id, target["Id"], port, state, reason)
