"""Of several policies the nearest wins, field by field; here they become the rules that hold for a route."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from apps.compiler.model.policy import Cors, Rules, RuleSet
from apps.compiler.model.shared import LoadBalancer, Route

BLOCKS = tuple(field.name for field in fields(Rules))
NOTHING = Rules()
# What clients get during maintenance where nobody says otherwise.
MAINTENANCE_STATUS = 503
MAINTENANCE_TYPE = "text/plain; charset=utf-8"
MAINTENANCE_BODY = "This service is under maintenance. Try again later.\n"
# And where the network that they come from may not ask.
REFUSED_STATUS = 403
REFUSED_TYPE = "text/plain; charset=utf-8"
REFUSED_BODY = "You may not use this service from here.\n"


@dataclass(frozen=True, slots=True)
class Layer:
    """Rules with the name of who said them, for people."""

    source: str
    rules: Rules


def effective(layers: Sequence[Layer]) -> Rules:
    """The rules that hold where these layers do, nearest first."""
    found = {name: _block([getattr(each.rules, name) for each in layers]) for name in BLOCKS}
    return Rules(**found)


def _block(said: Iterable[Any]) -> Any:
    blocks = [each for each in said if each is not None]
    if not blocks:
        return None
    names = [field.name for field in fields(blocks[0])]
    values = {name: next((v for b in blocks if (v := getattr(b, name)) is not None), None) for name in names}
    return type(blocks[0])(**values)


def sources(layers: Sequence[Layer]) -> Mapping[tuple[str, str], str]:
    """Block and field → the source whose value holds."""
    found: dict[tuple[str, str], str] = {}
    for layer in layers:
        for block in BLOCKS:
            values = getattr(layer.rules, block)
            for field in fields(values) if values is not None else ():
                if getattr(values, field.name) is not None:
                    found.setdefault((block, field.name), layer.source)
    return found


def allows(cors: Cors, origin: str) -> bool:
    """Whether pages of the origin may read responses: it is named whole, or lies below a wildcard."""
    for each in cors.origins or ():
        begin, star, end = each.partition("*")
        if (star and origin.startswith(begin) and origin.endswith(end) and len(origin) > len(begin + end)) or (
            origin == each
        ):
            return bool(origin)
    return False


def rule_set(rules: Rules) -> RuleSet:
    """The rules under an id that equal rules share and no others have."""
    return RuleSet(f"rules-{hashlib.sha256(repr(rules).encode()).hexdigest()[:12]}", rules)


def followed(load_balancer: LoadBalancer) -> list[RuleSet]:
    """The rules that hold for any of its routes."""
    wanted = {route.rule_set for route in load_balancer.routes} if load_balancer.rule_sets else set()
    return [each for each in load_balancer.rule_sets if each.id in wanted]


def rules_followed(load_balancer: LoadBalancer) -> list[Rules]:
    """The same without their ids."""
    return [each.rules for each in followed(load_balancer)]


def rules_of(load_balancer: LoadBalancer, route: Route) -> Rules:
    """The rules that hold for a route."""
    return next((each.rules for each in load_balancer.rule_sets if each.id == route.rule_set), NOTHING)
