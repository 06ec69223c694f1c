"""Canaries as people and pipelines begin them: shares grow while both sides are seen to do well, and not otherwise."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit.models import Entry
from apps.canaries import advancing, services
from apps.canaries.models import Canary
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid, Managed, NotFound
from apps.definitions.models import Route
from apps.definitions.selectors import describe
from apps.definitions.services import managing, save_object
from apps.drivers.logs.contract import Record, Unavailable
from apps.drivers.logs.memory import MemoryStore
from apps.drivers.logs.registry import open_logs
from apps.fleet.models import Node
from apps.logs.models import NodeLog
from apps.rollouts.models import Revision
from apps.rollouts.services import roll_back
from apps.webhooks.events import type_of
from tests.apps import pushed

pytestmark = pytest.mark.django_db
STEPS = [{"percent": 10, "for_s": 60}, {"percent": 50, "for_s": 60}]


def weigh(env: pushed.Env, **weights: int) -> Route:
    """Somebody gives the pools of the route these weights."""
    pools = [{"pool": name, "weight": weight} for name, weight in weights.items()]
    spec = pushed.route("/") | {"action": {"pools": pools}}
    row: Route = save_object(actor=env.operator, kind="Route", name="home", spec=spec)
    return row


def run_blue(env: pushed.Env) -> None:
    """The route home sends everything to blue, and could send to green; all nodes run that and hand over lines."""
    weigh(env, blue=100, green=0)
    env.reconcile()
    for node in Node.objects.all():
        NodeLog.objects.create(node=node, read_at=now())


BLUE = pushed.remembered(run_blue)


@pytest.fixture
def env(db: None) -> pushed.Env:
    """All of it goes to blue; lines were read a moment ago."""
    found = pushed.put_env(BLUE)
    NodeLog.objects.update(read_at=now())
    return found


def weights() -> dict[str, int]:
    """The stored ones."""
    shares: list[dict[str, Any]] = describe(Route.objects.get(name="home"))["action"]["pools"]
    return {share["pool"]: share["weight"] for share in shares}


def begin(env: pushed.Env, **plan: Any) -> Canary:
    """A canary to green, whose first weights all nodes run."""
    found = {"pool": "green", "steps": STEPS, **plan}
    row = services.request_canary(actor=env.operator, route_id=Route.objects.get(name="home").pk, plan=found)
    return on_nodes(env, row)


def on_nodes(env: pushed.Env, row: Canary) -> Canary:
    """What is stored reaches the nodes, and the canary sees it."""
    env.reconcile()
    return look(row)


BEGUN = pushed.remembered(begin, BLUE)


@pytest.fixture
def begun(db: None) -> pushed.Env:
    """A canary to green, whose first weights all nodes have run since a moment ago."""
    found = pushed.put_env(BEGUN)
    NodeLog.objects.update(read_at=now())
    Canary.objects.update(created_at=now(), live_at=now())
    return found


def look(row: Canary) -> Canary:
    """A worker is woken."""
    NodeLog.objects.update(read_at=now())
    advancing.advance(row.pk)
    row.refresh_from_db()
    return row


def served(settings: Settings, green: int = 50, failed: int = 0, ms: int = 20) -> None:
    """Lines of the route: 50 of blue in 20 ms; of green as said."""
    usual = Record(now(), "", "n1", "here", Route.objects.get(name="home").account_id, "front", "http", route="home")
    usual = replace(usual, pool="blue", status=200, total_ms=20)
    found = [replace(usual, id=f"b{usual.time}{number}") for number in range(50)]
    found += [
        replace(usual, id=f"g{usual.time}{each}", pool="green", total_ms=ms, status=502 if each < failed else 200)
        for each in range(green)
    ]
    open_logs(settings.LOGS_URL).store(f"{usual.time:%H%M%S%f}", found)


def later(row: Canary, seconds: int = 60) -> Canary:
    """So many seconds are over."""
    row.refresh_from_db()
    assert row.live_at is not None
    Canary.objects.filter(pk=row.pk).update(live_at=row.live_at - timedelta(seconds=seconds))
    return look(row)


def test_shares_grow_step_by_step_until_the_pool_has_all_requests(begun: pushed.Env, settings: Settings) -> None:
    row = Canary.objects.get()
    assert weights() == {"blue": 90, "green": 10}
    served(settings)
    assert (look(row).step, row.state, row.message) == (0, "running", "")
    assert (later(row).step, weights()) == (1, {"blue": 50, "green": 50})
    on_nodes(begun, row)
    served(settings)
    assert (later(row).state, weights()) == ("promoted", {"blue": 0, "green": 100})
    verbs = list(Entry.objects.filter(object_kind="Canary").order_by("pk"))
    assert [type_of(each) for each in verbs] == ["canary.requested", "canary.promoted"]
    said = Entry.objects.filter(object_kind="Route", actor=f"canary {row.pk}").values_list("reason", flat=True)
    assert set(said) == {f"canary {row.pk} of operator/home: 50 %", f"canary {row.pk} of operator/home: 100 %"}


def test_a_step_lasts_from_when_every_node_has_its_weights(env: pushed.Env, settings: Settings) -> None:
    route_id = Route.objects.get(name="home").pk
    row = services.request_canary(actor=env.operator, route_id=route_id, plan={"pool": "green", "steps": STEPS})
    assert (look(row).live_at, "every node" in row.message) == (None, True)
    assert on_nodes(env, row).live_at is not None


def test_a_bad_build_holds_where_it_is_and_says_why(begun: pushed.Env, settings: Settings) -> None:
    row = Canary.objects.get()
    served(settings, failed=10)
    assert (look(row).state, weights()) == ("held", {"blue": 90, "green": 10})
    assert row.message == "20.0 % of its 50 responses are 5xx; the canary allows 5 %."
    assert (later(row).state, weights()) == ("held", {"blue": 90, "green": 10})
    assert (services.abort_canary(actor=begun.operator, canary_id=row.pk).state, weights()) == (
        "aborted",
        {"blue": 100, "green": 0},
    )


def test_without_the_guard_the_same_build_would_go_on(env: pushed.Env, settings: Settings) -> None:
    row = begin(env, max_error_rate=1)
    served(settings, failed=10)
    assert (later(row).step, weights()) == (1, {"blue": 50, "green": 50})


def test_a_slow_build_holds(begun: pushed.Env, settings: Settings) -> None:
    row = Canary.objects.get()
    served(settings, ms=300)
    assert (look(row).state, "p95 is 300 ms" in row.message) == ("held", True)


def test_what_nobody_knows_promotes_nothing(
    begun: pushed.Env, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    row = Canary.objects.get()
    assert (later(row).step, row.state) == (0, "running")
    assert row.message == "The time of this step is over. It has had 0 of the 20 requests that it is judged by."
    served(settings)
    with monkeypatch.context() as patched:

        def away(*_: object, **__: object) -> Any:
            raise Unavailable("The request log cannot be reached.")

        patched.setattr(MemoryStore, "groups", away)
        assert (look(row).step, "The request log cannot be reached." in row.message) == (0, True)
    NodeLog.objects.update(read_at=now() - timedelta(hours=1))
    advancing.advance(row.pk)
    row.refresh_from_db()
    assert (row.step, "Nobody collects request lines now." in row.message) == (0, True)
    assert (look(row).step, weights()) == (1, {"blue": 50, "green": 50})


def test_who_resumes_gives_the_step_its_whole_time_and_judges_it_anew(begun: pushed.Env, settings: Settings) -> None:
    row = Canary.objects.get()
    served(settings, failed=50)
    assert look(row).state == "held"
    services.resume_canary(actor=begun.operator, canary_id=row.pk)
    assert (look(row).state, row.step) == ("running", 0)
    served(settings)
    assert look(row).state == "running"
    assert later(row, 30).step == 0


def test_weights_changed_by_hand_end_it_and_stay(begun: pushed.Env, settings: Settings) -> None:
    row = Canary.objects.get()
    weigh(begun, blue=70, green=30)
    assert (look(row).state, row.message) == ("ended", "Somebody changed the weights of the route.")
    assert weights() == {"blue": 70, "green": 30}
    with pytest.raises(Conflict, match="over"):
        services.promote_canary(actor=begun.operator, canary_id=row.pk)


def test_an_abort_after_a_change_by_hand_leaves_that_alone(begun: pushed.Env) -> None:
    row = Canary.objects.get()
    weigh(begun, blue=70, green=30)
    assert services.abort_canary(actor=begun.operator, canary_id=row.pk).state == "ended"
    assert weights() == {"blue": 70, "green": 30}


def test_a_change_of_the_route_that_leaves_its_weights_alone_is_no_matter(
    begun: pushed.Env, settings: Settings
) -> None:
    row = Canary.objects.get()
    spec = describe(Route.objects.get(name="home")) | {"methods": ["GET"]}
    save_object(actor=begun.operator, kind="Route", name="home", spec=spec)
    served(settings)
    assert later(row).step == 1
    assert describe(Route.objects.get(name="home"))["methods"] == ["GET"]


def test_a_route_that_is_deleted_ends_it(begun: pushed.Env) -> None:
    row = Canary.objects.get()
    pushed.remove_object(begun.operator, "Route", "home")
    assert (look(row).state, row.message) == ("ended", "The route was deleted.")


def test_two_workers_make_a_step_once(begun: pushed.Env, settings: Settings) -> None:
    row = Canary.objects.get()
    served(settings)
    old = Canary.objects.select_related("account").get(pk=row.pk)
    assert later(row).step == 1
    route = Route.objects.get(name="home")
    advancing._under_lock(old, lambda: advancing.set_share(old, route, begun.operator, 100))
    assert weights() == {"blue": 50, "green": 50}


def test_a_fleet_that_takes_no_changes_holds_it(env: pushed.Env) -> None:
    before, route_id = Revision.objects.latest("number"), Route.objects.get(name="home").pk
    row = services.request_canary(actor=env.operator, route_id=route_id, plan={"pool": "green", "steps": STEPS})
    roll_back(actor=env.operator, revision_id=before.pk, reason="an incident")
    assert (look(row).state, row.message) == ("held", "Fleet here takes no changes now: its rollouts are held.")


@pytest.mark.parametrize(
    ("plan", "pointer"),
    [
        ({"pool": "red", "steps": STEPS}, "/pool"),
        ({"pool": "blue", "steps": STEPS}, "/pool"),
        ({"pool": "green", "steps": []}, "/steps"),
        ({"pool": "green", "steps": STEPS, "max_slower": 0.5}, "/max_slower"),
        ({"pool": "green", "steps": STEPS, "speed": 1}, "/speed"),
        ([], ""),
    ],
)
def test_a_plan_that_cannot_be_is_refused_at_its_field(env: pushed.Env, plan: object, pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        services.request_canary(actor=env.operator, route_id=Route.objects.get(name="home").pk, plan=plan)
    assert pointer in {each.pointer for each in refused.value.field_errors}
    assert (Canary.objects.count(), weights()) == (0, {"blue": 100, "green": 0})


def test_a_canary_begins_no_lower_than_it_is(env: pushed.Env) -> None:
    weigh(env, blue=70, green=30)
    with pytest.raises(Invalid, match="has 30 % of the requests already"):
        begin(env)


def test_a_canary_that_nobody_would_see_is_refused(env: pushed.Env) -> None:
    spec = describe(Route.objects.get(name="home")) | {"rules": {"log": {"requests": "errors"}}}
    save_object(actor=env.operator, kind="Route", name="home", spec=spec)
    with pytest.raises(Invalid, match="Nobody would see how the canary does"):
        begin(env)


def test_a_route_has_one_canary_at_a_time_and_an_account_not_many(
    begun: pushed.Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Canary.objects.get()
    with pytest.raises(Conflict, match=f"Canary {row.pk} of this route is running"):
        begin(begun)
    Canary.objects.update(route=None)
    monkeypatch.setattr(services, "MOST_OPEN", 1)
    with pytest.raises(Conflict, match="has 1 open canaries"):
        begin(begun)


def test_others_may_not(env: pushed.Env, acme: Actor) -> None:
    row, route_id = begin(env), Route.objects.get(name="home").pk
    with pytest.raises(NotFound):
        services.request_canary(actor=acme, route_id=route_id, plan={})
    viewer = replace(env.operator, role=Membership.Role.VIEWER)
    with pytest.raises(Forbidden):
        services.request_canary(actor=viewer, route_id=route_id, plan={})
    for act in (services.hold_canary, services.resume_canary, services.promote_canary, services.abort_canary):
        with pytest.raises(NotFound):
            act(actor=acme, canary_id=row.pk)
        with pytest.raises(Forbidden):
            act(actor=viewer, canary_id=row.pk)


def test_the_route_of_a_pipeline_needs_that_pipeline(env: pushed.Env, settings: Settings) -> None:
    with managing(manager="deploy"):
        weigh(env, blue=99, green=0)
    with pytest.raises(Managed):
        begin(env)
    with managing(manager="deploy"):
        row = begin(env)
    served(settings)
    assert (row.manager, later(row).step) == ("deploy", 1)


def test_a_canary_whose_route_a_pipeline_takes_over_is_over(env: pushed.Env, settings: Settings) -> None:
    held = begin(env)
    services.hold_canary(actor=env.operator, canary_id=held.pk)
    Route.objects.update(manager="deploy")
    over = services.promote_canary(actor=env.operator, canary_id=held.pk)
    assert (over.state, over.message) == ("ended", "The route is managed by deploy now.")
    assert weights() == over.weights == {"blue": 90, "green": 10}
    with managing(manager="deploy"):
        weigh(env, blue=99, green=0)
        runs = begin(env)
    Route.objects.update(manager="other")
    served(settings)
    assert later(runs).state == "ended"


def test_canaries_that_were_over_long_ago_are_forgotten(begun: pushed.Env) -> None:
    row = Canary.objects.get()
    services.abort_canary(actor=begun.operator, canary_id=row.pk)
    advancing.prune(now())
    assert Canary.objects.exists()
    advancing.prune(now() + timedelta(days=91))
    assert not Canary.objects.exists()
