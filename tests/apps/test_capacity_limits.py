"""The loop: what a run found becomes a limit, by hand or within bounds; and what a number is worth."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership, User
from apps.audit.models import Entry
from apps.capacity import services
from apps.capacity.models import Run
from apps.capacity.use import limits, staleness
from apps.capacity.use.ageing import evaluate_measurements
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound
from apps.definitions.models import Backend, CapacityTest, Pool
from apps.definitions.services import save_object, set_limit
from apps.fleet.models import Node, Region
from apps.observe.collect.buckets import LONG
from apps.observe.models import Condition, Sample
from tests.apps.pushed import Env, pool_spec, put_env, remembered
from tests.conftest import actor_of

AUTOMATIC = {"apply": "automatic", "margin": 0.1, "max_change": 0.2}


def limit_blue(env: Env) -> None:
    """The pool blue takes 10 requests/s here."""
    spec = pool_spec()
    spec["backends"][0]["limit"] = {"kind": "rate", "value": 10}
    save_object(actor=env.operator, kind="Pool", name="blue", spec=spec)


LIMITED = remembered(limit_blue)


@pytest.fixture
def limited(db: None) -> Env:
    """The pool blue has a limit."""
    return put_env(LIMITED)


def backend() -> Backend:
    return Backend.objects.get(pool__name="blue")


def done(env: Env, capacity: float = 15.0, server: str = "", policy: Any = None, **fields: Any) -> Run:
    """A run that ended a minute ago with a confirmed capacity."""
    pool, region = Pool.objects.get(name="blue"), Region.objects.get(name="here")
    moment = now()
    result = {"capacity": capacity, "in_flight_limit": 7, "limited_by": "objective", "confirmed": True}
    target = {"pool": "blue", "region": "here", "server": server}
    plan = {"target": target, "policy": policy or {"apply": "by_hand", "margin": 0.1}}
    about = {"account": env.operator.account, "pool": pool, "region": region, "label": "blue", "plan": plan}
    times = {"started_at": moment - timedelta(minutes=4), "ended_at": moment - timedelta(minutes=1)}
    found = {"result": result | {"build": staleness.build_of(pool, region)}, "state": Run.State.DONE, "actor": "x"}
    return Run.objects.create(**(about | times | found | fields))


def with_test(env: Env, by: str = "", role: str = Membership.Role.EDITOR, **fields: Any) -> Run:
    """A run with an automatic policy whose test `by` saved last."""
    test = CapacityTest.objects.create(
        account=env.operator.account,
        name="nightly",
        pool=Pool.objects.get(name="blue"),
        region=Region.objects.get(name="here"),
        hostname="www.example.org",
    )
    name = by or "ada"
    person = User.objects.create(username=name)
    Membership.objects.create(user=person, account=env.operator.account, role=role)
    Entry.objects.create(
        actor=name,
        account=test.account,
        action="update",
        object_kind="CapacityTest",
        object_id=test.pk,
        object_label="x",
    )
    return done(env, policy=AUTOMATIC, test=test, **fields)


def observed(per_s: float, minutes_ago: int = 10) -> None:
    """A minute in which the pool served so much here."""
    at = now().replace(second=0, microsecond=0) - timedelta(minutes=minutes_ago)
    name = f"pool-{Pool.objects.get(name='blue').pk}"
    fields = {"kind": "backend", "object_id": name, "seconds": 60, "requests": round(60 * per_s)}
    Sample.objects.create(at=at, resolution=LONG, node=Node.objects.order_by("pk")[0], **fields)


def test_what_was_measured_less_the_margin_becomes_the_limit_with_the_run_as_reason(limited: Env) -> None:
    run = done(limited)
    set_to = limits.set_as_limit(actor=limited.operator, run_id=run.pk)
    assert (set_to.limit_kind, set_to.limit_value, set_to.limit_measured_by) == ("rate", 13, run.name)
    entry = Entry.objects.filter(object_kind="Backend").order_by("-id")[0]
    assert entry.reason == (
        f"The limit of blue in here becomes 13 requests/s (10 requests/s now): {run.name} found 15, less 10 %."
    )
    assert entry.version == Pool.objects.get(name="blue").version
    run.refresh_from_db()
    assert run.limit_set_by == limited.operator.name


def test_the_limit_of_a_run_whose_worker_died_right_after_its_end_is_set_all_the_same(limited: Env) -> None:
    observed(4)
    run = with_test(limited)
    by_hand = done(limited, capacity=20)
    for _ in range(2):
        services.sweep()
    run.refresh_from_db()
    assert (backend().limit_value, backend().limit_measured_by) == (12, run.name)
    assert "goes from 10 to 12" in (run.result or {})["applied"]["message"]
    by_hand.refresh_from_db()
    assert "applied" not in (by_hand.result or {})


def test_a_limit_that_is_set_already_is_called_so(limited: Env) -> None:
    run = done(limited, capacity=14.925)
    limits.set_as_limit(actor=limited.operator, run_id=run.pk)
    said = limits.proposal(limited.operator, run.pk).message
    assert said == f"The limit of blue in here is 13 requests/s already: {run.name} found 14.9, less 10 %."


@pytest.mark.parametrize(("margin", "value"), [(0, 15), (0.2, 12), (0.5, 7), (0.9, 1)])
def test_the_margin_may_be_said(limited: Env, margin: float, value: int) -> None:
    run = done(limited)
    assert limits.proposal(limited.operator, run.pk, margin).value == value
    assert limits.set_as_limit(actor=limited.operator, run_id=run.pk, margin=margin).limit_value == value


@pytest.mark.parametrize("margin", [-0.1, 0.91, "0.1", True, float("nan")])
def test_a_margin_that_is_none_is_refused(limited: Env, margin: object) -> None:
    run = done(limited)
    with pytest.raises(Invalid) as refused:
        limits.set_as_limit(actor=limited.operator, run_id=run.pk, margin=margin)
    assert refused.value.field_errors[0].pointer == "/margin"


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"state": Run.State.FAILED}, "is failed"),
        ({"state": Run.State.STOPPED}, "is stopped"),
        ({"result": {"capacity": None}}, "found no capacity"),
        ({"result": {"capacity": 15.0}}, "on an unknown build"),
        ({"ended_at": now() - timedelta(days=31)}, "more than 30 days"),
        ({"region": None}, "on an unknown build"),
        ({"capacity": 0.9}, "leaves less than 1"),
    ],
)
def test_a_number_that_must_not_be_used_is_refused_with_a_sentence(
    limited: Env, fields: dict[str, Any], word: str
) -> None:
    run = done(limited, **fields)
    with pytest.raises(Conflict, match=word):
        limits.set_as_limit(actor=limited.operator, run_id=run.pk)
    assert backend().limit_value == 10
    assert word in limits.proposal(limited.operator, run.pk).refusal


def test_servers_that_changed_make_a_number_stale(limited: Env) -> None:
    run = done(limited)
    assert not staleness.verdict(run).stale
    spec = pool_spec()
    spec["backends"][0]["servers"][1]["port"] = 9999
    save_object(actor=limited.operator, kind="Pool", name="blue", spec=spec)
    found = staleness.verdict(run)
    assert found.status == "changed"
    assert "server s2 changed (10.0.0.2:8080, weight 100, ready → 10.0.0.2:9999, weight 100, ready)" in found.message
    with pytest.raises(Conflict, match="server s2 changed"):
        limits.set_as_limit(actor=limited.operator, run_id=run.pk)


def test_a_changed_limit_or_tag_leaves_a_number_fresh(limited: Env) -> None:
    run = done(limited)
    set_limit(actor=limited.operator, pool_id=backend().pool_id, region="here", value=12)
    assert not staleness.verdict(run).stale


def test_a_limit_says_how_old_its_measurement_is(limited: Env) -> None:
    assert staleness.of_limit(backend()) is None
    run = done(limited, ended_at=now() - timedelta(days=3))
    limits.set_as_limit(actor=limited.operator, run_id=run.pk)
    found = staleness.of_limit(backend())
    assert found is not None
    assert found.message.startswith(f"Measured by {run.name} 3 days ago on build ")


def test_a_limit_that_names_a_run_of_something_else_is_not_believed(limited: Env) -> None:
    run = done(limited, pool=Pool.objects.get(name="green"))
    set_limit(actor=limited.operator, pool_id=backend().pool_id, region="here", value=12, measured_by=run.name)
    found = staleness.of_limit(backend())
    assert found is not None
    assert found.status == "unknown"


def test_runs_of_others_do_not_exist(limited: Env) -> None:
    run = done(limited)
    stranger = actor_of("acme", Account.Kind.CUSTOMER)
    with pytest.raises(NotFound):
        limits.set_as_limit(actor=stranger, run_id=run.pk)


def test_viewers_set_no_limit(limited: Env) -> None:
    run = done(limited)
    viewer = Actor("v", limited.operator.account, Membership.Role.VIEWER)
    with pytest.raises(Forbidden):
        limits.set_as_limit(actor=viewer, run_id=run.pk)


def test_one_server_gives_a_limit_per_server(limited: Env) -> None:
    run = done(limited, capacity=5.2, server="s1")
    found = limits.set_as_limit(actor=limited.operator, run_id=run.pk, margin=0)
    assert (found.limit_value, found.limit_scope) == (5, "server")


def test_a_pool_whose_limit_counts_what_is_in_flight_keeps_counting_that(limited: Env) -> None:
    set_limit(actor=limited.operator, pool_id=backend().pool_id, region="here", kind="connections", value=4)
    found = limits.set_as_limit(actor=limited.operator, run_id=done(limited).pk, margin=0)
    assert (found.limit_kind, found.limit_value) == ("connections", 7)


def test_by_itself_a_run_moves_the_limit_by_no_more_than_the_policy_allows(limited: Env) -> None:
    run = with_test(limited)
    sentence = limits.apply_automatically(run)
    assert sentence == (
        f"{run.name} found 15 requests/s: the limit goes from 10 to 12. "
        "One run changes a limit by at most 20 %, so the limit does not become 13."
    )
    assert (backend().limit_value, backend().limit_measured_by) == (12, run.name)
    assert backend().limit_set_by == f"{run.name} for ada"


@pytest.mark.both_engines
def test_it_happens_once_whoever_asks_again(limited: Env) -> None:
    run = with_test(limited)
    first = limits.apply_automatically(run)
    assert limits.apply_automatically(run) == first
    assert limits.apply_automatically(Run.objects.get(pk=run.pk)) == first
    assert backend().limit_value == 12
    assert Entry.objects.filter(object_kind="Backend").count() == 1


def test_by_hand_nothing_happens_by_itself(limited: Env) -> None:
    assert limits.apply_automatically(done(limited)) == ""
    assert backend().limit_value == 10


@pytest.mark.parametrize(("asked", "value"), [(3.0, 8), (8.5, 9), (40.0, 10)])
def test_it_is_never_lowered_below_what_its_clients_asked_for(limited: Env, asked: float, value: int) -> None:
    observed(asked)
    sentence = limits.apply_automatically(with_test(limited, capacity=4.0))
    assert backend().limit_value == value
    assert "One run changes a limit by at most" in sentence or "not lowered" in sentence


def test_what_the_test_itself_sent_is_nobodys_wish(limited: Env) -> None:
    observed(3.0)
    observed(40.0, minutes_ago=2)
    limits.apply_automatically(with_test(limited, capacity=4.0))
    assert backend().limit_value == 8


def test_what_the_test_sent_in_the_minute_in_which_it_began_is_nobodys_wish(limited: Env) -> None:
    observed(3.0)
    observed(40.0, minutes_ago=4)
    began = now().replace(second=0, microsecond=0) - timedelta(minutes=4) + timedelta(seconds=5)
    limits.apply_automatically(with_test(limited, capacity=4.0, started_at=began))
    assert backend().limit_value == 8


def test_without_a_measured_hour_it_is_not_lowered(limited: Env) -> None:
    sentence = limits.apply_automatically(with_test(limited, capacity=4.0))
    assert backend().limit_value == 10
    assert "not lowered" in sentence


def test_who_may_not_write_any_more_sets_no_limit(limited: Env) -> None:
    sentence = limits.apply_automatically(with_test(limited, role=Membership.Role.VIEWER))
    assert sentence.startswith("The limit is unchanged: Your role is viewer")
    assert backend().limit_value == 10


def test_who_left_sets_no_limit(limited: Env) -> None:
    run = with_test(limited)
    User.objects.filter(username="ada").update(is_active=False)
    assert "may no longer change limits" in limits.apply_automatically(run)
    assert backend().limit_value == 10


def test_the_first_limit_is_a_persons(limited: Env) -> None:
    set_limit(actor=limited.operator, pool_id=backend().pool_id, region="here", kind="none")
    assert "set the first one manually" in limits.apply_automatically(with_test(limited))
    assert backend().limit_kind == "none"


def test_an_answer_that_is_not_certain_is_left_to_people(limited: Env) -> None:
    run = with_test(limited)
    run.result = {**(run.result or {}), "limited_by": "max_rate"}
    run.save()
    assert "set the limit manually" in limits.apply_automatically(run)
    assert backend().limit_value == 10


def test_lists_say_the_age_of_many_measured_limits_with_one_query(limited: Env, django_assert_num_queries: Any) -> None:
    run = done(limited, ended_at=now() - timedelta(days=3))
    limits.set_as_limit(actor=limited.operator, run_id=run.pk)
    rows = list(Backend.objects.order_by("pk"))
    with django_assert_num_queries(1):
        found = staleness.ages(rows)
    assert found == {backend().pk: f"{run.name}, 3 days ago"}
    Run.objects.filter(pk=run.pk).update(ended_at=now() - timedelta(days=40))
    assert staleness.ages(rows) == {backend().pk: f"{run.name}, 40 days ago: old"}
    Run.objects.filter(pk=run.pk).delete()
    assert staleness.ages(rows) == {backend().pk: f"{run.name}, which nobody knows"}


def said(pool: str = "blue") -> tuple[bool | None, str]:
    """The verdict on the measured limits of a pool."""
    row = Condition.objects.get(object_kind="pool", object_id=Pool.objects.get(name=pool).pk, type="LimitMeasured")
    return row.status, row.message


def test_a_pool_whose_limit_should_be_measured_again_is_a_problem(limited: Env) -> None:
    evaluate_measurements(now())
    assert Condition.objects.count() == 0
    run = done(limited)
    limits.set_as_limit(actor=limited.operator, run_id=run.pk)
    evaluate_measurements(now())
    assert said() == (True, "Every measured limit is of what serves now.")
    Run.objects.filter(pk=run.pk).update(ended_at=now() - timedelta(days=31))
    evaluate_measurements(now())
    assert said() == (False, f"here: Measured by {run.name} 31 days ago, more than 30 days: measure again.")
    set_limit(actor=limited.operator, pool_id=backend().pool_id, region="here", value=99)
    evaluate_measurements(now())
    assert said()[0] is None
