"""A small setup of clouds and zones beside the tutorial's: an account and a stack at AWS, addresses, a shared zone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.reading.describing import describe
from apps.definitions.services import KINDS, apply_document, save_object
from tests.conftest import actor_of, apply_tutorial
from tests.fixture_cache import CachedFixture

NETWORK = {"vpc": "vpc-0a1b2c3d", "subnets": ["subnet-0a1b2c3d", "subnet-1a1b2c3d"]}
STACK: dict[str, Any] = {
    "cloud_account": "prod",
    "cloud_region": "eu-central-1",
    "region": "europe-west1",
    "network": NETWORK,
}
ZONE: dict[str, Any] = {"domain": "shared.example.net", "driver": "memory", "tags": {"customer": "acme"}}
RECORD: dict[str, Any] = {"zone": "operator/shared", "label": "www", "type": "A", "values": ["192.0.2.80"]}
OBJECTS: tuple[dict[str, Any], ...] = (
    {"kind": "CloudAccount", "name": "prod", "spec": {"cloud": "aws", "credentials": "env:AWS_PROD"}},
    {"kind": "Stack", "name": "aws-eu", "spec": STACK},
    {"kind": "AddressPool", "name": "addresses", "spec": {"blocks": ["203.0.113.0/29"]}},
    {"kind": "StaticIP", "name": "elastic", "spec": {"kind": "elastic", "stack": "aws-eu"}},
    {"kind": "Zone", "name": "shared", "spec": ZONE},
    {"kind": "Grant", "name": "zone-of-acme", "spec": {"account": "acme", "tag": "customer=acme"}},
    {"kind": "Record", "name": "apex", "spec": RECORD | {"zone": "shared", "label": "@"}},
)


def make_clouds(operator: Actor) -> None:
    """All of it, in one document; the tutorial's regions and accounts are there already."""
    apply_document(actor=operator, objects=list(OBJECTS))


def remembered(then: Callable[[Actor, Actor], object] | None = None) -> CachedFixture:
    """The tutorial's environment with clouds, and what `then` (operator, acme) makes of it."""

    def build() -> None:
        apply_tutorial()
        operator = actor_of("operator", Account.Kind.OPERATOR)
        make_clouds(operator)
        if then is not None:
            then(operator, actor_of("acme", Account.Kind.CUSTOMER))

    return CachedFixture(build)


def operator_of(env: CachedFixture) -> Actor:
    """The operator of this environment, which is put into an empty database."""
    env.put()
    return actor_of("operator", Account.Kind.OPERATOR)


def give_real_addresses(actor: Actor, pool: str = "shop") -> None:
    """Servers of the pool that a cloud could reach: the tutorial's are loopback."""
    spec = spec_of(actor, pool, "Pool")
    for backend in spec["backends"]:
        for number, server in enumerate(backend["servers"], 1):
            server["address"] = f"10.0.0.{number}"
    save_object(actor=actor, kind="Pool", name=pool, spec=spec)


def spec_of(actor: Actor, name: str, kind: str = "Route") -> dict[str, Any]:
    """The present document of an object that the actor sees."""
    return copy.deepcopy(describe(KINDS[kind].rows(actor).get(name=name)))
