"""HTTPRoutes and GRPCRoutes: each match of each rule is a route for each hostname."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from apps.compiler.grammars.servers import MOST_RETRIES
from apps.compiler.matching.hosts import covers, example_of
from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.gateway.attaching import attachments, without_listener
from apps.importing.kubernetes.gateway.backends import ERROR, shares_of
from apps.importing.kubernetes.gateway.filters import Filters, filters_of
from apps.importing.kubernetes.gateway.grants import closes, guards
from apps.importing.kubernetes.gateway.listeners import ANY, Listener
from apps.importing.kubernetes.gateway.matching import match_of
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.kubernetes.objects.pools import Pools
from apps.importing.values.parsing import Path

LONGEST_MS = 3_600_000
NOT_FOUND = {"fixed_response": {"status": 404, "body": "Nothing is here.\n"}}
TAKEN = "An older route of the file has the same hostname and match."
_DURATION = re.compile(r"(?:\d{1,5}(?:h|ms|m|s)){1,4}")
_PART = re.compile(r"(\d+)(h|ms|m|s)")
_UNITS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
CODES = frozenset({"404", "408", "425", "500", "501", "502", "503", "504"})


@dataclass(slots=True)
class HttpRoutes:
    """Routes in the order in which the Gateway API decides between equal ones: older objects, earlier rules."""

    context: Context
    pools: Pools
    listeners: list[Listener]
    _seen: set[str] = field(default_factory=set)
    _guards: dict[tuple[str, str, str], Manifest] | None = None

    def read(self) -> None:
        """All of the file, then what keeps listeners of one port apart."""
        for route in sorted(
            self.context.of_kind("HTTPRoute", "GRPCRoute"),
            key=lambda each: (str(each.at("metadata", "creationTimestamp") or "9"), each.namespace, each.name),
        ):
            route.mapped(("kind",))
            fronts = list(self._fronts(attachments(self.context, route, self.listeners)))
            if fronts:
                for at, _ in route.each("spec", "rules"):
                    self._rule(route, at, fronts)
            else:
                without_listener(self.context, route)
        self._isolate()

    def _fronts(self, attached: list[tuple[Listener, list[str]]]) -> Iterator[tuple[str, str, str]]:
        """Load balancer, hostname and scheme; no scheme where the hostname has each that the load balancer has."""
        schemes: dict[tuple[str, str], set[str]] = {}
        for listener, hostnames in attached:
            for hostname in hostnames:
                listener.attached.add(hostname)
                schemes.setdefault((listener.load_balancer, hostname), set()).add(listener.protocol)
        for (balancer, hostname), found in schemes.items():
            yield balancer, hostname, "" if len(found) > 1 else next(iter(found))

    def _rule(self, route: Manifest, at: Path, fronts: list[tuple[str, str, str]]) -> None:
        settings, rules = self._settings(route, at), self._times(route, at)
        route.mapped((*at, "name"))
        guard = self._guard(route)
        action: dict[str, Any] | None = None
        for path, said in list(route.each(*at, "matches")) or [((*at, "no match"), {})]:
            match = match_of(route, path, said)
            if match is None:
                continue
            filters = filters_of(route, at, match["path_kind"])
            if guard is not None:
                filters.broken = True
                closes(route, at, guard)
            if action is None and filters.redirect is None and not filters.broken:
                action = shares_of(self.context, self.pools, route, at, settings).action(route)
            spec = _spec(match, filters, action or ERROR, rules)
            if filters.redirect or filters.broken:
                route.dead((*at, "backendRefs"), "A filter of the rule answers first.")
            self._store(route, at, path, spec, fronts)

    def _store(
        self, route: Manifest, at: Path, path: Path, spec: dict[str, Any], fronts: list[tuple[str, str, str]]
    ) -> None:
        taken = 0
        for balancer, hostname, scheme in fronts:
            full: dict[str, Any] = {"load_balancer": balancer, "hostname": hostname, **spec}
            full |= {"scheme": scheme} if scheme else {}
            matched = ("load_balancer", "hostname", "path", "path_kind", "methods", "headers", "query", "scheme")
            same: dict[str, Any] = {name: full.get(name) for name in matched}
            same["headers"] = [{**each, "name": each["name"].lower()} for each in full.get("headers", ())]
            key = json.dumps(same, sort_keys=True)
            if key in self._seen:
                taken += 1
                continue
            self._seen.add(key)
            name = self._name(f"{route.namespace}-{route.name}{spec['path']}")
            self.context.routes[name] = full
            for line in (*route.below(path), *route.below((*at, "backendRefs")), *route.below((*at, "filters"))):
                self.context.ledger.belongs(line, f"Route {name}")
        if taken == len(fronts):
            route.dead(path, TAKEN)

    def _name(self, text: str) -> str:
        called, number = text, 1
        while (name := self.context.names.name("Route", called)) in self.context.routes:
            number += 1
            called = f"{text}-{number}"
        return name

    def _guard(self, route: Manifest) -> Manifest | None:
        """A policy that is not read, of the route or of a Gateway that it names."""
        if self._guards is None:
            self._guards = guards(self.context)
        parents = [each for _, each in route.each("spec", "parentRefs")]
        named = [(route.kind, route.namespace, route.name)]
        named += [("Gateway", str(each.get("namespace") or route.namespace), str(each.get("name"))) for each in parents]
        return next((self._guards[key] for key in named if key in self._guards), None)

    def _settings(self, route: Manifest, at: Path) -> dict[str, Any]:
        """What a rule says of its pools: retries, persistence, HTTP/2 for gRPC."""
        found: dict[str, Any] = {"http_version": "2"} if route.kind == "GRPCRoute" else {}
        if route.at(*at, "retry") is not None:
            codes = [text for _, text in route.texts(*at, "retry", "codes")]
            attempts = route.at(*at, "retry", "attempts")
            on = list(dict.fromkeys(["connect", "no_answer", *(code for code in codes if code in CODES)]))
            said = attempts if type(attempts) is int and attempts >= 0 else 1
            found["retries"] = {"attempts": min(said, MOST_RETRIES), "on": on}
            route.mapped((*at, "retry", "attempts"))
            for path, code in route.texts(*at, "retry", "codes"):
                route.mapped(path) if code in CODES else route.impossible(path, "There is no retry after this status.")
            route.impossible((*at, "retry", "backoff"), "A retry goes to another server at once.")
        return found | self._persistence(route, at)

    def _persistence(self, route: Manifest, at: Path) -> dict[str, Any]:
        path = (*at, "sessionPersistence")
        if route.at(*path) is None:
            return {}
        if route.at(*path, "type") not in (None, "Cookie"):
            route.impossible(path, "Only a cookie of the load balancer keeps a client at its server.")
            return {}
        name = str(route.at(*path, "sessionName") or "SERVER")
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name):
            route.differs((*path, "sessionName"), "The cookie is SERVER: a name is letters, digits, - and _.")
            name = "SERVER"
        idle = milliseconds(route.at(*path, "idleTimeout") or route.at(*path, "absoluteTimeout"))
        route.mapped(path)
        if route.at(*path, "absoluteTimeout") is not None:
            route.differs((*path, "absoluteTimeout"), "A client is forgotten after a time without requests.")
        return {"persistence": {"by": "cookie", "cookie": name, **({"idle_s": max(1, idle // 1000)} if idle else {})}}

    def _times(self, route: Manifest, at: Path) -> dict[str, Any]:
        """The shorter of both times is how long a server may take."""
        found = []
        for name in ("request", "backendRequest"):
            said = route.at(*at, "timeouts", name)
            if said is None:
                continue
            time = milliseconds(said)
            if time is None:
                route.impossible((*at, "timeouts", name), "This is no duration, such as 10s.")
                continue
            found.append(time or LONGEST_MS)
            route.mapped((*at, "timeouts", name))
            if name == "request" or time == 0:
                route.differs((*at, "timeouts", name), "It bounds the wait for a server's answer, an hour at most.")
        return {"timeouts": {"response_ms": min(*found, LONGEST_MS)}} if found else {}

    def _isolate(self) -> None:
        """A host of one listener is not served by routes of a wider listener of the same port."""
        for listener in self.listeners:
            wider = [
                each for each in self.listeners
                if each is not listener and (each.load_balancer, each.port) == (listener.load_balancer, listener.port)
                and each.hostname != listener.hostname and covers(each.hostname, example_of(listener.hostname))
            ]  # fmt: skip
            if listener.protocol == "tcp" or listener.hostname == ANY or not any(each.attached for each in wider):
                continue
            spec = {"load_balancer": listener.load_balancer, "hostname": listener.hostname, "path": "/",
                    "path_kind": "prefix", "scheme": listener.protocol, "action": NOT_FOUND}  # fmt: skip
            if not any(_takes_all(each, spec) for each in self.context.routes.values()):
                self.context.routes[self._name(f"{listener.gateway.name}-{listener.name}-nothing")] = spec


def _takes_all(route: dict[str, Any], spec: dict[str, Any]) -> bool:
    same = all(route.get(name) == spec[name] for name in ("load_balancer", "hostname", "path", "path_kind"))
    plain = not any(route.get(name) for name in ("methods", "headers", "query"))
    return same and plain and route.get("scheme", spec["scheme"]) == spec["scheme"]


def _spec(match: dict[str, Any], filters: Filters, action: dict[str, Any], rules: dict[str, Any]) -> dict[str, Any]:
    if filters.broken:
        return {**match, "action": ERROR}
    if filters.redirect is not None:
        kept = {name: value for name, value in filters.rules.items() if name in ("response_headers", "cors")}
        return {**match, "action": {"redirect": filters.redirect}, **({"rules": kept} if kept else {})}
    if "pools" not in action:
        return {**match, "action": action}
    rewrite = {"prefix_rewrite": filters.prefix_rewrite} if filters.prefix_rewrite else {}
    every = {**rules, **filters.rules}
    return {**match, "action": action, **rewrite, **({"rules": every} if every else {})}


def milliseconds(value: object) -> int | None:
    """A duration of the Gateway API, such as `1m30s`; None for none."""
    if not isinstance(value, str) or not _DURATION.fullmatch(value):
        return None
    return sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(value))
