"""A push to AWS, end to end: definitions are applied, the real Terraform and provider build them in a moto server."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.definitions.reading.describing import describe
from apps.definitions.services import apply_document, dry_run, managing, save_object
from apps.fleet.models import Stack, StaticIP
from apps.stacks import selectors, services
from apps.stacks.models import RunEvent, StackRun, StackSync, StateLock, StateVersion
from apps.stacks.review.replacements import NOTICED
from tests.e2e.stack_definitions import mail, shop, shop_alone
from tests.e2e.stack_env import NEEDS_AWS, REGION, Cloud, StackEnv, cloud
from tests.e2e.stack_kills import orphans, twice
from tests.e2e.stack_standing import left_behind

pytestmark = [
    pytest.mark.long(60),
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.django_db(transaction=True),
    *NEEDS_AWS,
]


@pytest.fixture
def aws() -> Cloud:
    """An empty cloud."""
    return cloud()


@pytest.fixture
def env(operator: Actor, live_server: Any, tmp_path: Path, aws: Cloud) -> StackEnv:
    """Workers of this test's database."""
    return StackEnv(operator, tmp_path, live_server.url, endpoint=aws.endpoint)


def test_a_shop_is_built_around_what_stands_and_everything_goes(env: StackEnv, aws: Cloud, operator: Actor) -> None:
    document = shop_alone(aws, routes=2)
    apply_document(actor=operator, objects=document, manager="shop")
    left_behind(aws, Stack.objects.get())
    taken_over = aws.count()
    with env.worker():
        run = env.approve()
        assert (run.state, run.message) == ("done", "")
        assert taken_over == {"load balancers": 1, "security groups": 1}
        assert aws.count() == taken_over | {"listeners": 1, "rules": 2, "target groups": 2}
        assert (twice(aws), orphans(aws, Stack.objects.get()), StackSync.objects.get().unknown) == ([], [], [])
        assert RunEvent.objects.filter(run=run, kind="complete", action="create").count() == run.to_add
        _gone(env, aws, operator, document)


@pytest.mark.exhaustive
def test_from_apply_to_a_shop_of_fifty_routes_with_its_zone_one_weight_changed_and_everything_gone(
    env: StackEnv, aws: Cloud, operator: Actor
) -> None:
    document = shop(aws, routes=50)
    apply_document(actor=operator, objects=document, manager="shop")
    with env.worker():
        run = env.approve()
        assert (run.state, run.message) == ("done", "")
        assert aws.count() == {
            "load balancers": 1,
            "listeners": 1,
            "rules": 50,
            "target groups": 2,
            "security groups": 1,
            "zones": 1,
        }
        assert "www.example.com." in records(aws)
        assert RunEvent.objects.filter(run=run, kind="complete").count() == run.to_add
        _one_weight(env, aws, operator)
        _added_by_hand(env, aws, operator)
        _another_vpc(env, operator, **another_vpc(aws))
        _gone(env, aws, operator, document)


@pytest.mark.exhaustive
def test_addresses_stay_in_front_of_a_web_site_and_a_mail_server(env: StackEnv, aws: Cloud, operator: Actor) -> None:
    document = mail(aws)
    apply_document(actor=operator, objects=document, manager="shop")
    with env.worker():
        env.wait("a plan", lambda: StackRun.objects.filter(state="planned").exists())
        changes, _ = selectors.plan_of(operator, StackRun.objects.get(state="planned").pk)
        # moto does not echo the Elastic IPs of an NLB: the plan says that they are asked for, one for each subnet.
        mapped = {
            change.address: len(change.after["subnet_mapping"])
            for change in changes
            if change.type == "aws_lb" and change.after and change.after["load_balancer_type"] == "network"
        }
        assert set(mapped.values()) == {2}
        assert len(mapped) == 2
        run = env.approve()
        assert (run.state, run.message) == ("done", "")
        assert aws.count()["addresses"] == 4
        theirs = {each["PublicIp"] for each in aws.client("ec2").describe_addresses()["Addresses"]}
        ours = [address for each in StaticIP.objects.all() for address in each.addresses]
        assert sorted(ours) == sorted(theirs)
        assert "front.example.com." in records(aws)
        _nothing_but_motos_own_differs(env, operator)
        _gone(env, aws, operator, document)


