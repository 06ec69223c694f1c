"""OBSERVE, the clients' control: raises or lowers what the clients of one region send, and says what to expect."""

from __future__ import annotations

import json
from collections.abc import Iterator

from deploy.demo.place import Place
from deploy.demo.ready import call, place_url
from deploy.demo.world import World

Rates = dict[str, float]


def traffic_of(place: Place) -> Rates:
    """Requests/s that the clients of each region send. Raises ValueError when they do not answer."""
    return _ask(place, "GET", "")


def set_traffic(place: Place, region: str, rate: float) -> Rates:
    """Change one region's rate; returns all. Raises ValueError with the reason of a refusal."""
    return _ask(place, "PUT", json.dumps({region: rate}))


def _ask(place: Place, method: str, body: str) -> Rates:
    status, text = call(f"{place_url(place.client_port)}/rate", method, body=body)
    if status != 200:
        raise ValueError(text.strip() or f"The clients' control answered {status}.")
    found: Rates = json.loads(text)
    return found


def limits_of(world: World) -> Rates:
    """The tutorial's rate limits per region, all pools together; changes made since are not known here."""
    found: Rates = {}
    for pool in world.objects("Pool"):
        for backend in pool["spec"]["backends"]:
            limit = backend.get("limit", {})
            if limit.get("kind") == "rate":
                servers = len(backend["servers"]) if limit.get("scope") == "server" else 1
                found[backend["region"]] = found.get(backend["region"], 0.0) + limit["value"] * servers
    return found


def sentences(world: World, rates: Rates) -> Iterator[str]:
    """What each region's clients send beside the limit of the tutorial."""
    limits = limits_of(world)
    for region, rate in rates.items():
        line = f"{region}: clients send {rate:g} requests/s"
        if region in limits:
            line += f"; pools with a limit take {limits[region]:g}/s there"
            # Not all requests are for pools with a limit: how much goes over is for the page to say.
            line += ", what they get above it goes to the next region" if rate > limits[region] else ""
        yield f"{line}."
