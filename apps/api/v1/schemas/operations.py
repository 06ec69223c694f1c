"""SHOW to machines, written down: what each URL does with each method; the document and the door both read it here.

A query parameter that does not stand here is refused by the door, so what is not written down does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rest_framework import serializers

from apps.api.v1.schemas import platform, pools, progress, traffic, watching, words, writing

Schema = type[serializers.Serializer[Any]]
READ_REFUSALS = (401, 403, 406, 422, 429, 500)
WRITE_REFUSALS = (400, *READ_REFUSALS, 409, 413, 415)
ORIGIN = ("X-Change-Reason", "X-Change-Commit", "X-Change-Pipeline")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of one URL.

    `shown` maps a status to what its body is (None for no body); `query`, `asks` and `tells` name parameters, request
    headers and response headers of parameters.py; `refuses` are the statuses of problems.
    """

    summary: str
    shown: Mapping[int, Schema | None]
    sent: Schema | None = None
    query: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    tells: tuple[str, ...] = ()
    refuses: tuple[int, ...] = READ_REFUSALS
    public: bool = False

    @property
    def statuses(self) -> set[int]:
        """Of answers that refuse nothing."""
        return {*self.shown, *((200,) if "dry_run" in self.query else ())}

    def bodies(self, status: int) -> list[Schema]:
        """What the body of an answer may be: a dry run shows what would be done."""
        found = [shown for shown in (self.shown.get(status),) if shown]
        if status == 200 and "dry_run" in self.query and writing.Applied not in found:
            found.append(writing.Applied)
        return found


def page_of(item: Schema) -> Schema:
    """A page of a list."""
    fields = {
        "items": item(many=True),
        "next_cursor": serializers.CharField(allow_null=True),
        "__doc__": f"A page of a list of {item.__name__}.",
        "__module__": __name__,
    }
    return type(f"{item.__name__}Page", (words.Shown,), fields)


def listing(item: Schema, what: str, *filters: str) -> Operation:
    """GET of a list."""
    return Operation(
        summary=f"List {what}",
        shown={200: page_of(item)},
        query=("limit", "cursor", *filters),
        tells=("Link",),
    )


def detail(item: Schema, what: str, *query: str, version: bool = True) -> Operation:
    """GET of one object."""
    shown: dict[int, Schema | None] = {200: item} | ({304: None} if version else {})
    return Operation(
        summary=f"Read {what}",
        shown=shown,
        query=query,
        asks=("If-None-Match",) if version else (),
        tells=("ETag",) if version else (),
        refuses=(*READ_REFUSALS, 404),
    )


def write(summary: str, shown: Mapping[int, Schema | None], sent: Schema | None = None, *query: str) -> Operation:
    """Something that changes something, with a key, a reason and a dry run."""
    return Operation(
        summary=summary,
        shown=shown,
        sent=sent,
        query=("dry_run", "wait", *query),
        asks=("Idempotency-Key", *ORIGIN),
        tells=("X-Spillway-Generation", "X-Spillway-Live", "Idempotency-Replayed"),
        refuses=WRITE_REFUSALS,
    )


def create(item: Schema, sent: Schema, what: str) -> Operation:
    """POST to a list."""
    made = write(f"Create {what}", {201: item}, sent)
    return replace(made, tells=("ETag", "Location", *made.tells))


def change(
    summary: str, shown: Mapping[int, Schema | None], sent: Schema | None, *query: str, tags: bool = True
) -> Operation:
    """A change of one object in a version that the caller has seen."""
    found = write(summary, shown, sent, *query)
    more = ("ETag", "Location") if tags else ()
    asks, tells = ("If-Match", *found.asks), (*more, *found.tells)
    return replace(found, asks=asks, tells=tells, refuses=(*WRITE_REFUSALS, 404, 412, 428))


def by_name(operation: Operation) -> Operation:
    """The same by name, where PUT may create as well."""
    shown = {**operation.shown, 201: operation.shown[200]}
    return replace(operation, shown=shown, asks=("If-None-Match", *operation.asks))


def remove(what: str) -> Operation:
    """DELETE of one object."""
    return change(f"Delete {what}", {204: None}, None, tags=False)


@dataclass(frozen=True)
class Noun:
    """What is written down of a noun whose objects apply takes."""

    item: Schema
    new: Schema
    changed: Schema
    one: str
    many: str


def optional_name(envelope: Schema) -> Schema:
    """The envelope of a PUT: the URL has the name already, and the body may repeat it."""
    fields = {"name": words.name(required=False), "__doc__": envelope.__doc__, "__module__": __name__}
    return type(envelope.__name__.replace("Envelope", "Replacement"), (envelope,), fields)


def noun(item: Schema, new: Schema, one: str, many: str) -> Noun:
    """With what a PUT takes."""
    return Noun(item, new, optional_name(new), one, many)


ROUTE = noun(traffic.Route, traffic.RouteEnvelope, "a route", "routes")
POOL = noun(pools.Pool, pools.PoolEnvelope, "a pool", "pools")
BY_NAME = ("name", "account")
Table = dict[tuple[str, str], Operation]


