"""A limit that a capacity run set is the run's: a document keeps it and says so, until the field is taken over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from apps.accounts.actors import Actor
from apps.audit.models import Entry
from apps.capacity.models import Run
from apps.capacity.use import limits
from apps.core.clock import now
from apps.core.errors import Managed
from apps.definitions.models import Backend, CapacityTest, Pool
from apps.definitions.reading.documents import read_object
from apps.definitions.services import KINDS, managing
from apps.definitions.writing.change_set import ScheduledChange
from apps.definitions.writing.kinds.contract import as_sent
from apps.definitions.writing.transactions import change_for_schedule
from apps.fleet.models import Region
from tests.interfaces.api.test_api_objects import Api, assert_problem

pytestmark = pytest.mark.django_db
FIELD = "acme/extra/us-central1"
LINE = "limit of pool acme/extra in us-central1: kept at 109/s, set by capacity run 12; give take_over={} to set it"


def document(value: int = 50, **more: Any) -> dict[str, Any]:
    """What the pipeline has in its repository."""
    limit = {"kind": "rate", "value": value}
    spec = {"backends": [{"region": "us-central1", "limit": limit}], **more}
    return {"objects": [{"kind": "Pool", "name": "extra", "spec": spec}]}


@pytest.fixture
def api(tutorial_env: Actor, acme: Actor) -> Api:
    """The pipeline's program; its pool has a limit that run 12 found since."""
    api = Api(acme)
    assert api("PUT", "apply?manager=ci", document()).status_code == 200
    Backend.objects.filter(pool__name="extra").update(limit_value=109, limit_measured_by="run-12")
    return api


def limit() -> tuple[int, str]:
    row = Backend.objects.get(pool__name="extra")
    return row.limit_value, row.limit_measured_by


@pytest.mark.parametrize("query", ["manager=ci&dry_run=plan", "manager=ci", "break_glass=true"])
def test_an_apply_keeps_the_limit_of_a_run_and_says_so(api: Api, query: str) -> None:
    answer = api("PUT", f"apply?{query}", document(balance="random")).json()
    assert answer["kept"] == [LINE.format(FIELD)]
    assert [each["path"] for each in answer["changes"][0]["fields"]] == ["/balance"]
    assert limit() == (109, "run-12")


def test_a_document_that_says_nothing_of_the_limit_keeps_it_too(api: Api) -> None:
    bare = {"objects": [{"kind": "Pool", "name": "extra", "spec": {"backends": [{"region": "us-central1"}]}}]}
    assert api("PUT", "apply?manager=ci", bare).json()["kept"] == [LINE.format(FIELD)]
    assert limit() == (109, "run-12")


def test_who_takes_the_field_over_sets_it_and_the_next_document_changes_it_again(api: Api) -> None:
    answer = api("PUT", f"apply?manager=ci&take_over=acme/other/x,{FIELD}", document()).json()
    assert (answer["kept"], limit()) == ([], (50, ""))
    assert api("PUT", "apply?manager=ci", document(60)).json()["kept"] == []
    assert limit() == (60, "")


def test_a_document_that_agrees_has_nothing_to_say(api: Api) -> None:
    answer = api("PUT", "apply?manager=ci", document(109)).json()
    assert (answer["kept"], answer["counts"]["unchanged"]) == ([], 1)


def test_a_plan_that_takes_a_field_over_is_applied_exactly_so(api: Api) -> None:
    plan = api("PUT", f"apply?manager=ci&dry_run=plan&take_over={FIELD}", document()).json()
    assert api("GET", f"plans/{plan['plan_id']}").json()["take_over"] == [FIELD]
    assert api("POST", f"plans/{plan['plan_id']}/apply").status_code == 200
    assert limit() == (50, "")


def test_a_limit_of_a_run_that_the_rest_of_a_document_forbids_is_an_error_of_the_document(api: Api) -> None:
    queue = {"overflow": {"when_full": "queue"}, "backends": [{"region": "us-central1"}]}
    objects = [{"kind": "Pool", "name": "extra", "spec": queue}]
    (field_error,) = assert_problem(api("PUT", "apply?manager=ci", {"objects": objects}), 422)["errors"]
    assert field_error["pointer"] == "/objects/0/spec/overflow/when_full"


def changed(api: Api, value: int) -> tuple[dict[str, Any], str]:
    """The pool's document with another limit and another choice, and the version that it had."""
    seen = api("GET", "pools/acme/extra")
    spec = seen.json()["spec"] | {"balance": "random"}
    spec["backends"][0]["limit"] = {"kind": "rate", "value": value}
    return spec, seen["ETag"]


def written(api: Api, way: str, words: str) -> Any:
    """The answer to 70/s by one of the ways in which a whole object is written."""
    spec, tag = changed(api, 70)
    if way == "POST":
        item = {"action": "update", "name": "extra", "spec": spec}
        return api("POST", f"pools:batch?{words}", {"items": [item]})
    body = {"spec": {"backends": spec["backends"], "balance": "random"} if way == "PATCH" else spec}
    return api(way, f"pools/acme/extra?{words}", body, If_Match=tag)


