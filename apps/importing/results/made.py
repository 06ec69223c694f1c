"""What came of an old configuration: specifications by kind and name, and the documents that they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from apps.importing.context import Context, document, documents_of_lists


@dataclass(slots=True)
class Made:
    """Specifications by kind and name; a pool is found by its key, which says its servers and how they are reached."""

    load_balancers: dict[str, dict[str, Any]] = field(default_factory=dict)
    routes: dict[str, dict[str, Any]] = field(default_factory=dict)
    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    certificates: dict[str, dict[str, Any]] = field(default_factory=dict)
    _of_target: dict[str, int] = field(default_factory=dict)

    def pool(self, context: Context, target: str, spec: dict[str, Any]) -> str:
        """The key of the pool for a target; one that is reached in another way is another pool."""
        key = json.dumps([target, spec], sort_keys=True)
        if key not in self.pools:
            self.pools[key] = spec
            count = self._of_target[target] = self._of_target.get(target, 0) + 1
            self.names[key] = context.name("Pool", target + (f"-{count}" if count > 1 else ""))
        return key

    def pool_of_connections(self, context: Context, target: str, spec: dict[str, Any]) -> str:
        """The same for one of tcp, whose name says so where requests go to the target, or it is reached otherwise."""
        key = json.dumps(["tcp", target, spec], sort_keys=True)
        if key not in self.pools:
            self.pools[key] = spec
            self.names[key] = context.name("Pool", f"tcp-{target}" if target in self._of_target else target)
            self._of_target.setdefault(target, 0)
        return key


def documents_of(context: Context, made: Made) -> Iterator[dict[str, Any]]:
    """In an order in which they can be applied."""
    for name, spec in made.certificates.items():
        yield document("Certificate", name, spec)
    for kind, name, entries in documents_of_lists(context):
        yield document(kind, name, entries)
    for key, spec in made.pools.items():
        yield document("Pool", made.names[key], spec)
    for name, spec in made.load_balancers.items():
        yield document("LoadBalancer", name, spec)
    for name, spec in made.routes.items():
        yield document("Route", name, spec)
