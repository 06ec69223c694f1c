"""Which listeners a route attaches to, and for which hostnames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apps.compiler.grammar import GrammarError
from apps.compiler.matching.hosts import domain_of, is_wildcard
from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.gateway.listeners import ANY, Listener, hostname_of
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.values.parsing import Path

NO_LISTENER = "Refused by the cluster as well: the Gateway has no such listener."
NO_GATEWAY = "This Gateway is not in the file; add its manifest."
OF_MESH = "Only requests that come through a Gateway are moved; those between Services stay with the mesh."
WAITS = "The route waits for its Gateway."
NOWHERE = "The route attaches to no listener."
NO_HOST = "Refused by the cluster as well: the listener is for none of these hostnames."
OTHER_NAMESPACE = "Refused by the cluster as well: the listener takes routes of its own namespace only."
KINDS = {"HTTP": ("HTTPRoute", "GRPCRoute"), "HTTPS": ("HTTPRoute", "GRPCRoute"), "TLS": ("TLSRoute", "TCPRoute"),
         "TCP": ("TCPRoute",)}  # fmt: skip


def attachments(context: Context, route: Manifest, listeners: list[Listener]) -> list[tuple[Listener, list[str]]]:
    """Listeners with the hostnames that route and listener share."""
    wanted = _hostnames(route)
    found: dict[int, tuple[Listener, list[str]]] = {}
    missing: list[Path] = []
    for at, ref in route.each("spec", "parentRefs"):
        named = [each for each in listeners if _is_named(route, ref, each)]
        if not named:
            why = _missing(context, route, ref)
            missing += [at] if why == NO_GATEWAY else []
            if why != NO_GATEWAY:
                route.impossible(at, why)
            continue
        route.mapped(at)
        taken = [each for each in named if _takes(context, route, each, at)]
        for listener in taken:
            shared = _shared(listener.hostname, wanted)
            if shared:
                found[id(listener)] = (listener, shared)
        if taken and not any(id(each) in found for each in taken):
            route.impossible(at, NO_HOST)
    for at in missing:
        route.impossible(at, NO_GATEWAY) if found else route.differs(at, NO_GATEWAY)
    for path, text in route.texts("spec", "hostnames") if found or not missing else ():
        if any(_shared(listener.hostname, [_ours(text)]) for listener, _ in found.values()):
            route.mapped(path)
        else:
            route.dead(path, "No listener that it attaches to is for this hostname.")
    return list(found.values())


def without_listener(context: Context, route: Manifest) -> None:
    """A route that attaches to nothing: a Gateway that was not given is asked for."""
    names = [
        f"{ref.get('namespace') or route.namespace}/{ref.get('name')}"
        for _, ref in route.each("spec", "parentRefs") if _missing(context, route, ref) == NO_GATEWAY
    ]  # fmt: skip
    if not names:
        route.impossible(("spec", "rules"), NOWHERE)
        return
    route.differs(("spec", "hostnames"), WAITS)
    route.differs(("spec", "rules"), WAITS)
    for name in dict.fromkeys(names):
        context.need(
            f"The manifest of the Gateway {name}, as the {route.kind} {route.namespace}/{route.name} names it."
        )


def _missing(context: Context, route: Manifest, ref: Mapping[str, object]) -> str:
    """Why a parent has no listener."""
    if ref.get("kind", "Gateway") != "Gateway":
        return OF_MESH
    there = context.find("Gateway", (str(ref.get("namespace") or route.namespace), str(ref.get("name"))))
    return NO_GATEWAY if there is None else NO_LISTENER


def _hostnames(route: Manifest) -> list[str]:
    found = []
    for path, text in route.texts("spec", "hostnames"):
        try:
            found.append(hostname_of(text))
        except GrammarError as error:
            route.impossible(path, error.message)
    return found if route.at("spec", "hostnames") else [ANY]


def _ours(text: str) -> str:
    try:
        return hostname_of(text)
    except GrammarError:
        return ""


def _is_named(route: Manifest, ref: Mapping[str, object], listener: Listener) -> bool:
    gateway = listener.gateway
    same = (str(ref.get("namespace") or route.namespace), ref.get("name")) == (gateway.namespace, gateway.name)
    section = ref.get("sectionName") in (None, "", listener.name)
    return same and section and ref.get("port") in (None, listener.port)


def _takes(context: Context, route: Manifest, listener: Listener, at: Path) -> bool:
    """Whether the listener lets routes of this kind and namespace attach."""
    gateway, path = listener.gateway, (*listener.at, "allowedRoutes")
    kinds = [str(each.get("kind")) for _, each in gateway.each(*path, "kinds")] or KINDS[listener.said]
    gateway.mapped((*path, "kinds"))
    gateway.mapped((*path, "namespaces"))
    if route.kind not in kinds or route.kind not in KINDS[listener.said]:
        return False
    scope = gateway.at(*path, "namespaces", "from") or "Same"
    if scope == "All" or (scope == "Same" and route.namespace == gateway.namespace):
        return True
    if scope == "Selector" and _selected(context, route, listener, at):
        return True
    route.impossible(at, OTHER_NAMESPACE)
    return False


def _selected(context: Context, route: Manifest, listener: Listener, at: Path) -> bool:
    """By labels of the namespace, where the file has it; else the route is taken, and that is said."""
    namespace = next((each for each in context.of_kind("Namespace") if each.name == route.namespace), None)
    path = (*listener.at, "allowedRoutes", "namespaces", "selector")
    wanted = listener.gateway.at(*path, "matchLabels")
    labels = namespace.at("metadata", "labels") if namespace is not None else None
    if namespace is None or listener.gateway.at(*path, "matchExpressions"):
        route.differs(at, "Whether the labels of its namespace fit the listener is not known; it was taken.")
        return True
    labels = {"kubernetes.io/metadata.name": namespace.name, **(labels if isinstance(labels, Mapping) else {})}
    return all(labels.get(key) == value for key, value in (wanted or {}).items())


def _shared(listener: str, wanted: list[str]) -> list[str]:
    return list(dict.fromkeys(each for host in wanted for each in _both(listener, host)))


def _both(one: str, other: str) -> Iterator[str]:
    """The hosts that both stand for: the narrower of two, if it is within the wider."""
    for wide, narrow in ((one, other), (other, one)):
        below = narrow != ANY and is_wildcard(wide) and f".{domain_of(narrow)}".endswith(f".{domain_of(wide)}")
        if wide in (ANY, narrow) or (below and (is_wildcard(narrow) or domain_of(narrow) != domain_of(wide))):
            yield narrow
            return
