"""ADOPT, for people and programs: what a cloud has already, and what one of it would be here; nothing is written.

The documents that come out are applied like any others, after a look at the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apps.accounts.actors import Actor
from apps.core.errors import Conflict, Fault, Invalid, NotFound
from apps.drivers.clouds.contract import CloudError, CloudPlace, CloudReader, FoundLoadBalancer
from apps.drivers.clouds.registry import open_reader
from apps.fleet.models import CloudAccount
from apps.fleet.selectors import cloud_accounts
from apps.stacks.adopting import alb, elb, google
from apps.stacks.adopting.contract import Adoption, Wish

Adopter = Callable[[FoundLoadBalancer, Wish], Adoption]
ADOPTERS: Mapping[str, Adopter] = {
    "Application Load Balancer": alb.adopt,
    "Network Load Balancer": alb.adopt,
    "Classic Load Balancer": elb.adopt,
}


def load_balancers_of(*, actor: Actor, cloud_account_id: int, region: str) -> Sequence[FoundLoadBalancer]:
    """What stands in a cloud account's region: kinds, names and ids. Raises Forbidden, NotFound, Conflict."""
    reader = _reader(actor, cloud_account_id, region)
    try:
        return reader.load_balancers()
    except CloudError as error:
        raise Conflict(error.message) from error


def adopt(*, actor: Actor, cloud_account_id: int, region: str, found_id: str, wish: Wish) -> Adoption:
    """One of them as documents of ours, with a line for everything that was found. Raises as above, and Invalid."""
    if not wish.name:
        raise Invalid([Fault("/name", "missing", "Say what the load balancer shall be called here.")])
    reader = _reader(actor, cloud_account_id, region)
    try:
        found = reader.describe(found_id)
    except CloudError as error:
        raise Conflict(error.message) from error
    return ADOPTERS.get(found.kind, google.adopt)(found, wish)


def apply_document(adoption: Adoption) -> dict[str, Any]:
    """What `PUT /apply` takes."""
    return {"objects": list(adoption.documents)}


def _reader(actor: Actor, cloud_account_id: int, region: str) -> CloudReader:
    actor.must_operate("cloud accounts")
    account = cloud_accounts(actor).filter(pk=cloud_account_id).first()
    if account is None:
        raise NotFound("There is no such cloud account, or you may not see it.")
    if not region:
        raise Invalid([Fault("/region", "missing", "Say in which of the cloud's regions to look.")])
    try:
        return open_reader(_place(account, region))
    except CloudError as error:
        raise Conflict(error.message) from error


def _place(account: CloudAccount, region: str) -> CloudPlace:
    return CloudPlace(account.cloud, region, account.project, account.endpoint_url, account.credentials)
