"""Times and repetition of some routes: variables that are set where the route is known and read where the pool is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from apps.compiler.model.capabilities import ROUTE_RETRIES
from apps.compiler.model.policy import Retries, Rules, Timeouts
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.targets.haproxy.writer import Section

Adders = tuple[Callable[[Section], None], ...]
_KINDS = (("server", "response_ms"), ("tunnel", "tunnel_ms"))
_ATTEMPTS = "txn.attempts"


def add_timeouts(section: Section, when: tuple[str, ...], said: Timeouts) -> None:
    """HAProxy sets times in backends only, so the frontend keeps what they are to be."""
    for _, name in _KINDS:
        value = getattr(said, name)
        if value is not None:
            section.add("http-request", f"set-var(txn.{name})", f"int({value})", "if", *when)


def add_retries(section: Section, when: tuple[str, ...], said: Retries) -> None:
    """Repeating is what pools do; here it ends, or is counted otherwise."""
    if said.after_sending is False:
        section.add("http-request", "disable-l7-retry", "if", *when)
    if said.attempts is not None:
        section.add("http-request", f"set-var({_ATTEMPTS})", f"int({said.attempts})", "if", *when)


def kept_for_pools(load_balancers: Iterable[LoadBalancer]) -> Mapping[str, Adders]:
    """By pool, what writes into its backend that what the frontends kept of its routes holds there."""
    found: dict[str, set[Callable[[Section], None]]] = {}
    for front in load_balancers:
        adders = {each.id: _adders(each.rules) for each in front.rule_sets}
        for route in front.routes if any(adders.values()) else ():
            for share in route.pools if adders.get(route.rule_set) else ():
                found.setdefault(share.pool_id, set()).update(adders[route.rule_set])
    return {
        pool: tuple(each for each in (_add_kept_times, _add_kept_retries) if each in said)
        for pool, said in found.items()
    }


def _adders(rules: Rules) -> set[Callable[[Section], None]]:
    counted = rules.retries is not None and rules.retries.attempts is not None
    return {*([_add_kept_times] if rules.timeouts else ()), *([_add_kept_retries] if counted else ())}


def _add_kept_times(section: Section) -> None:
    for kind, name in _KINDS:
        section.add("http-request", "set-timeout", kind, f"var(txn.{name})", *_if_kept(f"txn.{name}"))


def _add_kept_retries(section: Section) -> None:
    """An older HAProxy counts as the pool says."""
    section.add(".if", ROUTE_RETRIES.condition)
    section.add("http-request", "set-retries", f"var({_ATTEMPTS})", *_if_kept(_ATTEMPTS))
    section.add(".endif")


def _if_kept(variable: str) -> tuple[str, ...]:
    return ("if", "{", f"var({variable})", "-m", "found", "}")
