"""The document is what the API does, and stays so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import pytest
import schemathesis
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from rest_framework.views import APIView

from apps.accounts.actors import Actor
from apps.api import terraform, terraform_pages
from apps.api.v1.description import CHECKED_IN
from apps.api.v1.openapi import document, text_of
from apps.api.v1.schemas import parameters
from apps.api.v1.schemas.operations.core import OPERATIONS
from apps.api.v1.urls import urlpatterns
from apps.core.errors import Invalid
from apps.definitions.reading.documents import read_spec
from apps.definitions.shapes.kinds import SHAPES
from tests.interfaces.api.test_api_objects import Api, api, house

__all__ = ["api", "house"]
WRITTEN: dict[str, Any] = json.loads(CHECKED_IN.read_text())
COMPONENTS: dict[str, Any] = WRITTEN["components"]
METHODS = ("get", "post", "put", "patch", "delete")


def resolved(reference: str) -> Any:
    """What a reference within the document leads to."""
    found: Any = WRITTEN
    for part in reference.removeprefix("#/").split("/"):
        found = found[part.replace("~1", "/")]
    return found


def every(node: Any) -> Iterator[dict[str, Any]]:
    """Every object within a JSON value."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from every(child)


def test_the_document_that_is_checked_in_is_what_the_code_says() -> None:
    assert text_of(document()) == CHECKED_IN.read_text(), "run `make openapi` and read the difference"


def test_the_terraform_provider_is_told_what_the_shapes_say() -> None:
    assert terraform.text_of(terraform.kinds()) == terraform.CHECKED_IN.read_text(), "run `make openapi`"
    made = terraform_pages.pages()
    assert set((terraform_pages.FOLDER / "docs").glob("*/*.md")) == set(made), "delete what is left over"
    for path, text in made.items():
        assert path.read_text() == text, "run `make openapi`"


def test_making_the_document_warns_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    GENERATOR_STATS.reset()  # else what an earlier test was warned of is not said again
    document()
    assert capsys.readouterr().err == "", "two schemas of one name, for example, are one in the document"


def test_every_method_of_every_url_is_written_down_and_nothing_else() -> None:
    there = {
        (pattern.name, method)
        for pattern in urlpatterns
        if pattern.name and issubclass(getattr(pattern.callback, "cls", object), APIView)
        for method in vars(pattern.callback)["cls"]().allowed_methods
        if method not in ("OPTIONS", "HEAD")
    }
    assert set(OPERATIONS) == there


@pytest.mark.slow(reason="the whole document, 0.9 MB, is validated")
def test_the_document_is_openapi_3_1_and_its_references_lead_somewhere() -> None:
    assert WRITTEN["openapi"] == "3.1.0"
    schemathesis.openapi.from_dict(WRITTEN).validate()
    references = [node["$ref"] for node in every(WRITTEN) if isinstance(node.get("$ref"), str)]
    assert len(references) > 500
    for reference in references:
        assert resolved(reference)


def test_every_operation_says_who_may_call_what_it_answers_and_how_it_refuses() -> None:
    ids = []
    for path, operations in WRITTEN["paths"].items():
        for method, operation in operations.items():
            ids.append(operation["operationId"])
            assert operation["summary"]
            if operation["security"] == []:
                continue
            assert {"401", "403", "429"} <= set(operation["responses"]), (path, method)
            assert any(status < "400" for status in operation["responses"])
    assert len(set(ids)) == len(ids)


def test_what_is_sent_is_closed_and_what_is_shown_is_complete() -> None:
    for name, schema in COMPONENTS["schemas"].items():
        if name.endswith("Request"):
            assert schema["additionalProperties"] is False, name
        else:
            assert "additionalProperties" not in schema, f"{name}: answers may grow"


def sample(schema: dict[str, Any]) -> Any:
    """A value of the schema with every property filled in; text is not looked at."""
    if "$ref" in schema:
        return sample(resolved(schema["$ref"]))
    if "oneOf" in schema or "allOf" in schema:
        return sample((schema.get("oneOf") or schema["allOf"])[0])
    kind = schema["type"][0] if isinstance(schema.get("type"), list) else schema.get("type")
    if kind == "object":
        return {name: sample(each) for name, each in schema.get("properties", {}).items()}
    if kind == "array":
        return [sample(schema["items"])]
    if "enum" in schema:
        return schema["enum"][0]
    return {"integer": 1, "number": 1, "boolean": True}.get(str(kind), "x")


