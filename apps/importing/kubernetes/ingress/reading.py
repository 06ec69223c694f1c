"""Ingresses as load balancers and routes: one load balancer for each class."""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.matching.hosts import names_that_cover
from apps.importing.kubernetes.context import Context
from apps.importing.kubernetes.ingress.annotations.unmapped import NGINX
from apps.importing.kubernetes.ingress.controllers import class_of, controller_of, settings_of
from apps.importing.kubernetes.ingress.deciding import in_order
from apps.importing.kubernetes.ingress.drafts import Draft, drafts_of
from apps.importing.kubernetes.ingress.entries import ANY, Entry, Reading, entries_of, target_of
from apps.importing.kubernetes.ingress.paths import PathOfOurs
from apps.importing.kubernetes.ingress.settings import Annotations
from apps.importing.kubernetes.ingress.tls import certificates_of
from apps.importing.kubernetes.manifests.manifest import ANNOTATIONS, Manifest
from apps.importing.kubernetes.objects.pools import Pools
from apps.importing.kubernetes.traefik.routes import readings_of

GROUPS = ("networking.k8s.io", "extensions")
EVERY_PATH = PathOfOurs("prefix", "/", "/")
NOT_FOUND = {"fixed_response": {"status": 404, "body": "Nothing is here.\n"}}
NO_ROOM = (
    "A port passes TLS on or ends it; another host of this class ends it on 443. Serve this host by a load balancer "
    "of its own, a tcp listener with sni_routes."
)
BY_NAME = "Connections are chosen by name alone, so paths do not count."


def read_ingresses(context: Context, pools: Pools) -> None:
    """Every Ingress of the file, and IngressRoutes of Traefik beside those of its class."""
    classes: dict[tuple[str, str], list[Reading]] = {}
    for ingress in context.of_kind("Ingress"):
        if ingress.group not in GROUPS:
            ingress.impossible((), f"Only Ingress of {GROUPS[0]} is read, not of {ingress.group or 'v1'}.")
            continue
        controller = controller_of(context, ingress)
        settings = settings_of(context, ingress, controller)
        classes.setdefault((class_of(ingress), controller), []).append(Reading(ingress, settings, controller))
    for route in readings_of(context):
        classes.setdefault(("traefik", "traefik"), []).append(route)
    for (name, _), readings in classes.items():
        called = context.names.name("LoadBalancer", name or "ingress")
        context.address_keys[called] = [name or "ingress"]
        _Class(context, pools, called, readings).make()


