"""The example that operators load to look around, and remove with one click; it is nobody's real traffic."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.core.errors import Conflict, Invalid
from apps.definitions.selectors import hostnames
from apps.definitions.services import apply_document, confirming
from apps.definitions.writing.kinds.hostnames import end_cooldown, release
from apps.fleet import selectors as topology

# What it owns is found by this name: removing it deletes what is managed by it and nothing else.
MANAGER = "example"
HOST = "shop.spillway.example"


def _backend(region: str, network: str) -> dict[str, Any]:
    servers = [
        {"name": f"{region}-vm-{number}", "address": f"{network}.{number}", "port": 8080} for number in (1, 2, 3)
    ]
    return {"region": region, "limit": {"kind": "rate", "value": 10, "scope": "backend"}, "servers": servers}


def _route(name: str, path: str, *pools: tuple[str, int]) -> dict[str, Any]:
    action = {"pools": [{"pool": pool, "weight": weight} for pool, weight in pools]}
    spec = {"load_balancer": "example-front", "hostname": HOST, "path": path, "action": action}
    return {"kind": "Route", "name": name, "spec": spec}


def _pool(name: str, *backends: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "Pool", "name": name, "spec": {"health_check": {"path": "/healthz"}, "backends": list(backends)}}


# Two regions that help each other out, and a shop of which one customer in ten sees the next version. Servers have
# addresses that are kept for documentation, so nothing that a node would do reaches anybody.
OBJECTS: tuple[dict[str, Any], ...] = (
    {
        "kind": "Region",
        "name": "example-us",
        "spec": {"title": "Example: Iowa", "latitude": 41.26, "longitude": -95.86},
    },
    {
        "kind": "Region",
        "name": "example-eu",
        "spec": {
            "title": "Example: Belgium",
            "latitude": 50.47,
            "longitude": 3.87,
            "latency": [{"to": "example-us", "ms": 98}],
        },
    },
    {"kind": "Fleet", "name": "example-us", "spec": {"region": "example-us"}},
    {"kind": "Fleet", "name": "example-eu", "spec": {"region": "example-eu"}},
    _pool("example-shop", _backend("example-us", "192.0.2"), _backend("example-eu", "198.51.100")),
    _pool("example-shop-next", _backend("example-us", "203.0.113")),
    {
        "kind": "LoadBalancer",
        "name": "example-front",
        "spec": {
            "fleets": ["example-us", "example-eu"],
            "listeners": [{"name": "http", "protocol": "http", "port": 8080}],
        },
    },
    _route("example-shop", "/", ("example-shop", 100)),
    _route("example-checkout", "/checkout", ("example-shop", 90), ("example-shop-next", 10)),
)


def is_loaded(actor: Actor) -> bool:
    """Whether any of its regions is there; everything else of it needs one."""
    return topology.regions(actor).filter(manager=MANAGER).exists()


def load(actor: Actor) -> None:
    """All of it, or nothing. Raises Invalid, Forbidden, Conflict."""
    apply_document(actor=actor, objects=list(OBJECTS), manager=MANAGER, reason="Load the example")


def remove(actor: Actor) -> None:
    """Delete what it made, its hostname too. Raises Conflict where something of somebody else needs a part of it."""
    try:
        with confirming(f"{actor.account.name}/{each['name']}" for each in OBJECTS):
            apply_document(actor=actor, objects=[], prune=True, manager=MANAGER, reason="Remove the example")
    except (Conflict, Invalid) as error:
        raise Conflict(f"The example stays: your own objects use it. {error.detail}") from error
    for row in hostnames(actor).filter(name=HOST, released_at=None, account=actor.account):
        release(actor=actor, hostname_id=row.pk, reason="Remove the example")
        if Hostname.objects.filter(pk=row.pk).exists():
            end_cooldown(actor=actor, hostname_id=row.pk, reason="Remove the example")
