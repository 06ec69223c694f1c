"""The examination of a whole snapshot; what passes, what is left out and why, what people should know.

1. Fields of certificates, pools and servers; a bad server leaves its pool without it, a bad pool leaves.
2. Fields and actions of routes, then owners of host names, then twins.
3. Fields of listeners, their certificates and default pools, then ports.
4. Load balancers; one that leaves takes its listeners and routes along. Passes of capacity tests, static IPs.
5. Advice on what is left.

Every rule prefers the older object, so that a newcomer can never push somebody out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_network

from apps.compiler.addresses import own_addresses
from apps.compiler.checks.addresses import check_addresses, check_listeners_of_addresses
from apps.compiler.checks.advice import advise
from apps.compiler.checks.builds import with_possible_http3
from apps.compiler.checks.bypass_tokens import accepted_bypass_tokens
from apps.compiler.checks.examination import Examination, Notes
from apps.compiler.checks.fields import (
    accepted_settings,
    check_certificate,
    check_listener,
    check_load_balancer,
    check_pool,
    check_route,
    check_server,
)
from apps.compiler.checks.listeners import (
    check_listener_use,
    check_ports,
    with_known_certificates,
    with_known_pools,
)
from apps.compiler.checks.policies import check_rules
from apps.compiler.checks.routes import check_action, check_loops, check_owners, check_twins
from apps.compiler.checks.servers import check_client_certificate
from apps.compiler.model.fleet import Pool, Snapshot
from apps.compiler.model.shared import Certificate, LoadBalancer
from apps.compiler.portability import haproxy
from apps.compiler.portability.incompatibilities import Named


def examine(snapshot: Snapshot) -> Examination[Snapshot]:
    """Apply all checks; never raises for what a definition says."""
    notes = Notes()
    notes.refuse_unreadable(snapshot.unreadable)
    notes.refuse_twins(_everything(snapshot))
    certificates = _accepted_certificates(notes, snapshot)
    pools = _accepted_pools(notes, snapshot, certificates)
    _check_routes(notes, snapshot, pools)
    check_addresses(notes, snapshot)
    check_listeners_of_addresses(notes, snapshot)
    fronts = _accepted_fronts(notes, snapshot, pools, certificates)
    accepted = replace(
        snapshot,
        load_balancers=fronts,
        pools=tuple(pools.values()),
        certificates=tuple(certificates.values()),
        bypass_tokens=accepted_bypass_tokens(notes, snapshot.bypass_tokens, pools),
        addresses=notes.kept(snapshot.addresses),
        node_settings=accepted_settings(notes, snapshot),
    )
    advise(notes, accepted)
    return notes.examined(accepted)


def _everything(snapshot: Snapshot) -> Iterator[Named]:
    yield from snapshot.certificates
    yield from snapshot.addresses
    for pool in snapshot.pools:
        yield pool
        yield from pool.servers
    for front in snapshot.load_balancers:
        yield front
        yield from front.listeners
        yield from front.routes


def _accepted_certificates(notes: Notes, snapshot: Snapshot) -> dict[str, Certificate]:
    for certificate in snapshot.certificates:
        check_certificate(notes, certificate)
    return {each.id: each for each in notes.kept(snapshot.certificates)}


def _accepted_pools(notes: Notes, snapshot: Snapshot, certificates: dict[str, Certificate]) -> dict[str, Pool]:
    walls = {
        "local_development": snapshot.local_development,
        "own": own_addresses(
            snapshot.own_addresses, {route.hostname for front in snapshot.load_balancers for route in front.routes}
        ),
        "private": tuple(map(ip_network, snapshot.private_networks)),
    }
    for pool in snapshot.pools:
        check_pool(notes, pool, (pool.limit, *(share.limit for share in pool.elsewhere)))
        check_client_certificate(notes, pool, certificates)
        for server in pool.servers:
            check_server(notes, server, **walls)
    return {pool.id: replace(pool, servers=notes.kept(pool.servers)) for pool in notes.kept(snapshot.pools)}


def _check_routes(notes: Notes, snapshot: Snapshot, pools: dict[str, Pool]) -> None:
    for front in snapshot.load_balancers:
        for route in front.routes:
            check_route(notes, route)
            check_action(notes, route, pools)
            for each in haproxy.unsupported_in_route(route):
                notes.refuse(each.finding)
        check_rules(notes, front)
    check_owners(notes, notes.kept(route for front in snapshot.load_balancers for route in front.routes))
    for front in snapshot.load_balancers:
        check_twins(notes, front)
        check_loops(notes, front)


def _accepted_fronts(
    notes: Notes, snapshot: Snapshot, pools: dict[str, Pool], certificates: dict[str, Certificate]
) -> tuple[LoadBalancer, ...]:
    fronts = []
    for front in snapshot.load_balancers:
        check_load_balancer(notes, front)
        listeners = tuple(with_known_pools(notes, each, pools) for each in front.listeners)
        for listener in listeners:
            check_listener(notes, listener, front)
            check_listener_use(notes, listener, pools)
        listeners = tuple(with_known_certificates(notes, listener, certificates) for listener in listeners)
        listeners = tuple(with_possible_http3(notes, listener, snapshot.builds) for listener in listeners)
        fronts.append(replace(front, listeners=listeners))
    check_ports(
        notes, snapshot.load_balancers, lambda _front, each: each.address or "each node's own address", named=True
    )
    return tuple(map(notes.kept_of, notes.kept(fronts)))
