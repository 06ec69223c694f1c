"""From time to time: haproxy is started again when it is gone, and what soaked is promoted."""

from __future__ import annotations

import time

from apps.agent.errors import Refusal
from apps.agent.node import Node
from apps.agent.recovery import recover, take_over_addresses
from apps.agent.release.servers import forget


def tend(node: Node) -> bool:
    """Restart haproxy when it is gone, promote what soaked; False when a restart failed (the caller backs off)."""
    if not node.switching.acquire(blocking=False):
        return True
    try:
        if node.stopping or node.releases.live() is None:
            return True
        if not node.proxy.running():
            node.events.add("error", "haproxy is gone and is started again")
            recover(node)
            return node.proxy.running()
        _promote(node)
        _forget(node)
        return _tend_addresses(node)
    finally:
        node.switching.release()


def _tend_addresses(node: Node) -> bool:
    missing, live = node.addresses.missing(), node.releases.live()
    if not missing or live is None:
        return True
    node.events.add("error", f"{' and '.join(missing)} is gone and is started again")
    take_over_addresses(node, live)
    return not node.addresses.missing()


def _forget(node: Node) -> None:
    """Servers that left and had connections: those that have none any more."""
    for name in tuple(node.leaving):
        try:
            gone = forget(node.proxy, name)
        except (Refusal, OSError):
            gone = True  # the next worker does not know it at all
        if gone:
            node.leaving.discard(name)


def _promote(node: Node) -> None:
    confirmed = node.confirmed
    soaked = confirmed.confirmed_at and time.time() - confirmed.confirmed_at >= node.settings.soak
    if soaked and confirmed.last_known_good != confirmed.release:
        node.soaked()
