"""What an operation is made of, and the usual ones: list, read, create, change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, cast

from rest_framework import serializers

from apps.api.v1.schemas import envelopes, words, writing
from apps.api.v1.schemas.derived import serializer_of
from apps.definitions.shapes.kinds import SHAPES

Schema = type[serializers.Serializer[Any]]
NOTHING: Mapping[int, Schema | None] = MappingProxyType({})
READ_REFUSALS = (401, 403, 405, 406, 414, 422, 429, 500)
WRITE_REFUSALS = (400, *READ_REFUSALS, 409, 413, 415)
MANAGED = ("break_glass", "manager")
PATCH = "What changes of the spec: objects are merged, null clears, everything else replaces (RFC 7396)."
ORIGIN = ("X-Change-Reason", "X-Change-Commit", "X-Change-Pipeline")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of one URL.

    `shown` maps a status to what its body is (None for no body); `query`, `asks` and `tells` name parameters, request
    headers and response headers of parameters.py; `refuses` are the statuses of problems; `planned` is what a
    dry run shows; `media` are the types of an answer that is a file.
    """

    summary: str
    shown: Mapping[int, Schema | None]
    sent: Schema | None = None
    query: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    tells: tuple[str, ...] = ()
    refuses: tuple[int, ...] = READ_REFUSALS
    planned: Schema = writing.Applied
    public: bool = False
    media: tuple[str, ...] = ()

    @property
    def asks_why(self) -> bool:
        """Whether it takes a reason."""
        return "X-Change-Reason" in self.asks

    @property
    def statuses(self) -> set[int]:
        """Of answers that refuse nothing."""
        return {*self.shown, *((200,) if "dry_run" in self.query else ())}

    def bodies(self, status: int) -> list[Schema]:
        """What the body of an answer may be: a dry run shows what would be done."""
        found = [shown for shown in (self.shown.get(status),) if shown]
        if status == 200 and "dry_run" in self.query and self.planned not in found:
            found.append(self.planned)
        return found


Table = dict[tuple[str, str], Operation]


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
        tells=("X-Spillway-Generation", "X-Spillway-Live", "X-Spillway-Waits-For", "Idempotency-Replayed"),
        refuses=WRITE_REFUSALS,
    )


def create(item: Schema, sent: Schema, what: str, more: Mapping[int, Schema | None] = NOTHING) -> Operation:
    """POST to a list."""
    made = write(f"Create {what}", {201: item, **more}, sent)
    return replace(made, tells=("ETag", "Location", *made.tells))


def change(
    summary: str, shown: Mapping[int, Schema | None], sent: Schema | None, *query: str, tags: bool = True
) -> Operation:
    """A change of one object in a version that the caller has seen."""
    found = write(summary, shown, sent, *query)
    more = ("ETag", "Location") if tags else ()
    asks, tells = ("If-Match", *found.asks), (*more, *found.tells)
    return replace(found, asks=asks, tells=tells, refuses=(*WRITE_REFUSALS, 404, 412, 428))


def of_one(summary: str, shown: Mapping[int, Schema | None], sent: Schema | None = None) -> Operation:
    """Something that is done to one object, whichever version it has."""
    found = at_once(write(summary, shown, sent))
    return replace(found, refuses=(*found.refuses, 404))


def at_once(operation: Operation) -> Operation:
    """The same where nothing has to travel to nodes, and a dry run would say nothing."""
    query = tuple(name for name in operation.query if name not in ("wait", "dry_run"))
    tells = tuple(name for name in operation.tells if not name.startswith("X-Spillway-"))
    return replace(operation, query=query, tells=tells)


def managed(operation: Operation) -> Operation:
    """The same for what a pipeline may manage."""
    return replace(operation, query=(*operation.query, *MANAGED))


def keeping(table: Table) -> Table:
    """The same where some of what is sent may belong to capacity runs, and stays."""
    return {
        key: replace(each, query=(*each.query, "take_over"), tells=("X-Spillway-Kept", *each.tells))
        if key[1] in ("PUT", "PATCH")
        else each
        for key, each in table.items()
    }


