"""Machines of an Auto Scaling group or with a tag, and tasks of a service of ECS, with their private addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import time
from typing import Any

from apps.drivers.clouds import aws_session
from apps.drivers.clouds.aws_session import in_words
from apps.drivers.clouds.contract import CloudAccess, CloudError

IN_CALL = 100
# A client is made again after so long: what a role was given ends after an hour.
CLIENT_LASTS_S = 900
STARTED = ("RUNNING", "DEACTIVATING")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine or a task that serves; one that is `leaving` serves those who are with it."""

    address: str
    name: str
    leaving: bool = False


def machines_of_group(access: CloudAccess, group: str) -> list[Machine]:
    """Healthy instances in service, and those that are being terminated. Raises CloudError."""
    with in_words():
        said = _client(access, "autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
        if not said["AutoScalingGroups"]:
            raise CloudError(f"AWS has no Auto Scaling group {group} in {access.region}.")
        leaving = {
            each["InstanceId"]: each["LifecycleState"].startswith("Terminating")
            for each in said["AutoScalingGroups"][0]["Instances"]
            if each["LifecycleState"].startswith("Terminating")
            or (each["LifecycleState"] == "InService" and each["HealthStatus"].lower() == "healthy")
        }
        addresses = _addresses(access, sorted(leaving))
        return [Machine(addresses[pk], pk, leaving[pk]) for pk in sorted(leaving) if pk in addresses]


def machines_of_service(access: CloudAccess, cluster: str, service: str) -> list[Machine]:
    """Tasks that run with an address of their own (awsvpc), and those that are being stopped. Raises CloudError."""
    with in_words():
        tasks = list(_tasks(access, cluster, service))
    return sorted(
        (
            Machine(address, task["taskArn"].rpartition("/")[2], task["desiredStatus"] == "STOPPED")
            for task in tasks
            if task["lastStatus"] in STARTED and task.get("healthStatus") != "UNHEALTHY"
            for address in _own_address(task)
        ),
        key=lambda each: each.name,
    )


def machines_with_tag(access: CloudAccess, tag: str, value: str) -> list[Machine]:
    """Running instances that have the tag with this value, and those that are being stopped. Raises CloudError."""
    states = {"running": False, "stopping": True, "shutting-down": True}
    asked = [{"Name": f"tag:{tag}", "Values": [value]}, {"Name": "instance-state-name", "Values": list(states)}]
    with in_words():
        found = [
            Machine(each["PrivateIpAddress"], each["InstanceId"], states[each["State"]["Name"]])
            for each in _instances(access, Filters=asked)
            if each.get("PrivateIpAddress")
        ]
    return sorted(found, key=lambda each: each.name)


def _addresses(access: CloudAccess, instances: Sequence[str]) -> dict[str, str]:
    found = {}
    for some in _chunks(instances):
        for each in _instances(access, InstanceIds=list(some)):
            if address := each.get("PrivateIpAddress"):
                found[each["InstanceId"]] = address
    return found


def _instances(access: CloudAccess, **asked: Any) -> Iterator[dict[str, Any]]:
    for page in _client(access, "ec2").get_paginator("describe_instances").paginate(**asked):
        for reservation in page["Reservations"]:
            yield from reservation["Instances"]


def _tasks(access: CloudAccess, cluster: str, service: str) -> Iterator[dict[str, Any]]:
    containers = _client(access, "ecs")
    for wanted in ("RUNNING", "STOPPED"):
        pages = containers.get_paginator("list_tasks").paginate(
            cluster=cluster, serviceName=service, desiredStatus=wanted
        )
        arns = [arn for page in pages for arn in page["taskArns"]]
        for some in _chunks(arns):
            yield from containers.describe_tasks(cluster=cluster, tasks=list(some))["tasks"]


def _own_address(task: dict[str, Any]) -> Iterator[str]:
    """The first address of its network interface; none of a task that shares that of its machine."""
    details = (detail for each in task.get("attachments", ()) for detail in each.get("details", ()))
    yield from [each["value"] for each in details if each.get("name") == "privateIPv4Address"][:1]


def _chunks(names: Sequence[str]) -> Iterable[Sequence[str]]:
    return (names[at : at + IN_CALL] for at in range(0, len(names), IN_CALL))


def _client(access: CloudAccess, service: str) -> Any:
    return _kept(access, service, int(time() // CLIENT_LASTS_S))


@lru_cache(maxsize=32)
def _kept(access: CloudAccess, service: str, _slot: int) -> Any:
    return aws_session.client(access, service)
