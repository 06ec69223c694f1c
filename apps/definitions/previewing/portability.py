"""A question: what would each target lose of a load balancer, or of some of its routes and pools?

The same answer is shown before a load balancer moves, and keeps what its clouds cannot do from being stored.
"""

from __future__ import annotations

from django.db.models import Q, QuerySet

from apps.accounts.actors import Actor
from apps.compiler.model.stack import CloudAddress
from apps.compiler.portability.incompatibilities import Incompatibility, Severity, Target
from apps.compiler.portability.report import portability
from apps.core.errors import FieldError, Invalid
from apps.definitions import selectors
from apps.definitions.freezing.frozen_routes import frozen_routes
from apps.definitions.freezing.frozen_traffic import frozen_listeners, frozen_load_balancer
from apps.definitions.freezing.listener_certificates import certificates_on, frozen_certificates
from apps.definitions.freezing.stack_snapshot import address_in, frozen_address, frozen_pools
from apps.definitions.models import Listener, LoadBalancer, Pool, Route, RoutePool
from apps.fleet.models import StaticIP

__all__ = ["TARGETS", "Incompatibility", "Severity", "incompatibilities_of", "portability_of"]
TARGETS = tuple(Target)


def portability_of(actor: Actor, load_balancer_id: int, target: str = "") -> list[Incompatibility]:
    """What the targets (or one of them) refuse or lose of a load balancer; customers read what concerns their own.

    Raises NotFound, Invalid for a target that there is not.
    """
    if target and target not in TARGETS:
        raise Invalid([FieldError("/target", "choice", f"Use one of {', '.join(TARGETS)}.")])
    balancer = selectors.only(selectors.load_balancers(actor), load_balancer_id)
    found = incompatibilities_of(balancer, Route.objects.filter(load_balancer=balancer))
    return [each for each in found if target in ("", each.target) and _may_read(actor, each)]


def _may_read(actor: Actor, incompatibility: Incompatibility) -> bool:
    own = incompatibility.label.startswith(f"{actor.account.name}/")
    return actor.is_operator or (own and incompatibility.object_id.startswith(("route-", "pool-")))


def incompatibilities_of(balancer: LoadBalancer, routes: QuerySet[Route]) -> tuple[Incompatibility, ...]:
    """Those of a load balancer with these of its routes and the pools that it leads to."""
    presented = certificates_on(balancer.pk)
    listeners = frozen_listeners(Listener.objects.filter(load_balancer=balancer), presented, address_in(None), [])
    shares = RoutePool.objects.filter(route__in=routes.order_by().values("pk"))
    front = frozen_load_balancer(balancer, listeners[balancer.pk], frozen_routes(routes, shares)[balancer.pk])
    led = Q(pk__in=shares.values("pool")) | Q(listeners__load_balancer=balancer)
    frozen = frozen_pools(Pool.objects.filter(led).distinct(), None, [], {})
    return portability(front, frozen, frozen_certificates(presented), _addresses(balancer))


def _addresses(balancer: LoadBalancer) -> tuple[CloudAddress, ...]:
    rows = StaticIP.objects.filter(listeners__load_balancer=balancer).select_related("account", "owner").distinct()
    return tuple(frozen_address(row) for row in rows.prefetch_related("listeners").order_by("id"))
