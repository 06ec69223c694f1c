"""What listeners must satisfy together: one port each, certificates that are there, a fitting default pool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from apps.compiler.checks.examination import Notes
from apps.compiler.model.shared import AnyPool, Certificate, Listener, LoadBalancer, Protocol
from apps.compiler.routing import number_of

AddressOf = Callable[[LoadBalancer, Listener], str | None]
"""Where a listener of the load balancer listens; None where that is not asked."""


def check_ports(notes: Notes, fronts: Iterable[LoadBalancer], address_of: AddressOf, *, named: bool) -> None:
    """An address and port belong to the oldest listener; two processes on one port would take turns unseen."""
    taken: dict[tuple[str, object], Listener] = {}
    pairs = [(front, listener) for front in fronts for listener in notes.kept(front.listeners)]
    for front, listener in sorted(pairs, key=lambda pair: number_of(pair[1].id)):
        address = address_of(front, listener)
        first = taken.setdefault((address, listener.port), listener) if address is not None else listener
        if first is not listener:
            where = f"{address} port {listener.port}" if named else listener.port
            message = f"Choose another port; {first.label} already listens on {where}."
            notes.quarantine(listener, "port_twice", message, "port")


def check_listener_use(notes: Notes, listener: Listener, pools: Mapping[str, AnyPool]) -> None:
    """A tcp listener needs a tcp pool; an http one may have an http pool for requests without a route."""
    is_tcp = listener.protocol is Protocol.TCP
    pool = pools.get(listener.default_pool_id or "")
    if pool is None or notes.is_out(pool.id):
        if (is_tcp and not listener.connection_routes) or listener.default_pool_id:
            message = "Choose an existing default pool; this one is missing or left out."
            notes.quarantine(listener, "unknown_pool", message, "default_pool_id")
    elif is_tcp != (pool.protocol is Protocol.TCP):
        message = f"Choose a default pool of the listener's own protocol; {pool.label} speaks {pool.protocol}."
        notes.quarantine(listener, "pool_protocol", message, "default_pool_id")


def with_known_pools(notes: Notes, listener: Listener, pools: Mapping[str, AnyPool]) -> Listener:
    """The listener without routes of connections to pools that are missing, left out or not tcp pools."""
    lost = tuple(each for each in listener.connection_routes if not _passes_on(notes, pools.get(each.pool_id)))
    for name, routes in (("sni_routes", listener.sni_routes), ("protocol_routes", listener.protocol_routes)):
        if names := ", ".join(each.said for each in routes if each in lost):
            message = f"Choose other pools for {names}: missing, left out or not tcp pools."
            notes.warn(listener, "unknown_pool", message, name)
    return replace(
        listener,
        sni_routes=tuple(each for each in listener.sni_routes if each not in lost),
        protocol_routes=tuple(each for each in listener.protocol_routes if each not in lost),
    )


def _passes_on(notes: Notes, pool: AnyPool | None) -> bool:
    return pool is not None and not notes.is_out(pool.id) and pool.protocol is Protocol.TCP


def with_known_certificates(notes: Notes, listener: Listener, certificates: Mapping[str, Certificate]) -> Listener:
    """The listener without certificates that are missing or left out; one that is left with none is left out itself."""
    if not listener.speaks_tls:
        return replace(listener, certificate_ids=()) if listener.certificate_ids else listener
    known = tuple(key for key in listener.certificate_ids if key in certificates and not notes.is_out(key))
    if not known:
        notes.quarantine(
            listener,
            "no_certificate",
            f"Give the {listener.protocol} listener at least one valid certificate.",
            "certificate_ids",
        )
    elif len(known) < len(listener.certificate_ids):
        missing = ", ".join(key for key in listener.certificate_ids if key not in known)
        notes.warn(listener, "certificate_missing", f"Replace {missing}: missing or left out.", "certificate_ids")
    default = listener.default_certificate_id
    if default is not None and default not in known:
        missing = "Replace the default certificate: missing or left out. Clients without a known name are rejected."
        notes.warn(listener, "certificate_missing", missing, "default_certificate_id")
        default = None
    return replace(listener, certificate_ids=known, default_certificate_id=default)
