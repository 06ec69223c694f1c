"""`backendRefs` as pools with their shares, and what BackendTLSPolicies say of the way to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.compiler import grammar, header_text
from apps.compiler.grammar import GrammarError
from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.gateway.filters import is_alone
from apps.importing.kubernetes.gateway.grants import is_granted, refused
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.kubernetes.objects.endpoints import Target, port_of
from apps.importing.kubernetes.objects.pools import Pools
from apps.importing.kubernetes.objects.secrets import authorities
from apps.importing.values.parsing import Path

ERROR = {"fixed_response": {"status": 500, "body": "This path has no servers.\n"}}
MOST_WEIGHT, MOST_POOLS = 1000, 8
ITS_SHARE = "In the cluster its share of requests gets 500; here the other backends get it."


@dataclass(slots=True)
class Shares:
    """Pools with their weights; `broken` are references that hold nowhere."""

    weights: dict[str, int] = field(default_factory=dict)
    broken: list[Path] = field(default_factory=list)

    def action(self, route: Manifest) -> dict[str, Any]:
        """What a route does; 500 where no backend is left, as the Gateway API says."""
        if not any(self.weights.values()):
            return ERROR
        for at in self.broken:
            route.differs(at, ITS_SHARE)
        most = max(self.weights.values())
        scaled = {pool: _scaled(weight, most) for pool, weight in list(self.weights.items())[:MOST_POOLS]}
        alone = len(scaled) == 1
        return {"pools": [{"pool": pool} if alone else {"pool": pool, "weight": scaled[pool]} for pool in scaled]}


def _scaled(weight: int, most: int) -> int:
    return weight if most <= MOST_WEIGHT else max(1, round(weight * MOST_WEIGHT / most)) if weight else 0


def shares_of(
    context: Context, pools: Pools, route: Manifest, at: Path, settings: Mapping[str, Any], protocol: str = "http"
) -> Shares:
    """Every backend of a rule."""
    found = Shares()
    for path, ref in route.each(*at, "backendRefs"):
        weight = ref.get("weight", 1)
        target = _target(context, route, path, ref)
        headers = {} if is_alone(route, at) else _filters(route, path)
        if target is None or headers is None or type(weight) is not int or weight < 0:
            found.broken += [path] if weight != 0 else []
            continue
        own = {**settings, **_of_service(context, target), **headers}
        own |= _tls(context, target) if protocol == "http" else {}
        pool = pools.name_of(target, own, protocol)
        found.weights[pool] = found.weights.get(pool, 0) + weight
        for name in ("group", "kind", "name", "namespace", "port", "weight"):
            route.mapped((*path, name), f"Pool {pool}")
        if len(found.weights) > MOST_POOLS:
            route.impossible(path, f"A route has at most {MOST_POOLS} pools.")
    return found


def _target(context: Context, route: Manifest, at: Path, ref: Mapping[str, Any]) -> Target | None:
    name, namespace = str(ref.get("name") or ""), str(ref.get("namespace") or route.namespace)
    if ref.get("kind", "Service") != "Service" or ref.get("group", "") not in ("", None) or not name:
        route.impossible(at, "Only Services are backends; requests for it get 500.")
        return None
    if type(ref.get("port")) is not int:
        route.impossible(at, "A Service needs a port; requests for it get 500.")
        return None
    if not is_granted(context, route, "Service", namespace, name):
        route.impossible(at, refused(route, "Service", namespace))
        return None
    return Target(namespace, name, str(ref["port"]))


def _of_service(context: Context, target: Target) -> dict[str, Any]:
    """`appProtocol` of the port."""
    service = context.find("Service", (target.namespace, target.service))
    port = port_of(service, target.port)
    said = service.at(*port.at, "appProtocol") if service is not None and port is not None else None
    return {"http_version": "2"} if said in ("kubernetes.io/h2c", "grpc") else {}


def _filters(route: Manifest, at: Path) -> dict[str, Any] | None:
    """Filters of one backend of several: only headers that are set are its pool's; None for others."""
    headers: dict[str, str] = {}
    for path, said in route.each(*at, "filters"):
        if said.get("type") != "RequestHeaderModifier":
            route.impossible(path, "Of one backend of several only request headers are set; it is left out.")
            return None
        for header_at, header in route.each(*path, "requestHeaderModifier", "set"):
            try:
                name = header_text.request_header(header.get("name"))
                headers[name] = grammar.header_value(header.get("value"))
                route.mapped(header_at)
            except GrammarError as error:
                route.impossible(header_at, error.message)
        route.mapped((*path, "type"))
        for name in ("add", "remove"):
            route.impossible((*path, "requestHeaderModifier", name), "A pool only sets headers (request_headers).")
    return {"request_headers": headers} if headers else {}


def _tls(context: Context, target: Target) -> dict[str, Any]:
    """The oldest BackendTLSPolicy for this Service, one for its port first."""
    service = context.find("Service", (target.namespace, target.service))
    port = port_of(service, target.port)
    chosen: list[tuple[bool, Manifest, Path]] = []
    for policy in context.of_kind("BackendTLSPolicy"):
        for at, ref in policy.each("spec", "targetRefs"):
            section = ref.get("sectionName")
            fits = section in (None, "") or (port is not None and section == port.name)
            if policy.namespace == target.namespace and ref.get("name") == target.service and fits:
                chosen.append((not section, policy, at))
    if not chosen:
        return {}
    _, policy, at = min(chosen, key=lambda each: each[0])
    policy.mapped(("kind",))
    policy.mapped(at)
    return {"server_tls": _validation(context, policy)}


def _validation(context: Context, policy: Manifest) -> dict[str, Any]:
    at = ("spec", "validation")
    found: dict[str, Any] = {"verify": "system"}
    try:
        found["server_name"] = grammar.server_host(policy.at(*at, "hostname"))
        policy.mapped((*at, "hostname"))
    except GrammarError as error:
        policy.impossible((*at, "hostname"), error.message)
    ca = ""
    for path, ref in policy.each(*at, "caCertificateRefs"):
        ca += authorities(context, (policy.namespace, str(ref.get("name"))), (str(ref.get("kind") or "ConfigMap"),))
        policy.mapped(path)
    policy.mapped((*at, "wellKnownCACertificates"))
    if policy.at(*at, "subjectAltNames"):
        policy.impossible((*at, "subjectAltNames"), "Certificates must have the name that servers are told (SNI).")
    return found | ({"verify": "ca", "ca": ca} if ca else {})
