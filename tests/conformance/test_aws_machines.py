"""Servers from groups and services of AWS as moto plays it: what serves, what leaves, what is not there."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import urllib3
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.definitions.models import Pool, Server, ServerSource
from apps.definitions.server_sources import finding
from apps.definitions.services import save_object
from apps.drivers.clouds import aws_machines
from apps.drivers.clouds.aws_machines import machines_of_group, machines_of_service, machines_with_tag
from apps.drivers.clouds.contract import CloudAccess, CloudError
from tests.conformance.aws_env import REGION, AwsEnv, empty_aws


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> AwsEnv:
    """An empty cloud, asked with keys of its own."""
    env = empty_aws()
    for name, value in env.environment().items():
        monkeypatch.setenv(name, value)
    aws_machines._kept.cache_clear()
    return env


@pytest.fixture
def access(aws: AwsEnv) -> CloudAccess:
    return CloudAccess("aws", REGION, endpoint_url=aws.endpoint)


def a_group(aws: AwsEnv, size: int, name: str = "web") -> Any:
    """An Auto Scaling group of so many instances; the client that changes it."""
    groups = aws.client("autoscaling")
    groups.create_launch_configuration(LaunchConfigurationName=name, ImageId="ami-12c6146b", InstanceType="t3.micro")
    groups.create_auto_scaling_group(
        AutoScalingGroupName=name, LaunchConfigurationName=name, MinSize=0, MaxSize=9, DesiredCapacity=size,
        VPCZoneIdentifier=",".join(aws.subnets),
    )  # fmt: skip
    return groups


def a_service(aws: AwsEnv, tasks: int) -> Any:
    """A service of so many tasks with an address each; the client that changes it."""
    containers, name = aws.client("ecs"), "web"
    aws.client("ec2").modify_vpc_attribute(VpcId=aws.vpc, EnableDnsHostnames={"Value": True})
    # By itself moto ends a task after it was looked at.
    still = {"model_name": "ecs::task", "transition": {"progression": "manual", "times": 9}}
    urllib3.request("POST", f"{aws.endpoint}/moto-api/state-manager/set-transition", json=still)
    containers.create_cluster(clusterName="main")
    containers.register_task_definition(
        family=name, networkMode="awsvpc", requiresCompatibilities=["FARGATE"], cpu="256", memory="512",
        containerDefinitions=[{"name": name, "image": "x", "cpu": 1, "memory": 64}],
    )  # fmt: skip
    network = {"awsvpcConfiguration": {"subnets": list(aws.subnets), "securityGroups": []}}
    same = {"cluster": "main", "taskDefinition": name, "launchType": "FARGATE", "networkConfiguration": network}
    containers.create_service(serviceName=name, desiredCount=0, **same)
    if tasks:
        containers.run_task(count=tasks, **same)
    return containers


def test_the_machines_of_a_group_come_with_their_private_addresses(aws: AwsEnv, access: CloudAccess) -> None:
    groups = a_group(aws, 2)
    found = machines_of_group(access, "web")
    assert [each.address.startswith("10.0.") for each in found] == [True, True]
    assert not any(each.leaving for each in found)
    groups.set_desired_capacity(AutoScalingGroupName="web", DesiredCapacity=3)
    assert len(machines_of_group(access, "web")) == 3
    groups.set_instance_health(InstanceId=found[0].name, HealthStatus="Unhealthy")
    groups.enter_standby(InstanceIds=[found[1].name], AutoScalingGroupName="web", ShouldDecrementDesiredCapacity=True)
    assert not {found[0].name, found[1].name} & {each.name for each in machines_of_group(access, "web")}


def test_the_tasks_of_a_service_come_with_addresses_of_their_own(aws: AwsEnv, access: CloudAccess) -> None:
    """Moto does not tell the tasks of a service from others of its cluster."""
    containers = a_service(aws, 2)
    found = machines_of_service(access, "main", "web")
    assert [(ip_address(each.address).is_private, each.leaving) for each in found] == [(True, False)] * 2
    containers.stop_task(cluster="main", task=found[0].name)
    assert [each.name for each in machines_of_service(access, "main", "web")] == [found[1].name]


def test_the_instances_with_a_tag_come_with_their_private_addresses(aws: AwsEnv, access: CloudAccess) -> None:
    machines = aws.client("ec2")
    for value, count in (("web", 2), ("web2", 1), ("*", 1)):
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "role", "Value": value}]}]
        machines.run_instances(ImageId="ami-12c6146b", MinCount=count, MaxCount=count, TagSpecifications=tags)
    found = machines_with_tag(access, "role", "web")
    assert [(ip_address(each.address).is_private, each.leaving) for each in found] == [(True, False)] * 2
    machines.terminate_instances(InstanceIds=[found[0].name])
    assert [each.name for each in machines_with_tag(access, "role", "web")] == [found[1].name]
    assert machines_with_tag(access, "role", "nobody") == []


def test_a_group_that_is_not_there_is_no_answer(access: CloudAccess) -> None:
    with pytest.raises(CloudError, match=f"AWS has no Auto Scaling group web in {REGION}"):
        machines_of_group(access, "web")
    with pytest.raises(CloudError, match="AWS says"):
        machines_of_service(access, "main", "web")


def test_a_machine_that_is_terminated_leaves(aws: AwsEnv, access: CloudAccess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moto terminates at once, so what AWS says in between is put into its answer."""
    a_group(aws, 2)
    real = aws_machines._client

    class Terminating:
        def describe_auto_scaling_groups(self, **asked: Any) -> Any:
            said = real(access, "autoscaling").describe_auto_scaling_groups(**asked)
            said["AutoScalingGroups"][0]["Instances"][0]["LifecycleState"] = "Terminating:Wait"
            return said

    monkeypatch.setattr(
        aws_machines, "_client", lambda to, service: Terminating() if service == "autoscaling" else real(to, service)
    )
    assert sorted(each.leaving for each in machines_of_group(access, "web")) == [False, True]


@pytest.mark.django_db
def test_a_pool_has_the_machines_of_its_group_and_keeps_them_when_it_is_gone(
    aws: AwsEnv, tutorial_env: Actor, acme: Actor, globex: Actor, settings: Settings, tmp_path: Path
) -> None:
    def look() -> ServerSource:
        ServerSource.objects.update(next_at=now())
        finding.find_in_turns()
        return ServerSource.objects.get()

    file = tmp_path / "registries.json"
    entry = {"region": REGION, "endpoint_url": aws.endpoint, "groups": {"web": ["acme"]}}
    file.write_text(json.dumps({"aws": {"prod": entry}}))
    settings.REGISTRIES = str(file)
    spec = {"backends": [{"region": "us-central1", "servers_from": "autoscaling://prod/web:8080"}]}
    with pytest.raises(Invalid, match="Pools of globex may not use group web of an AWS prod; an operator allows that"):
        save_object(actor=globex, kind="Pool", name="machines", spec=spec)
    pool: Pool = save_object(actor=acme, kind="Pool", name="machines", spec=spec)
    groups = a_group(aws, 2)
    assert look().error == ""
    rows = Server.objects.filter(backend__pool=pool)
    assert sorted(rows.values_list("port", flat=True)) == [8080, 8080]
    assert all(row.name.startswith("i-") for row in rows)
    source = ServerSource.objects.get()
    assert source.next_at - now() > finding.EVERY * 2, "a cloud is not asked every two seconds"
    groups.delete_auto_scaling_group(AutoScalingGroupName="web", ForceDelete=True)
    assert "no Auto Scaling group web" in look().error
    assert rows.count() == 2
