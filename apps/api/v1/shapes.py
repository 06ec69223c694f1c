"""What each noun looks like, field by field, so nothing slips out by being added to a row."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.accounts.hostnames import verification
from apps.accounts.hostnames.claims import state_of
from apps.accounts.models import Account, Hostname
from apps.calendars import describe as when_in_words
from apps.definitions.freezing.timing import timing_of
from apps.definitions.models import Backend, Listener, LoadBalancer, Pool, Server, Zone
from apps.definitions.reading.describing import KIND_OF_MODEL, describe
from apps.definitions.services import (
    KINDS,
    Change,
    DryRun,
    FleetDifference,
    Plan,
    RecordDifference,
    StackDifference,
    ZoneDifference,
)
from apps.definitions.values.record_values import full_name
from apps.fleet.models import StaticIP

Shape = dict[str, Any]

URLS = {kind: entry.noun for kind, entry in KINDS.items()}


def kind_of(row: Any) -> str:
    """The kind of an object by its row."""
    return KIND_OF_MODEL[type(row)]


def url_of(kind: str, pk: int) -> str:
    """Where an object is read."""
    return f"/api/v1/{URLS[kind]}/{pk}"


def definition(row: Any, actor: Actor) -> Shape:
    """Any object that `apply` takes, with its id, version and who manages it."""
    kind = kind_of(row)
    owner = row if isinstance(row, Account) else row.account
    spec = describe(row)
    if isinstance(row, LoadBalancer) and not actor.is_operator:
        spec["listeners"] = [_for_customers(entry) for entry in spec["listeners"]]
    if isinstance(row, Pool) and not actor.is_operator and owner.pk != actor.account.pk:
        spec["tags"] = {}  # with whom else a pool is shared is nobody else's business
    if isinstance(row, Zone) and not actor.is_operator:
        spec = {"domain": spec["domain"]}  # neither who serves it nor with which key
    if isinstance(row, StaticIP) and not actor.is_operator:
        spec |= {"pool": None, "stack": None, "router_id": None}
    found: Shape = {
        "kind": kind,
        "id": row.pk,
        "name": row.name,
        "account": owner.name,
        "version": row.version,
        "manager": row.manager,
        "url": url_of(kind, row.pk),
        "spec": spec,
    }
    return found | _facts(kind, row)


def _facts(kind: str, row: Any) -> Shape:
    """What Spillway knows beyond the specification."""
    if kind == "Certificate":
        return {
            "hostnames": row.hostnames,
            "fingerprint": row.fingerprint,
            "not_before": row.not_before,
            "not_after": row.not_after,
        }
    if kind == "Route":
        # A route of a name that its account has not verified is kept and not served.
        return {"serving": bool(row.hostname.verification), "hostname_id": row.hostname_id}
    if kind == "Schedule":
        return {"sentence": when_in_words(timing_of(row)), "next_at": row.next_at, "missed": row.missed}
    if kind == "StaticIP":
        users = [entry.load_balancer.name for entry in row.listeners.all()]
        own = [row.address] if row.address else []
        return {"addresses": row.addresses or own, "load_balancer": users[0] if users else None}
    if kind == "Record":
        return {"full_name": full_name(row.label, row.zone.domain)}
    if kind in ("Fleet", "Stack", "Zone"):
        return {"desired_generation": row.desired_generation}
    if kind == "Region":
        measured = [each for each in row.latencies.all() if each.measured_ms is not None]
        return {
            "measured_latency": [
                {"to": each.to_region.name, "ms": each.measured_ms, "at": each.measured_at} for each in measured
            ]
        }
    return {}


def _for_customers(listener: Shape) -> Shape:
    return {key: listener[key] for key in ("name", "protocol", "port", "static_ip")}


def listener(row: Listener, actor: Actor) -> Shape:
    """A port of a load balancer; certificates and pools of others are not shown to customers."""
    found: Shape = {
        "id": row.pk,
        "name": row.name,
        "load_balancer": row.load_balancer.name,
        "protocol": row.protocol,
        "port": row.port,
        "static_ip": row.static_ip.name if row.static_ip else None,
    }
    if actor.is_operator:
        certificates = [f"{entry.account.name}/{entry.name}" for entry in row.certificates.all()]
        pool = row.default_pool
        found |= {"certificates": certificates, "default_pool": f"{pool.account.name}/{pool.name}" if pool else None}
    return found


def backend(row: Backend, _: Actor) -> Shape:
    """A pool's share in a region, with where its limit came from; its version is that of the pool."""
    return {
        "id": row.pk,
        "account": row.account.name,
        "pool": row.pool.name,
        "pool_id": row.pool_id,
        "region": row.region.name,
        "limit": {
            "kind": row.limit_kind,
            "value": row.limit_value,
            "scope": row.limit_scope,
            "set_by": row.limit_set_by,
            "set_at": row.limit_set_at,
            "measured_by": row.limit_measured_by,
        },
        "capacity_scaler": row.capacity_scaler,
        "servers": [_server_fields(entry) for entry in row.servers.all()],
        "version": row.pool.version,
    }


