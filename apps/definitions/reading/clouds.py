"""The kinds CloudAccount, Stack, AddressPool and StaticIP, read from their documents and written out again."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import replace
from typing import Any

from django.conf import settings

from apps.compiler import grammar
from apps.compiler.addresses import overlap, refusal_of_address
from apps.compiler.grammar import GrammarError
from apps.compiler.model.stack import ON_FLEETS, AddressKind, Cloud, Network
from apps.core.errors import FieldError
from apps.definitions.reading.fields import Reader, boolean, choice, integer
from apps.definitions.reading.outside import or_blank, short_called_url
from apps.definitions.reading.specs import AddressPoolSpec, CloudAccountSpec, StackSpec, StaticIPSpec
from apps.definitions.shapes.base.outside import credentials_reference
from apps.fleet.models import AddressPool, CloudAccount, Stack, StaticIP

Document = dict[str, Any]
EVERYBODY = Network().client_networks
GLOBAL = "global"
MAX_BLOCKS = 50
# The largest block of a pool: beyond it somebody has mistyped the length.
WIDEST = {4: 8, 6: 32}
_PROJECT = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_CLOUD_REGION = re.compile(r"global|[a-z]{2}(?:-[a-z]{3,10}){1,2}-[1-9][0-9]?")
_AWS_ID = {word: re.compile(rf"{word}-(?:[0-9a-f]{{8}}|[0-9a-f]{{17}})") for word in ("vpc", "subnet")}
_GOOGLE_NETWORK = re.compile(
    r"(?:(?:https://www\.googleapis\.com/compute/v1/)?projects/[a-z][a-z0-9-]{4,28}[a-z0-9]/global/networks/)?"
    r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"
)
_GOOGLE_ZONE = re.compile(r"[a-z]{2,12}-[a-z]{2,12}[1-9][0-9]?-[a-z]")
_MEMORY = re.compile(r"memory://[a-z0-9-]{1,63}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")


def _matching(pattern: re.Pattern[str], code: str, detail: str) -> Any:
    def allowed(value: object) -> str:
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        raise GrammarError(code, detail)

    return allowed


project = _matching(_PROJECT, "project", "Write the project ID: 6 to 30 lowercase letters, digits and hyphens.")
cloud_region = _matching(
    _CLOUD_REGION, "cloud_region", "Write the cloud's name of the region, such as eu-central-1, or global on Google."
)
subnet = _matching(_AWS_ID["subnet"], "subnet", "Write the id of a subnet, such as subnet-0a1b2c3d4e5f60718.")
bucket = _matching(_BUCKET, "bucket", "Write the bucket's name: 3 to 63 lower-case letters, digits and hyphens.")
google_zone = _matching(_GOOGLE_ZONE, "google_zone", "Write one of Google's zones, such as europe-west3-a.")


def vpc(value: object) -> str:
    """AWS's id of a VPC, or the name or self link of one of Google's networks."""
    if isinstance(value, str) and len(value) <= 200 and (is_vpc_id(value) or _GOOGLE_NETWORK.fullmatch(value)):
        return value
    raise GrammarError("vpc", "Write vpc-0a1b2c3d4e5f60718 on AWS, the network's name or self link on Google.")


def is_vpc_id(text: str) -> bool:
    """Whether it is AWS's id of a VPC."""
    return _AWS_ID["vpc"].fullmatch(text) is not None


def network_block(value: object) -> str:
    """A network in CIDR, in its canonical form: no bits behind the length, no address without a length."""
    if not isinstance(value, str) or len(value) > 43 or not value.isascii() or "/" not in value:
        raise GrammarError("network", "Write a network as address/length, such as 192.0.2.0/24 or 2001:db8::/48.")
    try:
        found = ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise GrammarError("network", "Write a network as address/length, such as 192.0.2.0/24.") from None
    if str(found) != value:
        raise GrammarError("network_spelling", f"Write the network in its canonical form: {found}.")
    return value


def block_of_pool(value: object) -> str:
    """A network that addresses may be allotted from."""
    text = network_block(value)
    found = ipaddress.ip_network(text)
    if found.prefixlen < WIDEST[found.version]:
        raise GrammarError("too_wide", f"Use a block of length {WIDEST[found.version]} or more.")
    reason = refusal_of_address(found[0], local_development=True)
    if reason:
        raise GrammarError("address_refused", f"Choose another block; {found[0]} {reason}.")
    return text


def static_address(value: object) -> str:
    """An address that a node can hold."""
    text = grammar.listen_address(value)
    reason = refusal_of_address(ipaddress.ip_address(text), local_development=True)
    if reason:
        raise GrammarError("address_refused", f"Choose another address; {text} {reason}.")
    return text


