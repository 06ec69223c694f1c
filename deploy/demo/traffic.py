"""The clients' control: raises or lowers what the clients of one region send, and says what to expect."""

from __future__ import annotations

import json
from collections.abc import Iterator

from deploy.demo.config import DemoConfig
from deploy.demo.ready import call, local_url
from deploy.demo.topology import DemoTopology

Rates = dict[str, float]


def traffic_of(config: DemoConfig) -> Rates:
    """Requests/s that the clients of each region send. Raises ValueError when they do not answer."""
    return _ask(config, "GET", "")


def set_traffic(config: DemoConfig, region: str, rate: float) -> Rates:
    """Change one region's rate; returns all. Raises ValueError with the reason of a refusal."""
    return _ask(config, "PUT", json.dumps({region: rate}))


def _ask(config: DemoConfig, method: str, body: str) -> Rates:
    status, text = call(f"{local_url(config.client_port)}/rate", method, body=body)
    if status != 200:
        raise ValueError(text.strip() or f"The clients' control answered {status}.")
    found: Rates = json.loads(text)
    return found


def limits_of(topology: DemoTopology) -> dict[str, Rates]:
    """The tutorial's rate limits, of each pool in each region; changes made since are not known here."""
    found: dict[str, Rates] = {}
    for pool in topology.objects("Pool"):
        for backend in pool["spec"]["backends"]:
            limit = backend.get("limit", {})
            if limit.get("kind") == "rate":
                servers = len(backend["servers"]) if limit.get("scope") == "server" else 1
                found.setdefault(backend["region"], {})[pool["name"]] = limit["value"] * servers
    return found


def sentences(topology: DemoTopology, rates: Rates) -> Iterator[str]:
    """What each region's clients send, and the limits of the tutorial beside it.

    The rate is for all pools together and a limit for one of them, so neither is compared with the other.
    """
    limits = limits_of(topology)
    for region, rate in rates.items():
        line = f"{region}: clients send {rate:g} requests/s to all pools together."
        if region in limits:
            told = ", ".join(f"{pool} {limit:g}/s" for pool, limit in limits[region].items())
            line += f" Limits there: {told}; what a pool gets above its own goes to the next region."
        yield line
