"""Reads of every noun, writes with versions, apply, and every refusal as a problem."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from django.test import Client, RequestFactory

from apps.accounts.actors import Actor
from apps.accounts.models import ApiToken
from apps.accounts.tokens import create_token
from apps.api.v1.protocol.problems import problem_response
from apps.core.clock import now
from apps.definitions.models import Pool, Route, Server
from apps.fleet.models import Fleet

NOUNS = [
    *("accounts", "regions", "fleets", "nodes", "static-ips", "certificates", "pools", "backends", "servers"),
    *("load-balancers", "listeners", "hostnames", "routes", "revisions", "rollouts"),
]
ROUTE = {"load_balancer": "front", "hostname": "new.acme.example", "action": {"pools": [{"pool": "shop"}]}}


class Api:
    """A caller with a token of an actor's account."""

    def __init__(self, actor: Actor) -> None:
        token = create_token(account=actor.account, name="test", role=actor.role)
        self.client = Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)

    def __call__(self, method: str, url: str, body: Any = None, **headers: str) -> Any:
        """Send JSON (or text as it is); header names with `_` for `-`."""
        content = body if isinstance(body, str | bytes) else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        kind = named.pop("Content-Type", "application/json")
        if body is None:
            return self.client.generic(method, f"/api/v1/{url}", headers=named)
        return self.client.generic(method, f"/api/v1/{url}", content, content_type=kind, headers=named)


@pytest.fixture
def api(tutorial_env: Actor, acme: Actor) -> Api:
    """Acme's program."""
    return Api(acme)


@pytest.fixture
def house(tutorial_env: Actor) -> Api:
    """The operator's program."""
    return Api(tutorial_env)


def assert_problem(response: Any, status: int) -> dict[str, Any]:
    """The body of a problem of this status."""
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert {"type", "title", "status", "detail", "instance", "request_id", "errors"} == set(body)
    assert body["status"] == status
    assert body["request_id"] == response["X-Request-ID"]
    return body


@pytest.mark.slow(reason="every noun is listed and each of its objects read")
def test_every_noun_can_be_listed_and_each_of_its_objects_read(api: Api, house: Api) -> None:
    for noun, caller in product(NOUNS, (api, house)):
        items = caller("GET", noun).json()["items"]
        for item in items:
            assert caller("GET", f"{noun}/{item['id']}").json() == item
        if noun not in ("certificates", "static-ips", "revisions", "rollouts") and caller is house:
            assert items


