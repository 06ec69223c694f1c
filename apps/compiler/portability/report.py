"""COMPILE, the report before a load balancer moves: what each target refuses of it, and what works there but differs.

It is the examination that compiling begins with (`checks/stack.py`), on a stack that lacks nothing: what is listed here
is what will happen. A target that has no loss listed runs the load balancer as it is written.

HAProxy loses nothing: routes, pools and listeners are defined by what it does. Only a static IP that a cloud keeps
cannot stand on a fleet, as little as one of a fleet in a cloud.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from apps.compiler.checks.stack import examine_stack
from apps.compiler.model.fleet import Certificate, Listener, LoadBalancer, Route, Server
from apps.compiler.model.stack import OF_CLOUD, ON_FLEETS, Cloud, CloudAddress, CloudPool, Network, StackSnapshot
from apps.compiler.portability.abilities import ABILITIES, Abilities
from apps.compiler.portability.incompatibilities import Loss, Severity, Target, refused

__all__ = ["Loss", "Severity", "Target", "portability"]
KINDS = {Target.HAPROXY: ON_FLEETS, Target.AWS: OF_CLOUD[Cloud.AWS], Target.GOOGLE: OF_CLOUD[Cloud.GOOGLE]}
_NAMES = {Target.HAPROXY: "A fleet", Target.AWS: "AWS", Target.GOOGLE: "Google"}


def portability(
    load_balancer: LoadBalancer,
    pools: Sequence[CloudPool],
    certificates: Sequence[Certificate] = (),
    addresses: Sequence[CloudAddress] = (),
) -> tuple[Loss, ...]:
    """What would be lost on each target, what is refused first. Empty for a target means: nothing.

    `pools`, `certificates` and `addresses` are those that the load balancer names; an address has the kind that it has
    now, wherever it stands.
    """
    found = [loss for target in Target for loss in _of_addresses(target, addresses)]
    for cloud, abilities in ABILITIES.items():
        stack = _as_stack(cloud, load_balancer, pools, certificates, addresses)
        found += examine_stack(stack, abilities).losses
        # What a refused pool takes along when it is compiled has losses of its own, which come next otherwise.
        found += examine_stack(stack, _WithEveryPool(abilities)).losses
    return tuple(_in_order(found))


@dataclass(frozen=True, slots=True)
class _WithEveryPool:
    """A target that could do whatever pools and servers ask: what stands on them is left to be said."""

    of: Abilities

    def losses_of_route(self, route: Route, load_balancer: LoadBalancer, /) -> Iterator[Loss]:
        return self.of.losses_of_route(route, load_balancer)

    def losses_of_certificate(self, certificate: Certificate, /) -> Iterator[Loss]:
        return self.of.losses_of_certificate(certificate)

    def losses_of_listener(self, listener: Listener, load_balancer: LoadBalancer, /) -> Iterator[Loss]:
        return self.of.losses_of_listener(listener, load_balancer)

    def losses_of_load_balancer(self, load_balancer: LoadBalancer, /) -> Iterator[Loss]:
        return self.of.losses_of_load_balancer(load_balancer)

    def losses_of_server(self, _server: Server, /) -> Iterator[Loss]:
        return iter(())

    def losses_of_pool(self, _pool: CloudPool, /) -> Iterator[Loss]:
        return iter(())

    def losses_of_stack(self, _snapshot: StackSnapshot, /) -> Iterator[Loss]:
        return iter(())


def _as_stack(
    cloud: Cloud,
    load_balancer: LoadBalancer,
    pools: Sequence[CloudPool],
    certificates: Sequence[Certificate],
    addresses: Sequence[CloudAddress],
) -> StackSnapshot:
    """The load balancer alone on a stack that has all that operators must prepare: only its own losses are left.

    Static IPs of another place do not move along, which is said apart.
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


def _of_addresses(target: Target, addresses: Iterable[CloudAddress]) -> Iterator[Loss]:
    fitting = KINDS[target]
    for address in addresses:
        if address.kind not in fitting:
            kinds = " or ".join(sorted(kind.value for kind in fitting))
            yield refused(
                target, address, "address_kind", "static_ip",
                f"{_NAMES[target]} keeps no static IP of kind {address.kind}: the address does not move along.",
                f"Give the listener one of kind {kinds} there, and let DNS lead clients to it before the old one goes.",
            )  # fmt: skip


def _in_order(losses: Iterable[Loss]) -> list[Loss]:
    """Each once: by target, refused ones first, then by object."""
    order = list(Target)

    def key(loss: Loss) -> tuple[object, ...]:
        return order.index(loss.target), not loss.refused, loss.object_id, loss.field, loss.code, loss.message

    return sorted(set(losses), key=key)
