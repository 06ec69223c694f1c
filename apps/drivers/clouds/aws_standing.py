"""What stands there of one stack, whatever its state knows: by tags, and by what it belongs to.

EC2, ELB and ACM give a thing its tags as they make it. Route 53 tags a zone a while after it was made: until then its
comment says whose it is. A new security group lets everything out by a rule without tags. Records, and what stands
below a Global Accelerator, cannot carry tags at all: they are known by their zone or accelerator.

The services describe what they made themselves and at once; the index over all tags (Resource Groups) comes too late.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from apps.compiler.targets.terraform.aws.naming import MARK, RESOURCE, ZONE_COMMENT
from apps.drivers.clouds.aws_session import client, in_words
from apps.drivers.clouds.contract import CloudAccess, Standing

# Global Accelerator is asked in one region alone, whatever the region of what stands behind it.
ACCELERATORS_AT = "us-west-2"
KEY_TYPES = ("RSA_1024", "RSA_2048", "RSA_3072", "RSA_4096", "EC_prime256v1", "EC_secp384r1", "EC_secp521r1")
_OCTAL = re.compile(r"\\([0-7]{3})")

Tags = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Search:
    """One look at an account for what carries the mark."""

    access: CloudAccess
    mark: str

    def client(self, service: str) -> Any:
        return client(self.access, service)

    def filters(self) -> list[dict[str, Any]]:
        """EC2's words for what is ours."""
        return [{"Name": f"tag:{MARK}", "Values": [self.mark]}]

    def is_ours(self, tags: Tags) -> bool:
        return tags.get(MARK) == self.mark

    def standing(self, kind: str, found_id: str, tags: Tags, parent: str = "") -> Iterator[Standing]:
        """It, where its tags say that it is ours."""
        if self.is_ours(tags):
            yield Standing(kind, found_id, tags.get(RESOURCE, ""), parent)


def standing_of(access: CloudAccess, mark: str, kinds: Collection[str]) -> Iterator[Standing]:
    """What carries the mark, as far as it is of these kinds (of Terraform); parents come first. Raises CloudError."""
    search = _Search(access, mark)
    for kind, read in _READERS.items():
        if kind in kinds:
            with in_words():
                yield from read(search)


def _addresses(search: _Search) -> Iterator[Standing]:
    for each in search.client("ec2").describe_addresses(Filters=search.filters())["Addresses"]:
        yield from search.standing("aws_eip", each["AllocationId"], _tags(each.get("Tags")))


def _security(search: _Search) -> Iterator[Standing]:
    ec2 = search.client("ec2")
    for page in ec2.get_paginator("describe_security_groups").paginate(Filters=search.filters()):
        for group in page["SecurityGroups"]:
            yield from search.standing("aws_security_group", group["GroupId"], _tags(group.get("Tags")))
            yield from _rules_of_group(search, ec2, group["GroupId"])


def _rules_of_group(search: _Search, ec2: Any, group: str) -> Iterator[Standing]:
    asked = ec2.get_paginator("describe_security_group_rules")
    for page in asked.paginate(Filters=[{"Name": "group-id", "Values": [group]}]):
        for rule in page["SecurityGroupRules"]:
            kind = f"aws_vpc_security_group_{'egress' if rule['IsEgress'] else 'ingress'}_rule"
            tags = _tags(rule.get("Tags"))
            if search.is_ours(tags):
                yield Standing(kind, rule["SecurityGroupRuleId"], tags.get(RESOURCE, ""), group)
            elif "ReferencedGroupInfo" not in rule:
                yield Standing(kind, rule["SecurityGroupRuleId"], "", group, _facts_of_rule(rule))


def _facts_of_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    facts = {"ip_protocol": rule["IpProtocol"], "cidr_ipv4": rule.get("CidrIpv4"), "cidr_ipv6": rule.get("CidrIpv6")}
    if rule["IpProtocol"] != "-1":
        facts |= {"from_port": rule["FromPort"], "to_port": rule["ToPort"]}
    return {name: value for name, value in facts.items() if value is not None}


def _balancing(search: _Search) -> Iterator[Standing]:
    """Load balancers, their listeners and rules, then target groups."""
    asked = search.client("elbv2")
    for balancer, tags in _tagged(asked, asked.get_paginator("describe_load_balancers").paginate(), "LoadBalancer"):
        if search.is_ours(tags):
            yield from search.standing("aws_lb", balancer["LoadBalancerArn"], tags)
            yield from _listeners(search, asked, balancer["LoadBalancerArn"])
    for group, tags in _tagged(asked, asked.get_paginator("describe_target_groups").paginate(), "TargetGroup"):
        yield from search.standing("aws_lb_target_group", group["TargetGroupArn"], tags)