def _endpoint(value: object) -> str:
    """The URL of another API; in development a cloud in memory as well."""
    if settings.DEVELOPMENT and isinstance(value, str) and _MEMORY.fullmatch(value):
        return value
    return short_called_url(value)


def read_cloud_account(reader: Reader) -> CloudAccountSpec:
    """`{cloud, credentials?, project?, endpoint_url?}`."""
    spec = CloudAccountSpec(
        reader.required("cloud", choice(Cloud)),
        reader.optional("credentials", or_blank(credentials_reference), ""),
        reader.optional("project", or_blank(project), ""),
        reader.optional("endpoint_url", or_blank(_endpoint), ""),
    )
    if spec.cloud is Cloud.GOOGLE and spec.project == "":
        reader.fault("project", "missing", "Fill in the id of the Google project.")
    if spec.cloud is Cloud.AWS and spec.project:
        reader.fault("project", "cloud", "AWS has no projects; leave this out.")
    if spec.cloud is Cloud.GOOGLE and spec.credentials and not spec.credentials.startswith("env:"):
        reader.fault("credentials", "cloud", "Google takes env:NAME (a service account's JSON), or nothing.")
    return spec


def read_stack(reader: Reader) -> StackSpec:
    """`{cloud_account, cloud_region, region?, network?, approval?}`; what depends on the cloud is asked when stored."""
    return StackSpec(
        cloud_account=reader.required("cloud_account", grammar.name),
        cloud_region=reader.required("cloud_region", cloud_region),
        region=reader.optional("region", grammar.name, None),
        network=_network(reader.child("network")),
        approval=str(reader.optional("approval", choice(Approval), Approval.BY_HAND)),
    )


Approval: Any = Stack.Approval


def _network(reader: Reader | None) -> Network:
    if reader is None:
        return Network()
    found = Network(
        vpc=reader.optional("vpc", or_blank(vpc), ""),
        subnets=reader.values("subnets", subnet),
        client_networks=reader.values("client_networks", network_block),
        log_bucket=reader.optional("log_bucket", or_blank(bucket), ""),
        zones=_zones(reader.child("zones")),
        vpc_networks=reader.values("vpc_networks", network_block),
    )
    reader.close()
    if not reader.has("client_networks"):
        return replace(found, client_networks=EVERYBODY)
    if not found.client_networks:
        detail = "Name the client networks that may connect, or leave this out to allow everyone."
        reader.fault("client_networks", "missing", detail)
    return found


def _zones(reader: Reader | None) -> tuple[tuple[str, str], ...]:
    if reader is None:
        return ()
    for region in reader.data:
        try:
            grammar.name(region)
        except GrammarError as error:
            reader.fault(region, error.code, error.message)
    return tuple((region, reader.required(region, google_zone)) for region in sorted(reader.data))


def read_address_pool(reader: Reader) -> AddressPoolSpec:
    """`{blocks, region?}`; blocks do not overlap each other."""
    blocks = reader.values("blocks", block_of_pool)
    if not reader.data.get("blocks"):
        reader.fault("blocks", "missing", "Name at least one network, such as 203.0.113.0/27.")
    if len(blocks) > MAX_BLOCKS:
        reader.fault("blocks", "too_many", f"Use at most {MAX_BLOCKS} networks in one pool.")
    networks = [ipaddress.ip_network(block) if block else None for block in blocks[:MAX_BLOCKS]]
    for index, one in enumerate(networks):
        other = next((each for each in networks[:index] if one and each and overlap(one, each)), None)
        if other:
            detail = f"This network overlaps {other}; name every address once."
            reader.faults.append(FieldError(f"{reader.pointer}/blocks/{index}", "overlap", detail))
    return AddressPoolSpec(blocks, reader.optional("region", grammar.name, None))


def read_static_ip(reader: Reader) -> StaticIPSpec:
    """`{kind?, address?, region?, pool?, stack?, owner?, protected?, router_id?}`; a cloud chooses its addresses."""
    spec = StaticIPSpec(
        kind=reader.optional("kind", choice(AddressKind), AddressKind.NODE),
        address=reader.optional("address", static_address, None),
        region=reader.optional("region", grammar.name, None),
        pool=reader.optional("pool", grammar.name, None),
        stack=reader.optional("stack", grammar.name, None),
        owner=reader.optional("owner", grammar.name, None),
        protected=reader.optional("protected", boolean, None),
        router_id=reader.optional("router_id", integer(1, 255), None),
    )
    if spec.kind in ON_FLEETS:
        _expect_fleet(reader, spec)
    elif spec.kind is not None:
        _expect_cloud(reader, spec)
    return spec


