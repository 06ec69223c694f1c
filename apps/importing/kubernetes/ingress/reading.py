"""Ingresses as load balancers and routes: one load balancer for each class."""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.matching.hosts import names_that_cover
from apps.importing.kubernetes.ingress.annotations.judged import NGINX
from apps.importing.kubernetes.ingress.controllers import class_of, controller_of, settings_of
from apps.importing.kubernetes.ingress.deciding import in_order
from apps.importing.kubernetes.ingress.drafts import Draft, drafts_of
from apps.importing.kubernetes.ingress.paths import PathOfOurs
from apps.importing.kubernetes.ingress.places import ANY, Place, Reading, places_of, target_of
from apps.importing.kubernetes.ingress.settings import Annotations
from apps.importing.kubernetes.ingress.tls import certificates_of
from apps.importing.kubernetes.manifests.manifest import ANNOTATIONS, Manifest
from apps.importing.kubernetes.objects.pools import Pools
from apps.importing.kubernetes.world import World

EVERY_PATH = PathOfOurs("prefix", "/", "/")
NOT_FOUND = {"fixed_response": {"status": 404, "body": "Nothing is here.\n"}}
NO_ROOM = (
    "A port passes TLS on or ends it; another host of this class ends it on 443. Serve this host by a load balancer "
    "of its own, a tcp listener with sni_routes."
)
BY_NAME = "Connections are chosen by name alone, so paths do not count."


def read_ingresses(world: World, pools: Pools) -> None:
    """Every Ingress of the file."""
    classes: dict[tuple[str, str], list[Reading]] = {}
    for ingress in world.of_kind("Ingress"):
        if ingress.group != "networking.k8s.io":
            ingress.impossible((), f"Only Ingress of networking.k8s.io/v1 is read, not of {ingress.group or 'v1'}.")
            continue
        controller = controller_of(world, ingress)
        settings = settings_of(world, ingress, controller)
        classes.setdefault((class_of(ingress), controller), []).append(Reading(ingress, settings, controller))
    for (name, _), readings in classes.items():
        called = world.names.name("LoadBalancer", name or "ingress")
        world.address_keys[called] = [name or "ingress"]
        _Class(world, pools, called, readings).make()


