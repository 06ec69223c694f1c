"""Servers of pools that a cloud lists: asked of its reader for the sources of definitions."""

from __future__ import annotations

from apps.definitions.server_sources.asking import BadAnswer
from apps.definitions.server_sources.deciding import FoundServer
from apps.definitions.server_sources.registries import Aws
from apps.definitions.shapes.servers.source import Kind, Source
from apps.drivers.clouds.aws_machines import machines_of_group, machines_of_service, machines_with_tag
from apps.drivers.clouds.contract import CloudAccess, CloudError
from apps.drivers.extras import missing


def servers_of(aws: Aws, source: Source) -> list[FoundServer]:
    """The servers of an Auto Scaling group, a service of ECS or a tag. Raises BadAnswer."""
    if what := missing("aws", "boto3"):
        raise BadAnswer(what)
    access = CloudAccess("aws", aws.region, endpoint_url=aws.endpoint_url, credentials=aws.credentials)
    try:
        if source.kind is Kind.ECS:
            found = machines_of_service(access, *source.name.split("/"))
        elif source.kind is Kind.EC2:
            found = machines_with_tag(access, *source.name.split("=", 1))
        else:
            found = machines_of_group(access, source.name)
    except CloudError as error:
        raise BadAnswer(error.message) from None
    return [FoundServer(each.address, source.port, hint=each.name, leaving=each.leaving) for each in found]
