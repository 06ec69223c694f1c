"""`wait` says whether a change is live, in header and body, with and without a key, and names what is missing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import yaml

from apps.accounts.models import Account
from apps.api.v1.protocol import waiting
from apps.cli.client.commands import applying
from apps.observe.models import NodeReport
from apps.rollouts import selectors, services, waiting_for
from apps.rollouts.models import FleetSync, Revision
from tests.apps.pushed import Env, add_route, put_env, remembered, route
from tests.apps.test_rollouts_quarantine import refuses
from tests.conftest import actor_of
from tests.interfaces.api.test_api_objects import Api

pytestmark = pytest.mark.django_db
KEYS: tuple[dict[str, str], ...] = ({}, {"Idempotency_Key": "one"})


def push(env: Env) -> None:
    """The nodes run what is stored, twice over so that there is a revision to go back to."""
    env.reconcile()
    add_route(env.operator, "news", "/news")
    env.reconcile()


PUSHED = remembered(push)


@pytest.fixture
def env(db: None, monkeypatch: pytest.MonkeyPatch) -> Env:
    """A fleet that is in sync; who waits lets a worker work first, and then looks once."""
    found = put_env(PUSHED)

    def work_and_look(fleets: list[int], generation: int | None, seconds: float) -> bool:
        assert seconds == 1
        services.reconcile_fleet(fleet_id=found.fleet.pk)
        return selectors.wait_until_live(fleets, generation, 0)

    monkeypatch.setattr(waiting, "wait_until_live", work_and_look)
    return found


@pytest.fixture
def house(env: Env) -> Api:
    """The operator's program."""
    return Api(env.operator)


def document(path: str = "/more") -> dict[str, Any]:
    """One route more."""
    return {"objects": [{"kind": "Route", "name": "more", "spec": route(path)}]}


@pytest.mark.parametrize("key", KEYS)
def test_live_stands_in_header_and_body_with_and_without_a_key(house: Api, key: dict[str, str]) -> None:
    answer = house("PUT", "apply?wait=1", document(), **key)
    assert (answer["X-Spillway-Live"], answer.json()["live"], answer.json()["waits_for"]) == ("true", True, [])
    items = [{"action": "create", "name": "batch", "spec": route("/batch")}]
    answer = house("POST", "routes:batch?wait=1", {"items": items}, **dict.fromkeys(key, "two"))
    assert (answer["X-Spillway-Live"], answer.json()["live"]) == ("true", True)
    answer = house("POST", "routes?wait=1", {"name": "one", "spec": route("/one")}, **dict.fromkeys(key, "three"))
    assert (answer.status_code, answer["X-Spillway-Live"]) == (201, "true")


@pytest.mark.parametrize("key", KEYS)
def test_a_held_fleet_is_named_to_who_waits(house: Api, env: Env, key: dict[str, str]) -> None:
    services.roll_back(actor=env.operator, revision_id=Revision.objects.earliest("number").pk, reason="broken")
    env.reconcile()
    for _ in (1, 2):  # the second is the kept answer, or finds nothing to do, and what is stored is not live yet
        answer = house("PUT", "apply?wait=1", document(), **key)
        assert (answer["X-Spillway-Live"], answer.json()["live"]) == ("false", False)
        assert answer["X-Spillway-Waits-For"] == "here=held"
        (missing,) = answer.json()["waits_for"]
        assert missing["message"].startswith("Fleet here is held at revision 1 by ")


def test_a_node_that_cannot_be_reached_is_named(house: Api, env: Env) -> None:
    env.memory[0].unreachable = True
    NodeReport.objects.filter(node__name="n1").update(last_contact_error="No route to host.")
    answer = house("PUT", "apply?wait=1", document())
    assert answer.json()["live"] is False
    (missing,) = answer.json()["waits_for"]
    assert (missing["fleet"], missing["reason"]) == ("here", "unreachable")
    assert "n1" in missing["nodes"]
    assert "n1" in missing["message"]


def test_what_nobody_compiled_yet_and_what_was_left_out_are_named(house: Api, env: Env) -> None:
    add_route(env.operator, "late", "/late")
    (found,) = waiting_for.missing(env.operator, [env.fleet.pk])
    assert (found.reason, found.message) == ("not_compiled", "No worker has compiled the change for fleet here yet.")
    env.reconcile()
    entry = {"code": "x", "object_id": "route-1", "label": "operator/late", "message": "Nobody takes it."}
    FleetSync.objects.filter(fleet=env.fleet).update(left_out=[entry])
    for others in (("Route", "operator/other"), ("Pool", "operator/late")):
        assert waiting_for.missing(env.operator, [env.fleet.pk], {others}) == ()
    (found,) = waiting_for.missing(env.operator, [env.fleet.pk], {("Route", "operator/late")})
    said = "Route operator/late is left out of what runs: Nobody takes it."
    assert (found.reason, found.message) == ("quarantined", said)


@pytest.fixture
def poisoned(env: Env) -> Env:
    """The nodes refuse a pool that balances by turns."""
    for node in env.memory:
        node.refusal_for = refuses("roundrobin", names=True)
    return env


BLUE = "pools/operator/blue"
REFUSED = "Pool operator/blue is left out of what runs: HAProxy rejects this: unknown keyword 'roundrobin'."


