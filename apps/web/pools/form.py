"""The form of a pool; every field is named by its JSON pointer, so a refusal finds its field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from django import forms
from django.http import QueryDict

from apps.accounts.actors import Actor
from apps.core.errors import Invalid
from apps.definitions.models import Pool
from apps.definitions.previewing.capabilities import Standing
from apps.definitions.reading.describing import describe
from apps.definitions.shapes.base.fields import field_at, fields_of
from apps.definitions.shapes.base.words import as_texts
from apps.definitions.shapes.traffic.pool import BackendSpec, LimitSpec, Overflow, PoolSpec, ServerSpec
from apps.fleet.models import Region
from apps.web.capabilities.notes import LEADS, SPARE, Note, note_fields, path_of
from apps.web.kit.edit_conflicts import remember
from apps.web.kit.shape_fields import Text, as_number, ask_for_owner, form_field, pairs, plain_fields, typed, written
from apps.web.kit.shape_forms import Group
from apps.web.pools.servers import (
    CHECK,
    OBJECTS,
    WAY,
    object_fields,
    object_of,
    parts,
    says_something,
    text_of,
    texts_of_object,
)

Texts = dict[str, str]
MODE, WHEN_FULL, ORDER = "/spec/overflow/mode", "/spec/overflow/when_full", "/spec/overflow/order"
_DETAILS = ("host", "headers", "body", "expect_statuses", "expect_body", "send", "expect", "service", "user", "port")
CHECK_DETAILS = tuple(f"/spec/{CHECK}/{name}" for name in _DETAILS)
TAGS, HEADERS = "/spec/tags", "/spec/request_headers"
SERVER = tuple(field.name for field in fields_of(ServerSpec))


def _pool_fields() -> dict[str, forms.Field]:
    return plain_fields(PoolSpec, "/spec") | {HEADERS: form_field(field_at(PoolSpec, "request_headers"))}


def _backend_fields(pointer: str) -> dict[str, forms.Field]:
    return plain_fields(LimitSpec, f"{pointer}/limit") | plain_fields(BackendSpec, pointer)


def _overflow_fields() -> dict[str, forms.Field]:
    return {pointer: form_field(field_at(Overflow, pointer.rpartition("/")[2])) for pointer in (MODE, WHEN_FULL, ORDER)}


def _tags_field() -> forms.Field:
    return form_field(field_at(PoolSpec, "tags"), forms.TextInput(attrs={"class": "mono"}))


class PoolForm(forms.Form):
    """A pool as people type it: one group per region, a row per server; empty regions are left out."""

    use_required_attribute = False

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        actor: Actor,
        regions: list[Region],
        texts: Texts | None = None,
        begin: Texts | None = None,
        standings: Sequence[Standing] = (),
    ) -> None:
        """`texts` are those of a pool that is changed, `begin` those with which a new one begins.

        `standings`: where the load balancers stand that lead to it.
        """
        super().__init__(data, initial=dict(texts or begin or {}))
        self.regions = regions
        self.notes: dict[str, str] = {}  # region → where its limit came from
        for name in ("version", "began"):
            self.fields[name] = Text(widget=forms.HiddenInput(), required=False)
        if texts is None:
            self.fields["/name"] = Text(label="Name", help_text="Lowercase letters, digits and hyphens.")
            if actor.is_operator:
                ask_for_owner(self)
        self.fields.update(_pool_fields() | {TAGS: _tags_field()} | _overflow_fields())
        for name in OBJECTS:
            self.fields.update(object_fields(name))
        self.rows = {index: self._row_numbers(data, texts or begin or {}, index) for index in range(len(regions))}
        for index, numbers in self.rows.items():
            self.fields.update(_backend_fields(f"/spec/backends/{index}"))
            for number in (*numbers, SPARE):
                self.fields.update(plain_fields(ServerSpec, f"/spec/backends/{index}/servers/{number}"))
        self.fields["reason"] = Text(label="Reason", required=False, help_text="Recorded in the audit log.")
        self._pointers: list[tuple[str, str]] = []
        self.capabilities = self._follow(standings) if standings else []

    def _follow(self, standings: Sequence[Standing]) -> list[Note]:
        """Notes of what the targets can do, which depends on the protocol."""
        self.fields["/spec/protocol"].widget.attrs |= LEADS
        tcp = self["/spec/protocol"].value() == "tcp"
        named = ((self[name], path_of(name)) for name in self.fields)
        return note_fields("Pool", named, standings, tcp=tcp)

    @staticmethod
    def _row_numbers(data: QueryDict | None, texts: Texts, region: int) -> list[str]:
        """Rows of servers that were sent, else those that are stored; at most 1000."""
        names = data if data is not None else texts
        form = re.compile(rf"/spec/backends/{region}/servers/([0-9]{{1,6}})/name")
        found = [match[1] for name in names if (match := form.fullmatch(name))]
        return sorted(found, key=int)[:1000]

    def text(self, name: str) -> str:
        """What stands in a field, without spaces at its ends."""
        return str(self.cleaned_data.get(name, "")).strip()

    def _value(self, pointer: str) -> Any:
        """A number where one is wanted and was typed, None where nothing was typed, else the text as it is."""
        field = self.fields[pointer]
        return typed(field, self.text(pointer)) if isinstance(field, Text) else bool(self.cleaned_data.get(pointer))

    def spec(self) -> dict[str, Any]:
        """The document of what was typed."""
        spec: dict[str, Any] = {name.removeprefix("/spec/"): self._value(name) for name in _pool_fields()}
        order = [name for name in re.split(r"[,;\s]+", self.text(ORDER)) if name]
        spec["overflow"] = {"mode": self._value(MODE), "when_full": self._value(WHEN_FULL), "order": order}
        spec["tags"] = pairs([entry for entry in re.split(r"[,;\s]+", self.text(TAGS)) if entry])
        for name in OBJECTS:
            if self.cleaned_data.get(f"/spec/{name}"):
                spec[name] = object_of(name, self.fields, self.cleaned_data)
        spec["backends"] = []
        for index, region in enumerate(self.regions):
            pointer = f"/spec/backends/{index}"
            servers = list(self._servers(pointer, self.rows[index], len(spec["backends"])))
            if servers or self.text(f"{pointer}/servers_from") or self._value(f"{pointer}/limit/kind") != "none":
                self._pointers.append((f"/spec/backends/{len(spec['backends'])}", pointer))
                spec["backends"].append(self._backend(pointer, region) | {"servers": servers})
        return spec

    def _backend(self, pointer: str, region: Region) -> dict[str, Any]:
        limit = {name: self._value(f"{pointer}/limit/{name}") for name in ("kind", "value", "scope")}
        if limit["kind"] == "none":
            limit = {"kind": "none"}
        scaler = self.text(f"{pointer}/capacity_scaler")
        return {
            "region": region.name,
            "limit": limit,
            "capacity_scaler": as_number(scaler) if scaler else None,
            "servers_from": self.text(f"{pointer}/servers_from"),
        }

    def _servers(self, pointer: str, numbers: list[str], backend: int) -> Iterator[dict[str, Any]]:
        position = 0
        for number in numbers:
            row = f"{pointer}/servers/{number}"
            server = {field: self._value(f"{row}/{field}") for field in SERVER}
            if any(server[field] for field in ("name", "address", "port")):
                self._pointers.append((f"/spec/backends/{backend}/servers/{position}", row))
                position += 1
                yield server

    def attach_errors(self, error: Invalid) -> None:
        """Put every error beside its field; one without a field stands at the form's top."""
        pointers = sorted(self._pointers, key=lambda pointer: len(pointer[0]), reverse=True)
        for field_error in error.field_errors:
            sent, shown = next(
                (pointer for pointer in pointers if f"{field_error.pointer}/".startswith(f"{pointer[0]}/")), ("", "")
            )
            name = shown + field_error.pointer.removeprefix(sent)
            name = next((field for field in (ORDER, TAGS, HEADERS) if name.startswith(f"{field}/")), name)
            error_at = name if name in self.fields else None
            self.add_error(error_at, forms.ValidationError(field_error.detail, code=field_error.code))

    @property
    def head(self) -> list[forms.BoundField]:
        """Name and account, where they can still be chosen."""
        return [self[name] for name in ("/account", "/name") if name in self.fields]

    @property
    def basics(self) -> list[forms.BoundField]:
        """Fields of the pool itself."""
        apart = {f"/spec/{name}" for name in WAY}
        return [self[name] for name in (*_pool_fields(), TAGS) if name not in apart]

    @property
    def overflow(self) -> list[forms.BoundField]:
        """Fields of what happens to traffic that a region has no room for."""
        return [self[name] for name in _overflow_fields()]

    @property
    def check(self) -> list[forms.BoundField]:
        """Fields of the health check that most pools need, its switch first."""
        return [self[name] for name in object_fields(CHECK) if name not in CHECK_DETAILS]

    @property
    def check_details(self) -> Group:
        """The others, closed as long as they say nothing."""
        fields = [self[name] for name in CHECK_DETAILS]
        hint = "Headers, body, and what checks of TCP, gRPC and databases send and expect"
        return Group("More settings", fields, hint, folds=True, is_open=any(map(says_something, fields)))

    @property
    def parts(self) -> list[Group]:
        """What may be said of servers beside it."""
        return parts(self)

    @property
    def of_regions(self) -> list[forms.BoundField]:
        """Fields that each region has, and that each of its servers has."""
        pointer = "/spec/backends/0"
        if not self.regions:
            return []
        return [*(self[name] for name in _backend_fields(pointer)), *self._row(f"{pointer}/servers/{SPARE}")]

    @property
    def reason(self) -> forms.BoundField:
        """Why."""
        return self["reason"]

    def groups(self) -> list[dict[str, Any]]:
        """Per region: its fields, its rows of servers, the row to copy."""
        return [self._group(index, region) for index, region in enumerate(self.regions)]

    def _group(self, index: int, region: Region) -> dict[str, Any]:
        pointer = f"/spec/backends/{index}"
        rows = [self._row(f"{pointer}/servers/{number}") for number in self.rows[index]]
        fields = [self[name] for name in _backend_fields(pointer)]
        return {
            "region": region,
            "index": index,
            "fields": fields,
            "note": self.notes.get(region.name, ""),
            "rows": rows,
            "spare": self._row(f"{pointer}/servers/{SPARE}"),
            "next": int(self.rows[index][-1]) + 1 if rows else 0,
            "open": bool(rows) or len(self.regions) <= 3 or any(field.errors for field in fields),
        }

    def _row(self, pointer: str) -> list[forms.BoundField]:
        return [self[f"{pointer}/{field}"] for field in SERVER]


