"""Inside a write: a change that breaks what somebody asserted is refused, with what would happen instead."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from apps.compiler.matching import hosts as matching
from apps.compiler.matching.hosts import names_that_cover
from apps.compiler.model import shared as model
from apps.compiler.questions.assertions import Broken, broken_of, host_of
from apps.compiler.routing import number_of
from apps.core.errors import FieldError, Invalid
from apps.definitions.freezing.frozen_routes import frozen_assertions, frozen_front, frozen_routes
from apps.definitions.models import LoadBalancer, Pool, Route, RoutePool
from apps.definitions.writing.change_set import ChangeSet

# So many hostnames are looked at by name; for more, all assertions of the load balancers are read at once.
MOST_BY_NAME = 50


def reject_failed_assertions(changes: ChangeSet) -> None:
    """In the end: Invalid when an assertion does not hold around the hostnames whose routes came, went or changed."""
    if not changes.affected.touched_routes:
        return
    field_errors: list[FieldError] = []
    for balancer in sorted({pk for pk, _ in changes.affected.touched_routes}):
        hosts = {host for pk, host in changes.affected.touched_routes if pk == balancer}
        field_errors += [_field_error(changes, found) for found in _broken(balancer, hosts)]
    if field_errors:
        raise Invalid(field_errors)


def _field_error(changes: ChangeSet, found: Broken) -> FieldError:
    pointer = changes.deferred.saved["Route"].get(number_of(found.route.id))
    if pointer is not None:
        return FieldError(f"{pointer}/spec/assertions/{found.index}", "assertion", found.sentence)
    pointer = "/objects" if any(changes.deferred.saved["Route"].values()) else "/spec"
    actor = changes.actor
    if not actor.is_operator and found.route.account != actor.account.name:
        return FieldError(pointer, "assertion", "An assertion of another account would fail; ask an operator.")
    detail = f"Assertion {found.index} of route {found.route.label} would fail: {found.sentence}"
    return FieldError(pointer, "assertion", detail)


def _broken(balancer: int, hosts: set[str]) -> list[Broken]:
    asking = Route.objects.filter(load_balancer=balancer).exclude(assertions=[])
    if len(hosts) <= MOST_BY_NAME:
        asking = asking.filter(_around(hosts))
    names = {
        name
        for hostname, account, documents in asking.values_list("hostname__name", "account__name", "assertions")
        for assertion in frozen_assertions(documents, account)
        for name in names_that_cover(host_of(assertion, hostname))
    }
    if not names:
        return []
    rows = Route.objects.filter(load_balancer=balancer, hostname__name__in=names)
    served = frozen_routes(rows, _shares(rows))[balancer]
    front = LoadBalancer.objects.select_related("account").get(pk=balancer)
    return broken_of(frozen_front(front, served), _labels(served.routes))


def _around(hosts: set[str]) -> Q:
    """Routes that share requests with routes of these hostnames: the same, a wildcard over or a name under it."""
    found = Q()
    for host in hosts:
        found |= Q(hostname__name__in=(host, *names_that_cover(matching.example_of(host))))
        if matching.is_wildcard(host):
            found |= Q(hostname__name__endswith=matching.ending_of(host))
    return found


def _shares(rows: QuerySet[Route]) -> QuerySet[RoutePool]:
    return RoutePool.objects.filter(route__in=rows.order_by())


def _labels(routes: Iterable[model.Route]) -> dict[str, str]:
    numbers = {number_of(share.pool_id) for route in routes for share in route.pools}
    rows = Pool.objects.filter(pk__in=numbers).values_list("pk", "account__name", "name")
    return {f"pool-{pk}": f"{account}/{name}" for pk, account, name in rows}
