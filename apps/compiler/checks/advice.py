"""What works but is worth a warning."""

from __future__ import annotations

from collections.abc import Iterable

from apps.compiler.checks.builds import warn_of_older_nodes
from apps.compiler.checks.examination import Notes
from apps.compiler.client_limits import clients_of, is_limit, memory_bytes, of_connections
from apps.compiler.matching.clients import is_required, wildcard_of
from apps.compiler.model.fleet import Pool, Snapshot
from apps.compiler.model.policy import ClientLimit
from apps.compiler.model.servers import Verify
from apps.compiler.model.shared import Certificate, Listener, LoadBalancer, Protocol, ServerState
from apps.compiler.routing import as_served_by

# Idle connections are closed before servers that wait at least so long do it (targets/haproxy/pools.py).
LEAST_KEEPALIVE_MS = 160
# More than what the default takes in a region of four nodes.
MUCH_MEMORY = 200_000_000


def advise(notes: Notes, snapshot: Snapshot) -> None:
    """Look at the accepted snapshot as a whole."""
    for pool in snapshot.pools:
        _advise_on_pool(notes, pool)
    nodes = next((len(region.nodes) for region in snapshot.regions if region.id == snapshot.region_id), 1)
    for front in snapshot.load_balancers:
        if not front.listeners:
            notes.warn(front, "no_listener", "Add a listener; clients cannot reach this load balancer.")
        _advise_on_limits(notes, front, nodes)
        warn_of_older_nodes(notes, front, snapshot.builds)
        for listener in front.listeners:
            _advise_on_open_hosts(notes, front, listener)
            _advise_on_names(notes, listener, snapshot.certificates)


def _advise_on_open_hosts(notes: Notes, front: LoadBalancer, listener: Listener) -> None:
    """A host that needs a client certificate at one listener is worth nothing where another one serves it without."""
    if listener.protocol is Protocol.TCP:
        return
    open_hosts = {
        route.hostname
        for route in as_served_by(front, listener.protocol).routes
        if route.redirect is None and not is_required(listener, route.hostname)
    }
    named = sorted(host for host in open_hosts if any(is_required(other, host) for other in front.listeners))
    if named:
        message = (
            f"{named[0]} needs a client certificate at another listener and is served here without one; "
            "let the routes of this scheme redirect, or ask for certificates here as well."
        )
        notes.warn(listener, "client_certificates", message, "client_certificates")


def _advise_on_names(notes: Notes, listener: Listener, certificates: Iterable[Certificate]) -> None:
    """Clients that ask for a name of no certificate are rejected before its route is looked up."""
    if not listener.ends_tls or listener.default_certificate_id is not None:
        return
    names = {name for each in certificates if each.id in listener.certificate_ids for name in each.hostnames}
    covered = names | {wildcard_of(name) for name in names}
    ended = (each.hostname for each in listener.sni_routes if not each.passthrough)
    missing = [name for name in ended if name not in covered and wildcard_of(name) not in names]
    if missing:
        message = (
            f"No certificate of the listener covers {', '.join(missing)}: clients that request it are rejected. "
            "Name a certificate that does, or a default certificate."
        )
        notes.warn(listener, "name_without_certificate", message, "sni_routes")


def _advise_on_limits(notes: Notes, front: LoadBalancer, nodes: int) -> None:
    """Each different limit has room for its clients, whoever follows it; the first route of each is told."""
    sets = {each.id: each.rules.client_limit for each in front.rule_sets}
    told: set[ClientLimit] = set()
    for route in front.routes:
        said = sets.get(route.rule_set)
        if said is None or not is_limit(said) or said in told:
            continue
        told.add(said)
        if memory_bytes(said, nodes) > MUCH_MEMORY:
            notes.warn(route, "limit_memory", _much_memory(said, nodes), "rules.client_limit.clients")
    for listener in front.listeners:
        if listener.client_limit and memory_bytes(of := of_connections(listener.client_limit), nodes) > MUCH_MEMORY:
            notes.warn(listener, "limit_memory", _much_memory(of, nodes), "client_limit.clients")


def _much_memory(said: ClientLimit, nodes: int) -> str:
    return (
        f"Lower the clients that are counted at once: {clients_of(said)} over {nodes} nodes may take "
        f"{memory_bytes(said, nodes) // 1_000_000} MB on each node."
    )


def _advise_on_pool(notes: Notes, pool: Pool) -> None:
    if not pool.servers and not pool.elsewhere:
        notes.warn(pool, "no_servers", "Add a server in this region; the pool responds with 503.", "servers")
    elif pool.servers and not any(server.state is ServerState.READY and server.weight > 0 for server in pool.servers):
        notes.warn(
            pool, "no_server_ready", "Make a server ready; all are drained, in maintenance or of weight 0.", "servers"
        )
    if pool.server_tls is not None and pool.server_tls.verify is Verify.NONE:
        message = "Choose verify: system or ca; without it, anyone on the network path can impersonate the servers."
        notes.warn(pool, "tls_not_verified", message, "server_tls.verify")
    keepalive = pool.server_keepalive_ms
    if keepalive is not None and keepalive < LEAST_KEEPALIVE_MS:
        message = (
            f"Raise the servers' keep-alive timeout to {LEAST_KEEPALIVE_MS} ms or more; "
            "otherwise requests that cannot be repeated may be lost when the server closes the connection."
        )
        notes.warn(pool, "keepalive_race", message, "server_keepalive_ms")