@pytest.mark.parametrize("way", ["PUT", "PATCH", "POST"])
def test_whatever_a_pipeline_writes_keeps_the_limit_of_a_run_and_says_so(api: Api, way: str) -> None:
    answer = written(api, way, "manager=ci")
    assert (answer.status_code, answer["X-Spillway-Kept"], limit()) == (200, FIELD, (109, "run-12"))
    assert Pool.objects.get(name="extra").balance == "random"


@pytest.mark.parametrize("words", [f"manager=ci&take_over={FIELD}", "break_glass=true"])
@pytest.mark.parametrize("way", ["PUT", "PATCH", "POST"])
def test_who_takes_the_field_over_or_writes_by_hand_sets_the_limit(api: Api, way: str, words: str) -> None:
    answer = written(api, way, words)
    assert (answer.status_code, "X-Spillway-Kept" in answer.headers, limit()) == (200, False, (70, ""))


def test_a_pipeline_that_sets_nothing_but_the_limit_of_a_run_is_told_how(api: Api) -> None:
    url = "pools/acme/extra/limits/us-central1"
    problem = assert_problem(api("PATCH", f"{url}?manager=ci", {"value": 70}, If_Match="*"), 409)
    assert problem["detail"] == f"Nothing was changed: {LINE.format(FIELD)}."
    assert api("PATCH", f"{url}?manager=ci", {"capacity_scaler": 0.5}, If_Match="*").status_code == 200
    assert limit() == (109, "run-12")
    assert api("PATCH", f"{url}?manager=ci&take_over={FIELD}", {"value": 70}, If_Match="*").status_code == 200
    assert limit() == (70, "")


def test_a_schedule_of_the_pipeline_keeps_it_too_and_says_so(api: Api, acme: Actor) -> None:
    spec, _ = changed(api, 70)
    wanted = {"kind": "Pool", "name": "extra", "spec": spec}
    change = ScheduledChange("", acme.account, "nightly", wanted, "ci")
    with transaction.atomic():
        *_, kept = change_for_schedule(change, read_object(wanted))
    assert (kept, limit()) == ((LINE.format(FIELD),), (109, "run-12"))


def test_without_owners_of_fields_an_apply_undoes_it_silently(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "Pool", replace(KINDS["Pool"], wanted=as_sent))
    assert api("PUT", "apply?manager=ci", document()).json()["kept"] == []
    assert limit() == (50, "")


def run(found: float = 100.0, **fields: Any) -> Run:
    """A run that may set a limit."""
    pool, region = Pool.objects.get(name="extra"), Region.objects.get(name="us-central1")
    plan = {"target": {"pool": "extra", "region": region.name}, "policy": {"apply": "automatic", "max_change": 0.5}}
    result = {"capacity": found, "limited_by": "objective", "confirmed": True}
    about = {"account": pool.account, "pool": pool, "region": region, "label": "x", "plan": plan, "actor": "x"}
    return Run.objects.create(**about, result=result, state=Run.State.DONE, ended_at=now(), **fields)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the runs measured is what stands there."""
    monkeypatch.setattr(limits, "stale_words", lambda _: "")
    monkeypatch.setattr(limits, "busiest_minute", lambda *_: 0.0)


def test_a_run_goes_on_setting_the_limit_that_runs_own(api: Api, acme: Actor) -> None:
    measured = run()
    limits.set_as_limit(actor=acme, run_id=measured.pk, margin=0)
    assert limit() == (100, measured.name)
    assert not Entry.objects.latest("pk").reason.startswith("Break glass")


def test_the_first_limit_of_a_run_on_a_pool_of_a_pipeline_needs_broken_glass(api: Api, acme: Actor) -> None:
    Backend.objects.filter(pool__name="extra").update(limit_measured_by="")
    measured = run()
    with pytest.raises(Managed, match="extra is managed by ci"):
        limits.set_as_limit(actor=acme, run_id=measured.pk, margin=0)
    assert_problem(api("POST", f"capacity-runs/{measured.pk}/set-limit"), 409)
    with managing(break_glass=True):
        limits.set_as_limit(actor=acme, run_id=measured.pk, margin=0)
    assert limit() == (100, measured.name)
    assert Entry.objects.latest("pk").reason.startswith("Break glass (ci).")


@pytest.mark.parametrize(("manager", "value"), [("ci", 90), ("", 109), ("other", 109)])
def test_a_policy_of_the_same_pipeline_sets_the_limit_by_itself(
    api: Api, acme: Actor, monkeypatch: pytest.MonkeyPatch, manager: str, value: int
) -> None:
    Backend.objects.filter(pool__name="extra").update(limit_measured_by="")
    pool, region = Pool.objects.get(name="extra"), Region.objects.get(name="us-central1")
    about = {"account": acme.account, "pool": pool, "region": region, "hostname": "shop.acme.example"}
    test = CapacityTest.objects.create(name="nightly", manager=manager, **about)
    monkeypatch.setattr(limits, "actor_behind", lambda _: acme)
    said = limits.apply_automatically(run(test=test))
    assert limit()[0] == value
    assert ("managed by ci" in said) == (value == 109)
