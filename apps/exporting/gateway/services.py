"""Pools as Services with EndpointSlices, and TLS to their servers as a BackendTLSPolicy."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.compiler.model.fleet import Pool
from apps.compiler.model.servers import HttpVersion, ProxyProtocol, Verify
from apps.compiler.model.shared import Balance, LimitKind, Protocol, Server, ServerState
from apps.exporting.contract import LOOKED_UP, Notes
from apps.exporting.gateway.naming import GROUP, Taken

Manifest = dict[str, Any]
MOST_ENDPOINTS = 100  # in one slice, as the cluster itself makes them
PORT = "main"
UNSAYABLE_TLS = (
    "TLS to servers whose certificates nobody verifies, or by whichever name a client asks for, has no place in the "
    "Gateway API; requests for these pools get 500, as their Service is not there:"
)
BACKUP = "Backup servers have no place in the Gateway API and are left out of these pools:"
WEIGHTS = "Weights of servers have no place in the Gateway API; all servers of these pools are equal:"
NO_SERVERS = "These pools have no servers in the region of the fleet, so requests for them get 503:"
NAMES = "Servers have names instead of addresses; not every controller looks names of EndpointSlices up:"
ASIDE = {
    "health_check": "Health checks are the controller's to say:",
    "agent_check": "Programs on servers that say how much they take are not asked:",
    "outlier_ejection": "Servers with errors are the controller's to leave out:",
    "connections": "How many requests a server has at once is not bounded:",
    "slow_start_ms": "Servers that come back get all of their share at once:",
    "persistence": "A client does not stay with its server (sessionPersistence is not in the standard channel):",
    "tunnel_timeout_ms": "How long an upgraded connection may be silent is the controller's to say:",
}
OVERFLOW = "Overflow between regions has no place in the Gateway API:"
LIMIT = "Limits of pools have no place in the Gateway API; nothing is sent away or waits:"
BALANCE = "How a server is chosen is the controller's to say:"
PROXY = "Servers are not told the client's address by the PROXY protocol; those that wait for it do not answer:"
CLIENT_CERTIFICATE = "Servers are shown no client certificate (a Gateway has one for all, spec.tls.backend):"
HTTP2 = "Whether HTTP/2 is spoken with servers over TLS is the controller's to say:"
BUDGET = "The share of requests that may be sent again is not bounded:"


@dataclass(slots=True)
class Services:
    """The Services that routes name, made when they are first asked for."""

    pools: Mapping[str, Pool]
    overflowing: frozenset[str]
    looked_up: frozenset[str]
    notes: Notes
    manifests: list[Manifest] = field(default_factory=list)
    _names: Taken = field(default_factory=Taken)
    _known: dict[str, tuple[str, int] | None] = field(default_factory=dict)
    _missing: dict[str, str] = field(default_factory=dict)

    def reference(self, pool_id: str) -> dict[str, Any] | None:
        """`name` and `port` of a pool's Service; None where its servers cannot be reached as it says."""
        if pool_id not in self._known:
            pool = self.pools.get(pool_id)
            self._known[pool_id] = self._made(pool) if pool else None
        found = self._known[pool_id]
        return {"name": found[0], "port": found[1]} if found else None

    def missing(self, pool_id: str) -> dict[str, Any]:
        """The same of a Service that is not there, so that a pool's share gets 500 instead of going to the others."""
        if pool_id not in self._missing:
            label = self.pools[pool_id].label if pool_id in self.pools else pool_id
            self._missing[pool_id] = self._names.name(f"{label}-missing")
        return {"name": self._missing[pool_id], "port": 80}

    def _made(self, pool: Pool) -> tuple[str, int] | None:
        tls = pool.server_tls
        unverified = (
            pool.protocol is Protocol.HTTPS if tls is None else tls.verify is Verify.NONE or not tls.server_name
        )
        if unverified:
            self.notes.add(UNSAYABLE_TLS, f"pool {pool.label}")
            return None
        self._note(pool)
        name = self._names.name(pool.label)
        servers = [each for each in pool.servers if not each.backup]
        port = servers[0].port if servers else 80
        self.manifests += [_service(name, port, pool), *_slices(name, servers), *_tls(name, pool)]
        return name, port

    def _note(self, pool: Pool) -> None:
        """What is not said of it."""
        said = {
            **{why: getattr(pool, field_name) is not None for field_name, why in ASIDE.items()},
            OVERFLOW: pool.id in self.overflowing,
            LOOKED_UP: pool.label in self.looked_up,
            LIMIT: pool.limit.kind is not LimitKind.NONE,
            BALANCE: pool.balance is not Balance.ROUNDROBIN,
            PROXY: pool.proxy_protocol is not ProxyProtocol.NONE,
            CLIENT_CERTIFICATE: bool(pool.server_tls and pool.server_tls.client_certificate_id),
            BUDGET: bool(pool.retries and pool.retries.budget_percent is not None),
            HTTP2: bool(pool.server_tls) and pool.http_version is HttpVersion.HTTP2,
            BACKUP: any(each.backup for each in pool.servers),
            WEIGHTS: len({each.weight for each in pool.servers if each.weight}) > 1,
            NO_SERVERS: not pool.servers,
            NAMES: any(_family(each) == "FQDN" for each in pool.servers),
        }
        for why, holds in said.items():
            if holds:
                self.notes.add(why, f"pool {pool.label}")


def _service(name: str, port: int, pool: Pool) -> Manifest:
    entry: dict[str, Any] = {"name": PORT, "port": port, "protocol": "TCP"}
    if pool.protocol is not Protocol.TCP and pool.http_version is HttpVersion.HTTP2:
        entry |= {"appProtocol": "kubernetes.io/h2c"} if pool.server_tls is None else {}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [entry]}}


def _slices(name: str, servers: Iterable[Server]) -> Iterator[Manifest]:
    """Servers of one port and one kind of address stand in one slice."""
    grouped: dict[tuple[str, int], list[Server]] = {}
    for each in servers:
        grouped.setdefault((_family(each), each.port), []).append(each)
    number = 0
    for (family, port), members in grouped.items():
        for start in range(0, len(members), MOST_ENDPOINTS):
            some, number = members[start : start + MOST_ENDPOINTS], number + 1
            yield {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": f"{name}-{number}", "labels": {"kubernetes.io/service-name": name}},
                "addressType": family,
                "ports": [{"name": PORT, "port": port, "protocol": "TCP"}],
                "endpoints": [{"addresses": [each.address], "conditions": {"ready": _ready(each)}} for each in some],
            }


def _ready(server: Server) -> bool:
    return server.state is ServerState.READY and server.weight > 0


def _family(server: Server) -> str:
    try:
        return f"IPv{ipaddress.ip_address(server.address).version}"
    except ValueError:
        return "FQDN"


def _tls(name: str, pool: Pool) -> Iterator[Manifest]:
    """Without it a controller would speak to the servers in the clear."""
    tls = pool.server_tls
    if tls is None:
        return
    validation: dict[str, Any] = {"hostname": tls.server_name}
    if tls.verify is Verify.CA:
        authority = f"{name}-ca"
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": authority}, "data": {"ca.crt": tls.ca}}
        validation["caCertificateRefs"] = [{"group": "", "kind": "ConfigMap", "name": authority}]
    else:
        validation["wellKnownCACertificates"] = "System"
    target = {"group": "", "kind": "Service", "name": name}
    yield {
        "apiVersion": f"{GROUP}/v1",
        "kind": "BackendTLSPolicy",
        "metadata": {"name": name},
        "spec": {"targetRefs": [target], "validation": validation},
    }
