"""The choice: which driver speaks to a node, by the scheme of its URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from apps.drivers.proxy.agent import AgentDriver
from apps.drivers.proxy.contract import NodeTarget, ProxyDriver, Unreachable
from apps.drivers.proxy.memory import MemoryDriver

DRIVERS: Mapping[str, Callable[[NodeTarget], ProxyDriver]] = {
    "unix": AgentDriver,
    "https": AgentDriver,
    "memory": MemoryDriver,
}


def open_driver(target: NodeTarget) -> ProxyDriver:
    """The driver of a node; raises Unreachable when nobody speaks its URL's scheme."""
    scheme = urlsplit(target.url).scheme
    if scheme not in DRIVERS:
        raise Unreachable(f"{target.name}: no driver speaks {scheme or 'an empty URL'}.")
    return DRIVERS[scheme](target)
