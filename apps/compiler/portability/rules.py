"""Of the rules that hold for a route, those that a target cannot follow: block by block, by a table of the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apps.compiler.model.shared import LoadBalancer, Route
from apps.compiler.policies import BLOCKS, rules_of
from apps.compiler.portability.incompatibilities import Incompatibility, Target, refused

Sentences = Mapping[str, tuple[str, str]]
"""Block → what is the matter, and what to do instead."""


def unsupported_rules(
    target: Target, route: Route, load_balancer: LoadBalancer, sentences: Sentences
) -> Iterator[Incompatibility]:
    """The route is refused with each block; a page of maintenance that is not shown matters to nobody."""
    rules = rules_of(load_balancer, route)
    for block in BLOCKS:
        said = getattr(rules, block)
        if said is not None and getattr(said, "enabled", True):
            yield refused(target, route, block, f"rules.{block}", *sentences[block])