def _server_fields(row: Server) -> Shape:
    return {
        "id": row.pk,
        "name": row.name,
        "address": row.address,
        "port": row.port,
        "weight": row.weight,
        "state": row.state,
    }


def server(row: Server, _: Actor) -> Shape:
    """A server; its version is that of its pool, whose document it is part of."""
    return _server_fields(row) | {
        "account": row.account.name,
        "pool": row.backend.pool.name,
        "pool_id": row.backend.pool_id,
        "backend_id": row.backend_id,
        "region": row.backend.region.name,
        "version": row.backend.pool.version,
    }


def hostname(row: Hostname, _: Actor) -> Shape:
    """A claimed name: how it stands, and what verifies it. `url` is null for a wildcard, which has no one server."""
    return {
        "id": row.pk,
        "name": row.name,
        "account": row.account.name,
        "state": state_of(row),
        "verification": row.verification or None,
        "verified_at": row.verified_at,
        "challenge": {
            "txt_name": verification.txt_name(row.name),
            "txt_value": verification.txt_value(row.challenge),
            "url": verification.http_url(row.name, row.challenge) or None,
            "token": row.challenge,
        },
        "checked_at": row.checked_at,
        "last_check_message": row.last_check_message,
        "released_at": row.released_at,
        "version": row.version,
        "created_at": row.created_at,
    }


def change(entry: Change) -> Shape:
    """One line of a plan."""
    fields = [{"path": field.path, "before": field.before, "after": field.after} for field in entry.fields]
    head = {"action": entry.action, "kind": entry.kind, "account": entry.account or None, "name": entry.name}
    return head | {"fields": fields}


def plan(found: Plan, preview: DryRun[Any] | None = None) -> Shape:
    """What was done or would be done, object by object; of a dry run also what fleets, stacks and zones would be."""
    return {
        "stored": found.stored,
        "counts": found.counts,
        "changes": [change(entry) for entry in found.changes],
        "generations": found.generations,
        "fleets": [fleet(entry) for entry in preview.fleets] if preview else [],
        "stacks": [stack(entry) for entry in preview.stacks] if preview else [],
        "zones": [zone(entry) for entry in preview.zones] if preview else [],
        "kept": list(found.kept),
    }


def fleet(entry: FleetDifference) -> Shape:
    """What one fleet would run instead: sentences, a unified difference of its files, and warnings."""
    return {
        "fleet": entry.fleet,
        "changes": list(entry.changes),
        "rendered": entry.rendered,
        "warnings": list(entry.warnings),
    }


def stack(entry: StackDifference) -> Shape:
    """What a plan of one stack would hold; to customers what the cloud makes of their own objects, and nothing else."""
    known = entry.decision is not None
    return {
        "stack": entry.stack or None,
        "target": entry.target,
        "to_add": entry.to_add if known else None,
        "to_change": entry.to_change if known else None,
        "to_replace": entry.to_replace if known else None,
        "to_delete": entry.to_delete if known else None,
        "changes": list(entry.changes),
        "refused": list(entry.refused),
        "warnings": list(entry.warnings),
        "decision": entry.decision,
        "reason": entry.reason,
    }


def zone(entry: ZoneDifference) -> Shape:
    """Which records of one zone would be served otherwise."""
    return {
        "zone": f"{entry.account}/{entry.zone}",
        "domain": entry.domain,
        "changes": [_record(each) for each in entry.changes],
        "more": entry.more,
        "warnings": list(entry.warnings),
    }


def _record(entry: RecordDifference) -> Shape:
    sides = {
        name: {"ttl": side.ttl, "values": list(side.values)} if side else None
        for name, side in (("before", entry.before), ("after", entry.after))
    }
    return {"action": entry.action, "name": entry.name, "type": entry.type} | sides | {"note": entry.note}