def texts_of_pool(pool: Pool, regions: list[Region], spec: dict[str, Any] | None = None) -> Texts:
    """The pool as the texts of the form's fields, or `spec` in its pointer; sending them decides over the pool."""
    document = dict(spec or describe(pool))
    objects = {name: document.pop(name) for name in OBJECTS}
    backends = {each["region"]: each for each in document.pop("backends")}
    overflow, tags = document.pop("overflow"), document.pop("tags")
    texts = {f"/spec/{name}": written(value) for name, value in document.items()}
    texts |= {MODE: overflow["mode"], WHEN_FULL: overflow["when_full"], ORDER: ", ".join(overflow["order"])}
    texts |= {"version": str(pool.version), "began": remember(pool), TAGS: ", ".join(as_texts(tags))}
    for name, value in objects.items():
        texts |= texts_of_object(name, value)
    for index, region in enumerate(regions):
        if region.name in backends:
            texts |= _texts_of_backend(f"/spec/backends/{index}", backends[region.name])
    return texts


def _texts_of_backend(pointer: str, backend: dict[str, Any]) -> Texts:
    limit = backend["limit"]
    texts = {f"{pointer}/limit/{name}": written(value) for name, value in limit.items()}
    if limit["kind"] == "none":
        texts[f"{pointer}/limit/value"] = ""
    texts[f"{pointer}/capacity_scaler"] = written(backend["capacity_scaler"])
    texts[f"{pointer}/servers_from"] = backend.get("servers_from", "")
    for number, server in enumerate(backend["servers"]):
        texts |= {f"{pointer}/servers/{number}/{field}": text_of(server[field]) for field in SERVER}
    return texts
