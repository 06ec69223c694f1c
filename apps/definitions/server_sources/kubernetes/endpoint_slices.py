"""Which servers a Service of Kubernetes has, by its EndpointSlices; pure.

Ready endpoints are servers. One that ends and still serves gets no new clients; whatever else is not ready is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from apps.definitions.server_sources.deciding import HIGHEST_WEIGHT, FoundServer, short_number
from apps.definitions.server_sources.kubernetes.client import LABEL, Slice
from apps.definitions.server_sources.watched import Unclear
from apps.definitions.shapes.servers.source import Source

# Said on a slice itself, or as a label of the Service, which Kubernetes copies to its slices.
WEIGHT = "spillway/weight"


def servers_of(slices: Iterable[Slice], source: Source) -> list[FoundServer]:
    """The servers of a Service, each pod once, IPv4 before IPv6. Raises Unclear."""
    own = [each for each in slices if _labels(each).get(LABEL) == source.service]
    found: dict[str, FoundServer] = {}
    for each in sorted(own, key=lambda one: (one.get("addressType") != "IPv4", one["metadata"].get("name", ""))):
        port, weight = _port(each, source), _weight(each)
        if port is None:
            continue
        for endpoint in each.get("endpoints") or ():
            for key, server in _server(endpoint, port, weight, source):
                found.setdefault(key, server)
    return list(found.values())


def _server(
    endpoint: Mapping[str, Any], port: int, weight: int | None, source: Source
) -> Iterator[tuple[str, FoundServer]]:
    """The server that an endpoint is, with what tells it from others; none where it is not to be asked."""
    addresses, said = endpoint.get("addresses") or (), endpoint.get("conditions") or {}
    # "Unknown" counts as ready, and serving is as ready is, unless it is said.
    ready = said.get("ready") is not False
    serving = said.get("serving") if said.get("serving") is not None else ready
    leaving = said.get("terminating") is True
    elsewhere = source.zone and endpoint.get("zone") != source.zone
    if not addresses or elsewhere or not (serving if leaving else ready):
        return
    pod = endpoint.get("targetRef") or {}
    key = pod.get("uid") or f"{addresses[0]}:{port}"
    yield key, FoundServer(str(addresses[0]), port, weight, hint=str(pod.get("name") or ""), leaving=leaving)


def _port(each: Slice, source: Source) -> int | None:
    """The port that the source names by number or name; None where the slice has none such."""
    ports = [one for one in each.get("ports") or () if isinstance(one.get("port"), int)]
    if source.port:
        return source.port
    if source.port_name:
        return next((int(one["port"]) for one in ports if one.get("name") == source.port_name), None)
    if len(ports) > 1:
        names = ", ".join(sorted(str(one.get("name") or one["port"]) for one in ports))
        raise Unclear(f"The Service has several ports; add one of them to servers_from: {names}.")
    return int(ports[0]["port"]) if ports else None


def _weight(each: Slice) -> int | None:
    said = (each["metadata"].get("annotations") or {}).get(WEIGHT, _labels(each).get(WEIGHT))
    if said is None:
        return None
    weight = short_number(said) if isinstance(said, str) else None
    if weight is None or weight > HIGHEST_WEIGHT:
        raise Unclear(f"The {WEIGHT} of an EndpointSlice is no whole number from 0 to {HIGHEST_WEIGHT}.")
    return weight


def _labels(each: Slice) -> Mapping[str, Any]:
    labels = each.get("metadata", {}).get("labels")
    return labels if isinstance(labels, dict) else {}