def objects_within(value: Any, pointer: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object within a value, with its pointer."""
    if isinstance(value, dict):
        yield pointer, value
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in pairs:
        yield from objects_within(child, f"{pointer}/{key}")


def known_to_readers(kind: str, spec: dict[str, Any]) -> dict[str, set[str]]:
    """The fields that the readers of a kind know, by the object's pointer: they name them when asked for another."""
    for _, found in [*objects_within(spec)]:
        if found:  # else a map with any keys
            found["?"] = 0
    with pytest.raises(Invalid) as refused:
        read_spec(kind, spec, pointer="")
    asked = {
        field_error.pointer.removesuffix("/?"): field_error.detail
        for field_error in refused.value.field_errors
        if "/?" in field_error.pointer
    }
    return {path: set(re.split(r"known are |, |\.$", detail)[1:-1]) for path, detail in asked.items()}


# Where exactly one of several fields says what happens.
ONE_AT_A_TIME = {"Route": "action", "Schedule": "target"}


@pytest.mark.parametrize("kind", list(SHAPES))
def test_the_fields_that_readers_know_are_those_that_are_written_down(kind: str) -> None:
    name = f"{kind}SpecRequest"
    if name not in COMPONENTS["schemas"]:
        pytest.skip(f"{kind} is only written by apply")
    spec = sample(COMPONENTS["schemas"][name])
    if field := ONE_AT_A_TIME.get(kind):
        known: dict[str, set[str]] = {}
        for choice in spec[field]:
            chosen = spec | {field: {choice: spec[field][choice]}}
            known |= known_to_readers(kind, json.loads(json.dumps(chosen)))
        known[f"/{field}"] = set(spec[field])
    else:
        known = known_to_readers(kind, json.loads(json.dumps(spec)))
    written = {path: set(found) for path, found in objects_within(spec) if found}
    assert known == written


def closed(schema: Any) -> Any:
    """The schema, where what is shown and not written down is an error."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(value) for name, value in schema.items()}
    if found.get("type") == "object" and "properties" in found:
        found.setdefault("additionalProperties", False)
    return found


@cache
def closed_components() -> dict[str, Any]:
    """All that schemas refer to, closed."""
    return {"schemas": closed(COMPONENTS["schemas"])}


def check(value: Any, schema: dict[str, Any]) -> None:
    """Raise for a value that is not as written down."""
    whole = {**closed(schema), "components": closed_components()}
    jsonschema.Draft202012Validator(whole).validate(value)


def test_every_list_and_each_of_its_objects_is_shown_as_written_down(api: Api, house: Api) -> None:
    shown = 0
    for path, operations in WRITTEN["paths"].items():
        if "{" in path or "get" not in operations or operations["get"]["security"] == []:
            continue
        if path == "/api/v1/sizing":  # a question, not a list
            continue
        content = operations["get"]["responses"]["200"]["content"]
        if "text/event-stream" in content:
            continue
        schema = content["application/json"]["schema"]
        for caller in (api, house):
            answer = caller("GET", path.removeprefix("/api/v1/"))
            assert answer.status_code == 200, path
            check(answer.json(), schema)
            shown += len(answer.json().get("items", ()))
    assert shown > 50


def test_the_check_of_what_is_shown_sees_a_field_that_is_not_written_down() -> None:
    good = {"pointer": "/x", "code": "y", "detail": "z"}
    check(good, {"$ref": "#/components/schemas/FieldError"})
    for wrong in ({**good, "more": 1}, {"pointer": "/x"}, {**good, "code": 3}):
        with pytest.raises(jsonschema.ValidationError):
            check(wrong, {"$ref": "#/components/schemas/FieldError"})


def test_a_refusal_is_shown_as_written_down(api: Api) -> None:
    for answer in (api("GET", "nope"), api("POST", "routes", {"a": 1}), api("PUT", "routes/1", "{")):
        check(answer.json(), {"$ref": "#/components/schemas/Problem"})


def test_the_document_is_public_and_need_not_be_read_twice() -> None:
    answer = Client().get("/api/v1/openapi.json")
    assert answer.json() == WRITTEN
    again = Client().get("/api/v1/openapi.json", headers={"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/*"])
def test_other_answers_than_json_are_refused_as_a_problem(api: Api, operator: Actor, accept: str) -> None:
    answer = api("GET", "routes", Accept=accept)
    assert (answer.status_code, answer["Content-Type"]) == (406, "application/problem+json")


def test_other_bodies_than_json_and_yaml_are_refused_as_a_problem(api: Api) -> None:
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "nonsense"):
        answer = api("POST", "routes", "a=1", Content_Type=kind)
        assert (answer.status_code, answer["Content-Type"]) == (415, "application/problem+json"), kind


def test_head_is_get_without_a_body_and_options_names_the_methods(api: Api) -> None:
    read, head = api("GET", "routes/acme/shop"), api("HEAD", "routes/acme/shop")
    assert (head.status_code, head.content) == (200, b"")
    assert head["ETag"] == read["ETag"]
    options = api("OPTIONS", "routes")
    assert {"GET", "HEAD", "OPTIONS", "POST"} == set(options["Allow"].split(", "))
    assert not any(name.lower().startswith("access-control-") for name in options.headers)


def test_every_parameter_that_is_written_down_is_used() -> None:
    used = {reference["$ref"] for reference in every(WRITTEN["paths"]) if isinstance(reference.get("$ref"), str)}
    for location, known in (
        ("path", parameters.PATH),
        ("query", parameters.QUERY),
        ("header", parameters.REQUEST_HEADERS),
    ):
        for name in known:
            assert f"#/components/parameters/{location}-{name}" in used, name


def test_what_is_asked_for_by_name_may_be_missing() -> None:
    asked = ((path, methods[each]) for path, methods in WRITTEN["paths"].items() for each in METHODS if each in methods)
    assert [path for path, said in asked if "{" in path and "404" not in said["responses"]] == []
