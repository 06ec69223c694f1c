"""Every kind is written alike: conditions, merge patches, dry runs, and what pipelines manage."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apps.accounts.models import Account
from apps.audit.models import Entry
from apps.definitions.models import Pool, Route, Server
from apps.definitions.services import KINDS, PLATFORM, apply_document
from apps.fleet.models import Fleet, Region
from tests.apps.clouds_env import remembered
from tests.breadth import first_of
from tests.conftest import actor_of
from tests.interfaces.api.test_api_objects import ROUTE, Api, api, assert_problem, house

__all__ = ["api", "house"]


# One of each kind that the tutorial and its clouds have none of.
OTHERS: tuple[dict[str, Any], ...] = (
    {"kind": "CertificateAuthority", "name": "ca", "spec": {"directory_url": "https://ca.example/directory"}},
    {"kind": "NetworkList", "name": "offices", "spec": {"entries": [{"network": "192.0.2.0/24"}]}},
    {"kind": "Policy", "name": "hsts", "spec": {"rules": {"security_headers": {"hsts_seconds": 600}}}},
    {"kind": "AlertChannel", "name": "on-call", "spec": {"type": "pagerduty", "secret": "0" * 32}},
    {"kind": "AlertRule", "name": "errors", "spec": {"watches": "pool_errors"}},
    {"kind": "StatusPage", "name": "front", "spec": {"title": "Front"}},
)
_CLOUDS = remembered(lambda operator, _acme: apply_document(actor=operator, objects=copy.deepcopy(list(OTHERS))))
breadth = pytest.mark.exhaustive


ALIKE = sorted(set(KINDS) - {"Certificate", "Grant"})
# Of each owner, of each way to be stored; the others are alike.
FIRST = ("LoadBalancer", "Pool", "Record", "Region", "Route", "Schedule", "Stack", "Zone")


@pytest.mark.parametrize("kind", [*FIRST, *(pytest.param(each, marks=breadth) for each in ALIKE if each not in FIRST)])
def test_every_kind_is_replaced_patched_and_read_by_id_and_by_name(db: None, kind: str) -> None:
    _CLOUDS.put()
    house, noun = Api(actor_of("operator", Account.Kind.OPERATOR)), KINDS[kind].noun
    item = house("GET", noun).json()["items"][0]
    name = item["name"] if kind in PLATFORM else f"{item['account']}/{item['name']}"
    url, by_id = f"{noun}/{name}", f"{noun}/{item['id']}"
    read = house("GET", url)
    tag = read["ETag"]
    assert house("GET", url, If_None_Match=tag).status_code == 304
    body = {"spec": read.json()["spec"]}
    assert_problem(house("PUT", url, body), 428)
    stale = house("PUT", url, body, If_Match='"rev-999999"')
    assert_problem(stale, 412)
    assert stale["ETag"] == tag
    assert house("PUT", url, body, If_Match=tag)["ETag"] == tag
    assert house("PATCH", url, {"spec": {}}, If_Match=tag)["ETag"] == tag
    assert_problem(house("PATCH", url, {"spec": {"nonsense": 1}}, If_Match=tag), 422)
    assert_problem(house("PATCH", url, {"spec": []}, If_Match=tag), 422)
    assert_problem(house("PUT", url, body, If_None_Match="*"), 412)
    assert_problem(house("DELETE", url), 428)
    assert house("GET", by_id).json() == read.json()
    assert_problem(house("PATCH", by_id, {"spec": {}}, If_Match='"rev-999999"'), 412)
    assert house("PUT", by_id, body, If_Match=tag)["ETag"] == tag


def test_no_tag_and_no_version_fits_what_was_made_anew_under_the_name(api: Api, house: Api) -> None:
    for caller, url, spec in ((api, "routes/acme/new", ROUTE), (house, "regions/mars", {"title": "Mars"})):
        seen: list[Any] = []
        for _ in range(2):
            made = caller("PUT", url, {"spec": spec}, If_None_Match="*")
            assert made.status_code == 201
            for former in seen:
                assert caller("GET", url, If_None_Match=former["ETag"]).status_code == 200
                assert_problem(caller("PATCH", url, {"spec": {}}, If_Match=former["ETag"]), 412)
                assert_problem(caller("DELETE", url, If_Match=former["ETag"]), 412)
            seen.append(made)
            assert caller("DELETE", url, If_Match=made["ETag"]).status_code == 204
    api("PUT", "routes/acme/new", {"spec": ROUTE}, If_None_Match="*")
    items = [{"action": "delete", "name": "new", "version": 1}]
    assert_problem(api("POST", "routes:batch", {"items": items}), 422)
    assert api("PUT", "routes/acme/newer", {"spec": ROUTE | {"path": "/x"}}, If_None_Match="*")["ETag"] == '"rev-1"'


def test_a_region_is_made_patched_and_deleted(house: Api) -> None:
    made = house("PUT", "regions/mars", {"spec": {"title": "Mars"}}, If_None_Match="*")
    assert made.status_code == 201
    patched = house("PATCH", "regions/mars", {"spec": {"latitude": 1, "title": "Red"}}, If_Match=made["ETag"])
    assert patched.json()["spec"]["title"] == "Red"
    cleared = house("PATCH", "regions/mars", {"spec": {"latitude": None}}, If_Match="*")
    assert cleared.json()["spec"]["latitude"] is None
    assert house("DELETE", "regions/mars", If_Match="*").status_code == 204
    assert not Region.objects.filter(name="mars").exists()


def test_customers_write_nothing_of_the_platform(api: Api) -> None:
    for kind in (kind for kind in KINDS if kind in PLATFORM or kind == "LoadBalancer"):
        noun = KINDS[kind].noun
        assert api("POST", noun, {"name": "mine", "spec": {}}).status_code in (403, 422), kind
        own = "mine" if kind in PLATFORM else "acme/mine"
        assert api("PUT", f"{noun}/{own}", {"spec": {}}, If_None_Match="*").status_code in (403, 422), kind
        assert not KINDS[kind].model.objects.filter(name="mine").exists(), kind


def test_a_merge_patch_changes_what_it_names_and_nothing_else(api: Api) -> None:
    before = api("GET", "routes/acme/shop").json()["spec"]
    found = api("PATCH", "routes/acme/shop", {"spec": {"methods": ["GET"]}}, If_Match="*").json()["spec"]
    assert found == before | {"methods": ["GET"]}
    assert api("PATCH", "routes/acme/shop", {"spec": {"methods": None}}, If_Match="*").json()["spec"] == before


# One of each view first.
WRITES: list[tuple[str, str, Any]] = [
    ("POST", "routes", {"name": "new", "spec": ROUTE}),
    ("DELETE", "routes/acme/shop", None),
    ("PATCH", "pools/acme/shop", {"spec": {"balance": "random"}}),
    ("PATCH", "servers/{server}", {"weight": 7}),
    ("PATCH", "routes/acme/shop", {"spec": {"methods": ["GET"]}}),
    ("PATCH", "pools/acme/shop/limits/us-central1", {"value": 9}),
]
OPERATED: list[tuple[str, str, Any]] = [
    ("POST", "regions/us-central1/drain", {}),
    ("PUT", "regions/us-central1/latency/europe-west1", {"ms": 55}),
    ("PATCH", "regions/us-central1", {"spec": {"drained": True}}),
    ("DELETE", "nodes/{node}", None),
]


@pytest.mark.parametrize(("method", "url", "body"), [*first_of(4, WRITES), *first_of(1, OPERATED)])
def test_a_dry_run_shows_what_would_change_and_stores_nothing(
    api: Api, house: Api, method: str, url: str, body: Any
) -> None:
    server = Server.objects.filter(account__name="acme").earliest("pk").pk
    node = house("GET", "nodes").json()["items"][0]["name"]
    caller = house if (method, url, body) in OPERATED else api
    entries, fleets = Entry.objects.count(), list(Fleet.objects.values_list("desired_generation", flat=True))
    answer = caller(method, f"{url.format(server=server, node=node)}?dry_run=true", body, If_Match="*")
    assert answer.status_code == 200, answer.content
    shown = answer.json()
    assert shown["stored"] is False
    assert shown["changes"][0]["action"] in ("create", "update", "delete")
    assert shown["changes"][0]["fields"] or shown["changes"][0]["action"] == "delete"
    assert [each["fleet"] for each in shown["fleets"]] == list(shown["generations"])
    assert Entry.objects.count() == entries
    assert list(Fleet.objects.values_list("desired_generation", flat=True)) == fleets


def test_a_dry_run_shows_the_lines_of_the_change_and_none_of_others(api: Api) -> None:
    shown = api("POST", "routes?dry_run=true", {"name": "new", "spec": ROUTE}).json()
    assert shown["fleets"]
    for fleet in shown["fleets"]:
        changed = [line for line in fleet["rendered"].splitlines() if not line.startswith(("---", "+++", "@@"))]
        assert any("new.acme.example" in line or "route-" in line for line in changed) or fleet["rendered"] == ""
        assert all(line[0] in "+-" for line in changed)
        assert "globex" not in str(fleet)


def test_a_dry_run_refuses_what_the_write_refuses(api: Api) -> None:
    for url in ("routes", "routes?dry_run=true"):
        assert_problem(api("POST", url, {"name": "shop", "spec": ROUTE}), 409)
        field_errors = assert_problem(api("POST", url, {"name": "new", "spec": ROUTE | {"path": "x"}}), 422)["errors"]
        assert [field_error["pointer"] for field_error in field_errors] == ["/spec/path"]


POOLS = {"objects": [{"kind": "Pool", "name": "extra", "spec": {"backends": [{"region": "us-central1"}]}}]}


def test_what_a_pipeline_manages_is_changed_by_others_only_with_broken_glass(api: Api) -> None:
    api("PUT", "apply?manager=ci", POOLS)
    change = {"spec": {"balance": "random"}}
    for method, body in (("PATCH", change), ("DELETE", None)):
        refused = assert_problem(api(method, "pools/acme/extra", body, If_Match="*"), 409)
        assert refused["errors"][0]["code"] == "managed"
    assert Pool.objects.get(name="extra").balance == "leastconn"
    done = api("PATCH", "pools/acme/extra?break_glass=true", change, If_Match="*", X_Change_Reason="night")
    assert (done.status_code, done.json()["manager"]) == (200, "ci")
    assert Entry.objects.latest("pk").reason == "Break glass (ci). night"
    again = api("PUT", "apply?manager=ci&dry_run=plan", POOLS).json()
    assert again["changes"][0]["fields"] == [{"path": "/balance", "before": "random", "after": "leastconn"}]


def test_a_plan_is_applied_exactly_so_and_once(api: Api, globex: Any) -> None:
    plan = api("PUT", "apply?manager=ci&dry_run=plan", POOLS).json()
    url = f"plans/{plan['plan_id']}"
    assert api("GET", url).json()["changes"] == plan["changes"]
    assert [row["id"] for row in api("GET", "plans").json()["items"]] == [plan["plan_id"]]
    stranger = Api(globex)
    assert_problem(stranger("GET", url), 404)
    assert_problem(stranger("POST", f"{url}/apply"), 404)
    done = api("POST", f"{url}/apply")
    assert (done.status_code, done.json()["stored"], done.json()["changes"]) == (200, True, plan["changes"])
    assert Pool.objects.get(name="extra").manager == "ci"
    assert "was applied by token test" in assert_problem(api("POST", f"{url}/apply"), 409)["detail"]


@pytest.mark.parametrize("meddling", ["same object", "referenced object", "taken path"])
def test_a_plan_whose_base_has_moved_is_refused_whole(api: Api, house: Api, meddling: str) -> None:
    objects = [*POOLS["objects"], {"kind": "Route", "name": "new", "spec": ROUTE}]
    plan = api("PUT", "apply?dry_run=true", {"objects": objects}).json()["plan_id"]
    if meddling == "same object":
        api("PUT", "apply", POOLS)
    elif meddling == "referenced object":
        assert api("PATCH", "pools/acme/shop", {"spec": {"balance": "random"}}, If_Match="*").status_code == 200
    else:
        made = {
            "name": "x",
            "account": "acme",
            "spec": ROUTE | {"action": {"redirect": {"code": 301, "host": "b.example"}}},
        }
        assert house("POST", "routes", made).status_code == 201
    assert_problem(api("POST", f"plans/{plan}/apply"), 409)
    assert not Route.objects.filter(name="new").exists()


def test_a_plan_is_not_moved_by_what_others_do_on_the_same_fleets(api: Api, globex: Any) -> None:
    plan = api("PUT", "apply?dry_run=true", POOLS).json()["plan_id"]
    stranger = Api(globex)
    pool = stranger("GET", "pools").json()["items"][0]
    assert stranger("PATCH", f"pools/{pool['id']}", {"spec": {"balance": "random"}}, If_Match="*").status_code == 200
    assert api("POST", f"plans/{plan}/apply").status_code == 200


def test_plans_are_listed_page_by_page(api: Api) -> None:
    made = [api("PUT", "apply?dry_run=plan", POOLS).json()["plan_id"] for _ in range(2)]
    first = api("GET", "plans?limit=1").json()
    rest = api("GET", f"plans?limit=1&cursor={first['next_cursor']}").json()
    assert [row["id"] for row in first["items"] + rest["items"]] == made[::-1]
    assert rest["next_cursor"] is None