def writes(house: Api, balance: str = "roundrobin") -> list[Any]:
    """The answers of each way to write a pool, one after the other, and of an apply that finds it so already."""
    spec = {**house("GET", BLUE).json()["spec"], "balance": balance}
    item = {"action": "update", "name": "blue", "spec": spec}
    whole = {"objects": [{"kind": "Pool", "name": "blue", "spec": spec}]}
    limit = {"kind": "rate", "value": 11}
    return [
        house("PUT", f"{BLUE}?wait=1", {"spec": spec}, If_Match="*"),
        house("PUT", "apply?wait=1", whole),
        house("POST", "pools:batch?wait=1", {"items": [item]}),
        house("PATCH", f"{BLUE}/limits/here?wait=1", limit, If_Match="*"),
    ]


@pytest.mark.slow(reason="nodes refuse each of nine writes, or take it")
def test_who_waits_for_a_quarantined_object_is_told_which_and_why_and_never_that_it_is_live(
    house: Api, poisoned: Env
) -> None:
    for answer in writes(house):
        assert (answer.status_code, answer["X-Spillway-Live"]) == (200, "false"), answer.content
        assert answer["X-Spillway-Waits-For"] == "here=quarantined"
        if "waits_for" in answer.json():
            assert [each["message"] for each in answer.json()["waits_for"]] == [REFUSED]
    assert house("PUT", "apply?wait=1", document()).json()["live"] is True  # what is not concerned is live
    assert all(answer["X-Spillway-Live"] == "true" for answer in writes(house, "source"))


def test_a_route_is_live_where_its_pool_runs_as_it_was_and_not_where_the_pool_never_ran(
    house: Api, poisoned: Env
) -> None:
    spec = {**house("GET", BLUE).json()["spec"], "balance": "roundrobin"}
    for number, (pool, live) in enumerate((("blue", "true"), ("new", "false"))):
        house("PUT", f"pools/operator/{pool}?wait=1", {"spec": spec}, If_Match="*")
        to_pool = route(f"/{number}") | {"action": {"pools": [{"pool": pool, "weight": 1}]}}
        answer = house("POST", "routes?wait=1", {"name": f"to-{pool}", "spec": to_pool})
        assert (answer.status_code, answer["X-Spillway-Live"]) == (201, live)


def test_the_command_fails_and_names_what_is_quarantined(
    house: Api, poisoned: Env, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {**house("GET", BLUE).json()["spec"], "balance": "roundrobin"}
    body = {"objects": [{"kind": "Pool", "name": "blue", "spec": spec}]}
    for _ in (1, 2):
        assert command(house, tmp_path, body=body) == 1
        assert REFUSED in capsys.readouterr().err


@pytest.mark.exhaustive
def test_control_without_a_look_at_the_quarantine_it_would_be_called_live(
    house: Api, poisoned: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_for, "_withheld", lambda _: [])
    assert [answer["X-Spillway-Live"] for answer in writes(house)] == ["true"] * 4


def test_customers_learn_neither_nodes_nor_people(env: Env) -> None:
    services.roll_back(actor=env.operator, revision_id=Revision.objects.earliest("number").pk, reason="broken")
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    (found,) = waiting_for.missing(acme, [env.fleet.pk])
    assert found.message == "Fleet here is held by the operator; stored changes go live when the fleet is resumed."
    services.resume(actor=env.operator, fleet_id=env.fleet.pk, reason="mended")
    env.memory[0].unreachable = True
    add_route(env.operator, "late", "/late")
    services.reconcile_fleet(fleet_id=env.fleet.pk)
    assert all(not each.nodes and "n1" not in each.message for each in waiting_for.missing(acme, [env.fleet.pk]))


def command(house: Api, tmp_path: Path, *, body: dict[str, Any] | None = None) -> int:
    """The exit code of `spillway apply -f FILE --wait`, which always sends a key."""
    file = tmp_path / "routes.yaml"
    file.write_text(yaml.safe_dump(body or document()))

    class Console:
        """The console behind the test's client, as the command calls it."""

        calls = 0

        def __call__(self, method: str, path: str, *, query: dict[str, str], text: bytes) -> Any:
            Console.calls += 1
            words = "&".join(f"{name}={value}" for name, value in (query | {"wait": "1"}).items())
            key = f"key-{id(self)}-{Console.calls}"
            sent = {"Content_Type": "application/yaml", "Idempotency_Key": key}
            return house(method, f"{path}?{words}", text, **sent).json()

    words: dict[str, Any] = {"plan": None, "file": str(file), "wait": True, "confirm": [], "manager": ""}
    words |= {"refuse_overload": False, "prune": False, "take_over": []}
    return applying.apply_file(Console(), argparse.Namespace(**words))[2]  # type: ignore[arg-type]  # see above


def test_the_command_succeeds_when_the_change_is_live_and_when_there_is_nothing_to_do(
    house: Api, tmp_path: Path
) -> None:
    assert command(house, tmp_path) == 0
    assert command(house, tmp_path) == 0


def test_the_command_fails_and_says_why_when_the_change_is_not_live(
    house: Api, env: Env, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    services.roll_back(actor=env.operator, revision_id=Revision.objects.earliest("number").pk, reason="broken")
    env.reconcile()
    assert command(house, tmp_path) == 1
    assert "Fleet here is held at revision 1" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_control_without_live_in_the_body_of_keyed_answers_the_command_fails_always(
    house: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "_body", lambda _: None)
    assert command(house, tmp_path) == 1
