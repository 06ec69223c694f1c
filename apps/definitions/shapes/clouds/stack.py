"""The shape of a Stack: one cloud account in one of its regions, and the network that load balancers stand in there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.model.stack import Network, PlanApproval
from apps.definitions.shapes.base.networks import NetworkBlock
from apps.definitions.shapes.base.shape import SORTED, About, Check, Data, Distinct, Grammar, Shape
from apps.definitions.shapes.base.words import (
    LISTED,
    ByName,
    Pairs,
    matching,
    read_pairs,
    sorted_pairs,
    text,
    word,
)

GLOBAL = "global"
EVERYBODY = Network().client_networks
APPROVALS = {
    PlanApproval.BY_HAND: "Every plan needs approval",
    PlanApproval.AUTOMATIC_SAFE: "Plans that delete or replace resources need approval",
    PlanApproval.AUTOMATIC: "No plan needs approval",
}
_AWS_ID = {name: re.compile(rf"{name}-(?:[0-9a-f]{{8}}|[0-9a-f]{{17}})") for name in ("vpc", "subnet")}
_GOOGLE_NETWORK = re.compile(
    r"(?:(?:https://www\.googleapis\.com/compute/v1/)?projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/global/networks/)?"
    r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"
)
region_of_cloud = matching(
    r"global|[a-z]{2}(?:-[a-z]{3,10}){1,2}-[1-9][0-9]?",
    "cloud_region",
    "Write the cloud's name of the region, such as eu-central-1, or global on Google.",
)
SUBNET = matching(_AWS_ID["subnet"].pattern, "subnet", "Write the id of a subnet, such as subnet-0a1b2c3d4e5f60718.")
BUCKET = matching(
    r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]",
    "bucket",
    "Write the bucket's name: 3 to 63 lower-case letters, digits and hyphens.",
)
GOOGLE_ZONE = matching(
    r"[a-z]{2,12}-[a-z]{2,12}[1-9][0-9]?-[a-z]",
    "google_zone",
    "Write one of Google's zones, such as europe-west3-a.",
)
ZONES = Grammar(
    lambda value: read_pairs(value, grammar.name, GOOGLE_ZONE),
    {
        "type": "object",
        "title": "names of regions, each with one of Google's zones",
        "additionalProperties": {"type": "string", "minLength": 1, "maxLength": 40},
    },
    sorted_pairs,
)


def is_vpc_id(name: str) -> bool:
    """Whether it is AWS's id of a VPC."""
    return _AWS_ID["vpc"].fullmatch(name) is not None


def _vpc(value: object) -> str:
    if isinstance(value, str) and len(value) <= 200 and (is_vpc_id(value) or _GOOGLE_NETWORK.fullmatch(value)):
        return value
    raise GrammarError("vpc", "Write vpc-0a1b2c3d4e5f60718 on AWS, the network's name or self link on Google.")


def _somebody(networks: tuple[str, ...], _: Data) -> None:
    if not networks:
        raise GrammarError("missing", "Name the client networks that may connect, or leave this out to allow everyone.")


@dataclass(frozen=True, slots=True)
class NetworkSpec(Shape):
    """Where load balancers of the stack stand, and whose clients may connect."""

    vpc: Annotated[
        str,
        text(_vpc, "an id, a name or a self link", 200, blank=True),
        About("AWS: the VPC ID. Google: the network name or self link.", "Network", None, "vpc-0a1b2c3d4e5f60718"),
    ] = ""
    subnets: Annotated[
        tuple[Annotated[str, text(SUBNET, "an id", 24)], ...],
        LISTED,
        Distinct(),
        SORTED,
        About("AWS: at least two subnet IDs in different zones.", "Subnets"),
    ] = ()
    client_networks: Annotated[
        tuple[NetworkBlock, ...],
        LISTED,
        Distinct(),
        Check(_somebody),
        SORTED,
        About("CIDR blocks that may connect. Default: everyone.", "Clients"),
    ] = EVERYBODY
    log_bucket: Annotated[
        str,
        text(BUCKET, "a bucket's name", 63, blank=True),
        About("Leave empty for no access logs.", "Bucket for access logs"),
    ] = ""
    vpc_networks: Annotated[
        tuple[NetworkBlock, ...],
        LISTED,
        Distinct(),
        SORTED,
        About("CIDR blocks of the VPC. Servers elsewhere count as outside.", "Networks of the VPC"),
    ] = ()
    zones: Annotated[
        Pairs,
        ZONES,
        About(
            "Google: the zone in which the endpoints of each region are registered.",
            "Zones",
            note="Our region → Google's zone.",
        ),
    ] = ()


NO_NETWORK = NetworkSpec()


@dataclass(frozen=True, slots=True)
class StackSpec(Shape):
    """One cloud account in one of its regions, kept as one Terraform state."""

    cloud_account: Annotated[
        ByName, About("The cloud account of the stack. Cannot be changed.", "Cloud account", "", "prod")
    ]
    cloud_region: Annotated[
        str,
        text(region_of_cloud, "the cloud's word", 40),
        About(
            "Such as eu-central-1; global on Google. Cannot be changed.",
            "The cloud's region",
            example="eu-central-1",
            note="The cloud's word; global on Google.",
        ),
    ]
    region: Annotated[
        ByName | None,
        About("The Spillway region. Leave empty if the stack serves all regions.", "Region", None, "frankfurt"),
    ] = None
    network: Annotated[NetworkSpec, About("The cloud settings of the load balancers.")] = NO_NETWORK
    approval: Annotated[
        PlanApproval,
        word(PlanApproval, APPROVALS),
        About("Plans that only change weights never need approval.", "Approval"),
    ] = PlanApproval.BY_HAND


def network_of(stored: Mapping[str, Any]) -> Network:
    """The network of a stored stack. Raises TypeError, ValueError or AttributeError for a column of another form."""
    return Network(
        vpc=str(stored.get("vpc", "")),
        subnets=tuple(stored.get("subnets", ())),
        client_networks=tuple(stored.get("client_networks", EVERYBODY)),
        log_bucket=str(stored.get("log_bucket", "")),
        zones=tuple(sorted(dict(stored.get("zones", {})).items())),
        vpc_networks=tuple(stored.get("vpc_networks", ())),
    )
