"""Where a run's requests go: addresses that are looked up once, checked, and pinned into its plan."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from apps.capacity.models import Run
from apps.compiler import addresses
from apps.compiler.address_spelling import spelled
from apps.compiler.addresses import Address
from apps.compiler.model.shared import Protocol
from apps.core.errors import Conflict
from apps.definitions.load_targets import is_local, routes_to
from apps.definitions.models import CapacityTest, Listener, Server
from apps.drivers.load.contract import Endpoint, Tls
from apps.fleet.models import Fleet, Node


@dataclass(frozen=True, slots=True)
class Target:
    """The pinned addresses, how TLS is made with them, and in words what is loaded.

    `unverified` is the public address of a server that a customer would ask directly, empty where that is not so:
    whoever may write servers may write anybody's address, so an operator says for each run that it may be loaded.
    """

    endpoints: tuple[Endpoint, ...]
    tls: Tls | None
    words: str
    unverified: str = ""

    @property
    def approval(self) -> str:
        """Why an operator approves each run, as the rest of a sentence; empty where none need."""
        if not self.unverified:
            return ""
        return f"{self.unverified} is asked directly, past the load balancer, and nobody verified whose address it is."


def target_of(test: CapacityTest, *, asked: str = "") -> Target:
    """Where a test would send its requests now. Raises Conflict with a sentence when it may not send any there.

    `asked` is the address that a run was asked for (`Run.direct_address`): of several that a name has it is taken.
    """
    local = is_local(test.region)
    endpoints = _of_server(test, local=local, asked=asked) if test.server else _of_nodes(test, local=local)
    tls = Tls(server_name=test.hostname, verify=not local) if test.load.get("tls") else None
    destination = f"server {test.server}" if test.server else f"{len(endpoints)} addresses of the nodes"
    words = f"{test.hostname}{test.path} at {destination} in {test.region.name}"
    return Target(
        endpoints, tls, words, _unverified(endpoints[0]) if test.server and not test.account.is_operator else ""
    )


def target_of_run(run: Run, test: CapacityTest) -> Target:
    """Where a run may send its requests now. Raises Conflict as `target_of` does, and where an operator's word is
    missing or was given for another address."""
    target = target_of(test, asked=run.direct_address)
    if target.unverified and not run.approved_by:
        raise Conflict(f"An operator must approve each such run, and no one has: {target.approval} Start it again.")
    if target.unverified and target.unverified != run.direct_address:
        was = run.direct_address or "no server directly"
        raise Conflict(f"An operator approved {was}, but the target is now {target.unverified}. Start it again.")
    return target


def _of_nodes(test: CapacityTest, *, local: bool) -> tuple[Endpoint, ...]:
    """The listeners of the region's nodes that lead to the pool."""
    wanted = Protocol.HTTPS if test.load.get("tls") else Protocol.HTTP
    routes = routes_to(test.account, test.pool, test.region, test.hostname, test.path)
    fronts = list(routes.values_list("load_balancer", flat=True))
    listeners = Listener.objects.filter(load_balancer__in=fronts, protocol=wanted).select_related("static_ip")
    found: dict[Endpoint, None] = {}
    for listener in listeners.order_by("pk"):
        nodes = Node.objects.filter(fleet__region=test.region, fleet__load_balancers=listener.load_balancer_id)
        for node in nodes.order_by("name"):
            if listener.static_ip and listener.static_ip.address:
                found[Endpoint(listener.static_ip.address, listener.port)] = None
            else:
                found[Endpoint(node.address, listener.port + node.port_offset)] = None
    if not found:
        raise Conflict(f"No {wanted} listener of a node in {test.region.name} leads to the pool; add a listener.")
    for endpoint in found:
        _refuse(ipaddress.ip_address(endpoint.host), local=local, private=True)
    return tuple(found)


def _of_server(test: CapacityTest, *, local: bool, asked: str) -> tuple[Endpoint, ...]:
    """One server of the pool. A private address only where an operator's own network or local development has it."""
    server = Server.objects.filter(backend__pool=test.pool, backend__region=test.region, name=test.server).first()
    if server is None:
        raise Conflict(f"The pool no longer has server {test.server} in {test.region.name}.")
    known = [Endpoint(spelled(address), server.port) for address in _resolve(server.address, server.port)]
    found = next((endpoint for endpoint in known if _shown(endpoint) == asked), known[0])
    fleets = Fleet.objects.filter(region=test.region).values_list("private_networks", flat=True)
    _refuse(ipaddress.ip_address(found.host), local=local, private=local or test.account.is_operator, fleets=fleets)
    return (found,)


def _unverified(endpoint: Endpoint) -> str:
    """The endpoint as text if it is public; what is private in local development is whoever develops there."""
    public = addresses.refusal_of_target(ipaddress.ip_address(endpoint.host)) is None
    return _shown(endpoint) if public else ""


def _shown(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{host}:{endpoint.port}"


def _resolve(host: str, port: int) -> list[Address]:
    """All addresses of a name, the one that the resolver prefers first."""
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        pass
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        raise Conflict(f"The name {host} has no address now, so nothing can be pinned.") from None
    return [ipaddress.ip_address(answer[4][0]) for answer in answers]


def _refuse(address: Address, *, local: bool, private: bool, fleets: Iterable[list[str]] = ()) -> None:
    """Raise Conflict; `fleets` are the private networks that each of the region's fleets allows its servers."""
    reason = addresses.refusal_of_address(address, local_development=local)
    if reason is None and not private:
        reason = addresses.refusal_of_target(address)
    for networks in fleets:
        reason = reason or addresses.refusal_of_private(address, map(ipaddress.ip_network, networks))
    if reason:
        raise Conflict(f"No test may load {address}: it {reason}.")
