"""Capacity tests and their runs: written, asked for, watched, stopped, and blackouts."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Hostname, Membership
from apps.capacity.models import Run, Second, Step
from apps.core.clock import now
from tests.interfaces.api.test_api_objects import Api, assert_problem

TARGET = {"pool": "shop", "region": "us-central1", "hostname": "shop.acme.example"}
SPEC = {"target": TARGET, "guards": {"max_rate": 40}}


@pytest.fixture
def api(tutorial_env: Actor, acme: Actor) -> Api:
    """Acme's program; acme has verified its names."""
    Hostname.objects.update(verification="dns")
    Account.objects.update(quotas={})
    return Api(acme)


@pytest.fixture
def test(api: Api) -> dict[str, Any]:
    """A stored test."""
    made = api("POST", "capacity-tests", {"name": "nightly", "spec": SPEC})
    assert made.status_code == 201, made.content
    found: dict[str, Any] = made.json()
    return found


@pytest.fixture
def run(test: dict[str, Any]) -> Run:
    """A run of it that waits."""
    from apps.definitions.models import CapacityTest

    row = CapacityTest.objects.get(pk=test["id"])
    return Run.objects.create(
        account=row.account, test=row, pool=row.pool, region=row.region, label="acme/nightly", plan=test["spec"],
        actor="x", begin_by=now(),
    )  # fmt: skip


def test_a_test_is_written_like_every_object(api: Api, test: dict[str, Any]) -> None:
    read = api("GET", f"capacity-tests/{test['id']}")
    assert read.json()["spec"]["guards"]["max_rate"] == 40
    changed = api("PATCH", "capacity-tests/acme/nightly", {"spec": {"guards": {"max_rate": 20}}}, If_Match=read["ETag"])
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    body = assert_problem(
        api("POST", "capacity-tests", {"name": "x", "spec": {"target": TARGET | {"pool": "no"}}}), 422
    )
    assert body["errors"][0]["pointer"] == "/spec/target/pool"


def test_a_run_that_may_not_be_now_is_refused_with_a_sentence(api: Api, test: dict[str, Any]) -> None:
    asked = api("POST", f"capacity-tests/{test['id']}/run")
    assert asked.status_code == 202
    run = asked.json()
    assert (run["state"], run["terminal"]) == ("refused", True)
    assert "ask an operator" in run["message"]
    assert api("GET", asked["Location"].removeprefix("/api/v1/")).json() == run
    checks = api("GET", f"capacity-tests/{test['id']}/checks").json()
    assert not checks["may_run"]
    assert {check["code"] for check in checks["checks"] if not check["ok"]} >= {"quota", "at_once"}


def test_a_viewer_stops_what_it_sees(tutorial_env: Actor, acme: Actor, run: Run) -> None:
    viewer = Api(Actor("vera", acme.account, Membership.Role.VIEWER))
    stopped = viewer("POST", f"capacity-runs/{run.pk}/stop")
    assert (stopped.status_code, stopped.json()["state"]) == (202, "stopped")
    assert_problem(viewer("POST", f"capacity-tests/{run.test_id}/run"), 403)


def test_nobody_else_sees_or_stops_a_run(api: Api, globex: Actor, run: Run) -> None:
    other = Api(globex)
    assert other("GET", "capacity-runs").json()["items"] == []
    for method, url in (("GET", ""), ("GET", "/steps"), ("GET", "/seconds"), ("POST", "/stop"), ("POST", "/set-limit")):
        assert_problem(other(method, f"capacity-runs/{run.pk}{url}"), 404)
    assert Run.objects.get().state == Run.State.WAITING


def test_steps_and_seconds_are_read_in_their_order(api: Api, run: Run) -> None:
    for number in (1, 2):
        Step.objects.create(
            run=run, ordinal=number, purpose="hold", rate=5, started_at=now(), seconds=5, offered=5, answered=5,
            status="good",
        )  # fmt: skip
        Second.objects.create(run=run, at=now(), target=5, offered=5, answered=5, errors=0, in_flight=1)
    assert [step["ordinal"] for step in api("GET", f"capacity-runs/{run.pk}/steps").json()["items"]] == [1, 2]
    assert len(api("GET", f"capacity-runs/{run.pk}/seconds?limit=1").json()["items"]) == 1


def test_only_operators_set_and_end_blackouts(api: Api, tutorial_env: Actor) -> None:
    window = {"starts_at": "2030-12-24T00:00:00Z", "ends_at": "2030-12-27T00:00:00Z", "reason": "Christmas"}
    assert_problem(api("POST", "blackouts", window), 403)
    house = Api(tutorial_env)
    made = house("POST", "blackouts", window)
    assert made.status_code == 201
    assert_problem(house("POST", "blackouts", window | {"ends_at": "2030-12-01T00:00:00Z"}), 422)
    assert [row["reason"] for row in api("GET", "blackouts").json()["items"]] == ["Christmas"]
    assert_problem(api("DELETE", f"blackouts/{made.json()['id']}"), 403)
    assert house("DELETE", f"blackouts/{made.json()['id']}").status_code == 204


def test_a_run_that_waits_for_nobody_is_not_approved(api: Api, tutorial_env: Actor, run: Run) -> None:
    assert_problem(api("POST", f"capacity-runs/{run.pk}/approve"), 403)
    assert_problem(Api(tutorial_env)("POST", f"capacity-runs/{run.pk}/approve"), 409)


def test_two_tests_are_compared_and_one_not_with_itself(api: Api, test: dict[str, Any], globex: Actor) -> None:
    second = api("POST", "capacity-tests", {"name": "second", "spec": SPEC}).json()
    order = {"first_id": test["id"], "second_id": second["id"], "rounds": 2}
    made = api("POST", "capacity-comparisons", order)
    assert made.status_code == 202, made.content
    shown = api("GET", made["Location"].removeprefix("/api/v1/")).json()
    assert (shown["first"], shown["second"], shown["rounds"]) == ("nightly", "second", 2)
    assert_problem(api("POST", "capacity-comparisons", order | {"second_id": test["id"]}), 422)
    assert_problem(api("POST", "capacity-comparisons", order | {"rounds": "2"}), 422)
    assert_problem(Api(globex)("GET", made["Location"].removeprefix("/api/v1/")), 404)
    assert_problem(Api(globex)("POST", "capacity-comparisons", order), 404)


def test_sizing_says_that_nothing_was_measured_and_refuses_nonsense(api: Api, globex: Actor) -> None:
    found = api("GET", "sizing?pool=shop&rate=30").json()
    assert (found["possible"], found["n_minus_1"]) == (False, True)
    assert {each["status"] for each in found["balance"]} == {"unknown"}
    assert [each["server"] for each in found["balance"][0]["shares"]] == ["eu-vm-1", "eu-vm-2", "eu-vm-3"]
    for query in (
        "pool=shop",
        "rate=30",
        "pool=shop&rate=-1",
        "pool=shop&rate=nan",
        "pool=shop&rate=9&n_minus_1=x",
    ):
        assert_problem(api("GET", f"sizing?{query}"), 422)
    assert_problem(Api(globex)("GET", "sizing?pool=acme/shop&rate=30"), 404)
