"""What a cloud has already, and what one of it would be here; nothing is written.

The documents that come out are applied like any others, after a look at the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from apps.accounts.actors import Actor
from apps.adoption import alb, elb, google
from apps.adoption.contract import Adoption, Wish
from apps.adoption.import_options import Order, unused
from apps.compiler.grammar import GrammarError
from apps.core.errors import Conflict, FieldError, Invalid, NotFound
from apps.definitions.shapes.clouds.stack import region_of_cloud
from apps.drivers.clouds.contract import CloudAccess, CloudError, CloudReader, FoundLoadBalancer
from apps.drivers.clouds.registry import open_reader
from apps.fleet.models import CloudAccount
from apps.fleet.selectors import cloud_accounts

Adopter = Callable[[FoundLoadBalancer, Wish], Adoption]
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


def _reader(actor: Actor, cloud_account_id: int, region: str) -> CloudReader:
    actor.must_operate("cloud accounts")
    account = cloud_accounts(actor).filter(pk=cloud_account_id).first()
    if account is None:
        raise NotFound("There is no such cloud account, or you may not see it.")
    if not region:
        raise Invalid([FieldError("/region", "missing", "Name the cloud region to search.")])
    try:
        return open_reader(_access(account, region_of_cloud(region)))
    except GrammarError as error:
        raise Invalid([FieldError("/region", error.code, error.message)]) from error
    except CloudError as error:
        raise Conflict(error.message) from error


def _access(account: CloudAccount, region: str) -> CloudAccess:
    return CloudAccess(account.cloud, region, account.project, account.endpoint_url, account.credentials)
