"""What each noun looks like, field by field, so nothing slips out by being added to a row."""

from __future__ import annotations

from typing import Any

from apps.accounts.actors import Actor
from apps.accounts.hostnames import verification
from apps.accounts.hostnames.claims import state_of
from apps.accounts.models import Account, Hostname
from apps.api.v1.schemas import writing
from apps.api.v1.schemas.nouns import people, pools, traffic
from apps.calendars import describe as when_in_words
from apps.core.clock import now
from apps.definitions.freezing.timing import timing_of
from apps.definitions.issuing.orders import in_words
from apps.definitions.models import Backend, Certificate, CertificateOrder, Listener, LoadBalancer, Pool, Server, Zone
from apps.definitions.reading.describing import KIND_OF_MODEL, describe
from apps.definitions.services import (
    KINDS,
    Change,
    DryRun,
    Plan,
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
            "order": _order(row),
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


def _order(row: Certificate) -> Shape | None:
    """How an automatic certificate stands, in a word and a sentence; None where somebody brought it."""
    if not row.automatic:
        return None
    state, message = in_words(row, now())
    order: CertificateOrder | None = getattr(row, "order", None)
    return {
        "state": state,
        "message": message,
        "authority": order.issued_by or None if order else None,
        "issued_at": order.issued_at if order else None,
        "renew_at": order.renew_at if order else None,
        "failures": order.failures if order else 0,
    }


def _for_customers(listener: Shape) -> Shape:
    return {key: listener[key] for key in ("name", "protocol", "port", "static_ip")}


def listener(row: Listener, actor: Actor) -> Shape:
    """A port of a load balancer; certificates and pools of others are not shown to customers."""
    if not actor.is_operator:
        return traffic.Listener.of(row)
    certificates = [f"{entry.account.name}/{entry.name}" for entry in row.certificates.all()]
    pool = row.default_pool
    default_pool = f"{pool.account.name}/{pool.name}" if pool else None
    return traffic.Listener.of(row, certificates=certificates, default_pool=default_pool)


def backend(row: Backend, _: Actor) -> Shape:
    """A pool's share in a region, with where its limit came from; its version is that of the pool."""
    return pools.Backend.of(row, limit=pools.StoredLimit.of(row))


def server(row: Server, _: Actor) -> Shape:
    """A server; its version is that of its pool, whose document it is part of."""
    return pools.Server.of(row)


def hostname(row: Hostname, _: Actor) -> Shape:
    """A claimed name: how it stands, and what verifies it. `url` is null for a wildcard, which has no one server."""
    challenge = {
        "txt_name": verification.txt_name(row.name),
        "txt_value": verification.txt_value(row.challenge),
        "url": verification.http_url(row.name, row.challenge) or None,
        "token": row.challenge,
    }
    return people.Hostname.of(row, state=state_of(row), verification=row.verification or None, challenge=challenge)


def change(entry: Change) -> Shape:
    """One line of a plan."""
    return writing.Change.of(entry, account=entry.account or None)


def plan(found: Plan, preview: DryRun[Any] | None = None) -> Shape:
    """What was done or would be done, object by object; of a dry run also what fleets, stacks and zones would be."""
    return {
        "stored": found.stored,
        "counts": found.counts,
        "changes": [change(entry) for entry in found.changes],
        "generations": found.generations,
        "fleets": [writing.FleetDifference.of(entry) for entry in preview.fleets] if preview else [],
        "stacks": [stack(entry) for entry in preview.stacks] if preview else [],
        "zones": [zone(entry) for entry in preview.zones] if preview else [],
        "kept": list(found.kept),
    }


def stack(entry: StackDifference) -> Shape:
    """What a plan of one stack would hold; to customers what the cloud makes of their own objects, and nothing else."""
    uncounted = {} if entry.decision is not None else dict.fromkeys(("to_add", "to_change", "to_replace", "to_delete"))
    return writing.StackDifference.of(entry, stack=entry.stack or None, **uncounted)


def zone(entry: ZoneDifference) -> Shape:
    """Which records of one zone would be served otherwise."""
    return writing.ZoneDifference.of(entry, zone=f"{entry.account}/{entry.zone}")
