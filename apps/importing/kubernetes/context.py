"""What every reader of one file of manifests shares: the objects, their verdicts, names of ours, open questions."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Any

from apps.compiler.address_spelling import spelled
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.naming import Names
from apps.importing.options import ImportOptions
from apps.importing.verdicts import Ledger

Ref = tuple[str, str]  # namespace and name


@dataclass(slots=True)
class Context:
    """One import while it goes on. What is made stands by kind and name, in the order in which it can be applied."""

    manifests: list[Manifest]
    ledger: Ledger
    options: ImportOptions
    names: Names
    needs: dict[str, None] = field(default_factory=dict)
    certificates: dict[str, dict[str, Any]] = field(default_factory=dict)
    network_lists: dict[str, tuple[str, ...]] = field(default_factory=dict)
    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    load_balancers: dict[str, dict[str, Any]] = field(default_factory=dict)
    routes: dict[str, dict[str, Any]] = field(default_factory=dict)
    # By what options name the address of a load balancer: a class, a Gateway, an address of the old one.
    address_keys: dict[str, list[str]] = field(default_factory=dict)
    _found: dict[tuple[str, str, str], Manifest] = field(default_factory=dict)

    _of_kinds: dict[tuple[str, ...], list[Manifest]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in self.manifests:
            self._found.setdefault((each.kind, each.namespace, each.name), each)

    def of_kind(self, *kinds: str) -> list[Manifest]:
        """All objects of these kinds, the oldest first, as controllers sort them; else in the order of the file."""
        if kinds not in self._of_kinds:
            found = [each for each in self.manifests if each.kind in kinds]
            found.sort(key=lambda each: str(each.at("metadata", "creationTimestamp") or ""))
            self._of_kinds[kinds] = found
        return self._of_kinds[kinds]

    def find(self, kind: str, ref: Ref) -> Manifest | None:
        """One object by namespace and name."""
        return self._found.get((kind, *ref))

    def need(self, sentence: str) -> None:
        """Something that must be said before this can be applied."""
        self.needs[sentence] = None

    def network_list(self, networks: tuple[str, ...], called: str) -> str:
        """The name of a list of these networks."""
        known = next((name for name, each in self.network_lists.items() if each == networks), "")
        name = known or self.names.name("NetworkList", called)
        self.network_lists[name] = networks
        return name


def give_addresses(context: Context) -> None:
    """Static IPs of load balancers; two of them with one port on no address of their own are asked about."""
    users: dict[tuple[int, str], str] = {}
    for name, spec in context.load_balancers.items():
        keys = context.address_keys.get(name, [])
        static_ip = next((context.options.addresses[key] for key in keys if key in context.options.addresses), "")
        for listener in spec["listeners"]:
            if static_ip:
                listener["static_ip"] = static_ip
            other = users.setdefault((listener["port"], static_ip), name)
            if other != name:
                context.need(
                    f"The static IP of the load balancer {name}, as {other} has port {listener['port']} as well "
                    f"(--address {keys[0]}=STATIC_IP)."
                )


def networks_of(text: str) -> tuple[str, ...]:
    """Networks and addresses between commas, as CIDR. Raises ValueError."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    found = {spelled(ipaddress.ip_network(part, strict=False)) for part in parts}
    if not found:
        raise ValueError(text)
    return tuple(sorted(found))
