"""What people write so that a shop stands in AWS: routes, an address that stays, a zone with its records."""

from __future__ import annotations

from typing import Any

from tests.e2e.stack_env import REGION, Cloud

POOLS = ("blue", "green")


def shop(cloud: Cloud, *, routes: int, weight: int = 90, approval: str = "by_hand") -> list[dict[str, Any]]:
    """A web shop with its zone; `weight` is blue's share of the first route, out of a hundred."""
    return [*shop_alone(cloud, routes=routes, weight=weight, approval=approval), *_zone()]


def shop_alone(cloud: Cloud, *, routes: int, weight: int = 90, approval: str = "by_hand") -> list[dict[str, Any]]:
    """The web shop without a zone."""
    pools = [_kind("Pool", name, _pool(number)) for number, name in enumerate(POOLS)]
    web = _kind("LoadBalancer", "web", _balancer({"protocol": "http", "port": 80}))
    return [*stack_objects(cloud, approval), *pools, web, *_routes(routes, weight)]


def mail(cloud: Cloud, approval: str = "by_hand") -> list[dict[str, Any]]:
    """A web site and a mail server behind addresses that stay, and a record that follows one of them."""
    addresses = [_kind("StaticIP", name, {"kind": "elastic", "stack": "shop"}) for name in ("front", "mail")]
    pools = [
        _kind("Pool", "blue", _pool(0)),
        _kind("Pool", "mail", _pool(9) | {"protocol": "tcp", "health_check": None}),
    ]
    smtp = {"protocol": "tcp", "port": 25, "static_ip": "mail", "default_pool": "mail"}
    web = _kind("LoadBalancer", "web", _balancer({"protocol": "http", "port": 80, "static_ip": "front"}))
    front = _kind("Record", "front", {"zone": "shop", "label": "front", "type": "A", "static_ip": "front"})
    balancers = [web, _kind("LoadBalancer", "smtp", _balancer(smtp))]
    return [*stack_objects(cloud, approval), *addresses, *pools, *balancers, *_zone()[:1], front]


def addresses(cloud: Cloud) -> list[dict[str, Any]]:
    """What AWS would make twice without a word: an address in two subnets, and a zone."""
    front = _kind("StaticIP", "front", {"kind": "elastic", "stack": "shop"})
    return [*stack_objects(cloud, "automatic"), front, *_zone()[:1]]


def stack_objects(cloud: Cloud, approval: str = "by_hand") -> list[dict[str, Any]]:
    """The stack with nothing in it."""
    return [
        _kind("Region", "frankfurt", {"title": "Frankfurt"}),
        _kind("CloudAccount", "moto", {"cloud": "aws", "credentials": "env:MOTO", "endpoint_url": cloud.endpoint}),
        _kind("Stack", "shop", _stack(cloud, approval)),
    ]


def _kind(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "name": name, "spec": spec}


def _stack(cloud: Cloud, approval: str) -> dict[str, Any]:
    network = {"vpc": cloud.vpc, "subnets": list(cloud.subnets), "client_networks": ["0.0.0.0/0"]}
    wanted = {"cloud_account": "moto", "cloud_region": REGION, "region": "frankfurt"}
    return wanted | {"network": network, "approval": approval}


def _pool(number: int) -> dict[str, Any]:
    servers = [{"name": f"vm-{n}", "address": f"10.0.{number}.{n}", "port": 8080} for n in (1, 2)]
    backends = [{"region": "frankfurt", "servers": servers}]
    return {"protocol": "http", "health_check": {"path": "/healthz"}, "backends": backends}


def _balancer(listener: dict[str, Any]) -> dict[str, Any]:
    return {"stacks": ["shop"], "listeners": [{"name": "main", **listener}]}


def _routes(count: int, weight: int) -> list[dict[str, Any]]:
    shared = {"pools": [{"pool": "blue", "weight": weight}, {"pool": "green", "weight": 100 - weight}]}
    alone = {"pools": [{"pool": "green", "weight": 100}]}
    return [
        _kind(
            "Route",
            f"way-{number}",
            {
                "load_balancer": "web",
                "hostname": f"shop-{number}.example.com",
                "path": "/",
                "path_kind": "prefix",
                "action": alone if number else shared,
            },
        )
        for number in range(count)
    ]


def _zone() -> list[dict[str, Any]]:
    zone = {"domain": "example.com", "driver": "route53", "stack": "shop"}
    www = {"zone": "shop", "label": "www", "type": "A", "load_balancer": "web"}
    text = {"zone": "shop", "label": "@", "type": "TXT", "values": ['"v=spf1 -all"']}
    return [
        _kind("Zone", "shop", zone),
        _kind("Record", "www", www),
        _kind("Record", "spf", text),
    ]
