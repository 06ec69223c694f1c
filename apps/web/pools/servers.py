"""The parts of a pool's form about its servers: plain fields, and optional objects with a switch each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from apps.definitions.models import Pool
from apps.definitions.shapes.base.fields import Field, field_at, fields_of
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.base.words import as_texts
from apps.definitions.shapes.servers.connections import Connections, Retries
from apps.definitions.shapes.servers.health import AgentCheck, HealthCheckSpec, OutlierEjection
from apps.definitions.shapes.servers.objective import ServiceObjective
from apps.definitions.shapes.servers.persistence import Persistence
from apps.definitions.shapes.servers.server_tls import ServerTls
from apps.definitions.shapes.traffic.pool import PoolSpec
from apps.web.kit.shape_fields import LINES, form_field, typed, written
from apps.web.kit.shape_forms import Group

CHECK = "health_check"
OBJECTS: Mapping[str, type[Shape]] = {
    CHECK: HealthCheckSpec,
    "server_tls": ServerTls,
    "persistence": Persistence,
    "outlier_ejection": OutlierEjection,
    "connections": Connections,
    "retries": Retries,
    "agent_check": AgentCheck,
    "objective": ServiceObjective,
}
TITLES = {
    "server_tls": "TLS to servers",
    "persistence": "Persistence",
    "outlier_ejection": "Outlier ejection",
    "connections": "Requests for each server",
    "retries": "Retries",
    "agent_check": "Agent check",
    "objective": "Objective",
}
# Plain fields of the pool that stand in a group of their own.
WAY = (
    *("http_version", "host_header", "request_headers", "proxy_protocol", "connection_reuse"),
    *("tunnel_timeout_ms", "slow_start_ms"),
)
_LONG = {("server_tls", "ca"), (CHECK, "send")}


def object_fields(name: str) -> dict[str, forms.Field]:
    """The switch of an object, and a field for each value that people set."""
    pointer = f"/spec/{name}"
    label = "Enable health checks" if name == CHECK else field_at(PoolSpec, name).about.label
    found: dict[str, forms.Field] = {
        pointer: forms.BooleanField(label=label, required=False, initial=name == CHECK),
    }
    for field in fields_of(OBJECTS[name]):
        widget = forms.Textarea(attrs=LINES) if (name, field.name) in _LONG else None
        found[f"{pointer}/{field.name}"] = form_field(field, widget)
    return found


def object_of(name: str, fields: Mapping[str, forms.Field], cleaned: Mapping[str, Any]) -> dict[str, Any]:
    """The document of what was typed into the fields of an object."""
    pointer = f"/spec/{name}/"
    return {
        each.removeprefix(pointer): typed(field, cleaned.get(each, ""))
        for each, field in fields.items()
        if each.startswith(pointer)
    }


def texts_of_object(name: str, document: Mapping[str, Any] | None) -> dict[str, str]:
    """An object as the texts of its fields."""
    found = {f"/spec/{name}": "on" if document is not None else ""}
    return found | {f"/spec/{name}/{field}": text_of(value) for field, value in (document or {}).items()}


def text_of(value: object) -> str:
    """A value as the text of its field; a box is checked by any text."""
    return ("on" if value else "") if isinstance(value, bool) else written(value)


def parts(form: forms.Form) -> list[Group]:
    """Every group but that of the health check, in the order in which they are used most."""
    way = [form[f"/spec/{name}"] for name in WAY]
    found = [Group("Protocol to servers", way, folds=True, is_open=any(map(says_something, way)))]
    for name, title in TITLES.items():
        fields = [form[pointer] for pointer in object_fields(name)]
        on = fields[0].value() not in (None, "", False)
        is_open = on or any(field.errors for field in fields)
        found.append(Group(title, fields, folds=True, is_open=is_open))
    return found


def says_something(field: forms.BoundField) -> bool:
    """Whether somebody wrote in a field, or something is wrong with it."""
    return bool(field.errors) or (field.value() or "") != (field.field.initial or "")


def said_of_servers(pool: Pool) -> list[tuple[str, str]]:
    """What a pool says of its servers beside its check, for its page: each with its label."""
    found = []
    for name in (*WAY, *(each for each in TITLES if each != "objective")):  # which has a card of its own
        field, value = field_at(PoolSpec, name), getattr(pool, name)
        if value not in (None, "", {}, field.default):
            text = _sentence(OBJECTS[name], value) if name in OBJECTS else _label(field, value)
            found.append((TITLES.get(name, field.about.label), text))
    return found


def _sentence(shape: type[Shape], document: Mapping[str, Any]) -> str:
    """The values of an object that are not left as they are; PEM is only counted."""
    said = []
    for field in fields_of(shape):
        value = document.get(field.name)
        if field.name == "ca" and value:
            said.append(f"{value.count('-----BEGIN')} authorities")
        elif value not in (None, "", [], {}) and (field.required or value != field.default or not said):
            said.append(f"{field.about.label.lower()}: {_label(field, value)}")
    return ", ".join(said)


def _label(field: Field, value: Any) -> str:
    labels = (field.grammar.labels if field.grammar else None) or {}
    if isinstance(value, list | dict):
        return ", ".join(map(str, as_texts(value) if isinstance(value, dict) else value))
    text = {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    return f"{text} ms" if field.name.endswith("_ms") else labels.get(text, text)