def test_no_token_is_401_everywhere(client: Client, db: None) -> None:
    for noun in NOUNS:
        response = client.get(f"/api/v1/{noun}")
        assert_problem(response, 401)
        assert response["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("case", ["unknown", "revoked", "expired", "basic", "cut"])
def test_a_token_that_is_not_live_is_401_whatever_is_wrong_with_it(acme: Actor, case: str) -> None:
    text = create_token(account=acme.account, name="x", role="admin")
    if case in ("revoked", "expired"):
        ApiToken.objects.update(**{f"{case}_at" if case == "revoked" else "expires_at": now()})
    header = {"unknown": f"Bearer sw_{'0' * 12}_{'a' * 43}", "basic": "Basic eDp5", "cut": f"Bearer {text[:-1]}"}
    answer = Client().get("/api/v1/routes", headers={"Authorization": header.get(case, f"Bearer {text}")})
    assert_problem(answer, 401)


@pytest.mark.parametrize("noun", ["pools", "backends", "servers", "hostnames", "routes"])
def test_a_foreign_object_answers_exactly_as_a_missing_one(api: Api, globex: Actor, noun: str) -> None:
    foreign = Api(globex)("GET", noun).json()["items"][0]["id"]
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        answers = []
        for pk in (foreign, 10**6):
            answer = api(method, f"{noun}/{pk}", {"spec": {}, "state": "drain"}, If_Match="*")
            body = json.loads(answer.content.replace(f"/{pk}".encode(), b"/n"))
            answers.append((answer.status_code, body | {"request_id": ""}))
        assert answers[0] == answers[1], method
        assert answers[0][0] in (404, 405), method


def test_customers_see_nothing_of_the_platform(api: Api) -> None:
    for noun in ("fleets", "nodes", "static-ips", "revisions", "rollouts"):
        assert api("GET", noun).json()["items"] == [], noun


def test_a_route_is_created_read_replaced_and_deleted(api: Api) -> None:
    made = api("POST", "routes", {"name": "new", "spec": ROUTE}, X_Change_Reason="a new shop")
    assert made.status_code == 201
    generations = {fleet.name: fleet.desired_generation for fleet in Fleet.objects.order_by("name")}
    assert made["X-Spillway-Generation"] == ", ".join(f"{name}={number}" for name, number in generations.items())
    url = made["Location"].removeprefix("/api/v1/")
    read = api("GET", url)
    assert read.json() == made.json()
    spec = read.json()["spec"] | {"methods": ["GET"]}
    assert_problem(api("PUT", url, {"spec": spec}), 428)
    assert_problem(api("PUT", url, {"spec": spec}, If_Match='"rev-9"'), 412)
    changed = api("PUT", url, {"spec": spec}, If_Match=read["ETag"])
    assert (changed.status_code, changed["ETag"]) == (200, '"rev-2"')
    assert_problem(api("PUT", url, {"spec": spec | {"methods": ["PUT"]}}, If_Match=read["ETag"]), 412)
    assert_problem(api("DELETE", url), 428)
    assert_problem(api("DELETE", url, If_Match=read["ETag"]), 412)
    assert api("DELETE", url, If_Match=changed["ETag"]).status_code == 204
    assert_problem(api("GET", url), 404)


def test_put_by_name_creates_only_what_is_not_there(api: Api) -> None:
    assert api("PUT", "routes/acme/new", {"spec": ROUTE}, If_None_Match="*").status_code == 201
    assert_problem(api("PUT", "routes/acme/new", {"spec": ROUTE}, If_None_Match="*"), 412)
    assert_problem(api("PUT", "routes/acme/new", {"spec": ROUTE}), 428)
    assert api("PUT", "routes/acme/new", {"spec": ROUTE | {"path": "/x"}}, If_Match="*").status_code == 200
    assert api("GET", "routes/acme/new").json()["spec"]["path"] == "/x"
    assert api("DELETE", "routes/acme/new", If_Match="*").status_code == 204


def test_creating_what_is_there_is_409_and_deleting_what_is_used_too(api: Api) -> None:
    assert_problem(api("POST", "pools", {"name": "shop", "spec": {}}), 409)
    pool = Pool.objects.get(name="shop").pk
    body = assert_problem(api("DELETE", f"pools/{pool}", If_Match="*"), 409)
    assert "route checkout" in body["detail"]


def test_every_wrong_field_is_named(api: Api) -> None:
    spec = ROUTE | {"hostname": "a\nb", "path": "/..", "nonsense": 1}
    body = assert_problem(api("POST", "routes", {"name": "new", "spec": spec}), 422)
    assert {error["pointer"] for error in body["errors"]} >= {"/spec/hostname", "/spec/path", "/spec/nonsense"}
    assert not Route.objects.filter(name="new").exists()


def test_fields_that_nobody_may_assign_are_refused(api: Api) -> None:
    for field in ("account_id", "version", "id", "is_staff", "generation"):
        body = assert_problem(api("POST", "routes", {"name": "new", "spec": ROUTE, field: 1}), 422)
        assert body["errors"][0]["pointer"] == f"/{field}"


@pytest.mark.both_engines  # NUL, which PostgreSQL takes in no text
def test_a_wrong_parameter_is_refused_by_name(api: Api) -> None:
    for url in ("routes?action=x", "routes?q=%00", "pools?name=%00", "routes?wait=x"):
        word = url.partition("?")[2].partition("=")[0]
        assert assert_problem(api("GET", url), 422)["errors"][0]["pointer"] == f"/{word}"


def test_lists_go_on_with_a_cursor_and_a_link(api: Api) -> None:
    first = api("GET", "routes?limit=2&q=acme")
    assert first["Link"].endswith('; rel="next"')
    following = first["Link"].partition(">")[0].removeprefix("</api/v1/")
    rest = api("GET", following)
    names = [item["name"] for item in first.json()["items"] + rest.json()["items"]]
    assert sorted(names) == ["checkout", "old-shop", "shop"]
    assert rest.json()["next_cursor"] is None
    assert len(api("GET", "servers?limit=1").json()["items"]) == 1


@pytest.mark.both_engines  # which letters are the same is for each to say
def test_routes_are_filtered_by_the_same_filters_as_on_the_page(api: Api) -> None:
    found = {
        "hostname=www.acme.example": ["old-shop"],
        "pool=shop-next": ["checkout"],
        "action=redirect": ["old-shop"],
        "q=CHECK": ["checkout"],
        "account=globex": [],
        "load_balancer=none": [],
    }
    for query, names in found.items():
        assert [item["name"] for item in api("GET", f"routes?{query}").json()["items"]] == names, query


def test_a_server_is_drained_with_the_version_of_its_pool(api: Api) -> None:
    server = Server.objects.filter(account__name="acme").first()
    assert server is not None
    url = f"servers/{server.pk}"
    assert_problem(api("PATCH", url, {"state": "drain"}), 428)
    assert_problem(api("PATCH", url, {"state": "gone"}, If_Match="*"), 422)
    assert_problem(api("PATCH", url, {"address": "10.0.0.1"}, If_Match="*"), 422)
    done = api("PATCH", url, {"state": "drain", "weight": 3}, If_Match=api("GET", url)["ETag"])
    assert (done.json()["state"], done.json()["weight"], done["ETag"]) == ("drain", 3, '"rev-2"')


def test_a_dry_run_of_one_write_stores_nothing_and_names_the_same_fields(api: Api) -> None:
    answer = api("POST", "routes?dry_run=plan", {"name": "new", "spec": ROUTE}).json()
    assert (answer["stored"], answer["counts"]["create"]) == (False, 1)
    body = assert_problem(api("POST", "routes?dry_run=true", {"name": "new", "spec": ROUTE | {"path": "x"}}), 422)
    assert body["errors"][0]["pointer"] == "/spec/path"
    assert api("DELETE", "routes/acme/shop?dry_run=true", If_Match="*").json()["counts"]["delete"] == 1
    assert_problem(api("POST", "routes?dry_run=yes", {"name": "new", "spec": ROUTE}), 422)
    assert set(Route.objects.filter(account__name="acme").values_list("name", flat=True)) == {
        "shop",
        "checkout",
        "old-shop",
    }


def test_apply_plans_stores_prunes_and_repeats(api: Api) -> None:
    pool = {"kind": "Pool", "name": "extra", "spec": {"backends": [{"region": "us-central1"}]}}
    route = {"kind": "Route", "name": "extra", "spec": ROUTE | {"action": {"pools": [{"pool": "extra"}]}}}
    both = {"objects": [route, pool]}
    assert api("PUT", "apply?dry_run=plan", both).json()["counts"]["create"] == 2
    assert not Pool.objects.filter(name="extra").exists()
    assert api("PUT", "apply?manager=pipeline", both).json()["counts"]["create"] == 2
    assert api("PUT", "apply?manager=pipeline", both).json()["counts"]["unchanged"] == 2
    pruned = api("PUT", "apply?manager=pipeline&prune=true", {"objects": []}).json()
    assert [(change["action"], change["kind"]) for change in pruned["changes"]] == [
        ("delete", "Route"),
        ("delete", "Pool"),
    ]
    assert Route.objects.filter(account__name="acme").count() == 3


def test_apply_reads_yaml(api: Api) -> None:
    text = "objects:\n- {kind: Pool, name: extra, spec: {protocol: http, backends: [{region: us-central1}]}}\n"
    for kind in ("application/yaml", "application/x-yaml"):
        assert api("PUT", "apply", text, Content_Type=kind).status_code == 200


def test_apply_stores_all_or_nothing_and_names_what_was_wrong(api: Api) -> None:
    good = {"kind": "Pool", "name": "extra", "spec": {}}
    bad = {"kind": "Route", "name": "extra", "spec": ROUTE | {"hostname": "co.uk"}}
    foreign = {"kind": "Pool", "name": "x", "account": "globex", "spec": {}}
    body = assert_problem(api("PUT", "apply", {"objects": [good, bad, foreign]}), 422)
    assert {error["pointer"] for error in body["errors"]} == {"/objects/1/spec/hostname", "/objects/2/account"}
    assert not Pool.objects.filter(name="extra").exists()


def test_apply_by_a_customer_does_not_touch_the_platform(api: Api) -> None:
    region = {"kind": "Region", "name": "moon", "spec": {"title": "Moon"}}
    assert_problem(api("PUT", "apply", {"objects": [region]}), 403)


def test_unknown_urls_and_methods_are_problems_too(api: Api) -> None:
    for url in ("", "nope", "routes/", "routes/x", "routes/-1", f"routes/{10**30}", "apply/", "../v2/routes"):
        assert_problem(api("GET", url), 404)
    for method, url, there in (
        *(("POST", "apply", "PUT"), ("DELETE", "routes", "GET or POST")),
        *(("POST", "revisions", "GET"), ("PATCH", "backends/1", "GET")),
    ):
        assert assert_problem(api(method, url), 405)["detail"] == f"This URL does not take {method}; use {there}."


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 422),
        ("{", 400),
        ('{"a":1,"a":2}', 400),
        ("[" * 100_000, 400),
        ('{"a":' * 40 + "1" + "}" * 40, 400),
        (b"\xff", 400),
        ('{"name":"\\u0000"}', 400),
        ('{"name":"\\ud800"}', 400),
        ('{"name":NaN}', 400),
        ("[]", 422),
        ('"x"', 422),
        ("null", 422),
        (b" " * (9 * 1024 * 1024), 400),
        ('{"a":' + "9" * 5000 + "}", 400),
    ],
)
def test_json_that_is_broken_or_hostile_is_refused(acme: Actor, body: str | bytes, status: int) -> None:
    assert_problem(Api(acme)("POST", "routes", body), status)


