"""The examination of a stack's snapshot: what passes, what is refused and why, what people should know.

The rules of a fleet hold for a cloud as well, so they are asked first (`checks/fields.py`, `checks/routes.py`,
`checks/listeners.py`); then the target says what it cannot do (`portability/incompatibilities.py`). What is refused
is left out with all that needs it, never changed.

1. Fields of certificates, pools and servers. A refused server leaves its pool without it, a refused pool leaves.
2. Fields, actions, owners and twins of routes.
3. Fields of listeners, static IPs, certificates, default pools, ports.
4. Load balancers, zones and records; what the target cannot do once everything is looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from ipaddress import ip_network

from apps.compiler import grammar
from apps.compiler.address_spelling import spelled
from apps.compiler.checks.examination import Examination, Notes
from apps.compiler.checks.fields import check_certificate, check_listener, check_pool, check_route, check_server
from apps.compiler.checks.listeners import check_listener_use, check_ports, with_known_certificates
from apps.compiler.checks.policies import check_rules
from apps.compiler.checks.routes import check_action, check_loops, check_owners, check_twins
from apps.compiler.model.shared import Certificate, Listener, LoadBalancer
from apps.compiler.model.stack import CloudBackend, CloudPool, CloudZone, RecordType, StackSnapshot
from apps.compiler.portability.capabilities import Capabilities
from apps.compiler.portability.incompatibilities import Incompatibility, Named

_ID = re.compile(r"[a-z]{2,6}-(?:0|[1-9][0-9]{0,17})")
_SUBNET = re.compile(r"[A-Za-z0-9-]{1,64}")
_RECORD_NAME = re.compile(r"@|(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]{0,250}[a-z0-9_])?|\*")

_TEXT = r'"(?:[^"\\]|\\.){0,255}"'
_TEXTS = re.compile(rf"{_TEXT}(?: {_TEXT})*")


def examine_stack(snapshot: StackSnapshot, capabilities: Capabilities) -> Examination[StackSnapshot]:
    """Apply all checks; never raises for what a definition says."""
    examiner = _Examiner(snapshot, capabilities, Notes())
    return examiner.notes.examined(examiner.accepted(), examiner.incompatibilities)


@dataclass(frozen=True, slots=True)
class _Examiner:
    """One examination."""

    snapshot: StackSnapshot
    capabilities: Capabilities
    notes: Notes
    incompatibilities: list[Incompatibility] = field(default_factory=list)

    def accepted(self) -> StackSnapshot:
        """What is left. The target looks at the whole last, and what it refuses then takes its users along."""
        self.notes.refuse_unreadable(self.snapshot.unreadable)
        self._check_identities()
        self._check_network()
        certificates, pools = self._certificates(), self._pools()
        fronts = self._fronts(certificates, pools)
        kept = replace(
            self.snapshot,
            load_balancers=fronts,
            pools=tuple(pools.values()),
            certificates=tuple(certificates.values()),
            addresses=self.notes.kept(self.snapshot.addresses),
        )
        self._take(self.capabilities.unsupported_in_stack(kept))
        return self._without_refused(kept)

    def _take(self, incompatibilities: Iterable[Incompatibility]) -> None:
        for each in incompatibilities:
            self.incompatibilities.append(each)
            finding = each.finding
            if each.refused:
                self.notes.refuse(finding)
            else:
                self.notes.warnings.append(finding)

    def _check_identities(self) -> None:
        """Ids become the names of resources."""
        self.notes.refuse_twins(_everything(self.snapshot))
        for thing in _everything(self.snapshot):
            if not self.notes.is_out(thing.id) and not _ID.fullmatch(thing.id):
                message = "Identifiers are made by Spillway: a prefix, a hyphen and a number."
                self.notes.quarantine(thing, "object_id", message, "id")

        backends = Counter(backend.id for pool in self.snapshot.pools for backend in pool.backends)
        for pool in self.snapshot.pools:
            if any(backends[each.id] > 1 or not _ID.fullmatch(each.id) for each in pool.backends):
                message = "Report this to the operators: a backend of the pool has no name of its own."
                self.notes.quarantine(pool, "id_twice", message, "backends")

    def _check_network(self) -> None:
        """The stack's own network is written by operators; one that cannot be read keeps every load balancer out."""
        network = self.snapshot.network
        blocks = (*network.client_networks, *network.vpc_networks)
        error = next((each for each in blocks if not _is_network(each)), None)
        error = error or next((each for each in network.subnets if not _SUBNET.fullmatch(each)), None)
        for front in self.snapshot.load_balancers if error is not None else ():
            message = f"Correct {error!r} in the network of stack {self.snapshot.label}."
            self.notes.quarantine(front, "network", message, "stacks")

    def _certificates(self) -> dict[str, Certificate]:
        for certificate in self.snapshot.certificates:
            check_certificate(self.notes, certificate)
            if not self.notes.is_out(certificate.id):
                self._take(self.capabilities.unsupported_in_certificate(certificate))
        return {each.id: each for each in self.notes.kept(self.snapshot.certificates)}

    def _pools(self) -> dict[str, CloudPool]:
        for pool in self.snapshot.pools:
            check_pool(self.notes, pool, (backend.limit for backend in pool.backends))
            self._take(self.capabilities.unsupported_in_pool(pool))
            for server in (server for backend in pool.backends for server in backend.servers):
                check_server(self.notes, server, local_development=False)
                if not self.notes.is_out(server.id):
                    self._take(self.capabilities.unsupported_in_server(server))
        kept = self.notes.kept(self.snapshot.pools)
        return {pool.id: replace(pool, backends=tuple(map(self._backend, pool.backends))) for pool in kept}

    def _backend(self, backend: CloudBackend) -> CloudBackend:
        servers = self.notes.kept(backend.servers)
        return backend if servers == backend.servers else replace(backend, servers=servers)

    def _fronts(self, certificates: dict[str, Certificate], pools: dict[str, CloudPool]) -> tuple[LoadBalancer, ...]:
        for front in self.snapshot.load_balancers:
            self._check_routes(front, pools)
        check_owners(
            self.notes, self.notes.kept(route for front in self.snapshot.load_balancers for route in front.routes)
        )
        fronts = []
        for front in self.snapshot.load_balancers:
            check_twins(self.notes, front)
            check_loops(self.notes, front)
            listeners = tuple(self._checked(listener, front, pools, certificates) for listener in front.listeners)
            fronts.append(replace(front, listeners=listeners))
            self._take(self.capabilities.unsupported_in_load_balancer(self.notes.kept_of(fronts[-1])))
        # One listener for each port: of a static IP, and of the load balancer, which has addresses of its own.
        check_ports(self.notes, fronts, lambda _front, listener: listener.address, named=False)
        check_ports(self.notes, fronts, lambda front, _listener: front.id, named=False)
        return tuple(map(self.notes.kept_of, self.notes.kept(fronts)))

    def _check_routes(self, front: LoadBalancer, pools: dict[str, CloudPool]) -> None:
        for route in front.routes:
            check_route(self.notes, route)
            check_action(self.notes, route, pools)
            if not self.notes.is_out(route.id):
                self._take(self.capabilities.unsupported_in_route(route, front))
        check_rules(self.notes, front)

    def _checked(
        self, listener: Listener, front: LoadBalancer, pools: dict[str, CloudPool], certificates: dict[str, Certificate]
    ) -> Listener:
        """Its address is the id of a static IP here, which `unsupported_in_stack` looks up."""
        check_listener(self.notes, replace(listener, address=None), front)
        check_listener_use(self.notes, listener, pools)
        self._take(self.capabilities.unsupported_in_listener(listener, front))
        return with_known_certificates(self.notes, listener, certificates)

    def _without_refused(self, kept: StackSnapshot) -> StackSnapshot:
        """Once more, for what was refused last: an address takes its listeners along, a load balancer its records."""
        addresses = {each.id for each in self.notes.kept(kept.addresses)}
        for front in kept.load_balancers:
            for listener in front.listeners:
                if listener.address is not None and listener.address not in addresses:
                    self._once(listener, "unknown_address", "Choose an existing static IP, or none.", "static_ip")
        fronts = tuple(map(self.notes.kept_of, self.notes.kept(kept.load_balancers)))
        for front in fronts:
            if not front.listeners:
                self.notes.warn(front, "no_listener", "Add a listener; clients cannot reach this load balancer.")
        reachable = {front.id for front in fronts if front.listeners}
        return replace(
            kept,
            load_balancers=tuple(front for front in fronts if front.listeners),
            addresses=tuple(each for each in kept.addresses if each.id in addresses),
            zones=tuple(self._zone(zone, reachable, addresses) for zone in self._zones(kept.zones)),
        )

    def _zones(self, zones: Iterable[CloudZone]) -> Iterator[CloudZone]:
        for zone in zones:
            self.notes.ask(zone, "domain", grammar.redirect_host, zone.domain)
            if not self.notes.is_out(zone.id):
                yield zone

    def _zone(self, zone: CloudZone, reachable: set[str], addresses: set[str]) -> CloudZone:
        for record in zone.records:
            if not _RECORD_NAME.fullmatch(record.name):
                self.notes.quarantine(record, "record_name", "Use a name of letters, digits, - and _, or @.", "label")
            elif not all(value.isascii() and value.isprintable() for value in record.values):
                self.notes.quarantine(record, "record_value", "Use only printable ASCII characters.", "values")
            elif record.type is RecordType.TXT and not all(map(_TEXTS.fullmatch, record.values)):
                message = "Write texts in double quotes, pieces of at most 255 characters each."
                self.notes.quarantine(record, "record_value", message, "values")
            elif not (record.values or record.address_id or record.load_balancer_id):
                self.notes.quarantine(record, "record_value", "Give the record a value.", "values")
            elif record.load_balancer_id and record.load_balancer_id not in reachable:
                self._once(
                    record, "unknown_load_balancer", "Its load balancer is missing or left out.", "load_balancer"
                )
            elif record.address_id and record.address_id not in addresses:
                self._once(record, "unknown_address", "Its static IP is missing or left out.", "static_ip")
        return replace(zone, records=self.notes.kept(zone.records))

    def _once(self, thing: Named, code: str, message: str, where: str) -> None:
        """Say it unless something else was said of the object already."""
        if not self.notes.is_out(thing.id):
            self.notes.quarantine(thing, code, message, where)


def _everything(snapshot: StackSnapshot) -> Iterator[Named]:
    yield from snapshot.certificates
    yield from snapshot.addresses
    for pool in snapshot.pools:
        yield pool
        for backend in pool.backends:
            yield from backend.servers
    for front in snapshot.load_balancers:
        yield front
        yield from front.listeners
        yield from front.routes
    for zone in snapshot.zones:
        yield zone
        yield from zone.records


def _is_network(text: str) -> bool:
    try:
        return spelled(ip_network(text)) == text
    except ValueError:
        return False
