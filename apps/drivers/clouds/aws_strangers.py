"""What somebody added by hand to what is ours: Terraform looks at its own resources alone.

A listener of our load balancer, a rule of our listener, a rule of our security group and a target of our group change
what clients and servers meet as much as a changed value does, and no plan shows them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from apps.drivers.clouds.aws_session import client, in_words
from apps.drivers.clouds.contract import CloudAccess, Stranger, target_id

GROUPS_IN_CALL = 100


def strangers_of(access: CloudAccess, known: Collection[str]) -> Iterator[Stranger]:
    """What stands below a thing whose id is known, and is not known itself. Raises CloudError."""
    ids = frozenset(known)
    with in_words():
        balancing = client(access, "elbv2")
        yield from _listeners(balancing, ids)
        yield from _targets(balancing, ids)
        yield from _ways_in(client(access, "ec2"), ids)


def _listeners(balancing: Any, known: frozenset[str]) -> Iterator[Stranger]:
    for page in balancing.get_paginator("describe_load_balancers").paginate():
        for balancer in page["LoadBalancers"]:
            if balancer["LoadBalancerArn"] in known:
                yield from _of_balancer(balancing, balancer["LoadBalancerArn"], known)


def _of_balancer(balancing: Any, balancer: str, known: frozenset[str]) -> Iterator[Stranger]:
    for page in balancing.get_paginator("describe_listeners").paginate(LoadBalancerArn=balancer):
        for each in page["Listeners"]:
            arn = each["ListenerArn"]
            if arn in known:
                yield from _rules(balancing, arn, known)
            else:
                yield Stranger("aws_lb_listener", arn, balancer, f"a listener {each['Protocol']} {each['Port']}")


def _rules(balancing: Any, listener: str, known: frozenset[str]) -> Iterator[Stranger]:
    for page in balancing.get_paginator("describe_rules").paginate(ListenerArn=listener):
        for each in page["Rules"]:
            if not each["IsDefault"] and each["RuleArn"] not in known:
                fields = sorted(condition["Field"] for condition in each["Conditions"])
                asks = f" ({', '.join(fields)})" if fields else ""
                yield Stranger("aws_lb_listener_rule", each["RuleArn"], listener, f"rule {each['Priority']}{asks}")


def _targets(balancing: Any, known: frozenset[str]) -> Iterator[Stranger]:
    """Those that only finish what they have are on their way out."""
    for page in balancing.get_paginator("describe_target_groups").paginate():
        for arn in [group["TargetGroupArn"] for group in page["TargetGroups"] if group["TargetGroupArn"] in known]:
            for each in balancing.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]:
                target, is_leaving = each["Target"], each["TargetHealth"]["State"] == "draining"
                own = target_id(arn, target["Id"], int(target.get("Port") or 0))
                if not is_leaving and own not in known:
                    said = f"server {target['Id']}:{target.get('Port')}"
                    yield Stranger("aws_lb_target_group_attachment", own, arn, said)


def _ways_in(ec2: Any, known: frozenset[str]) -> Iterator[Stranger]:
    groups = sorted(each for each in known if each.startswith("sg-"))
    for at in range(0, len(groups), GROUPS_IN_CALL):
        filters = [{"Name": "group-id", "Values": groups[at : at + GROUPS_IN_CALL]}]
        for page in ec2.get_paginator("describe_security_group_rules").paginate(Filters=filters):
            for rule in page["SecurityGroupRules"]:
                if rule["SecurityGroupRuleId"] not in known:
                    kind = f"aws_vpc_security_group_{'egress' if rule['IsEgress'] else 'ingress'}_rule"
                    yield Stranger(kind, rule["SecurityGroupRuleId"], rule["GroupId"], _way(rule))


def _way(rule: Mapping[str, Any]) -> str:
    """`tcp 22 from 0.0.0.0/0`."""
    first, last = rule.get("FromPort"), rule.get("ToPort")
    ports = "all ports" if rule["IpProtocol"] == "-1" else str(first) if first == last else f"{first}–{last}"
    protocol = "" if rule["IpProtocol"] == "-1" else f"{rule['IpProtocol']} "
    other = rule.get("ReferencedGroupInfo", {}).get("GroupId") or rule.get("PrefixListId")
    network = rule.get("CidrIpv4") or rule.get("CidrIpv6") or other or "somewhere"
    return f"{protocol}{ports} {'to' if rule['IsEgress'] else 'from'} {network}"