@pytest.mark.parametrize(
    "body",
    [
        "a: &x 1\nb: *x",
        "a: 1\na: 2",
        "!!python/object:os.system x",
        "[" * 100,
        "a: [",
        "a: \x00",
        "{[1]: 2}",
        "---\na: 1\n---\nb: 2",
        'a: "\\ud800"',
        "? {a: 1}\n: 2",
        "- \x1b[31m",
    ],
)
def test_yaml_that_is_broken_or_hostile_is_refused(acme: Actor, body: str) -> None:
    assert_problem(Api(acme)("PUT", "apply", body, Content_Type="application/yaml"), 400)


def test_numbers_of_yaml_are_those_of_json(api: Api) -> None:
    for number in ("0x50", "080", "1_000", "1e3", "1:30", "yes", "2020-01-01", ".inf"):
        text = f"objects: [{{kind: Pool, name: x, spec: {{connect_timeout_ms: {number}}}}}]"
        body = assert_problem(api("PUT", "apply", text, Content_Type="application/yaml"), 422)
        assert body["errors"][0]["code"] == "not_integer", number


@pytest.mark.parametrize("reason", ["x" * 401, "a\x1b[31m"])
def test_a_reason_that_would_spoil_the_record_is_refused(api: Api, reason: str) -> None:
    assert_problem(api("POST", "routes", {"name": "new", "spec": ROUTE}, X_Change_Reason=reason), 422)


def test_what_nobody_foresaw_is_a_problem_without_a_word_about_the_inside(rf: RequestFactory) -> None:
    answer = problem_response(ZeroDivisionError("the inside"), {"request": rf.get("/api/v1/routes")})
    assert answer.status_code == 500
    assert answer.data["instance"] == "/api/v1/routes"
    assert "inside" not in json.dumps(answer.data)