def _listeners(search: _Search, asked: Any, balancer: str) -> Iterator[Standing]:
    pages = asked.get_paginator("describe_listeners").paginate(LoadBalancerArn=balancer)
    for listener, tags in _tagged(asked, pages, "Listener"):
        arn = listener["ListenerArn"]
        yield from search.standing("aws_lb_listener", arn, tags, balancer)
        for rule, of_rule in _tagged(asked, asked.get_paginator("describe_rules").paginate(ListenerArn=arn), "Rule"):
            yield from search.standing("aws_lb_listener_rule", rule["RuleArn"], of_rule, arn)


def _tagged(asked: Any, pages: Iterable[Mapping[str, Any]], word: str) -> Iterator[tuple[dict[str, Any], Tags]]:
    """What ELB lists as `word`, each with its tags, which are asked for by twenty."""
    found = [each for page in pages for each in page[f"{word}s"]]
    for at in range(0, len(found), 20):
        part = {each[f"{word}Arn"]: each for each in found[at : at + 20]}
        for each in asked.describe_tags(ResourceArns=list(part))["TagDescriptions"]:
            yield part[each["ResourceArn"]], _tags(each["Tags"])


def _certificates(search: _Search) -> Iterator[Standing]:
    acm = search.client("acm")
    for page in acm.get_paginator("list_certificates").paginate(Includes={"keyTypes": list(KEY_TYPES)}):
        for each in page["CertificateSummaryList"]:
            arn = each["CertificateArn"]
            if each.get("Type", "IMPORTED") == "IMPORTED":
                tags = _tags(acm.list_tags_for_certificate(CertificateArn=arn)["Tags"])
                yield from search.standing("aws_acm_certificate", arn, tags)


def _accelerators(search: _Search) -> Iterator[Standing]:
    asked = client(replace(search.access, region=ACCELERATORS_AT), "globalaccelerator")
    for page in asked.get_paginator("list_accelerators").paginate():
        for each in page["Accelerators"]:
            arn = each["AcceleratorArn"]
            tags = _tags(asked.list_tags_for_resource(ResourceArn=arn)["Tags"])
            if search.is_ours(tags):
                yield from search.standing("aws_globalaccelerator_accelerator", arn, tags)
                yield from _ports(asked, arn)


def _ports(asked: Any, accelerator: str) -> Iterator[Standing]:
    for page in asked.get_paginator("list_listeners").paginate(AcceleratorArn=accelerator):
        for listener in page["Listeners"]:
            arn = listener["ListenerArn"]
            ports = [{"from_port": each["FromPort"], "to_port": each["ToPort"]} for each in listener["PortRanges"]]
            yield Standing("aws_globalaccelerator_listener", arn, "", accelerator, {"port_range": ports})
            for groups in asked.get_paginator("list_endpoint_groups").paginate(ListenerArn=arn):
                for group in groups["EndpointGroups"]:
                    facts = {"endpoint_group_region": group["EndpointGroupRegion"]}
                    kind = "aws_globalaccelerator_endpoint_group"
                    yield Standing(kind, group["EndpointGroupArn"], "", arn, facts)


def _zones(search: _Search) -> Iterator[Standing]:
    dns = search.client("route53")
    zones = [zone for page in dns.get_paginator("list_hosted_zones").paginate() for zone in page["HostedZones"]]
    for at in range(0, len(zones), 10):
        part = {zone["Id"].rpartition("/")[2]: zone for zone in zones[at : at + 10]}
        said = dns.list_tags_for_resources(ResourceType="hostedzone", ResourceIds=list(part))
        for each in said["ResourceTagSets"]:
            found_id, tags = each["ResourceId"], _tags(each["Tags"])
            zone = part[found_id]
            comment = zone.get("Config", {}).get("Comment", "")
            if search.is_ours(tags):
                yield Standing("aws_route53_zone", found_id, tags.get(RESOURCE, ""))
            elif tags or not comment.startswith(ZONE_COMMENT):
                continue
            else:
                facts = {"name": _name(zone["Name"]), "comment": comment}
                yield Standing("aws_route53_zone", found_id, "", "", facts)
            yield from _records(dns, found_id)


def _records(dns: Any, zone: str) -> Iterator[Standing]:
    for page in dns.get_paginator("list_resource_record_sets").paginate(HostedZoneId=zone):
        for each in page["ResourceRecordSets"]:
            name, kind = _name(each["Name"]), each["Type"]
            if "SetIdentifier" not in each and kind != "SOA":
                facts = {"name": name, "type": kind}
                yield Standing("aws_route53_record", f"{zone}_{name}_{kind}", "", zone, facts)


def _name(text: str) -> str:
    r"""`\052.example.com.` → `*.example.com`, as people write it."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text).removesuffix(".")


def _tags(rows: Iterable[Mapping[str, str]] | None) -> Tags:
    return {row["Key"]: row.get("Value", "") for row in rows or ()}


_READERS: Mapping[str, Callable[[_Search], Iterator[Standing]]] = {
    "aws_eip": _addresses,
    "aws_security_group": _security,
    "aws_lb": _balancing,
    "aws_acm_certificate": _certificates,
    "aws_globalaccelerator_accelerator": _accelerators,
    "aws_route53_zone": _zones,
}
