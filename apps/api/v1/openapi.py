"""The OpenAPI 3.1 document of the API, made of the URLs and of schemas/."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, Literal

from django.urls import include, path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentRegistry

from apps.api.v1 import urls
from apps.api.v1.schemas import parameters
from apps.api.v1.schemas.operations.building import Operation
from apps.api.v1.schemas.operations.core import operation_of
from apps.api.v1.schemas.writing import Problem

Document = dict[str, Any]
Direction = Literal["request", "response"]
PROBLEM = "application/problem+json"
PREFIX = "api/v1/"
MEDIA_TYPES = ("application/json", "application/yaml", "application/x-yaml")
TITLE = "Spillway API"
ABOUT = """\
The control plane for load balancers. Errors are `application/problem+json` (RFC 9457), one entry in `errors` per error.
Objects have versions: read the `ETag`, send it back as `If-Match`. Send an `Idempotency-Key` with whatever you may have
to send again. Lists go on with `cursor`. docs/use/api.md says more."""

# Served by the process of controlplane/events.py.
EVENTS: Document = {
    "/api/v1/events": {
        "get": {
            "operationId": "events.get",
            "summary": "Follow changes as server-sent events",
            "tags": ["events"],
            "parameters": [
                {"$ref": "#/components/parameters/query-topics"},
                {"$ref": "#/components/parameters/header-Last-Event-ID"},
            ],
            "security": [{"bearer": []}],
            "responses": {
                "200": {
                    "description": "A stream that lasts until the token expires, with a comment at least every 15 s.",
                    "content": {"text/event-stream": {"schema": {"type": "string"}}},
                },
                **{
                    str(status): {"$ref": f"#/components/responses/{parameters.REFUSALS[status][0]}"}
                    for status in (400, 401, 403, 429)
                },
            },
        }
    }
}


class Written(AutoSchema):
    """Writes an operation down from the table of operations; drf-spectacular makes components of the serializers."""

    def get_operation(
        self, path: str, path_regex: str, _path_prefix: str, method: str, registry: ComponentRegistry
    ) -> Document | None:
        """One operation, under the name of its URL; None for what nobody wrote down, which a test finds."""
        self.registry, self.path, self.method = registry, path, method
        url_name = names_of_urls()[path_regex]
        operation = operation_of(url_name, method)
        if operation is None:
            return None
        found: Document = {
            "operationId": f"{url_name}.{method.lower()}",
            "summary": operation.summary,
            "tags": [path.removeprefix(f"/{PREFIX}").split("/")[0].split(":")[0]],
            "parameters": _parameters(path, operation),
        }
        if operation.sent:
            sent = self.resolve_serializer(operation.sent, "request")
            content = {kind: {"schema": sent.ref} for kind in MEDIA_TYPES}
            found["requestBody"] = {"required": bool(sent.schema.get("required")), "content": content}
        return found | {"security": [] if operation.public else [{"bearer": []}], "responses": self._answers(operation)}

    def _answers(self, operation: Operation) -> Document:
        names = [*parameters.COMMON_HEADERS, *operation.tells]
        headers = {name: _reference("headers", name) for name in names}
        found: Document = {}
        for status in sorted(operation.statuses):
            body: Document = {"description": DESCRIPTIONS[status], "headers": headers}
            if schemas := [self.resolve_serializer(each, "response").ref for each in operation.bodies(status)]:
                schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
                body["content"] = {"application/json": {"schema": schema}}
            if operation.media:
                body["content"] = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in operation.media}
            found[str(status)] = body
        for status in sorted(operation.refuses):
            found[str(status)] = _reference("responses", parameters.REFUSALS[status][0])
        self.resolve_serializer(Problem, "response")
        return found

    def _map_basic_serializer(self, serializer: Any, direction: Direction) -> Document:
        schema: Document = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call] # theirs
        properties = schema.get("properties", {})
        if direction == "request":
            required = schema.get("required", ())
            # Whatever may be left out may be null as well: readers take the two for the same.
            schema["properties"] = {
                name: value if name in required else _or_null(value) for name, value in properties.items()
            }
            schema["additionalProperties"] = False
        else:
            absent = getattr(serializer, "may_be_absent", ())
            schema["required"] = sorted(name for name in properties if name not in absent)
        return schema


def _parameters(path: str, operation: Operation) -> list[Document]:
    in_path = re.findall(r"\{(\w+)\}", path)
    return [
        *(_reference("parameters", f"path-{name}") for name in in_path),
        *(_reference("parameters", f"query-{name}") for name in operation.query),
        *(_reference("parameters", f"header-{name}") for name in operation.asks),
    ]


DESCRIPTIONS = {200: "Done.", 201: "Created.", 202: "Begun.", 204: "Deleted.", 304: "You already have this version."}


def _reference(section: str, name: str) -> Document:
    return {"$ref": f"#/components/{section}/{name}"}


def _or_null(schema: Document) -> Document:
    """The schema, or null."""
    if "type" not in schema:
        return schema if "oneOf" in schema else {"oneOf": [schema, {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    found = {**schema, "type": [*dict.fromkeys([*kinds, "null"])]}
    if "enum" in schema:
        found["enum"] = [*dict.fromkeys([*schema["enum"], None])]
    return found


@cache
def names_of_urls() -> dict[str, str]:
    """The name of each URL by its pattern."""
    return {f"{PREFIX}{pattern.pattern}": pattern.name for pattern in urls.urlpatterns if pattern.name}


def document() -> Document:
    """The whole document, made anew."""
    generator: Any = SchemaGenerator
    made: Document = generator(patterns=[path(PREFIX, include(urls))]).get_schema(public=True)
    made["info"] = {"title": TITLE, "version": "1", "description": ABOUT}
    made["paths"] = {**made["paths"], **EVENTS}
    made["components"] |= _components()
    made["components"]["schemas"] = {name: _plain(each) for name, each in made["components"]["schemas"].items()}
    return made


def _components() -> Document:
    """Parameters, headers and refusals, each written once."""
    locations = {"path": parameters.PATH, "query": parameters.QUERY, "header": parameters.REQUEST_HEADERS}
    headers = parameters.RESPONSE_HEADERS | parameters.COMMON_HEADERS
    return {
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": "`sw_<key id>_<secret>`"}},
        "parameters": {
            f"{location}-{name}": {
                "name": name.partition("-word")[0],
                "in": location,
                "description": about,
                "schema": schema,
            }
            | ({"required": True} if location == "path" else {})
            for location, known in locations.items()
            for name, (schema, about) in known.items()
        },
        "headers": {name: {"description": about, "schema": schema} for name, (schema, about) in headers.items()},
        "responses": {name: _refusal(status, about) for status, (name, about) in parameters.REFUSALS.items()},
    }


def _refusal(status: int, about: str) -> Document:
    if status == 414:  # the server's own answer, before the API sees the request
        return {"description": about}
    names = [*parameters.COMMON_HEADERS, *parameters.REFUSAL_HEADERS.get(status, ())]
    return {
        "description": about,
        "headers": {name: _reference("headers", name) for name in names},
        "content": {PROBLEM: {"schema": _reference("schemas", "Problem")}},
    }


# What the generator adds and nobody needs: formats that JSON does not know, marks of its own.
NOISE = {("format", "double"), ("format", "int64")}


def _plain(schema: Any) -> Any:
    """Without what nobody needs."""
    if isinstance(schema, dict):
        kept = {name: value for name, value in schema.items() if not name.startswith("x-spec-")}
        return {name: _plain(value) for name, value in kept.items() if not _is_noise(name, value)}
    return [_plain(each) for each in schema] if isinstance(schema, list) else schema


def _is_noise(name: str, value: Any) -> bool:
    return isinstance(value, str) and (name, value) in NOISE


def text_of(made: Document) -> str:
    """The document as it is checked in: what holds nothing but plain values stands on one line."""
    text = json.dumps(made, indent=1, ensure_ascii=False)
    return re.sub(r"([{\[])\s+([^{}\[\]]{1,100}?)\s+([}\]])", _on_one_line, text) + "\n"


def _on_one_line(found: re.Match[str]) -> str:
    return found[1] + re.sub(r"\n\s*", " ", found[2]) + found[3]
