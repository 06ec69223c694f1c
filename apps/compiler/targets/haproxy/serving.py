"""Which routes a listener serves: where a proxy in front says the scheme, those of both schemes, by what it says."""

from __future__ import annotations

from dataclasses import replace

from apps.compiler.model.shared import Listener, LoadBalancer, Protocol
from apps.compiler.routing import as_served_by

Words = tuple[str, ...]
EITHER = "-either"
TOLD = "{", "var(txn.proto)", "-m", "str"


def served_at(load_balancer: LoadBalancer, listener: Listener) -> LoadBalancer:
    """The load balancer as an http listener serves it; `lb-1-either` has the routes of both schemes."""
    of_protocol = as_served_by(load_balancer, listener.protocol)
    if of_protocol is load_balancer or not listener.has_forwarders:
        return of_protocol
    return replace(load_balancer, id=load_balancer.id + EITHER)


def asked_at(load_balancer: LoadBalancer, listener: Listener) -> list[tuple[LoadBalancer, Words]]:
    """Whose maps are asked for the route of a request, and under which condition."""
    served = served_at(load_balancer, listener)
    if not served.id.endswith(EITHER):
        return [(served, ())]
    return [
        (as_served_by(load_balancer, protocol), (*TOLD, protocol.value, "}"))
        for protocol in (Protocol.HTTP, Protocol.HTTPS)
    ]
