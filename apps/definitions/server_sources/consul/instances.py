"""Which servers the instances of a service are; pure.

| what Consul says                                | what becomes of it                    |
| its checks pass, or only warn                   | a server, with the weight for that    |
| it or its node is in maintenance                | a server that is drained              |
| a check is critical                             | no server                             |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from apps.definitions.server_sources.deciding import HIGHEST_WEIGHT, FoundServer
from apps.definitions.server_sources.watched import Unclear

MAINTENANCE = ("_node_maintenance", "_service_maintenance:")
UNCLEAR = "Consul lists an instance without an address and a port."


def servers_of(instances: Iterable[object], tag: str = "") -> list[FoundServer]:
    """The servers; those with the tag alone where one is asked for. Raises Unclear.

    Where all weights are equal nobody said one.
    """
    shown = [each for each in instances if not tag or tag in _tags(each)]
    found = [(server, _weight(each)) for each in shown if (server := _server(each))]
    weights = {weight for _, weight in found}
    if len(weights) < 2:
        return [server for server, _ in found]
    scale = min(1.0, HIGHEST_WEIGHT / max(weights))
    return [replace(server, weight=max(1, round(weight * scale)) if weight else 0) for server, weight in found]


def _server(instance: object) -> FoundServer | None:
    service, node = _of(instance, "Service"), _of(instance, "Node")
    critical = [str(each.get("CheckID", "")) for each in _checks(instance) if each.get("Status") == "critical"]
    leaving = bool(critical) and all(name.startswith(MAINTENANCE) for name in critical)
    if critical and not leaving:
        return None
    address, port = service.get("Address") or node.get("Address"), service.get("Port")
    if not isinstance(address, str) or not isinstance(port, int) or not 0 < port <= 65535:
        raise Unclear(UNCLEAR)
    return FoundServer(address.lower(), port, hint=str(service.get("ID") or node.get("Node", "")), leaving=leaving)


def _weight(instance: object) -> int:
    weights = _of(_of(instance, "Service"), "Weights")
    warns = any(each.get("Status") == "warning" for each in _checks(instance))
    found = weights.get("Warning" if warns else "Passing", 1)
    return found if isinstance(found, int) and found >= 0 else 1


def _tags(instance: object) -> Sequence[object]:
    found = _of(instance, "Service").get("Tags")
    return found if isinstance(found, list) else ()


def _checks(instance: object) -> Sequence[Mapping[str, Any]]:
    found = instance.get("Checks") if isinstance(instance, Mapping) else None
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _of(found: object, key: str) -> Mapping[str, Any]:
    inside = found.get(key) if isinstance(found, Mapping) else None
    return inside if isinstance(inside, Mapping) else {}
