"""Routes that say themselves where their overflow may go (`overflow` of a policy), within what their pools allow.

The maps of orders and of shares have one more entry for each pool and rules of such a route, `pool-17/rules-3f2a…`. It
closes with a bar, so that a region can be asked for by `|rgn-2|`. A fleet without such routes has none of this.
"""

from __future__ import annotations

from apps.compiler.model.fleet import Region, Snapshot
from apps.compiler.targets.haproxy.overflow.admission import Rules, Words, equals, found, no, variable
from apps.compiler.targets.haproxy.overflow.limits import ORDER_MAP, orders_of_routes

ORDER = "route_order"


def add_order_of_route(rules: Rules, snapshot: Snapshot) -> bool:
    """Set the variable ORDER for a route that says something; whether any does. Connections of tcp have no routes."""
    if not rules.is_http or not orders_of_routes(snapshot):
        return False
    rules.let(ORDER, f"var(txn.pool),concat(/,txn.rules),map_str({ORDER_MAP})", found("rules"))
    return True


def is_closed(region: Region) -> Words:
    """The condition that the route keeps requests out of the region."""
    return (*found(ORDER), "!", "{", f"var(txn.{ORDER})", "-m", "sub", f"|{region.id}|", "}")


def forget_closed(rules: Rules, others: list[Region]) -> None:
    """A region that is closed to the route is as one where the pool has no servers: also for kept clients."""
    for region in others:
        kept = (*equals("to", region.id), *is_closed(region))
        rules.add("unset-var(txn.why)", given=kept)
        rules.add("unset-var(txn.to)", given=kept)


def forget_limits(rules: Rules, others: list[Region]) -> None:
    """The last resorts go by which regions are known."""
    for region in others:
        rules.add(f"unset-var(txn.{variable('limit', region)})", given=is_closed(region))


def add_own_order(rules: Rules) -> None:
    """The order of the route in place of the pool's."""
    rules.let("order", f"var(txn.{ORDER})", found(ORDER))


def says_order(*, yes: bool) -> Words:
    """The condition that the route says something, or that it does not."""
    return found(ORDER) if yes else no(found(ORDER))
