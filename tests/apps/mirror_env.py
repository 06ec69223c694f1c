"""Load balancers at Google, at AWS, on fleets and nowhere yet, and a route with a mirror on any of them."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.definitions.models import Route
from apps.definitions.services import apply_document, save_object
from tests.apps.clouds_env import give_real_addresses, remembered

NETWORK = {"vpc": "main", "zones": {"europe-west1": "europe-west3-a", "us-central1": "us-east4-b"}}
LISTENER = {"name": "web", "protocol": "http", "port": 80}


def add_google(operator: Actor, acme: Actor) -> None:
    """Load balancers at Google, at AWS, and nowhere yet, besides that of fleets; servers of pools are no loopback."""
    for pool in ("shop", "shop-next"):
        give_real_addresses(acme, pool)
    account = {"cloud": "google", "project": "acme-prod"}
    stack = {"cloud_account": "google", "cloud_region": "global", "network": NETWORK}
    fronts = {"everywhere": ["everywhere"], "cloud": ["aws-eu"], "nowhere": []}
    objects: list[dict[str, Any]] = [
        {"kind": "CloudAccount", "name": "google", "spec": account},
        {"kind": "Stack", "name": "everywhere", "spec": stack},
    ]
    objects += [
        {"kind": "LoadBalancer", "name": name, "spec": {"stacks": stacks, "listeners": [LISTENER]}}
        for name, stacks in fronts.items()
    ]
    shared = {"tags": {"kind": "shadow"}, "backends": []}
    objects.append({"kind": "Pool", "name": "shadow", "spec": shared | {"protocol": "http"}})
    objects.append({"kind": "Pool", "name": "lines", "account": "acme", "spec": {"protocol": "tcp", "backends": []}})
    objects.append({"kind": "Pool", "name": "spare", "account": "acme", "spec": {"protocol": "http", "backends": []}})
    apply_document(actor=operator, objects=objects)


GOOGLE = remembered(add_google)


def mirrored(acme: Actor, mirror: str | None = "shop-next", **change: Any) -> Route:
    """A route at Google with a mirror, saved."""
    base = {"load_balancer": "everywhere", "hostname": "shop.acme.example", "path": "/m"}
    spec = base | {"action": {"pools": [{"pool": "shop"}]}, "mirror": mirror} | change
    saved: Route = save_object(actor=acme, kind="Route", name="mirrored", spec=spec)
    return saved