def _expect_fleet(reader: Reader, spec: StaticIPSpec) -> None:
    if spec.stack:
        reader.fault("stack", "kind", f"An address of kind {spec.kind} belongs to fleets; leave out stack.")
    if spec.kind is AddressKind.VIP and not reader.has("region"):
        reader.fault("region", "missing", "A vip moves among the nodes of one region; fill in region.")
    if spec.router_id and spec.kind is not AddressKind.VIP:
        reader.fault("router_id", "kind", "Only a vip has a router ID; leave this out.")


def _expect_cloud(reader: Reader, spec: StaticIPSpec) -> None:
    if not reader.has("stack"):
        reader.fault("stack", "missing", f"Fill in stack: a {spec.kind} address belongs to a stack.")
    for field in ("address", "pool", "region", "router_id"):
        if reader.has(field):
            reader.fault(field, "kind", f"The cloud chooses the addresses of its stack; leave {field} out.")


def cloud_account_document(source: CloudAccountSpec | CloudAccount) -> Document:
    """A cloud account as it is shown."""
    return {
        "cloud": str(source.cloud),
        "credentials": source.credentials,
        "project": source.project,
        "endpoint_url": source.endpoint_url,
    }


def stack_document(spec: StackSpec) -> Document:
    """The document of a specification."""
    return _stack(spec.cloud_account, spec.region, spec.cloud_region, network_document(spec.network), spec.approval)


def stack_row(row: Stack) -> Document:
    """The document of a stored stack."""
    region = row.region.name if row.region else None
    network = network_document(network_of(row))
    return _stack(row.cloud_account.name, region, row.cloud_region, network, str(row.approval))


def _stack(cloud_account: str, region: str | None, cloud_region: str, network: Document, approval: str) -> Document:
    return {
        "cloud_account": cloud_account,
        "cloud_region": cloud_region,
        "region": region,
        "network": network,
        "approval": approval,
    }


def network_document(network: Network) -> Document:
    """A network as it is stored and shown; the order of subnets and client networks means nothing."""
    return {
        "vpc": network.vpc,
        "subnets": sorted(network.subnets),
        "client_networks": sorted(network.client_networks),
        "log_bucket": network.log_bucket,
        "zones": dict(sorted(network.zones)),
        "vpc_networks": sorted(network.vpc_networks),
    }


def network_of(row: Stack) -> Network:
    """The network of a stored stack. Raises TypeError, ValueError or AttributeError for a column of another form."""
    stored = dict(row.network)
    return Network(
        vpc=str(stored.get("vpc", "")),
        subnets=tuple(stored.get("subnets", ())),
        client_networks=tuple(stored.get("client_networks", EVERYBODY)),
        log_bucket=str(stored.get("log_bucket", "")),
        zones=tuple(sorted(dict(stored.get("zones", {})).items())),
        vpc_networks=tuple(stored.get("vpc_networks", ())),
    )


def address_pool_document(spec: AddressPoolSpec) -> Document:
    """The document of a specification."""
    return {"blocks": sorted(spec.blocks), "region": spec.region}


def address_pool_row(row: AddressPool) -> Document:
    """The document of a stored pool of addresses."""
    return {"blocks": sorted(row.blocks), "region": row.region.name if row.region else None}


def static_ip_document(spec: StaticIPSpec) -> Document:
    """The document of a specification; what it leaves as it is, or has allotted, is not in it."""
    found: Document = {
        "kind": str(spec.kind),
        "region": spec.region,
        "pool": spec.pool,
        "stack": spec.stack,
        "owner": spec.owner,
    }
    kept = {"address": spec.address, "protected": spec.protected, "router_id": spec.router_id}
    return found | {name: value for name, value in kept.items() if value is not None}


def static_ip_row(row: StaticIP) -> Document:
    """The document of a stored address. What a cloud has chosen is no part of it: see `addresses` of the row."""
    return {
        "kind": str(row.kind),
        "address": row.address if row.kind in ON_FLEETS else None,
        "region": row.region.name if row.region else None,
        "pool": row.pool.name if row.pool else None,
        "stack": row.stack.name if row.stack else None,
        "owner": row.owner.name if row.owner else None,
        "protected": row.protected,
        "router_id": row.router_id,
    }


def settled_static_ip(stored: Document, after: Document) -> Document:
    """The document with what it leaves as it is taken from the stored one."""
    kept = {name: stored.get(name) for name in ("address", "router_id")}
    return kept | {"protected": stored.get("protected", False)} | after
