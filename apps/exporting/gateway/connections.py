"""Listeners of tcp as TCPRoutes and TLSRoutes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from apps.compiler.model.shared import Listener, LoadBalancer, Protocol
from apps.exporting.contract import Notes
from apps.exporting.gateway.listeners import section_of
from apps.exporting.gateway.naming import GROUP, Taken
from apps.exporting.gateway.services import Services

Manifest = dict[str, Any]
PASSED_ON = "Left out, as a listener that ends TLS cannot pass it on for some names (listener, name):"
FIRST = "Left out, as the Gateway API does not ask what clients send first (listener, protocol):"
DEFAULT = "Connections without a name, or with one that no route has, are closed instead of going to the default pool:"
ONE = "A wildcard of the Gateway API stands for one label or several (listener, name):"


def connection_routes(
    front: LoadBalancer, gateways: Iterable[Manifest], services: Services, notes: Notes
) -> Iterator[Manifest]:
    """Routes of every listener of tcp that a Gateway has."""
    names, there = Taken(), {(each["metadata"]["name"], one["name"], address_of(each)): one["protocol"]
                             for each in gateways for one in each["spec"]["listeners"]}  # fmt: skip
    for listener in front.listeners:
        for (gateway, section, address), protocol in there.items():
            if section == section_of(listener) and address == (listener.address or ""):
                parent = {"name": gateway, "sectionName": section}
                yield from _of_listener(listener, protocol, parent, names, services, notes)


def address_of(gateway: Manifest) -> str:
    """The address of a Gateway, empty for the controller's own."""
    return str(gateway["spec"].get("addresses", [{"value": ""}])[0]["value"])


def _of_listener(
    listener: Listener, protocol: str, parent: dict[str, str], names: Taken, services: Services, notes: Notes
) -> Iterator[Manifest]:
    if listener.protocol is not Protocol.TCP:
        return
    base = f"{parent['name']}-{parent['sectionName']}"
    for way in listener.protocol_routes:
        notes.add(FIRST, f"{listener.label} {way.said}")
    for each in listener.sni_routes:
        label = f"{listener.label} {each.hostname}"
        if each.passthrough and listener.ends_tls:
            notes.add(PASSED_ON, label)
            continue
        if each.hostname.startswith("*."):
            notes.add(ONE, label)
        yield from _route("TLSRoute", names.name(base), parent, each.pool_id, services, {"hostnames": [each.hostname]})
    if listener.default_pool_id is not None and protocol == "TLS" and not listener.ends_tls:
        notes.add(DEFAULT, f"listener {listener.label}")
    elif listener.default_pool_id is not None:
        yield from _route("TCPRoute", names.name(base), parent, listener.default_pool_id, services, {})


def _route(
    kind: str, name: str, parent: dict[str, str], pool_id: str, services: Services, more: Manifest
) -> Iterator[Manifest]:
    """Without a Service there is no route: the connection is closed."""
    reference = services.reference(pool_id)
    if reference is not None:
        spec = {"parentRefs": [parent], **more, "rules": [{"backendRefs": [reference]}]}
        yield {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