def written(noun_name: str, kind: Noun, *filters: str) -> Table:
    """The URLs of a noun whose objects are written one by one."""
    put = change(f"Replace {kind.one}", {200: kind.item}, kind.changed)
    # A plan is shown instead of the object when it is only asked what would be.
    return {
        (f"{noun_name}-list", "GET"): listing(kind.item, kind.many, *filters),
        (f"{noun_name}-list", "POST"): create(kind.item, kind.new, kind.one),
        (f"{noun_name}-detail", "GET"): detail(kind.item, kind.one),
        (f"{noun_name}-detail", "PUT"): put,
        (f"{noun_name}-detail", "DELETE"): remove(kind.one),
        (f"{noun_name}-named", "GET"): detail(kind.item, f"{kind.one} by its name"),
        (f"{noun_name}-named", "PUT"): by_name(replace(put, summary=f"Create or replace {kind.one} by its name")),
        (f"{noun_name}-named", "DELETE"): replace(remove(kind.one), summary=f"Delete {kind.one} by its name"),
    }


def read(noun_name: str, item: Schema, one: str, many: str, *filters: str, version: bool = True) -> Table:
    """The URLs of a noun that is only read."""
    return {
        (f"{noun_name}-list", "GET"): listing(item, many, *filters),
        (f"{noun_name}-detail", "GET"): detail(item, one, version=version),
    }


ENTRIES = (
    *("q", "actor", "token", "account", "kind", "action-word", "object"),
    *("object_id", "request_id", "since", "until"),
)
DRAIN = write("Take a region's traffic away", {200: platform.Region})
OPERATIONS: Table = {
    ("openapi", "GET"): Operation(
        summary="Read this document", shown={200: writing.OpenAPI, 304: None}, refuses=(), public=True
    ),
    **written("routes", ROUTE, "q", "hostname", "account", "pool", "load_balancer", "action"),
    **written("pools", POOL, "name", "account"),
    **read("accounts", platform.Account, "an account", "accounts", "name"),
    **read("regions", platform.Region, "a region", "regions", "name"),
    **read("fleets", platform.Fleet, "a fleet", "fleets", "name", "region"),
    **read("nodes", platform.Node, "a node", "nodes", "name", "fleet"),
    **read("static-ips", platform.StaticIP, "a static IP", "static IPs", "name"),
    **read("certificates", traffic.Certificate, "a certificate", "certificates", *BY_NAME),
    **read("backends", pools.Backend, "a backend", "backends", "account", "pool", "region"),
    **read("servers", pools.Server, "a server", "servers", *BY_NAME, "pool", "region"),
    **read("load-balancers", traffic.LoadBalancer, "a load balancer", "load balancers", "name"),
    **read("listeners", traffic.Listener, "a listener", "listeners", "name", "load_balancer", version=False),
    **read("revisions", progress.Revision, "a revision", "revisions", version=False),
    **read(
        "audit-entries",
        watching.AuditEntry,
        "an entry of the audit record",
        "entries of the audit record",
        *ENTRIES,
        version=False,
    ),
    ("servers-detail", "PATCH"): change(
        "Change the state or the weight of a server", {200: pools.Server}, pools.ServerChange
    ),
    ("pools-limit", "GET"): detail(pools.Backend, "what a pool takes in a region"),
    ("pools-limit", "PATCH"): change(
        "Change what a pool takes in a region", {200: pools.Backend}, pools.LimitChange, "refuse_overload"
    ),
    ("regions-drain", "POST"): replace(DRAIN, refuses=(*DRAIN.refuses, 404)),
    ("regions-undrain", "POST"): replace(DRAIN, summary="Give a region's traffic back", refuses=(*DRAIN.refuses, 404)),
    ("regions-latency", "PUT"): replace(
        DRAIN,
        summary="Set the round trip from a region to another",
        sent=pools.LatencyChange,
        refuses=(*DRAIN.refuses, 404),
    ),
    ("overflow", "GET"): replace(
        detail(progress.FlowAnswer, "the flow of all pools", "at", version=False), refuses=READ_REFUSALS
    ),
    ("pools-overflow", "GET"): detail(progress.FlowAnswer, "the flow of a pool", "at", version=False),
    ("pools-named-overflow", "GET"): detail(progress.FlowAnswer, "the flow of a pool by its name", "at", version=False),
    ("overflow-what-if", "POST"): Operation(
        summary="Ask what would be if",
        shown={200: progress.WhatIf},
        sent=progress.Question,
        refuses=(400, *READ_REFUSALS, 404, 413, 415),
    ),
    ("rollouts-list", "GET"): listing(progress.Rollout, "rollouts"),
    ("rollouts-detail", "GET"): detail(progress.Rollout, "a rollout, at its end with `wait`", "wait", version=False),
    ("apply", "PUT"): write(
        "Make the account what a document says",
        {200: writing.Applied},
        writing.Objects,
        "prune",
        "manager",
        "refuse_overload",
    ),
}


def query_names(operation: Operation) -> list[str]:
    """The words that the query may have; `action-word` is another schema of `action`."""
    return [name.partition("-word")[0] for name in operation.query]


def operation_of(url_name: str, method: str) -> Operation | None:
    """What is written down of a method of a URL; HEAD is GET."""
    return OPERATIONS.get((url_name, "GET" if method == "HEAD" else method))