class _Class:
    """Ingresses of one class: one load balancer with their hosts."""

    def __init__(self, world: World, pools: Pools, name: str, readings: list[Reading]) -> None:
        self.world, self.pools, self.name, self.readings = world, pools, name, readings

    def make(self) -> None:
        """The load balancer, then its routes."""
        places = places_of(self.readings)
        for reading in self.readings:
            if reading.settings.client_certificates and ANY in reading.hosts:
                said = Annotations(self.world, reading.ingress, NGINX)
                said.block(reading.settings, "auth-tls-secret", "Clients of any host cannot be asked for certificates.")
        certificates, encrypted = certificates_of(self.world, self.readings)
        passed = [place for place in places if place.reading.settings.passthrough]
        places = [place for place in places if not place.reading.settings.passthrough]
        self._listen(certificates, passed)
        canaries = {(each.host, each.path.text): each for each in places if each.reading.settings.canary}
        drafts: list[Draft] = []
        for place in places:
            if not place.reading.settings.canary:
                canary = canaries.pop((place.host, place.path.text), None)
                drafts += drafts_of(place, self.pools, canary, encrypted=place.host in encrypted)
        for left in canaries.values():
            left.reading.ingress.dead(left.at, "No other Ingress has this host and path, so nobody is its main one.")
        drafts += self._www(places)
        drafts += self._roots()
        drafts += self._defaults(drafts)
        self._store(in_order(drafts))
        for reading in self.readings:
            reading.ingress.mapped(("kind",), f"LoadBalancer {self.name}")
            reading.ingress.mapped(("spec", "ingressClassName"), f"LoadBalancer {self.name}")

    def _listen(self, certificates: list[str], passed: list[Place]) -> None:
        listeners: list[dict[str, object]] = [{"name": "http", "protocol": "http", "port": 80}]
        if certificates:
            https: dict[str, object] = {"name": "https", "protocol": "https", "port": 443, "certificates": certificates}
            clients = list(self._clients())
            listeners.append(https | ({"client_certificates": clients} if clients else {}))
        elif passed:
            listeners.append({"name": "tls", "protocol": "tcp", "port": 443, "sni_routes": list(self._passed(passed))})
        for place in passed if certificates else ():
            place.reading.ingress.impossible((*ANNOTATIONS, NGINX + "ssl-passthrough"), NO_ROOM)
            place.reading.ingress.impossible(place.at, NO_ROOM)
        self.world.load_balancers[self.name] = {"fleets": list(self.world.options.fleets), "listeners": listeners}

    def _clients(self) -> Iterator[dict[str, object]]:
        """Who presents certificates, by host; the first Ingress of a host decides."""
        seen: set[str] = set()
        for reading in self.readings:
            found = reading.settings.client_certificates
            hosts = {*reading.hosts, *reading.settings.aliases} - {ANY} - seen
            if found and hosts:
                seen |= hosts
                yield {**found, "hostnames": sorted(hosts)}

    def _passed(self, places: list[Place]) -> Iterator[dict[str, object]]:
        seen = set()
        for place in places:
            if place.target is not None and place.host not in seen and place.host != ANY:
                seen.add(place.host)
                pool = self.pools.name_of(place.target, {}, "tcp")
                yield {"hostname": place.host, "pool": pool}
            place.reading.ingress.differs((*place.at, "path"), BY_NAME)

    def _www(self, places: list[Place]) -> Iterator[Draft]:
        """`from-to-www-redirect`: the other one of two names leads to the one that has rules."""
        known = {place.host for place in places}
        for place in places:
            host = place.host
            if not place.reading.settings.www or host.startswith("*") or host not in place.reading.hosts:
                continue
            other = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
            if other not in known and other.count(".") > 0:
                known.add(other)
                twin = Place(place.reading, other, EVERY_PATH, None, place.at)
                yield Draft(twin, EVERY_PATH, {"redirect": {"code": 308, "host": host}})

    def _roots(self) -> Iterator[Draft]:
        """`app-root`: ingress-nginx redirects `/` of the host before anything else."""
        seen = set()
        for reading in self.readings:
            for host in (*reading.hosts, *reading.settings.aliases) if reading.settings.app_root else ():
                if host not in seen:
                    seen.add(host)
                    action = {"redirect": {"code": 302, "path": reading.settings.app_root, "keep_query": False}}
                    path = PathOfOurs("exact", "/")
                    yield Draft(Place(reading, host, path, None, ("spec",)), path, action)

    def _defaults(self, drafts: list[Draft]) -> Iterator[Draft]:
        """What no path takes: the default backend of the host's Ingress; 404 where a wider host would take it."""
        hosts = {draft.place.host for draft in drafts}
        full = {draft.place.host for draft in drafts if draft.path.text == "/" and draft.path.kind == "prefix"}
        for reading in self.readings:
            ingress, at = reading.ingress, ("spec", "defaultBackend")
            if ingress.at(*at) is None:
                continue
            target = target_of(ingress, at)
            open_hosts = [host for host in dict.fromkeys(reading.hosts or [ANY]) if host not in full]
            if not open_hosts:
                ingress.dead(at, "Other paths take everything.")
            for host in open_hosts:
                full.add(host)
                hosts.add(host)
                yield from drafts_of(Place(reading, host, EVERY_PATH, target, at), self.pools, None, encrypted=False)
        if all(reading.controller != "traefik" for reading in self.readings):
            for host in sorted(hosts - full):
                reading = next((each for each in self.readings if host in each.hosts), self.readings[0])
                place = Place(reading, host, EVERY_PATH, None, ("spec",))
                if reading.settings.redirect:  # ingress-nginx has it for all paths of the host
                    yield from drafts_of(place, self.pools, None, encrypted=False)
                elif hosts & {*names_that_cover(host)} - {host}:
                    yield Draft(place, EVERY_PATH, NOT_FOUND)

    def _store(self, drafts: list[Draft]) -> None:
        for draft in drafts:
            ingress = draft.place.reading.ingress
            called = _called(ingress, draft)
            number = 1
            while (name := self.world.names.name("Route", called)) in self.world.routes:
                number += 1
                called = f"{_called(ingress, draft)}-{number}"
            self.world.routes[name] = draft.spec(self.name)
            if len(draft.place.at) > 1:
                for line in ingress.below(draft.place.at):
                    self.world.ledger.belongs(line, f"Route {name}")


def _called(ingress: Manifest, draft: Draft) -> str:
    suffix = "-to-https" if draft.scheme == "http" and "redirect" in draft.action else ""
    return f"{ingress.namespace}-{ingress.name}{draft.path.text}{suffix}"
