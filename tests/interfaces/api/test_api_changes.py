"""The least token of a pipeline waits for its own change, sees how far it has come, and takes it back; nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.accounts.actors import Actor
from apps.accounts.models import Account, ApiToken, Hostname
from apps.accounts.tokens import create_token
from apps.api.v1.rollouts import changes
from apps.audit.models import Entry
from apps.definitions.models import Route, Server
from apps.definitions.services import delete_object, save_object
from apps.definitions.writing.actions import reverting
from apps.rollouts import selectors
from tests.apps.pushed import Env, put_env
from tests.conftest import actor_of
from tests.interfaces.api.test_api_objects import Api, assert_problem
from tests.interfaces.api.test_api_waiting import PUSHED

pytestmark = pytest.mark.django_db


class Pipeline(Api):
    """A customer's token that may write routes and nothing else."""

    def __init__(self, actor: Actor, *scopes: str) -> None:
        token = create_token(account=actor.account, name="ci", role="editor", scopes=list(scopes))
        self.client = Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)


@pytest.fixture
def env(db: None, monkeypatch: pytest.MonkeyPatch) -> Env:
    """A fleet that is in sync; who waits looks once."""
    found = put_env(PUSHED)
    wait = selectors.wait_until_live
    monkeypatch.setattr(changes, "wait_until_live", lambda fleets, generation, _: wait(fleets, generation, 0))
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    Hostname.objects.create(account=acme.account, name="acme.example", verification="dns")
    return found


@pytest.fixture
def pipeline(env: Env) -> Pipeline:
    """Its routes are its own, and its scope is one."""
    return Pipeline(actor_of("acme", Account.Kind.CUSTOMER), "routes:write")


def answer(path: str, body: str = "x") -> dict[str, Any]:
    """A route that answers by itself."""
    action = {"fixed_response": {"status": 200, "body": body}}
    return {"load_balancer": "front", "hostname": "acme.example", "path": path, "action": action}


def document(*paths: str) -> dict[str, Any]:
    """A route for each path."""
    return {"objects": [{"kind": "Route", "name": path[1:], "spec": answer(path)} for path in paths]}


def routes() -> set[str]:
    """What the customer has."""
    return set(Route.objects.filter(account__name="acme").values_list("path", flat=True))


def test_it_sees_its_change_wait_and_become_live(pipeline: Pipeline, env: Env) -> None:
    change = pipeline("PUT", "apply?manager=ci", document("/one", "/two")).json()["change"]
    seen = pipeline("GET", f"changes/{change}?wait=1").json()
    assert (seen["live"], seen["waits_for"][0]["reason"], seen["rollouts"]) == (False, "not_compiled", [])
    env.reconcile()
    seen = pipeline("GET", f"changes/{change}?wait=1").json()
    assert (seen["live"], seen["waits_for"]) == (True, [])
    assert [(each["action"], each["kind"], each["name"]) for each in seen["objects"]] == [
        ("create", "Route", "one"),
        ("create", "Route", "two"),
    ]
    (rollout,) = seen["rollouts"]
    assert (rollout["state"], rollout["nodes"], rollout["nodes_done"]) == ("done", 2, 2)


def test_the_header_of_a_write_of_one_object_names_the_change_as_well(pipeline: Pipeline) -> None:
    made = pipeline("POST", "routes", {"name": "one", "spec": answer("/one")})
    assert pipeline("GET", f"changes/{made['X-Request-ID']}").json()["objects"][0]["name"] == "one"


def test_it_takes_back_what_it_made_changed_and_deleted_in_one_request(pipeline: Pipeline) -> None:
    pipeline("PUT", "apply?manager=ci", document("/kept", "/gone"))
    new = {"objects": [*document("/made")["objects"], {"kind": "Route", "name": "kept", "spec": answer("/kept", "y")}]}
    done = pipeline("PUT", "apply?manager=ci&prune=true", new).json()
    assert routes() == {"/kept", "/made"}
    rehearsed = pipeline("POST", f"changes/{done['change']}/revert?manager=ci&dry_run=true").json()
    assert (rehearsed["stored"], routes()) == (False, {"/kept", "/made"})
    back = pipeline("POST", f"changes/{done['change']}/revert?manager=ci", X_Change_Reason="5xx").json()
    assert sorted((each["action"], each["name"]) for each in back["changes"]) == [
        ("create", "gone"),
        ("delete", "made"),
        ("update", "kept"),
    ]
    assert routes() == {"/kept", "/gone"}
    assert Route.objects.filter(name="kept", fixed_response__body="x").exists()
    assert set(Route.objects.values_list("manager", flat=True).filter(account__name="acme")) == {"ci"}
    assert Entry.objects.latest("pk").reason == "5xx"
    pipeline("POST", f"changes/{back['change']}/revert?manager=ci")
    assert routes() == {"/kept", "/made"}


