"""Static IPs that move, what targets would lose, runs of stacks, zones as they are served."""

from __future__ import annotations

from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.audit.models import Entry
from apps.core.clock import now
from apps.definitions.models import Backend, LoadBalancer, Record, Zone
from apps.definitions.services import save_object
from apps.fleet.models import Fleet, Stack, StaticIP
from apps.stacks.models import CloudSample, CloudTarget, StackRevision, StackRun, StackSync
from tests.apps.clouds_env import RECORD, remembered, spec_of
from tests.conftest import actor_of
from tests.interfaces.api.test_api_objects import Api, assert_problem

VIP = {"kind": "vip", "pool": "addresses", "region": "us-central1"}


def listeners(*ports: int, static_ip: str | None = None) -> list[dict[str, Any]]:
    """Listeners by their ports; the address, where there is one."""
    return [{"name": f"p{port}", "protocol": "http", "port": port, "static_ip": static_ip} for port in ports]


def _make_fronts(operator: Actor, _: Actor) -> None:
    save_object(actor=operator, kind="StaticIP", name="vip", spec=VIP)
    for name, found in (("one", listeners(8101, static_ip="vip")), ("two", listeners(8101, 8102))):
        spec = {"fleets": ["us-central1"], "listeners": found}
        if name == "two":
            spec["listeners"] = [{**each, "port": each["port"] + 100} for each in found]
        save_object(actor=operator, kind="LoadBalancer", name=name, spec=spec)


_FRONTS = remembered(_make_fronts)


@pytest.fixture
def fronts(db: None) -> Actor:
    """Two load balancers on one fleet, the first of them served by an address."""
    _FRONTS.put()
    return actor_of("operator", Account.Kind.OPERATOR)


@pytest.fixture
def house(fronts: Actor) -> Api:
    """The operator's program."""
    return Api(fronts)


@pytest.fixture
def acme(fronts: Actor) -> Actor:
    """An admin of the customer acme."""
    return actor_of("acme", Account.Kind.CUSTOMER)


@pytest.fixture
def api(acme: Actor) -> Api:
    """Acme's program."""
    return Api(acme)


def bound() -> list[str]:
    """The listeners that bind the address."""
    rows = StaticIP.objects.get(name="vip").listeners.order_by("load_balancer__name", "name")
    return [f"{row.load_balancer.name}/{row.name}" for row in rows.select_related("load_balancer")]


def test_an_address_moves_in_one_change_that_is_told_once(house: Api, fronts: Actor) -> None:
    before = {row.name: row.version for row in LoadBalancer.objects.all()}
    generation = Fleet.objects.get(name="us-central1").desired_generation
    body = {"load_balancer": "two", "listeners": ["p8101"]}
    answer = house("POST", "static-ips/vip/move", body, X_Change_Reason="two takes over")
    assert answer.status_code == 200, answer.content
    assert answer.json()["load_balancer"] == "two"
    assert bound() == ["two/p8101"]
    assert Fleet.objects.get(name="us-central1").desired_generation == generation + 1
    after = {row.name: row.version for row in LoadBalancer.objects.all()}
    assert {name for name in after if after[name] != before[name]} == {"one", "two"}
    entry = Entry.objects.get(object_kind="StaticIP", action="move")
    assert (entry.before, entry.after) == (
        {"load_balancer": "one", "listeners": ["p8101"]},
        {"load_balancer": "two", "listeners": ["p8101"]},
    )
    assert entry.reason == "two takes over"
    assert house("POST", "static-ips/vip/move", body).json()["version"] == answer.json()["version"], "it is there"


def test_a_dry_run_of_a_move_moves_nothing(house: Api, fronts: Actor) -> None:
    answer = house("POST", "static-ips/vip/move?dry_run=true", {"load_balancer": "two", "listeners": ["p8101"]})
    assert answer.status_code == 200, answer.content
    assert {change["name"] for change in answer.json()["changes"]} == {"vip", "one", "two"}
    assert bound() == ["one/p8101"]


NO_MOVES: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "/load_balancer"),
    ({"load_balancer": "nobody"}, "/load_balancer"),
    ({"load_balancer": "front", "listeners": ["http"]}, "/load_balancer"),
    ({"load_balancer": "two"}, "/listeners"),
    ({"load_balancer": "two", "listeners": []}, "/listeners"),
    ({"load_balancer": "two", "listeners": ["p8101", "nothing"]}, "/listeners/1"),
    ({"load_balancer": "two", "listener": "p8101"}, "/listener"),
)