def by_name(operation: Operation) -> Operation:
    """The same by name, where PUT may create as well."""
    shown = {**operation.shown, 201: operation.shown[200]}
    return replace(operation, shown=shown, asks=("If-None-Match", *operation.asks))


def remove(what: str) -> Operation:
    """DELETE of one object."""
    return change(f"Delete {what}", {204: None}, None, tags=False)


@dataclass(frozen=True)
class Noun:
    """What is written down of a kind: how it is shown, what POST, PUT and PATCH take, and its name as one and many."""

    item: Schema
    new: Schema
    changed: Schema
    patched: Schema
    one: str
    many: str


def noun(
    kind: str,
    one: str,
    many: str,
    *,
    about: str = "",
    base: Schema = envelopes.Definition,
    facts: Schema | None = None,
) -> Noun:
    """The schemas of a kind, made of its shape; `facts` is what Spillway knows beside the spec."""
    spec, its_name = serializer_of(cast("Any", SHAPES[kind])), one.partition(" ")[2]
    its_kind = {"kind": words.word([kind]), "spec": spec()}
    item = _schema(kind, base, about or f"{one[0].upper()}{one[1:]}.", its_kind)
    sent = {"kind": words.word([kind], required=False), "name": words.name(), "spec": spec()}
    new = _schema(f"{kind}Envelope", envelopes.Envelope, f"A new {its_name}.", sent)
    optional = {"name": words.name(required=False)}  # the URL has the name already, and the body may repeat it
    return Noun(
        item=_schema(kind, item, item.__doc__, facts().get_fields()) if facts else item,
        new=new,
        changed=_schema(f"{kind}Replacement", new, new.__doc__, optional),
        patched=_schema(f"{kind}Patch", new, PATCH, {**optional, "spec": serializers.DictField()}),
        one=one,
        many=many,
    )


def _schema(name: str, base: Schema, about: str | None, fields: Mapping[str, Any]) -> Schema:
    return type(name, (base,), {**fields, "__doc__": about, "__module__": __name__})


def written(noun_name: str, kind: Noun, *filters: str) -> Table:
    """The URLs of a noun whose objects are written one by one."""
    put = change(f"Replace {kind.one}", {200: kind.item}, kind.changed, *MANAGED, "confirm")
    patch = change(f"Change {kind.one}", {200: kind.item}, kind.patched, *MANAGED, "confirm")
    delete = change(f"Delete {kind.one}", {204: None}, None, *MANAGED, "confirm", tags=False)
    # A plan is shown instead of the object when it is only asked what would be.
    return {
        (f"{noun_name}-list", "GET"): listing(kind.item, kind.many, *filters),
        (f"{noun_name}-list", "POST"): managed(create(kind.item, kind.new, kind.one)),
        (f"{noun_name}-detail", "GET"): detail(kind.item, kind.one),
        (f"{noun_name}-detail", "PUT"): put,
        (f"{noun_name}-detail", "PATCH"): patch,
        (f"{noun_name}-detail", "DELETE"): delete,
        (f"{noun_name}-named", "GET"): detail(kind.item, f"{kind.one} by its name"),
        (f"{noun_name}-named", "PUT"): by_name(replace(put, summary=f"Create or replace {kind.one} by its name")),
        (f"{noun_name}-named", "PATCH"): replace(patch, summary=f"Change {kind.one} by its name"),
        (f"{noun_name}-named", "DELETE"): replace(delete, summary=f"Delete {kind.one} by its name"),
    }


def read(noun_name: str, item: Schema, one: str, many: str, *filters: str, version: bool = True) -> Table:
    """The URLs of a noun that is only read."""
    return {
        (f"{noun_name}-list", "GET"): listing(item, many, *filters),
        (f"{noun_name}-detail", "GET"): detail(item, one, version=version),
    }