def test_what_moved_since_stays_and_says_so(pipeline: Pipeline, env: Env) -> None:
    change = pipeline("PUT", "apply", document("/one", "/two")).json()["change"]
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    save_object(actor=acme, kind="Route", name="two", spec=answer("/two", "by hand"))
    said = assert_problem(pipeline("POST", f"changes/{change}/revert"), 409)["detail"]
    assert said == "Route acme/two has changed since. Nothing was reverted; change it manually."
    assert routes() == {"/one", "/two"}


def test_without_a_look_at_the_version_what_somebody_did_since_is_lost(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = pipeline("PUT", "apply", document("/one")).json()["change"]
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    save_object(actor=acme, kind="Route", name="one", spec=answer("/one", "by hand"))
    steps = reverting._steps

    def as_it_is(entries: list[Entry]) -> list[reverting.Step]:
        found = steps(entries)
        for step in found:
            step.last.version = Route.objects.get(name=step.name).version
        return found

    monkeypatch.setattr(reverting, "_steps", as_it_is)
    assert pipeline("POST", f"changes/{change}/revert").status_code == 200
    assert routes() == set()


def test_a_change_of_a_pipeline_is_taken_back_under_its_name_alone(pipeline: Pipeline) -> None:
    change = pipeline("PUT", "apply?manager=ci", document("/one")).json()["change"]
    refused = assert_problem(pipeline("POST", f"changes/{change}/revert"), 409)
    assert refused["errors"][0]["code"] == "managed"
    assert pipeline("POST", f"changes/{change}/revert?manager=ci").status_code == 200


def test_a_change_of_another_token_or_account_does_not_exist(pipeline: Pipeline, env: Env) -> None:
    change = pipeline("PUT", "apply", document("/one")).json()["change"]
    acme, globex = actor_of("acme", Account.Kind.CUSTOMER), actor_of("globex", Account.Kind.CUSTOMER)
    for other in (Api(acme), Api(globex), Api(env.operator)):
        assert_problem(other("GET", f"changes/{change}"), 404)
        assert_problem(other("POST", f"changes/{change}/revert"), 404)
    assert routes() == {"/one"}


def test_a_token_that_lost_the_scope_of_an_object_takes_nothing_back(pipeline: Pipeline) -> None:
    change = pipeline("PUT", "apply", document("/one")).json()["change"]
    ApiToken.objects.filter(name="ci").update(scopes=["pools:write"])
    assert pipeline("GET", f"changes/{change}").status_code == 200
    refused = assert_problem(pipeline("POST", f"changes/{change}/revert"), 403)
    assert "routes:write" in refused["detail"]
    assert routes() == {"/one"}


def test_a_part_of_an_object_is_shown_and_is_set_back_by_its_own_call(env: Env) -> None:
    house = Api(env.operator)
    server = Server.objects.earliest("pk")
    done = house("PATCH", f"servers/{server.pk}", {"weight": 7}, If_Match="*")
    change = done["X-Request-ID"]
    (shown,) = house("GET", f"changes/{change}").json()["objects"]
    assert (shown["action"], shown["kind"], shown["name"]) == ("update", "Pool", server.backend.pool.name)
    assert (
        "undo that with the same kind of call"
        in assert_problem(house("POST", f"changes/{change}/revert"), 409)["detail"]
    )


def test_an_object_that_was_deleted_and_made_anew_is_not_the_one_that_the_change_made(pipeline: Pipeline) -> None:
    change = pipeline("PUT", "apply", document("/one")).json()["change"]
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    delete_object(actor=acme, kind="Route", name="one")
    save_object(actor=acme, kind="Route", name="one", spec=answer("/one", "another one"))
    said = assert_problem(pipeline("POST", f"changes/{change}/revert"), 409)["detail"]
    assert said == "Route acme/one has changed since. Nothing was reverted; change it manually."
    assert routes() == {"/one"}
