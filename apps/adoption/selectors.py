"""What a cloud has already, and what one of it would be here; nothing is written.

The documents that come out are applied like any others, after a look at the plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import quote

from apps.accounts.actors import Actor
from apps.adoption import alb, elb, google
from apps.adoption.contract import Adoption, Wish
from apps.adoption.import_options import Order, unused
from apps.compiler.grammar import GrammarError
from apps.compiler.model.stack import Cloud
from apps.core.caching import made_once
from apps.core.errors import Conflict, FieldError, Invalid, NotFound
from apps.definitions.shapes.clouds.stack import GLOBAL, region_of_cloud
from apps.drivers.clouds.contract import (
    CloudAccess,
    CloudError,
    CloudReader,
    FoundLoadBalancer,
    FoundNetwork,
    FoundSubnet,
)
from apps.drivers.clouds.registry import open_reader
from apps.fleet.models import CloudAccount
from apps.fleet.selectors import cloud_accounts

Adopter = Callable[[FoundLoadBalancer, Wish], Adoption]
SAID_KEPT_S = 30.0
# Where a cloud is asked which regions it has.
ASKED_FOR_REGIONS = {Cloud.AWS: "us-east-1", Cloud.GOOGLE: GLOBAL}
ADOPTERS: Mapping[str, Adopter] = {
    "Application Load Balancer": alb.adopt,
    "Network Load Balancer": alb.adopt,
    "Classic Load Balancer": elb.adopt,
}


def load_balancers_of(*, actor: Actor, cloud_account_id: int, region: str) -> Sequence[FoundLoadBalancer]:
    """What stands in a cloud account's region: kinds, names and ids.

    Raises Forbidden, NotFound, Invalid for a region that no cloud has, Conflict with what the cloud says.
    """
    reader = _reader(actor, cloud_account_id, region)
    try:
        return reader.load_balancers()
    except CloudError as error:
        raise Conflict(error.message) from error


def networks_of(*, actor: Actor, cloud_account: str, region: str) -> list[FoundNetwork]:
    """Networks that a stack could stand in there, as the cloud said within the last half minute. Raises as above."""
    found = _said(actor, cloud_account, region, "networks")
    return [FoundNetwork(**each | {"subnets": tuple(FoundSubnet(**one) for one in each["subnets"])}) for each in found]


def buckets_of(*, actor: Actor, cloud_account: str, region: str) -> list[str]:
    """Buckets there that access logs can go to, likewise."""
    return _said(actor, cloud_account, region, "buckets")


def regions_of(*, actor: Actor, cloud_account: str) -> list[str]:
    """Regions that the cloud account may use, likewise."""
    return _said(actor, cloud_account, "", "regions")


def _said(actor: Actor, cloud_account: str, region: str, what: str) -> list[Any]:
    """What the cloud says of it.

    A person who types waits for it, so the cloud is asked once and briefly, and a refusal is kept as well.
    """
    actor.must_operate("cloud accounts")
    account = cloud_accounts(actor).filter(name=cloud_account).first()
    if account is None:
        raise Conflict(f"Choose the cloud account to list its {what}.")
    where = ASKED_FOR_REGIONS[Cloud(account.cloud)] if what == "regions" else region
    key = f"{what}:{account.pk}:{account.version}:{quote(where)}"
    found = json.loads(made_once(key, lambda: _asked(actor, account, where, what), SAID_KEPT_S))
    if isinstance(found, str):
        raise Conflict(found)
    return list(found)


def _asked(actor: Actor, account: CloudAccount, region: str, what: str) -> bytes:
    try:
        found = getattr(_reader(actor, account.pk, region, brief=True), what)()
    except CloudError as error:
        return json.dumps(error.message).encode()
    except (Conflict, Invalid) as error:
        said = error.field_errors[0].detail if isinstance(error, Invalid) else error.detail
        return json.dumps(said).encode()
    return json.dumps([each if isinstance(each, str) else asdict(each) for each in found]).encode()


def adopt(*, actor: Actor, cloud_account_id: int, order: Order) -> Adoption:
    """One of them as documents of ours, with a line for everything that was found, and for what was said in vain.

    Raises as above.
    """
    reader = _reader(actor, cloud_account_id, order.region)
    try:
        found = reader.describe(order.found_id)
    except CloudError as error:
        raise Conflict(error.message) from error
    made = ADOPTERS.get(found.kind, google.adopt)(found, order.wish)
    return replace(made, report=(*made.report, *unused(made, order.wish)))


def apply_document(adoption: Adoption) -> dict[str, Any]:
    """What `PUT /apply` takes."""
    return {"objects": list(adoption.documents)}


def _reader(actor: Actor, cloud_account_id: int, region: str, *, brief: bool = False) -> CloudReader:
    actor.must_operate("cloud accounts")
    account = cloud_accounts(actor).filter(pk=cloud_account_id).first()
    if account is None:
        raise NotFound("There is no such cloud account, or you may not see it.")
    if not region:
        raise Invalid([FieldError("/region", "missing", "Name the cloud region to search.")])
    try:
        return open_reader(replace(_access(account, region_of_cloud(region)), brief=brief))
    except GrammarError as error:
        raise Invalid([FieldError("/region", error.code, error.message)]) from error
    except CloudError as error:
        raise Conflict(error.message) from error


def _access(account: CloudAccount, region: str) -> CloudAccess:
    return CloudAccess(account.cloud, region, account.project, account.endpoint_url, account.credentials)
