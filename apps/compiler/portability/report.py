"""The report before a load balancer moves: what each target refuses of it, and what works there but differs.

It is the examination that compiling begins with (`checks/stack.py`), on a stack that lacks nothing: what is listed here
is what will happen. A target that has no incompatibility listed runs the load balancer as it is written.

HAProxy loses nothing but what `haproxy.py` says: routes, pools and listeners are defined by what it does. A static IP
that a cloud keeps cannot stand on a fleet, as little as one of a fleet in a cloud.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from apps.compiler.checks.stack import examine_stack
from apps.compiler.model.shared import Certificate, Listener, LoadBalancer, Route, Server
from apps.compiler.model.stack import OF_CLOUD, ON_FLEETS, Cloud, CloudAddress, CloudPool, Network, StackSnapshot
from apps.compiler.portability import haproxy
from apps.compiler.portability.capabilities import CAPABILITIES, Capabilities
from apps.compiler.portability.incompatibilities import Incompatibility, Severity, Target, refused

__all__ = ["Incompatibility", "Severity", "Target", "portability"]
KINDS = {Target.HAPROXY: ON_FLEETS, Target.AWS: OF_CLOUD[Cloud.AWS], Target.GOOGLE: OF_CLOUD[Cloud.GOOGLE]}
_NAMES = {Target.HAPROXY: "A fleet", Target.AWS: "AWS", Target.GOOGLE: "Google Cloud"}


def portability(
    load_balancer: LoadBalancer,
    pools: Sequence[CloudPool],
    certificates: Sequence[Certificate] = (),
    addresses: Sequence[CloudAddress] = (),
) -> tuple[Incompatibility, ...]:
    """What would be lost on each target, what is refused first. Empty for a target means: nothing.

    `pools`, `certificates` and `addresses` are those that the load balancer names; an address has the kind that it has
    now, wherever it stands.
    """
    found = [each for target in Target for each in _of_addresses(target, addresses)]
    found += [each for route in load_balancer.routes for each in haproxy.unsupported_in_route(route)]
    for cloud, capabilities in CAPABILITIES.items():
        stack = _as_stack(cloud, load_balancer, pools, certificates, addresses)
        found += examine_stack(stack, capabilities).incompatibilities
        # What a refused pool takes along when it is compiled has its own, which would be reported only next time.
        found += examine_stack(stack, _WithEveryPool(capabilities)).incompatibilities
    return tuple(_in_order(found))


@dataclass(frozen=True, slots=True)
class _WithEveryPool:
    """A target that could do whatever pools and servers ask: what stands on them is left to be said."""

    of: Capabilities

    def unsupported_in_route(self, route: Route, load_balancer: LoadBalancer, /) -> Iterator[Incompatibility]:
        return self.of.unsupported_in_route(route, load_balancer)

    def unsupported_in_certificate(self, certificate: Certificate, /) -> Iterator[Incompatibility]:
        return self.of.unsupported_in_certificate(certificate)

    def unsupported_in_listener(self, listener: Listener, load_balancer: LoadBalancer, /) -> Iterator[Incompatibility]:
        return self.of.unsupported_in_listener(listener, load_balancer)

    def unsupported_in_load_balancer(self, load_balancer: LoadBalancer, /) -> Iterator[Incompatibility]:
        return self.of.unsupported_in_load_balancer(load_balancer)

    def unsupported_in_server(self, _server: Server, /) -> Iterator[Incompatibility]:
        return iter(())

    def unsupported_in_pool(self, _pool: CloudPool, /) -> Iterator[Incompatibility]:
        return iter(())

    def unsupported_in_stack(self, _snapshot: StackSnapshot, /) -> Iterator[Incompatibility]:
        return iter(())


def _as_stack(
    cloud: Cloud,
    load_balancer: LoadBalancer,
    pools: Sequence[CloudPool],
    certificates: Sequence[Certificate],
    addresses: Sequence[CloudAddress],
) -> StackSnapshot:
    """The load balancer alone on a stack that has all that operators must prepare: only its own are left.

    Static IPs of another location do not move along, which is said apart.
    """
    kept = {each.id: each for each in addresses if each.kind in OF_CLOUD[cloud]}
    regions = sorted({backend.region for pool in pools for backend in pool.backends})
    listeners = tuple(each if each.address in kept else replace(each, address=None) for each in load_balancer.listeners)
    return StackSnapshot(
        id="stk-0",
        label="stack",
        cloud=cloud,
        cloud_region="region",
        network=Network("vpc", ("subnet-a", "subnet-b"), zones=tuple((region, "zone") for region in regions)),
        load_balancers=(replace(load_balancer, listeners=listeners),),
        pools=tuple(pools),
        certificates=tuple(certificates),
        addresses=tuple(kept.values()),
    )


def _of_addresses(target: Target, addresses: Iterable[CloudAddress]) -> Iterator[Incompatibility]:
    fitting = KINDS[target]
    for address in addresses:
        if address.kind not in fitting:
            kinds = " or ".join(sorted(kind.value for kind in fitting))
            yield refused(
                target, address, "address_kind", "static_ip",
                f"{_NAMES[target]} does not support static IPs of kind {address.kind}: the address does not move.",
                f"Give the listener one of kind {kinds}, and point DNS to it before you remove the old one.",
            )  # fmt: skip


def _in_order(incompatibilities: Iterable[Incompatibility]) -> list[Incompatibility]:
    """Each once: by target, refused ones first, then by object."""
    order = list(Target)

    def key(each: Incompatibility) -> tuple[object, ...]:
        return order.index(each.target), not each.refused, each.object_id, each.field, each.code, each.message

    return sorted(set(incompatibilities), key=key)
