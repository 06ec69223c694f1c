"""What listeners must satisfy together: one port each, certificates that are there, a fitting default pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from apps.compiler.checks.examination import Notes
from apps.compiler.model.fleet import Certificate, Listener, Pool, Protocol, Snapshot
from apps.compiler.routing import number_of


def check_ports(notes: Notes, snapshot: Snapshot) -> None:
    """An address and port belong to the oldest listener; two processes on one port would take turns unseen."""
    taken: dict[tuple[str | None, object], Listener] = {}
    listeners = [listener for front in snapshot.load_balancers for listener in front.listeners]
    for listener in sorted(
        (each for each in listeners if not notes.is_out(each.id)), key=lambda each: number_of(each.id)
    ):
        first = taken.setdefault((listener.address, listener.port), listener)
        if first is not listener:
            where = listener.address or "each node's own address"
            message = f"Choose another port; {first.label} already listens on {where} port {listener.port}."
            notes.quarantine(listener, "port_twice", message, "port")


def check_listener_use(notes: Notes, listener: Listener, pools: Mapping[str, Pool]) -> None:
    """A tcp listener needs a tcp pool; an http one may have an http pool for requests without a route."""
    is_tcp = listener.protocol is Protocol.TCP
    pool = pools.get(listener.default_pool_id or "")
    if pool is None or notes.is_out(pool.id):
        if is_tcp or listener.default_pool_id:
            message = "Choose a default pool that is there; it is missing or left out."
            notes.quarantine(listener, "unknown_pool", message, "default_pool_id")
    elif is_tcp != (pool.protocol is Protocol.TCP):
        message = f"Choose a default pool of the listener's own protocol; {pool.label} speaks {pool.protocol}."
        notes.quarantine(listener, "pool_protocol", message, "default_pool_id")


def with_known_certificates(notes: Notes, listener: Listener, certificates: Mapping[str, Certificate]) -> Listener:
    """The listener without certificates that are missing or left out; one that is left with none is left out itself."""
    if listener.protocol is not Protocol.HTTPS:
        return replace(listener, certificate_ids=()) if listener.certificate_ids else listener
    known = tuple(key for key in listener.certificate_ids if key in certificates and not notes.is_out(key))
    if not known:
        notes.quarantine(
            listener, "no_certificate", "Give the https listener at least one valid certificate.", "certificate_ids"
        )
    elif len(known) < len(listener.certificate_ids):
        missing = ", ".join(key for key in listener.certificate_ids if key not in known)
        notes.warn(listener, "certificate_missing", f"Replace {missing}: missing or left out.", "certificate_ids")
    return replace(listener, certificate_ids=known)