def test_a_move_that_cannot_be_is_refused_by_name(house: Api) -> None:
    for body, pointer in NO_MOVES:
        problem = assert_problem(house("POST", "static-ips/vip/move", body), 422)
        assert pointer in {error["pointer"] for error in problem["errors"]}, body
        assert bound() == ["one/p8101"]


def test_a_released_address_stays_and_serves_nobody(house: Api, fronts: Actor) -> None:
    answer = house("POST", "static-ips/vip/release")
    assert answer.json()["load_balancer"] is None
    assert answer.json()["addresses"] == ["203.0.113.1"]
    assert bound() == []
    assert Entry.objects.filter(object_kind="StaticIP", action="release").count() == 1


def test_a_listener_that_could_not_stand_without_it_keeps_it(house: Api, fronts: Actor) -> None:
    spec = spec_of(fronts, "two", "LoadBalancer")
    spec["listeners"][0]["port"] = 8101
    save_object(actor=fronts, kind="LoadBalancer", name="two", spec=spec)
    problem = assert_problem(house("POST", "static-ips/vip/release"), 422)
    assert problem["errors"][0]["code"] == "port_in_use"
    assert bound() == ["one/p8101"]


def test_what_a_pipeline_manages_moves_only_by_breaking_the_glass(house: Api, fronts: Actor) -> None:
    LoadBalancer.objects.filter(name="one").update(manager="ci")
    body = {"load_balancer": "two", "listeners": ["p8101"]}
    assert_problem(house("POST", "static-ips/vip/move", body), 409)
    assert house("POST", "static-ips/vip/move?break_glass=true", body).status_code == 200


def test_a_report_names_what_each_target_would_lose(house: Api, api: Api, fronts: Actor) -> None:
    front = LoadBalancer.objects.get(name="front").pk
    found = house("GET", f"load-balancers/{front}/portability?target=aws").json()
    assert {each["target"] for each in found["incompatibilities"]} == {"aws"}
    assert all(each["message"] and each["severity"] in ("refused", "lossy") for each in found["incompatibilities"])
    own = api("GET", f"load-balancers/{front}/portability").json()["incompatibilities"]
    assert {each["object"].partition("/")[0] for each in own} <= {"acme"}
    assert_problem(house("GET", f"load-balancers/{front}/portability?target=moon"), 422)


def test_a_run_is_read_decided_and_told(house: Api, fronts: Actor) -> None:
    stack = Stack.objects.get(name="aws-eu")
    revision = StackRevision.objects.create(
        stack=stack, number=1, generation=1, digest="0" * 64, document=b"", secrets=b"", summary="x", actor="x"
    )
    run = StackRun.objects.create(stack=stack, revision=revision, state="planned", actor="x", plan_digest="a" * 64)
    listed = house("GET", "stacks/aws-eu/runs").json()["items"]
    assert listed == house("GET", "stack-runs").json()["items"]
    assert [each["id"] for each in listed] == [run.pk]
    detail = house("GET", f"stack-runs/{run.pk}").json()
    assert (detail["changes"], detail["drift"], detail["state"]) == ([], [], "planned")
    assert_problem(house("POST", f"stack-runs/{run.pk}/approve", {"plan_digest": "b" * 64}), 409)
    approved = house("POST", f"stack-runs/{run.pk}/approve", {"plan_digest": "a" * 64})
    assert approved.json()["state"] == "approved"
    assert house("GET", "stacks/aws-eu/lock").json()["held"] is False
    assert house("GET", "stacks/aws-eu/states").json()["items"] == []


