"""AWS as moto plays it: what somebody added by hand below what is ours is found, and what is ours is not."""

from __future__ import annotations

from typing import Any

import pytest

from apps.drivers.clouds.contract import CloudAccess, Stranger, target_id
from apps.drivers.clouds.registry import open_reader
from tests.conformance.aws_env import REGION, AwsEnv, empty_aws, make_balancer, make_group, make_listener


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> AwsEnv:
    """An empty cloud, asked with keys of its own."""
    env = empty_aws()
    for name, value in env.environment().items():
        monkeypatch.setenv(name, value)
    return env


def found(aws: AwsEnv, *known: str) -> list[Stranger]:
    return list(open_reader(CloudAccess("aws", REGION, endpoint_url=aws.endpoint)).strangers(known))


def a_rule(aws: AwsEnv, listener: str, priority: int, group: str) -> str:
    made = aws.client("elbv2").create_rule(
        ListenerArn=listener,
        Priority=priority,
        Conditions=[{"Field": "path-pattern", "Values": ["/x"]}],
        Actions=[{"Type": "forward", "TargetGroupArn": group}],
    )
    return str(made["Rules"][0]["RuleArn"])


def test_a_rule_a_listener_and_a_server_that_nobody_here_made_are_found(aws: AwsEnv) -> None:
    balancer, group = make_balancer(aws, "sw-stk1-lb-1"), make_group(aws, "sw-stk1-bkd-1", ("10.0.0.10", 80))
    listener = make_listener(aws, balancer, group)
    ours, theirs = a_rule(aws, listener, 20, group), a_rule(aws, listener, 7, group)
    other = aws.client("elbv2").create_listener(
        LoadBalancerArn=balancer,
        Protocol="HTTP",
        Port=8080,
        DefaultActions=[{"Type": "forward", "TargetGroupArn": group}],
    )["Listeners"][0]["ListenerArn"]
    aws.client("elbv2").register_targets(TargetGroupArn=group, Targets=[{"Id": "10.0.0.66", "Port": 80}])
    known = [balancer, group, listener, ours, target_id(group, "10.0.0.10", 80)]
    server = target_id(group, "10.0.0.66", 80)
    assert {(each.kind, each.id, each.parent, each.message) for each in found(aws, *known)} == {
        ("aws_lb_listener_rule", theirs, listener, "rule 7 (path-pattern)"),
        ("aws_lb_listener", other, balancer, "a listener HTTP 8080"),
        ("aws_lb_target_group_attachment", server, group, "server 10.0.0.66:80"),
    }
    assert found(aws, *known, theirs, other, a_rule_of(aws, other), server) == []


def a_rule_of(aws: AwsEnv, listener: str) -> str:
    """The ARN of the listener's default rule, which is the listener's own."""
    return str(aws.client("elbv2").describe_rules(ListenerArn=listener)["Rules"][0]["RuleArn"])


def test_a_port_that_somebody_opened_is_found_with_whom_it_lets_in(aws: AwsEnv) -> None:
    ec2 = aws.client("ec2")
    group = ec2.create_security_group(GroupName="sw-stk1-lb-1", Description="x", VpcId=aws.vpc)["GroupId"]
    ours = [each["SecurityGroupRuleId"] for each in ec2.describe_security_group_rules()["SecurityGroupRules"]]
    assert found(aws, group, *ours) == []
    way: dict[str, Any] = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[way])
    (stranger,) = found(aws, group, *ours)
    assert (stranger.parent, stranger.message) == (group, "tcp 22 from 0.0.0.0/0")


def test_what_stands_beside_what_is_ours_is_nobodys_business_here(aws: AwsEnv) -> None:
    balancer, group = make_balancer(aws, "theirs"), make_group(aws, "theirs", ("10.0.0.10", 80))
    a_rule(aws, make_listener(aws, balancer, group), 7, group)
    assert found(aws) == []
