"""IngressRoutes as readings of Traefik's class: each route with its settings, and an entry for each way to match."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from apps.compiler.grammar import GrammarError
from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.ingress.annotations.traefik import ENTRY_POINTS
from apps.importing.kubernetes.ingress.entries import PREFIX_IN_TRAEFIK, Entry, Reading, spelled
from apps.importing.kubernetes.ingress.paths import PathOfOurs
from apps.importing.kubernetes.ingress.settings import Settings
from apps.importing.kubernetes.manifests.known import TRAEFIK
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.kubernetes.objects.endpoints import Target
from apps.importing.kubernetes.traefik.matching import Match, alternatives
from apps.importing.kubernetes.traefik.middlewares import Steps, steps_of
from apps.importing.values.parsing import Path

LEFT_OUT = "The route is left out, so its requests go where others match."
ORDER = "Routes have one order: the host, the longest path, then conditions."
OTHER_PORTS = "Entry points of other names are ports of their own; all ports serve this."
NOT_STRIPPED = "A prefix is taken from paths that the match names by it."


def readings_of(context: Context) -> Iterator[Reading]:
    """Every route of every IngressRoute of the file."""
    for route in context.of_kind("IngressRoute"):
        if route.group not in TRAEFIK:
            continue
        route.mapped(("kind",))
        scheme = _scheme(route)
        for at, _ in route.each("spec", "routes"):
            reading = Reading(route, Settings(scheme=scheme), "traefik")
            steps = steps_of(context, route, at, reading.settings)
            reading.entries = list(_entries(context, reading, steps, at))
            reading.hosts = list(dict.fromkeys(each.host for each in reading.entries))
            yield reading


def _scheme(route: Manifest) -> str:
    """`web` and `websecure`, as Traefik's chart names them; what has TLS is served over it alone."""
    names = route.texts("spec", "entryPoints")
    for at, name in names:
        if name in ENTRY_POINTS:
            route.mapped(at)
        else:
            route.differs(at, OTHER_PORTS)
    if route.at("spec", "tls") is not None:
        return "https"
    schemes = {ENTRY_POINTS.get(name, "") for _, name in names}
    return schemes.pop() if len(schemes) == 1 else ""


def _entries(context: Context, reading: Reading, steps: Steps, at: Path) -> Iterator[Entry]:
    route = reading.ingress
    text = str(route.at(*at, "match") or "")
    target = _target(reading, at)
    for name in ("match", "kind"):
        route.mapped((*at, name))
    try:
        found = alternatives(text)
    except GrammarError as error:
        route.impossible((*at, "match"), f"{error.message} {LEFT_OUT}")
        if reading.settings.blocked or reading.settings.rules:  # its requests would go to routes that are open
            context.need(f"A plainer match in the YAML than {text} of the IngressRoute {route.namespace}/{route.name}.")
        return
    if route.at(*at, "priority") is not None:
        route.differs((*at, "priority"), ORDER)
    for match in found:
        if match.path.kind == "prefix" and match.path.text != "/":
            route.differs((*at, "match"), PREFIX_IN_TRAEFIK)
        path = _moved(reading, steps, match, at)
        for each in spelled(reading, (*at, "match"), replace(path, written=text)):
            yield Entry(reading, match.host, each, target, at, match.conditions)


def _moved(reading: Reading, steps: Steps, match: Match, at: Path) -> PathOfOurs:
    """The path with what servers get in its place."""
    path = match.path
    if steps.replace:
        return replace(path, rewrite=steps.replace)
    for prefix in steps.strip:
        if path.kind == "prefix" and re.fullmatch(rf"{re.escape(prefix)}(/.*)?", path.text):
            return replace(path, prefix_rewrite=steps.add + path.text[len(prefix) :] or "/")
        if path.kind == "exact" and path.text.startswith(f"{prefix}/"):
            return replace(path, rewrite=steps.add + path.text[len(prefix) :])
    if steps.strip:
        reading.settings.blocked = NOT_STRIPPED
        reading.ingress.impossible((*at, "match"), f"{NOT_STRIPPED} Its routes answer 503 until you say it so.")
    elif steps.add and path.kind == "prefix":
        return replace(path, prefix_rewrite=f"{steps.add}{path.text}".rstrip("/") or "/")
    elif steps.add:
        return replace(path, rewrite=steps.add + path.text)
    return path


def _target(reading: Reading, at: Path) -> Target | None:
    """The first Service, which is the only one of most routes."""
    route, found = reading.ingress, None
    for path, said in route.each(*at, "services"):
        name, port = said.get("name"), said.get("port")
        if found is not None:
            route.impossible(path, "Give the action of the route several pools with weights.")
        elif said.get("kind", "Service") != "Service" or not name or port is None:
            reading.settings.blocked = "Only a Service with a port can be a backend."
            route.impossible(path, f"{reading.settings.blocked} Its routes answer 503.")
        else:
            found = Target(str(said.get("namespace") or route.namespace), str(name), str(port))
            _way(reading, path)
    return found


def _way(reading: Reading, at: Path) -> None:
    """How its servers are spoken to."""
    route, pool = reading.ingress, reading.settings.pool
    for name in ("name", "port", "namespace", "kind", "weight", "scheme"):
        route.mapped((*at, name))
    scheme = str(route.at(*at, "scheme") or ("https" if str(route.at(*at, "port")) == "443" else "http"))
    if scheme == "https":
        pool["server_tls"] = {"verify": "none"}
        route.differs((*at, "scheme"), "Certificates of servers are not verified; name an authority in server_tls.")
    elif scheme == "h2c":
        pool["http_version"] = "2"
    if route.at(*at, "passHostHeader") is False:
        route.differs((*at, "passHostHeader"), "Servers get the host of the request; set rewrite.host to change it.")
    if (cookie := route.at(*at, "sticky", "cookie")) is not None:
        pool["persistence"] = {"by": "cookie", "cookie": "SERVER"}
        route.differs((*at, "sticky"), "The cookie is SERVER, and is of Spillway.") if cookie or cookie == {} else None