class _Class:
    """Ingresses of one class: one load balancer with their hosts."""

    def __init__(self, context: Context, pools: Pools, name: str, readings: list[Reading]) -> None:
        self.context, self.pools, self.name, self.readings = context, pools, name, readings

    def make(self) -> None:
        """The load balancer, then its routes."""
        entries = entries_of(self.context, self.readings)
        for reading in self.readings:
            if reading.settings.client_certificates and ANY in reading.hosts:
                said = Annotations(self.context, reading.ingress, NGINX)
                said.block(reading.settings, "auth-tls-secret", "Clients of any host cannot be asked for certificates.")
        certificates, encrypted = certificates_of(self.context, self.readings)
        passed = [entry for entry in entries if entry.reading.settings.passthrough]
        entries = [entry for entry in entries if not entry.reading.settings.passthrough]
        self._listen(certificates, passed)
        canaries = {(each.host, each.path.text): each for each in entries if each.reading.settings.canary}
        drafts: list[Draft] = []
        for entry in entries:
            if not entry.reading.settings.canary:
                canary = canaries.pop((entry.host, entry.path.text), None)
                drafts += drafts_of(entry, self.pools, canary, encrypted=entry.host in encrypted)
        for left in canaries.values():
            left.reading.ingress.dead(left.at, "No other Ingress has this host and path, so nobody is its main one.")
        drafts += self._www(entries)
        drafts += self._roots()
        drafts += self._defaults(drafts, encrypted)
        self._store(in_order(drafts))
        for reading in self.readings:
            reading.ingress.mapped(("kind",), f"LoadBalancer {self.name}")
            reading.ingress.mapped(("spec", "ingressClassName"), f"LoadBalancer {self.name}")

    def _listen(self, certificates: list[str], passed: list[Entry]) -> None:
        listeners: list[dict[str, object]] = [{"name": "http", "protocol": "http", "port": 80}]
        if certificates:
            https: dict[str, object] = {"name": "https", "protocol": "https", "port": 443, "certificates": certificates}
            clients = list(self._clients())
            listeners.append(https | ({"client_certificates": clients} if clients else {}))
        elif passed:
            listeners.append({"name": "tls", "protocol": "tcp", "port": 443, "sni_routes": list(self._passed(passed))})
        for entry in passed if certificates else ():
            entry.reading.ingress.impossible((*ANNOTATIONS, NGINX + "ssl-passthrough"), NO_ROOM)
            entry.reading.ingress.impossible(entry.at, NO_ROOM)
        self.context.load_balancers[self.name] = {"fleets": list(self.context.options.fleets), "listeners": listeners}

    def _clients(self) -> Iterator[dict[str, object]]:
        """Who presents certificates, by host; the first Ingress of a host decides."""
        seen: set[str] = set()
        for reading in self.readings:
            found = reading.settings.client_certificates
            hosts = {*reading.hosts, *reading.settings.aliases} - {ANY} - seen
            if found and hosts:
                seen |= hosts
                yield {**found, "hostnames": sorted(hosts)}

    def _passed(self, entries: list[Entry]) -> Iterator[dict[str, object]]:
        seen = set()
        for entry in entries:
            if entry.target is not None and entry.host not in seen and entry.host != ANY:
                seen.add(entry.host)
                pool = self.pools.name_of(entry.target, {}, "tcp")
                yield {"hostname": entry.host, "pool": pool}
            entry.reading.ingress.differs((*entry.at, "path"), BY_NAME)

    def _www(self, entries: list[Entry]) -> Iterator[Draft]:
        """`from-to-www-redirect`: the other one of two names leads to the one that has rules."""
        known = {entry.host for entry in entries}
        for entry in entries:
            host = entry.host
            if not entry.reading.settings.www or host.startswith("*") or host not in entry.reading.hosts:
                continue
            other = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
            if other not in known and other.count(".") > 0:
                known.add(other)
                twin = Entry(entry.reading, other, EVERY_PATH, None, entry.at)
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
                    yield Draft(Entry(reading, host, path, None, ("spec",)), path, action)

    def _defaults(self, drafts: list[Draft], encrypted: set[str]) -> Iterator[Draft]:
        """What no path takes: the default backend of the host's Ingress; 404 where a wider host would take it."""
        hosts = {draft.entry.host for draft in drafts}
        full = {draft.entry.host for draft in drafts if draft.path.text == "/" and draft.path.kind == "prefix"}
        for reading in self.readings:
            ingress = reading.ingress
            at = ("spec", "backend" if ingress.at("spec", "defaultBackend") is None else "defaultBackend")  # v1beta1
            if ingress.at(*at) is None:
                continue
            target = target_of(ingress, at)
            open_hosts = [host for host in dict.fromkeys(reading.hosts or [ANY]) if host not in full]
            if not open_hosts:
                ingress.dead(at, "Other paths take everything.")
            for host in open_hosts:
                full.add(host)
                hosts.add(host)
                rest = Entry(reading, host, EVERY_PATH, target, at)
                yield from drafts_of(rest, self.pools, None, encrypted=host in encrypted)
        if all(reading.controller != "traefik" for reading in self.readings):
            for host in sorted(hosts - full):
                reading = next((each for each in self.readings if host in each.hosts), self.readings[0])
                entry = Entry(reading, host, EVERY_PATH, None, ("spec",))
                if reading.settings.redirect:  # ingress-nginx has it for all paths of the host
                    yield from drafts_of(entry, self.pools, None, encrypted=False)
                elif hosts & {*names_that_cover(host)} - {host}:
                    yield Draft(entry, EVERY_PATH, NOT_FOUND)

    def _store(self, drafts: list[Draft]) -> None:
        numbers: dict[str, int] = {}
        for draft in drafts:
            ingress = draft.entry.reading.ingress
            called = text = _called(ingress, draft)
            number = numbers.get(text, 1)
            while (name := self.context.names.name("Route", called)) in self.context.routes:
                number += 1
                called = f"{text}-{number}"
            numbers[text] = number
            self.context.routes[name] = draft.spec(self.name)
            if len(draft.entry.at) > 1:
                for line in ingress.below(draft.entry.at):
                    self.context.ledger.belongs(line, f"Route {name}")


def _called(ingress: Manifest, draft: Draft) -> str:
    suffix = "-to-https" if draft.scheme == "http" and "redirect" in draft.action else ""
    return f"{ingress.namespace}-{ingress.name}{draft.path.text}{suffix}"
