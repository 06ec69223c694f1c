"""One limit by one small call, a region drained, a distance; who may, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.capacity.models import Run
from apps.capacity.use.staleness import build_of
from apps.core.clock import now
from apps.definitions.models import Backend
from apps.fleet.models import Region
from tests.interfaces.api.test_api_objects import Api, assert_problem

LIMIT = "pools/acme/shop/limits/us-central1"


@pytest.fixture
def api(tutorial_env: Actor, acme: Actor) -> Api:
    """Acme's program."""
    return Api(acme)


@pytest.fixture
def house(tutorial_env: Actor) -> Api:
    """The operator's program."""
    return Api(tutorial_env)


def stored() -> tuple[str, int, float]:
    row = Backend.objects.get(pool__name="shop", region__name="us-central1")
    return row.limit_kind, row.limit_value, row.capacity_scaler


def test_a_limit_is_changed_by_one_call_that_says_which_generations_make_it_live(api: Api) -> None:
    seen = api("GET", LIMIT)
    assert seen.json()["limit"]["value"] == 10
    done = api("PATCH", LIMIT, {"value": 25}, If_Match=seen["ETag"], X_Change_Reason="sale")
    assert done.status_code == 200
    assert (done.json()["limit"]["value"], done.json()["limit"]["set_by"]) == (25, "token test")
    assert (done["ETag"], done.json()["version"]) == ('"rev-2"', 2)
    assert {part.partition("=")[0] for part in done["X-Spillway-Generation"].split(", ")} == {
        "us-central1",
        "europe-west1",
    }
    assert stored() == ("rate", 25, 1.0)
    entry = Entry.objects.first()
    assert entry is not None
    assert entry.reason == "sale"
    assert api("GET", LIMIT, If_None_Match=done["ETag"]).status_code == 304
    assert api("GET", "pools/acme/shop").json()["spec"]["backends"][1]["limit"]["value"] == 25


def test_a_limit_says_what_its_measurement_is_worth(api: Api, house: Api) -> None:
    assert api("GET", LIMIT).json()["measurement"] is None
    backend = Backend.objects.select_related("pool", "region", "account").get(
        pool__name="shop", region__name="us-central1"
    )
    ended = now() - timedelta(days=2)
    about = {"account": backend.account, "pool": backend.pool, "region": backend.region, "label": "shop", "plan": {}}
    result: dict[str, Any] = {"capacity": 15.0, "build": build_of(backend.pool, backend.region)}
    run = Run.objects.create(**about, state=Run.State.DONE, actor="ada", ended_at=ended, result=result)
    done = api("PATCH", LIMIT, {"value": 12, "measured_by": run.name}, If_Match="*")
    found = done.json()["measurement"]
    assert (found["run"], found["status"], found["stale"]) == (run.name, "fresh", False)
    assert found["message"].startswith(f"Measured by {run.name} 2 days ago on build {result['build']['digest']}")
    house("PATCH", f"servers/{backend.servers.get(name='us-vm-1').pk}", {"weight": 7}, If_Match="*")
    changed = api("GET", LIMIT, If_None_Match=done["ETag"])
    assert changed.status_code == 200  # it ages without a new version
    assert changed.json()["measurement"]["status"] == "changed"


def test_the_kind_the_share_and_the_run_that_measured_it_are_set_in_the_same_way(api: Api) -> None:
    body = {"kind": "connections", "value": 6, "scope": "server", "capacity_scaler": 0.5, "measured_by": "run-3"}
    answer = api("PATCH", LIMIT, body, If_Match="*").json()
    assert answer["limit"] | body == answer["limit"] | {"capacity_scaler": 0.5}
    assert answer["capacity_scaler"] == 0.5
    assert api("PATCH", LIMIT, {"kind": "none"}, If_Match="*").json()["limit"]["kind"] == "none"


def test_an_unconditional_or_stale_change_of_a_limit_is_refused(api: Api) -> None:
    assert_problem(api("PATCH", LIMIT, {"value": 25}), 428)
    assert_problem(api("PATCH", LIMIT, {"value": 25}, If_Match='"rev-9"'), 412)
    assert api("PATCH", f"{LIMIT}?dry_run=true", {"value": 25}, If_Match="*").json()["stored"] is False
    assert stored() == ("rate", 10, 1.0)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"value": "x"}, "/value"),
        ({"value": 0}, "/value"),
        ({"kind": "speed"}, "/kind"),
        ({"capacity_scaler": 2}, "/capacity_scaler"),
        ({"region": "x"}, "/region"),
        ({"measured_by": "a b"}, "/measured_by"),
    ],
)
def test_a_limit_that_cannot_be_is_refused_by_field(api: Api, body: dict[str, Any], pointer: str) -> None:
    problem = assert_problem(api("PATCH", LIMIT, body, If_Match="*"), 422)
    assert [error["pointer"] for error in problem["errors"]] == [pointer]