def _nothing_but_motos_own_differs(env: StackEnv, operator: Actor) -> None:
    """The rules that name their own security group, which an NLB before an ALB needs, are no drift."""
    services.check_drift(actor=operator, stack_id=Stack.objects.get().pk)
    env.wait("the end", lambda: not StackRun.objects.filter(kind="check", finished_at=None).exists())
    changes, _ = selectors.plan_of(operator, StackRun.objects.get(kind="check").pk)
    assert {each.type for each in changes} <= {"aws_lb"}, [each.address for each in changes]
    if changes:
        env.wait("a plan", lambda: StackRun.objects.filter(state="planned").exists())
        env.discard()


def records(aws: Cloud) -> set[str]:
    """The names that the one zone there has."""
    dns = aws.client("route53")
    zone = dns.list_hosted_zones()["HostedZones"][0]["Id"]
    return {each["Name"] for each in dns.list_resource_record_sets(HostedZoneId=zone)["ResourceRecordSets"]}


def _one_weight(env: StackEnv, aws: Cloud, operator: Actor) -> None:
    (route,) = [each for each in shop_alone(aws, routes=1, weight=70) if each["name"] == "way-0"]
    with managing(break_glass=True):
        save_object(actor=operator, kind="Route", name="way-0", spec=route["spec"])
    env.wait("a plan", lambda: StackRun.objects.filter(state="planned").exists())
    run = StackRun.objects.get(state="planned")
    (change,), drift = selectors.plan_of(operator, run.pk)
    assert (change.action, change.weights_only, drift) == ("update", True, [])
    assert sorted(each.sentence for each in change.details) == [
        "weight of operator/blue in frankfurt: 90 % → 70 %",
        "weight of operator/green in frankfurt: 10 % → 30 %",
    ]
    assert env.approve().state == "done"


def _added_by_hand(env: StackEnv, aws: Cloud, operator: Actor) -> None:
    """Terraform finds no difference; the look does, and takes nothing of ours for somebody's."""
    asked, stack = aws.client("elbv2"), Stack.objects.get()
    (listener,) = aws.standing()["listeners"]
    condition = {"Field": "path-pattern", "Values": ["/by-hand"]}
    answer = {"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "200"}}
    made = asked.create_rule(ListenerArn=listener, Priority=7, Conditions=[condition], Actions=[answer])
    services.check_drift(actor=operator, stack_id=stack.pk)
    env.wait("the end", env.settled)
    run = StackRun.objects.latest("id")
    assert (run.kind, run.state, run.drifted) == ("check", "done", 1)
    assert [each["message"] for each in StackSync.objects.get().added_by_hand] == ["rule 7 (path-pattern)"]
    asked.delete_rule(RuleArn=made["Rules"][0]["RuleArn"])


def _another_vpc(env: StackEnv, operator: Actor, vpc: str, subnets: tuple[str, ...]) -> None:
    """The dry run counts what the provider then plans, and says what clients notice; applied, all stands there."""
    spec = describe(Stack.objects.get())
    network = spec["network"] | {"vpc": vpc, "subnets": list(subnets)}
    change = partial(save_object, actor=operator, kind="Stack", name="shop", spec=spec | {"network": network})
    with managing(break_glass=True):
        (told,) = dry_run(operator, change).stacks
        change()
    env.wait("a plan", lambda: StackRun.objects.filter(state="planned").exists())
    run = StackRun.objects.get(state="planned")
    assert (run.to_add, run.to_replace, run.to_delete) == (told.to_add, told.to_replace, told.to_delete)
    changes, _ = selectors.plan_of(operator, run.pk)
    (balancer,) = [each for each in changes if each.type == "aws_lb"]
    assert (balancer.action, balancer.details[0].sentence) == ("replace", NOTICED["aws_lb"])
    assert f"load balancer web: {NOTICED['aws_lb']}" in told.changes
    assert env.approve().message == ""


def another_vpc(aws: Cloud) -> dict[str, Any]:
    """One with a network of its own."""
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    made = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.9.{number}.0/24", AvailabilityZone=f"{REGION}{zone}")
        for number, zone in enumerate("ab")
    ]
    return {"vpc": vpc, "subnets": tuple(each["Subnet"]["SubnetId"] for each in made)}


def _gone(env: StackEnv, aws: Cloud, operator: Actor, document: list[dict[str, Any]]) -> None:
    apply_document(actor=operator, objects=document[:3], manager="shop", prune=True)
    run = env.approve()
    assert (run.state, run.message) == ("done", "")
    assert aws.count() == {}
    assert StateVersion.objects.order_by("-number")[0].resources == 0
    assert not StateLock.objects.exists()
    assert StackSync.objects.get().outputs == {}
