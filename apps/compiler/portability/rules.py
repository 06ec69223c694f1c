"""Of the rules that hold for a route, those that a target cannot follow: block by block, as the table says."""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.model.shared import LoadBalancer, Route
from apps.compiler.policies import BLOCKS, rules_of
from apps.compiler.portability.incompatibilities import Incompatibility
from apps.compiler.portability.table.asking import told
from apps.compiler.portability.table.cells import Column


def unsupported_rules(column: Column, route: Route, load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    """The route is refused with each block; a page of maintenance that is not shown matters to nobody."""
    rules = rules_of(load_balancer, route)
    for block in BLOCKS:
        said = getattr(rules, block)
        if said is not None and getattr(said, "enabled", True):
            yield told(column, route, block, f"rules.{block}")
