"""Times and repetition of some routes: variables that are set where the route is known and read where the pool is."""

from __future__ import annotations

from apps.compiler.model.policy import Retries, Timeouts
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.targets.haproxy.writer import Section

_KINDS = (("server", "response_ms"), ("tunnel", "tunnel_ms"))


def add_timeouts(section: Section, when: tuple[str, ...], said: Timeouts) -> None:
    """HAProxy sets times in backends only, so the frontend keeps what they are to be."""
    for _, name in _KINDS:
        value = getattr(said, name)
        if value is not None:
            section.add("http-request", f"set-var(txn.{name})", f"int({value})", "if", *when)


def add_timeouts_of_pool(section: Section) -> None:
    """What the frontend kept, in a backend."""
    for kind, name in _KINDS:
        section.add(
            "http-request", "set-timeout", kind, f"var(txn.{name})", "if", "{", f"var(txn.{name})", "-m", "found", "}"
        )


def timed_pools(load_balancers: tuple[LoadBalancer, ...]) -> frozenset[str]:
    """The pools of routes that have times of their own."""
    timed = {one.id for each in load_balancers for one in each.rule_sets if one.rules.timeouts}
    routes = (route for each in load_balancers if timed for route in each.routes if route.rule_set in timed)
    return frozenset(share.pool_id for route in routes for share in route.pools)


def add_retries(section: Section, when: tuple[str, ...], said: Retries) -> None:
    """Repeating is what pools do; here it ends."""
    if said.after_sending is False:
        section.add("http-request", "disable-l7-retry", "if", *when)
