"""The overview says what needs attention: one entry per cause, worst first, and "All good" only where it is so."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from apps.core.clock import now
from apps.definitions.models import Backend, HealthCheck, Server
from apps.definitions.services import drain_region, set_servers
from apps.observe.collect import lease
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.models import Sample
from apps.observe.numbers import Numbers, Problem, Series
from apps.observe.selectors import problems
from apps.observe.services import store_verdicts
from apps.overflow import selectors
from apps.overflow.flows import Flow
from apps.rollouts.models import FleetSync, Revision
from apps.stacks.models import StackRun, StackSync
from apps.web.overview import parts as overview_parts
from apps.web.overview.incidents import DOWN, Incident, incidents, slower, standing_still
from tests.apps.observe_env import Env
from tests.apps.overflow_env import make_spilling
from tests.apps.stacks_env import a_run, a_stack
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db
ALL_GOOD = "All good."
NO_LIMIT = '<span class="muted">no limit</span>'
NOTHING = Flow((), (), 0.0, None, None, stale=False)


@pytest.fixture
def env(live_redis: object, still_clock: None) -> Env:
    """us is at its limit and sends 9.9/s to eu; a collector looks."""
    lease.share("a test")
    return make_spilling()


def page(env: Env) -> str:
    """The overview, in one line."""
    return " ".join(client_of(env.operator).get("/").content.decode().split())


def set_condition(kind: str, object_id: int, of: Type, reason: Reason, message: str = "") -> None:
    """A verdict that is bad."""
    store_verdicts([Verdict(kind, object_id, of, False, reason, message)], now())


def test_a_region_that_spills_is_not_all_good(env: Env) -> None:
    text = page(env)
    assert ALL_GOOD not in text
    assert "us is at 10 of 10 requests/s of acme/acme-web" in text
    assert 'class="state warn"' in text
    assert "Spilling" in text


@pytest.mark.exhaustive
def test_control_without_overflow_and_problems_all_is_good(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = replace(selectors.flow_overall(env.operator), lanes=(), regions=())
    monkeypatch.setattr(selectors, "flow_overall", lambda *_: quiet)
    assert ALL_GOOD in page(env)


def test_a_pool_has_no_limit_only_where_that_is_known(env: Env, monkeypatch: pytest.MonkeyPatch) -> None:
    store_verdicts([Verdict("pool", env.pools["globex"].pk, Type.HEALTHY, True, Reason.ALL_SERVERS_UP, "")], now())
    Backend.objects.update(limit_kind="none")
    assert NO_LIMIT in page(env)
    stale = replace(selectors.flow_overall(env.operator), stale=True, age_s=20.0)
    monkeypatch.setattr(selectors, "flow_overall", lambda *_: stale)
    assert NO_LIMIT not in page(env)


def test_a_drained_region_is_not_all_good(env: Env) -> None:
    drain_region(actor=env.operator, region="us", drained=True, reason="switches")
    text = page(env)
    assert ALL_GOOD not in text
    assert "us is drained since" in text


def test_a_fleet_that_is_held_is_not_all_good_for_operators_and_customers(env: Env) -> None:
    fleet = env.nodes[0].fleet
    revision = Revision.objects.create(
        fleet=fleet, number=1, digest="a" * 64, snapshot=b"", bundle=b"", summary="", actor="somebody"
    )
    FleetSync.objects.create(fleet=fleet, wanted=revision, held_at=revision, held_by="somebody")
    assert f"Fleet {fleet.name} is held at an earlier revision." in page(env)
    said = standing_still({fleet.pk: "held"}, own=[fleet.pk])
    assert [each.title for each in said] == [
        "Your changes are queued. The operator holds a fleet at an earlier revision."
    ]
    assert standing_still({fleet.pk: "held"}, own=[]) == []
    home = client_of(env.acme).get("/").content.decode()
    assert "Your changes are queued" in home
    assert "First steps" not in home  # it has served requests
    Sample.objects.all().delete()
    home = client_of(env.acme).get("/").content.decode()  # control
    assert "Your changes are queued" in home
    assert "First steps" in home


@pytest.mark.parametrize("served", [True, False])
def test_first_steps_that_are_done_stand_below_the_traffic(env: Env, served: bool) -> None:
    Sample.objects.all().delete()
    if served:
        node = env.nodes[0]
        at = now() - timedelta(minutes=1)
        Sample.objects.create(at=at, resolution=10, node=node, kind="frontend", object_id="lst-1", requests=1)
    text = page(env)
    assert (text.index("First steps") > text.index("Traffic and overflow")) is served


def test_a_p95_that_doubled_is_said() -> None:
    empty = (None,) * 60
    series = Series(tuple(range(60)), empty, empty, empty, empty, (100.0,) * 60)
    assert slower(Numbers(p95_ms=190.0, stale=False), series) is None
    found = slower(Numbers(p95_ms=4300.0, stale=False), series)
    assert found is not None
    assert found.title == "The p95 latency is 4.3 s; in the last hour it was 100 ms."
    assert slower(Numbers(p95_ms=4300.0, stale=True), series) is None
    few = replace(series, p95_ms=(None,) * 50 + (100.0,) * 10)
    assert slower(Numbers(p95_ms=4300.0, stale=False), few) is None


def test_a_pool_without_servers_is_down_once_something_leads_to_it(env: Env) -> None:
    globex = env.pools["globex"]
    Server.objects.filter(backend__pool=globex).delete()
    set_condition("pool", globex.pk, Type.HEALTHY, Reason.NO_SERVERS, "It has no servers.")
    text = page(env)
    assert "Pool globex-web is down. It has no servers." in text
    assert text.index("Pool globex-web is down.") < text.index("us is at 10 of 10")  # worst first
    env.routes["globex"].delete()
    assert "Pool globex-web is down." not in page(env)


def told_of(env: Env, name: str) -> str:
    """What the overview of the operator or of acme says below a pool that is down or a region that is drained."""
    client = client_of(env.acme if name == "acme" else env.operator)
    text = " ".join(re.sub("<.*?>", " ", client.get("/").content.decode()).split())
    return text[text.index("Needs attention") : text.index("Last changes")]


def fail(env: Env, at: datetime) -> None:
    """The pool of acme is down since then: its servers answered its check with 404."""
    set_server_port(env, 8081)
    message = "No server is up: vm-1 (L7STS/404)."
    pool = env.pools["acme"]
    HealthCheck.objects.update_or_create(pool=pool, defaults={"path": "/ready"})
    store_verdicts([Verdict("pool", pool.pk, Type.HEALTHY, False, Reason.NO_SERVER_UP, message)], at)


def set_server_port(env: Env, port: int) -> None:
    """Somebody changes a server."""
    server = Server.objects.filter(backend__pool=env.pools["acme"]).earliest("pk")
    set_servers(actor=env.acme, server_ids=[server.pk], weight=port % 256, reason="rebalance")


def test_what_fails_says_since_when_by_what_check_and_what_changed_before(env: Env) -> None:
    fail(env, now() + timedelta(minutes=1))
    for reader in ("operator", "acme"):
        told = told_of(env, reader)
        assert "No server is up: vm-1 ( answered 404 )." in told
        assert "Began" in told
        assert "Check GET /ready expects 200 within 2,000 ms" in told
        assert "Changed Server acme/acme-web/" in told
        assert "weight: 100 → 145, by somebody of acme" in told
        assert "“rebalance”" in told


def test_what_nobody_changed_in_the_day_before_says_so(env: Env) -> None:
    fail(env, now() - timedelta(days=2))
    assert "Changed not within a day before" in told_of(env, "operator")


def test_customers_are_told_no_changes_of_the_platform(env: Env) -> None:
    drain_region(actor=env.operator, region="us", drained=True, reason="switches")
    assert "“switches”" in told_of(env, "operator")
    assert "switches" not in told_of(env, "acme")
    assert "Changed" not in told_of(env, "acme")


def test_a_stack_that_failed_is_planned_again_by_one_button(env: Env) -> None:
    stack = a_stack(env.operator)
    run, _ = a_run(stack, state=StackRun.State.FAILED, finished_at=now(), message="Missing credentials.")
    StackSync.objects.update_or_create(stack=stack, defaults={"wanted": run.revision})
    client = client_of(env.operator)
    assert "Stack frankfurt could not be changed. Missing credentials." in told_of(env, "operator")
    assert "frankfurt" not in told_of(env, "acme")
    assert f'<form method="post" action="/stacks/{stack.pk}/plan">' in page(env)
    assert "Planning has started." in client.post(f"/stacks/{stack.pk}/plan", follow=True).content.decode()
    assert "Stack frankfurt" not in told_of(env, "operator")


def test_where_a_plan_is_applied_by_itself_no_button_of_the_overview_begins_one(env: Env) -> None:
    stack = a_stack(env.operator, approval="automatic")
    run, _ = a_run(stack, state=StackRun.State.FAILED, finished_at=now())
    StackSync.objects.update_or_create(stack=stack, defaults={"wanted": run.revision})
    assert "Stack frankfurt could not be changed. Open stack" in told_of(env, "operator")
    assert f"/stacks/{stack.pk}/plan" not in page(env)


def test_a_plan_that_waits_is_looked_at_before_it_is_approved(env: Env) -> None:
    a_run(a_stack(env.operator), state=StackRun.State.PLANNED)
    told = told_of(env, "operator")
    assert "Stack frankfurt has a plan that needs approval. Review plan" in told
    assert "Plan now" not in told


def problem(number: int, label: str, reason: Reason, message: str, kind: str = "pool", severity: int = 2) -> Problem:
    """Something that is wrong."""
    sentence = f"{kind.capitalize()} {label} is so. {message}"
    return Problem(severity, kind, number, label, sentence, reason.value, now(), message)


def test_one_cause_is_one_incident() -> None:
    said = "1 of 3 servers is down: vm-3 (L4CON)."
    shop = problem(1, "shop", Reason.SOME_SERVERS_DOWN, said)
    api = problem(2, "api", Reason.SOME_SERVERS_DOWN, said)
    errors = problem(1, "shop", Reason.MANY_ERRORS, "More than 5 % of the responses of the last minute are 5xx.")
    silent = problem(7, "us-1", Reason.DOES_NOT_ANSWER, "No route.", kind="node", severity=1)
    lost = problem(8, "us-2", Reason.PEER_LOST, "It exchanges no counters with us-1.", kind="node")
    found = incidents([silent, shop, api, errors, lost], NOTHING)
    assert [each.title for each in found] == [silent.sentence, shop.sentence]
    assert found[1].text == f"The same applies to api. {errors.sentence}"
    other = problem(3, "pay", Reason.SOME_SERVERS_DOWN, "1 of 3 servers is down: vm-4 (L4CON).")
    assert len(incidents([shop, other], NOTHING)) == 2  # control: another cause is another incident


def test_pools_that_have_a_failing_server_in_common_are_one_incident_told_of_the_worst() -> None:
    vm_3, vm_4 = (1, "10.0.0.3", 80), (1, "10.0.0.4", 80)
    next_one = replace(problem(1, "next", Reason.SOME_SERVERS_DOWN, "1 of 2 servers is down: x."), at=frozenset({vm_3}))
    said = "No server is up in US."
    shop = replace(problem(2, "shop", Reason.REGION_WITHOUT_SERVERS, said, severity=1), at=frozenset({vm_3, vm_4}))
    (found,) = incidents([next_one, shop], NOTHING)
    assert (found.title, found.text) == (shop.sentence, "The same servers also fail in next.")
    elsewhere = replace(next_one, at=frozenset({(2, "10.0.0.3", 80)}))
    assert len(incidents([elsewhere, shop], NOTHING)) == 2, "the same address in another region is another server"


def test_the_overflow_of_a_pool_that_is_down_stands_beside_it(env: Env) -> None:
    acme = env.pools["acme"]
    set_condition("pool", acme.pk, Type.HEALTHY, Reason.REGION_WITHOUT_SERVERS, "No server is up in US.")
    for server in Server.objects.filter(backend__pool=acme, backend__region__name="us"):
        set_condition("server", server.pk, Type.UP, Reason.CHECK_FAILS)
    for pool in (None, acme):
        (found,) = incidents(problems(env.operator), selectors.flow_of(env.operator, pool))
        assert found.severity == DOWN
        assert found.title.startswith("Pool acme-web is down in a region.")
        assert "us has no usable server" in found.text


def test_the_worst_comes_first_and_of_equals_the_busiest() -> None:
    rows = [Incident(2, "quiet"), Incident(2, "busy", traffic=9.0), Incident(1, "down")]
    assert [each.title for each in incidents([], NOTHING, rows)] == ["down", "busy", "quiet"]


def test_the_pools_of_the_overview_stand_worst_first_and_not_by_traffic_alone(env: Env) -> None:
    acme, globex = env.pools["acme"], env.pools["globex"]
    store_verdicts([Verdict("pool", acme.pk, Type.HEALTHY, True, Reason.ALL_SERVERS_UP, "Fine.")], now())
    set_condition("pool", globex.pk, Type.HEALTHY, Reason.NO_SERVER_UP, "No server is up.")
    shown = overview_parts.pools_of_interest(env.operator, NOTHING)["pools"]
    assert [row["pool"].name for row in shown] == ["globex-web", "acme-web"]
    set_condition("pool", acme.pk, Type.HEALTHY, Reason.SOME_SERVERS_DOWN, "One is down.")
    shown = overview_parts.pools_of_interest(env.operator, NOTHING)["pools"]
    assert [row["pool"].name for row in shown] == ["globex-web", "acme-web"]  # degraded and busy, after what is down