def test_limits_of_others_do_not_exist(tutorial_env: Actor, globex: Actor) -> None:
    other = Api(globex)
    details = set()
    for url in (LIMIT, "pools/acme/nope/limits/us-central1", "pools/globex/api/limits/moon"):
        for method, body in (("GET", None), ("PATCH", {"value": 1})):
            details.add(assert_problem(other(method, url, body, If_Match="*"), 404)["detail"])
    assert len(details) == 1
    assert stored() == ("rate", 10, 1.0)


def test_operators_set_limits_of_every_pool(house: Api) -> None:
    assert house("PATCH", LIMIT, {"value": 11}, If_Match="*").status_code == 200
    assert stored() == ("rate", 11, 1.0)


def test_a_region_is_drained_and_taken_back_by_operators(api: Api, house: Api) -> None:
    for word, drained in (("drain", True), ("drain", True), ("undrain", False)):
        answer = house("POST", f"regions/europe-west1/{word}", X_Change_Reason="heat")
        assert (answer.status_code, answer.json()["spec"]["drained"]) == (200, drained)
        assert "us-central1=" in answer["X-Spillway-Generation"]
    assert Entry.objects.filter(reason="heat").count() == 2
    assert_problem(house("POST", "regions/moon/drain"), 404)
    assert house("POST", "regions/europe-west1/drain?dry_run=true").json()["stored"] is False
    assert_problem(api("POST", "regions/europe-west1/drain"), 403)
    assert_problem(api("GET", "regions/europe-west1/drain"), 405)
    assert not Region.objects.filter(drained=True).exists()


def test_a_distance_is_set_and_taken_back(api: Api, house: Api) -> None:
    url = "regions/us-central1/latency/europe-west1"
    assert house("PUT", url, {"ms": 120.5}).json()["spec"]["latency"] == [{"to": "europe-west1", "ms": 120.5}]
    assert house("PUT", url, {"ms": None}).json()["spec"]["latency"] == []
    for body in ({}, {"ms": "fast"}, {"ms": 5, "to": "x"}):
        assert_problem(house("PUT", url, body), 422)
    assert_problem(house("PUT", "regions/us-central1/latency/us-central1", {"ms": 1}), 422)
    assert_problem(house("PUT", "regions/us-central1/latency/moon", {"ms": 1}), 404)
    assert_problem(api("PUT", url, {"ms": 1}), 403)


def test_documents_show_the_policy_the_ports_and_the_distances(api: Api, house: Api) -> None:
    spec = api("GET", "pools/acme/shop").json()["spec"]
    assert spec["overflow"] == {"when_full": "spread", "mode": "anywhere", "order": []}
    spec["overflow"] = {"when_full": "refuse", "mode": "listed", "order": ["us-central1"]}
    answer = api("PUT", "pools/acme/shop", {"spec": spec}, If_Match="*")
    assert answer.json()["spec"]["overflow"] == spec["overflow"]
    fleets = {item["name"]: item["spec"] for item in house("GET", "fleets").json()["items"]}
    assert fleets["us-central1"]["overflow_port"] == 9701
    regions = {item["name"]: item for item in house("GET", "regions").json()["items"]}
    assert regions["europe-west1"]["spec"]["latency"] == [{"to": "us-central1", "ms": 98}]
    assert regions["us-central1"]["measured_latency"] == []


def test_a_pool_that_cannot_be_is_refused_by_field_before_it_is_stored(api: Api) -> None:
    spec = api("GET", "pools/acme/shop").json()["spec"]
    for overflow, pointer in (
        ({"when_full": "queue"}, "/spec/overflow/when_full"),
        ({"when_full": "never"}, "/spec/overflow/when_full"),
        ({"order": ["moon"]}, "/spec/overflow/order/0"),
        ({"orders": []}, "/spec/overflow/orders"),
    ):
        for url in ("pools/acme/shop", "pools/acme/shop?dry_run=plan"):
            problem = assert_problem(api("PUT", url, {"spec": spec | {"overflow": overflow}}, If_Match="*"), 422)
            assert [error["pointer"] for error in problem["errors"]] == [pointer]
