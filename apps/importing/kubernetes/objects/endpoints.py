"""Servers of a Service: from EndpointSlices, Endpoints or the table that was given; else they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.definitions.shapes.servers.source import source
from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.values.parsing import Path

SERVICE_OF = "kubernetes.io/service-name"
MOST_SERVERS = 500
NOW = (
    "These are the servers of now. A pool follows a headless Service instead by its name in DNS, where nodes reach the "
    "DNS of the cluster (servers_from: dns://{name}.{namespace}.svc.cluster.local:PORT)."
)
OTHER_WAY = "HOST:PORT, several between commas, or dns://NAME:PORT of a headless Service whose name nodes resolve"


@dataclass(frozen=True, slots=True)
class Target:
    """A port of a Service, by number or by name."""

    namespace: str
    service: str
    port: str

    @property
    def key(self) -> str:
        """As options name it: `shop/web:80`."""
        return f"{self.namespace}/{self.service}:{self.port}"


@dataclass(frozen=True, slots=True)
class ServicePort:
    """A port of a Service as the Service says it; `at` is where."""

    name: str
    number: int
    target: str
    at: Path


def port_of(service: Manifest | None, port: str) -> ServicePort | None:
    """The port that is meant; None for one that the Service does not have, or where it is not in the file."""
    for path, each in service.each("spec", "ports") if service else ():
        if port in (str(each.get("port", "")), str(each.get("name", ""))) and type(each.get("port")) is int:
            return ServicePort(str(each.get("name") or ""), each["port"], str(each.get("targetPort") or ""), path)
    return None


def backend_of(context: Context, target: Target, owner: str) -> dict[str, Any]:
    """`servers` or `servers_from` of the pool; empty where somebody must say them."""
    service = context.find("Service", (target.namespace, target.service))
    port = port_of(service, target.port)
    if service is not None:
        _mark(service, port, owner)
    given = context.options.servers.get(target.key) or context.options.servers.get(
        f"{target.namespace}/{target.service}:{port.number if port else ''}"
    )
    if given and "://" in given:
        return {"servers_from": source(given)}
    found = list(_given(given)) if given else list(_of_cluster(context, service, target, port, owner))
    servers = _servers(context, target, found)
    if not servers:
        context.need(f"Where the servers of {target.key} are (--map-servers {target.key}={OTHER_WAY}).")
    return {"servers": servers} if servers else {}


def _mark(service: Manifest, port: ServicePort | None, owner: str) -> None:
    service.mapped(("kind",), owner)
    if port is not None:
        service.mapped(port.at, owner)
    if service.at("spec", "type") == "ExternalName":
        service.mapped(("spec", "type"), owner)
        service.mapped(("spec", "externalName"), owner)


def _given(text: str) -> Iterator[tuple[str, str]]:
    for each in text.split(","):
        address, _, port = each.strip().rpartition(":")
        yield address.strip("[]"), port


def _of_cluster(
    context: Context, service: Manifest | None, target: Target, port: ServicePort | None, owner: str
) -> Iterator[tuple[str, str]]:
    """Addresses and ports that the cluster knew when the manifests were written."""
    if service is not None and service.at("spec", "type") == "ExternalName":
        yield str(service.at("spec", "externalName")), str(port.number if port else target.port)
        return
    wanted = {target.port, port.name if port else "", port.target if port else ""}
    slices = [
        each for each in context.of_kind("EndpointSlice")
        if each.namespace == target.namespace and each.at("metadata", "labels", SERVICE_OF) == target.service
    ]  # fmt: skip
    for each in slices:
        yield from _of_slice(each, port.name if port else None, wanted, owner)
    endpoints = context.find("Endpoints", (target.namespace, target.service))
    if endpoints is not None and not slices:
        endpoints.mapped(("kind",), owner)
        endpoints.differs(("kind",), NOW.format(name=endpoints.name, namespace=endpoints.namespace))
        for path, _ in endpoints.each("subsets"):
            yield from _of_subset(endpoints, path, port.name if port else None, wanted, owner)


def _of_slice(found: Manifest, name: str | None, wanted: set[str], owner: str) -> Iterator[tuple[str, str]]:
    found.mapped(("kind",), owner)
    found.differs(("kind",), NOW.format(name=found.at("metadata", "labels", SERVICE_OF), namespace=found.namespace))
    found.mapped(("metadata", "labels", SERVICE_OF), owner)
    found.mapped(("addressType",), owner)
    ports = _ports(found, ("ports",), name, wanted, owner)
    for path, endpoint in found.each("endpoints"):
        conditions = endpoint.get("conditions")
        if isinstance(conditions, Mapping) and conditions.get("ready") is False:
            found.dead(path, "This endpoint is not ready, so it is no server.")
            continue
        found.mapped((*path, "addresses"), owner)
        found.mapped((*path, "conditions"), owner)
        yield from ((address, each) for _, address in found.texts(*path, "addresses") for each in ports)


def _of_subset(
    found: Manifest, path: Path, name: str | None, wanted: set[str], owner: str
) -> Iterator[tuple[str, str]]:
    ports = _ports(found, (*path, "ports"), name, wanted, owner)
    for at, _ in found.each(*path, "notReadyAddresses"):
        found.dead(at, "This address is not ready, so it is no server.")
    for at, each in found.each(*path, "addresses"):
        found.mapped((*at, "ip"), owner)
        yield from ((str(each.get("ip", "")), port) for port in ports)


def _ports(found: Manifest, path: Path, name: str | None, wanted: set[str], owner: str) -> list[str]:
    """Ports of this name; where the Service is not in the file, the only one or one that is called alike."""
    every = list(found.each(*path))
    chosen = []
    for at, each in every:
        called, number = str(each.get("name") or ""), str(each.get("port") or "")
        same = called == name if name is not None else (len(every) == 1 or wanted & {called, number})
        if same and number:
            found.mapped(at, owner)
            chosen.append(number)
    return chosen


def _servers(context: Context, target: Target, found: list[tuple[str, str]]) -> list[dict[str, Any]]:
    servers = []
    for number, (address, port) in enumerate(dict.fromkeys(found[:MOST_SERVERS]), 1):
        name = context.names.name(f"Server {target.key}", f"{target.service[:50]}-{number}")
        try:
            grammar.server_address(address.lower(), local_development=context.options.local_development)
            grammar.port(int(port))
        except (GrammarError, ValueError) as error:
            why = error.message if isinstance(error, GrammarError) else "A port is a number."
            context.need(
                f"Where the server {address}:{port} of {target.key} is: {why} (--map-servers {target.key}=HOST:PORT)."
            )
            continue
        servers.append({"name": name, "address": address.lower(), "port": int(port)})
    return servers