def test_a_stack_says_how_it_stands_and_what_its_cloud_sees(house: Api, api: Api, fronts: Actor) -> None:
    new = house("GET", "stacks/aws-eu/state").json()
    assert (new["status"], new["applied_revision"], new["backends"], new["read_at"]) == (
        "behind",
        None,
        [],
        None,
    )
    stack, backend, at = Stack.objects.get(name="aws-eu"), Backend.objects.earliest("id"), now()
    seen = {"stack": stack, "group": "g", "object_id": f"bkd-{backend.pk}"}
    for address, state in (("192.0.2.1", "healthy"), ("192.0.2.2", "unhealthy")):
        CloudTarget.objects.create(**seen, address=address, port=80, state=state, since=at, seen_at=at)
    CloudSample.objects.create(**seen, at=at, requests=120, status_5xx=12, p95_ms=40)
    left = {"kind": "aws_eip", "id": "eipalloc-1", "address": "aws_eip.ip_4", "label": "static IP front"}
    StackSync.objects.create(stack=stack, compile_error="No region.", outputs={"lb_1": "a.example"}, unknown=[left])
    told = house("GET", "stacks/aws-eu/state").json()
    assert (told["status"], told["message"], told["outputs"]) == ("refused", "No region.", {"lb_1": "a.example"})
    assert told["unknown"] == [{"kind": "aws_eip", "id": "eipalloc-1", "object": "static IP front"}]
    [row] = told["backends"]
    assert (row["health"], row["requests_rps"], row["error_rate"], row["p95_ms"]) == ("degraded", 2.0, 0.1, 40.0)
    assert [each["state"] for each in row["targets"]] == ["healthy", "unhealthy"]
    assert_problem(api("GET", "stacks/aws-eu/state"), 404)


def test_a_zone_says_what_is_wanted_and_served(house: Api, api: Api, fronts: Actor, acme: Actor) -> None:
    save_object(actor=acme, kind="Record", name="www", spec=RECORD)
    zone = Zone.objects.get(name="shared").pk
    own = api("GET", f"zones/{zone}/state").json()
    assert [(each["name"], each["values"]) for each in own["records"]] == [("www.shared.example.net", ["192.0.2.80"])]
    assert len(house("GET", f"zones/{zone}/state").json()["records"]) == Record.objects.filter(zone=zone).count()
    assert api("GET", f"zones/{zone}").json()["spec"] == {"domain": "shared.example.net"}
    assert "credentials" in house("GET", f"zones/{zone}").json()["spec"]
    wrong = api("POST", f"zones/{zone}/repair", {"records": [{"name": "shared.example.net", "type": "A"}]})
    assert_problem(wrong, 422)
    assert api("POST", f"zones/{zone}/repair").status_code == 202


def a_failed_run() -> StackRun:
    stack = Stack.objects.get(name="aws-eu")
    revision = StackRevision.objects.create(
        stack=stack, number=1, generation=1, digest="0" * 64, document=b"", secrets=b"", actor="ann"
    )
    StackSync.objects.create(stack=stack, wanted=revision)
    return StackRun.objects.create(stack=stack, revision=revision, state="failed", actor="ann", finished_at=now())


def test_a_retry_answers_with_the_run_that_tries_again(house: Api) -> None:
    failed = a_failed_run()
    answer = house("POST", f"stack-runs/{failed.pk}/retry")
    assert answer.status_code == 200, answer.content
    assert (answer.json()["id"], answer.json()["state"]) == (StackRun.objects.latest("id").pk, "waiting")
    assert answer.json()["id"] != failed.pk


def test_a_reason_that_is_missing_is_asked_for_where_it_belongs(house: Api) -> None:
    a_failed_run()
    for url, body in (("destroy", None), ("force-unlock", {"id": "x"})):
        (error,) = assert_problem(house("POST", f"stacks/aws-eu/{url}", body), 422)["errors"]
        assert (error["pointer"], error["code"]) == ("/X-Change-Reason", "missing")
        assert "in the header X-Change-Reason" in error["detail"]
        given = house("POST", f"stacks/aws-eu/{url}", body, X_Change_Reason="to see")
        assert given.status_code != 422, "with it, the request is read"


def test_what_was_added_by_hand_is_told_with_the_state(house: Api) -> None:
    added = {"kind": "aws_lb_listener_rule", "id": "arn:rule", "label": "front", "message": "rule 7"}
    StackSync.objects.create(stack=Stack.objects.get(name="aws-eu"), added_by_hand=[added])
    (told,) = house("GET", "stacks/aws-eu/state").json()["added_by_hand"]
    assert told == {"kind": "aws_lb_listener_rule", "id": "arn:rule", "object": "front", "message": "rule 7"}
