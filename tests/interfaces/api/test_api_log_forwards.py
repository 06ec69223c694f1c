"""Log forwards through the API: made, changed, tried and taken away by whom they belong to."""

from __future__ import annotations

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from tests.conftest import actor_of
from tests.interfaces.api.test_api_objects import Api, assert_problem

SPEC = {"url": "https://logs.example.com/v1/logs", "header_name": "X-Key", "header_value": "s3cret"}


@pytest.fixture
def api(acme: Actor) -> Api:
    return Api(acme)


def made(api: Api, **spec: object) -> str:
    answer = api("POST", "log-forwards", {"name": "siem", "spec": {**SPEC, **spec}})
    assert answer.status_code == 201, answer.content
    return f"log-forwards/{answer.json()['id']}"


def test_a_log_forward_is_made_changed_and_deleted_and_its_secret_never_shown(api: Api) -> None:
    url = made(api)
    first = api("GET", url)
    assert first.json()["spec"]["header_name"] == "X-Key"
    assert "s3cret" not in first.content.decode()
    changed = api("PATCH", url, {"spec": {"filter": "status>=500"}}, If_Match=first["ETag"])
    assert changed.json()["spec"]["filter"] == "status>=500"
    assert_problem(api("PATCH", url, {"spec": {"filter": ""}}, If_Match=first["ETag"]), 412)
    body = assert_problem(api("PATCH", url, {"spec": {"url": "https://evil.example.com/"}}, If_Match="*"), 422)
    assert [each["pointer"] for each in body["errors"]] == ["/spec/header_value"]
    assert [each["name"] for each in api("GET", "log-forwards?name=siem").json()["items"]] == ["siem"]
    assert api("DELETE", url, If_Match="*").status_code == 204
    audited = api("GET", "audit-entries?kind=LogForward")
    assert [each["action"] for each in audited.json()["items"]] == ["delete", "update", "create"]
    assert "s3cret" not in audited.content.decode()


def test_nobody_finds_a_log_forward_of_another_account_and_operators_all(
    api: Api, globex: Actor, operator: Actor
) -> None:
    url, stranger = made(api), Api(globex)
    for method, path in (("GET", url), ("PATCH", url), ("DELETE", url), ("POST", f"{url}:test")):
        assert_problem(stranger(method, path, {"spec": {}} if method == "PATCH" else None, If_Match="*"), 404)
    assert stranger("GET", "log-forwards").json()["items"] == []
    body = {"name": "x", "account": "acme", "spec": SPEC}
    assert_problem(stranger("POST", "log-forwards", body), 422)
    house = Api(operator)
    assert house("POST", "log-forwards", body).json()["account"] == "acme"
    assert len(house("GET", "log-forwards?account=acme").json()["items"]) == 2
    viewer = Api(actor_of("acme", "customer", Membership.Role.VIEWER))
    assert viewer("GET", url).status_code == 200
    assert_problem(viewer("POST", "log-forwards", body), 403)


def test_a_test_says_why_nothing_arrived(api: Api) -> None:
    url = made(api, url="https://localhost:9/v1/logs")
    answer = api("POST", f"{url}:test").json()
    assert answer == {"delivered": False, "error": "The connection was refused."}
    assert_problem(api("POST", f"{url}:test"), 409)
