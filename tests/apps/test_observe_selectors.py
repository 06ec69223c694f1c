"""Pages get live numbers, series and verdicts of what the actor may see, and old ones are never live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.models import Pool, Route
from apps.observe import rolling, selectors, services
from apps.observe.collect import lease
from apps.observe.collect.buckets import start_of
from apps.observe.collect.deltas import Counts
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.live import store as live
from apps.observe.live.store import LiveNode
from apps.observe.models import Condition, NodeReport, Sample
from apps.observe.show import flows
from apps.observe.show import history as observed
from apps.overflow.selectors import flow_of
from apps.status import components
from apps.status.states import State
from apps.web.kit.figures import figures_of
from tests.apps.observe_env import Env, make_env, state

pytestmark = pytest.mark.django_db


@pytest.fixture
def env(db: None) -> Env:
    found = make_env()
    lease.share("a test")
    return found


def show(env: Env, requests: int = 100, age: float = 0.0, **values: object) -> None:
    """Every node served `requests` in ten seconds, as the collector would write it."""
    windows = {}
    for node in env.nodes:

        def counts(**more: object) -> Counts:
            return Counts(seconds=10, requests=requests, status_2xx=requests, **(values | more))  # type: ignore[arg-type]  # field names

        servers = [server for server in env.servers if server.backend.region_id == node.fleet.region_id]
        rows = {
            ("node", f"node-{node.pk}"): counts(),
            ("frontend", f"lst-{env.listener.pk if env.listener else 0}"): counts(),
        }
        rows |= {("backend", f"pool-{server.backend.pool_id}"): counts(latency={100: requests}) for server in servers}
        rows |= {("server", f"srv-{server.pk}"): counts(status="UP", check="L7OK 200 in 3 ms") for server in servers}
        rows["route", f"route-{env.routes['acme'].pk}"] = counts()
        windows[node.pk] = LiveNode(now().timestamp() - age, rows)
    live.write(windows, {})


def test_live_numbers_are_the_sum_of_all_nodes(env: Env, live_redis: str) -> None:
    show(env, status_5xx=100, connections_now=2, queue_now=1)
    found = selectors.live_numbers(env.operator)
    assert (found.requests_rps, found.error_rate) == (40.0, 0.5)
    assert (found.connections, found.queue, found.stale) == (8, 4, False)


def test_customers_get_the_sum_of_their_own_pools(env: Env, live_redis: str) -> None:
    show(env)
    assert selectors.live_numbers(env.acme).requests_rps == 40.0
    assert selectors.live_numbers(env.globex).requests_rps == 20.0
    assert selectors.live_numbers(env.globex).p95_ms == 97.5


def test_numbers_that_lack_a_silent_node_are_partial_where_it_may_serve_them(env: Env, live_redis: str) -> None:
    pools = [env.pools[name].pk for name in ("acme", "globex")]

    def partial() -> tuple[list[bool], bool, list[bool], tuple[str, ...]]:
        numbers = selectors.pool_numbers(env.operator, pools)
        overall = [selectors.live_numbers(actor).partial for actor in (env.operator, env.acme, env.globex)]
        route = selectors.route_numbers(env.globex, [env.routes["globex"].pk])[env.routes["globex"].pk].partial
        return [numbers[pk].numbers.partial for pk in pools], route, overall, flow_of(env.operator, None).unread

    known, *others = env.nodes
    show(replace(env, nodes=others))
    assert partial() == ([False, False], False, [False] * 3, ()), "a node that never ran anything serves nothing"
    NodeReport.objects.create(node=known, digest="d" * 64)
    # It stands in eu, where globex has no servers; its route leads through every node.
    assert partial() == ([True, False], True, [True, True, False], ("eu",))
    show(env)
    assert partial() == ([False, False], False, [False] * 3, ())


def test_old_numbers_are_stale_and_very_old_ones_are_none(env: Env, live_redis: str) -> None:
    show(env, age=12)
    found = selectors.live_numbers(env.operator)
    assert found.stale
    assert found.age_s is not None
    assert 12 <= found.age_s < 20
    show(env, age=70)
    assert selectors.live_numbers(env.operator).requests_rps is None


def test_a_silent_node_is_left_out_of_the_sum_of_those_that_speak(env: Env, live_redis: str) -> None:
    show(env)
    node = env.nodes[0].pk
    window = live.read([node], [("node", f"node-{node}")])
    assert window is not None
    live.write({node: LiveNode(now().timestamp() - 30, window[node].rows)}, {})
    found = selectors.live_numbers(env.operator)
    assert (found.requests_rps, found.stale) == (30.0, False)


def test_without_redis_the_last_bucket_is_shown_with_its_age(env: Env, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    live.client.cache_clear()
    at = start_of(now().timestamp() - 25, 10)
    rows = []
    for node in env.nodes:
        pool = f"pool-{env.pools['acme'].pk}"
        for key in (("node", f"node-{node.pk}"), ("backend", pool)):
            rows.append((at, node.pk, key, Counts(seconds=10, requests=50, latency={10: 50})))  # noqa: PERF401
    services.store_buckets(10, rows)
    found = selectors.live_numbers(env.operator)
    assert (found.requests_rps, found.stale) == (20.0, True)
    assert selectors.pool_numbers(env.acme, [env.pools["acme"].pk])[env.pools["acme"].pk].numbers.p95_ms == 9.75
    live.client.cache_clear()
    live.forgive()


def test_nothing_observed_is_no_number_at_all(env: Env, live_redis: str) -> None:
    for actor in (env.operator, env.acme):
        found = selectors.live_numbers(actor)
        assert (found.requests_rps, found.p95_ms, found.stale) == (None, None, True)


def set_condition(kind: str, object_id: int, of: Type, status: bool | None, reason: Reason, message: str = "") -> None:
    services.store_verdicts([Verdict(kind, object_id, of, status, reason, message)], now())


def test_pools_carry_their_verdict_until_nobody_looks(env: Env, live_redis: str) -> None:
    pool, ids = env.pools["acme"], [each.pk for each in env.pools.values()]
    set_condition("pool", pool.pk, Type.HEALTHY, False, Reason.SOME_SERVERS_DOWN, "1 of 4 servers is down.")
    set_condition("server", env.servers[0].pk, Type.UP, True, Reason.CHECK_PASSES)
    show(env)
    found = selectors.pool_numbers(env.acme, ids)
    assert set(found) == {pool.pk}
    mine = found[pool.pk]
    assert (mine.health, mine.servers_up, mine.servers_total) == ("degraded", 1, 4)
    assert mine.numbers.requests_rps == 40.0
    lease.leave("a test")
    unseen = selectors.pool_numbers(env.acme, ids)[pool.pk]
    assert (unseen.health, unseen.servers_up) == ("unknown", None)


def test_of_servers_that_nothing_checks_no_number_says_that_they_are_up(env: Env, live_redis: str) -> None:
    pool = env.pools["acme"]
    set_condition("pool", pool.pk, Type.HEALTHY, None, Reason.UNCHECKED, "No health check tells.")
    for server in env.servers:
        set_condition("server", server.pk, Type.UP, None, Reason.UNCHECKED)
    show(env)
    mine = selectors.pool_numbers(env.acme, [pool.pk])[pool.pk]
    assert (mine.health, mine.message, mine.servers_up) == ("unknown", "No health check tells.", None)


def test_server_rows_show_every_server_on_every_node_of_its_region(env: Env, live_redis: str) -> None:
    show(env)
    found = selectors.server_rows(env.operator, env.pools["acme"].pk)
    assert [(each.region, each.node) for each in found] == [
        ("eu", "eu-1"), ("eu", "eu-2"), ("eu", "eu-1"), ("eu", "eu-2"),
        ("us", "us-1"), ("us", "us-2"), ("us", "us-1"), ("us", "us-2"),
    ]  # fmt: skip
    assert {(each.status, each.check_text, each.numbers.requests_rps) for each in found} == {
        ("up", "L7OK 200 in 3 ms", 10.0)
    }
    show(env, age=15)
    assert {each.status for each in selectors.server_rows(env.operator, env.pools["acme"].pk)} == {"unknown"}


def test_customers_see_neither_foreign_servers_nor_names_of_nodes(env: Env, live_redis: str) -> None:
    show(env)
    assert selectors.server_rows(env.globex, env.pools["acme"].pk) == []
    assert {each.node for each in selectors.server_rows(env.acme, env.pools["acme"].pk)} == {"node 1", "node 2"}


def test_of_a_route_what_servers_failed_is_counted_and_of_tcp_nothing_is(env: Env, live_redis: str) -> None:
    route, pool = env.routes["acme"], env.pools["acme"]
    of_route = Counts(seconds=10, requests=20, errors=5)
    of_tcp = Counts(seconds=10, requests=20, connections=20)
    rows = {("route", f"route-{route.pk}"): of_route, ("backend", f"pool-{pool.pk}"): of_tcp}
    live.write({node.pk: LiveNode(now().timestamp(), rows) for node in env.nodes}, {})
    found = selectors.route_numbers(env.acme, [route.pk])[route.pk]
    assert (found.requests_rps, found.errors_rps, found.error_rate) == (8.0, 2.0, 0.25)
    tcp = selectors.pool_numbers(env.acme, [pool.pk])[pool.pk].numbers
    assert (tcp.requests_rps, tcp.error_rate, figures_of(tcp).errors) == (8.0, None, "")


def test_a_route_at_rest_has_zeros_and_a_foreign_one_nothing(env: Env, live_redis: str) -> None:
    show(env)
    ids = [route.pk for route in env.routes.values()]
    found = selectors.route_numbers(env.operator, ids)
    assert [found[pk].requests_rps for pk in ids] == [40.0, 0.0]
    assert set(selectors.route_numbers(env.globex, ids)) == {env.routes["globex"].pk}


@pytest.mark.parametrize("known", [False, True], ids=["no row", "a row without a rate"])
def test_a_node_that_was_read_once_says_nothing_of_a_route_yet(env: Env, known: bool, live_redis: str) -> None:
    route = env.routes["acme"].pk
    rows = {("route", f"route-{route}"): Counts(seconds=0.0)} if known else {}
    live.write({node.pk: LiveNode(now().timestamp(), rows, seconds=0.0) for node in env.nodes}, {})
    assert selectors.route_numbers(env.acme, [route])[route].requests_rps is None


def test_listeners_have_numbers_for_those_who_own_them(env: Env, live_redis: str) -> None:
    show(env)
    assert env.listener is not None
    assert selectors.listener_numbers(env.operator, [env.listener.pk])[env.listener.pk].requests_rps == 40.0
    assert selectors.listener_numbers(env.acme, [env.listener.pk]) == {}


def test_nodes_say_what_they_run_and_whether_they_answer(env: Env, live_redis: str) -> None:
    first, second = env.nodes[:2]
    services.note_report(node_id=first.pk, state=state(7, drift=("maps/a.map was edited",)))
    services.note_report(node_id=second.pk, state=state(6))
    services.store_contact_errors({second.pk: "No route to host."})
    set_condition("node", second.pk, Type.REACHABLE, False, Reason.DOES_NOT_ANSWER, "No route to host.")
    type(second.report).objects.filter(node=second).update(seen_at=now() - timedelta(minutes=2))
    found = selectors.node_numbers(env.operator)
    assert (found[first.pk].reachable, found[first.pk].running_generation) == (True, 7)
    assert found[first.pk].drift == ("maps/a.map was edited",)
    assert (found[second.pk].reachable, found[second.pk].serving) == (False, None)
    assert found[second.pk].contact_error == "No route to host."
    assert found[env.nodes[2].pk].reachable is None
    assert selectors.node_numbers(env.acme) == {}


def test_the_worst_problem_comes_first_as_a_sentence(env: Env, live_redis: str) -> None:
    acme, globex, node = env.pools["acme"], env.pools["globex"], env.nodes[0]
    set_condition(
        "pool", globex.pk, Type.HEALTHY, False, Reason.SOME_SERVERS_DOWN, "1 of 2 servers is down: us-1 (L4CON)."
    )
    set_condition("pool", acme.pk, Type.HEALTHY, True, Reason.ALL_SERVERS_UP)
    set_condition("node", node.pk, Type.REACHABLE, False, Reason.DOES_NOT_ANSWER, "No route to host.")
    found = selectors.problems(env.operator)
    assert [problem.sentence for problem in found] == [
        "Node eu-1 cannot be reached. No route to host.",
        "Pool globex-web is degraded. 1 of 2 servers is down: us-1 (L4CON).",
    ]
    assert [(problem.kind, problem.object_id) for problem in found] == [("node", node.pk), ("pool", globex.pk)]
    assert [problem.kind for problem in selectors.problems(env.globex)] == ["pool"]
    assert selectors.problems(env.acme) == []


def test_without_a_collector_the_problem_is_that_nobody_looks(env: Env, live_redis: str) -> None:
    lease.leave("a test")
    assert [problem.kind for problem in selectors.problems(env.operator)] == ["collector"]


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Time stands still, so that no ten seconds end in the middle of a test."""
    moment = now()
    monkeypatch.setattr(observed, "now", lambda: moment)
    return moment


def history(env: Env, minutes: int, instant: datetime) -> int:
    """A request/s on the acme pool, on each node, in each ten seconds but for a hole of a minute."""
    end = start_of(instant.timestamp() - 10, 10)
    pool, rows = f"pool-{env.pools['acme'].pk}", []
    for at in range(end - 60 * minutes, end + 10, 10):
        if end - 180 <= at < end - 120:
            continue
        for node in env.nodes:
            rows.append((at, node.pk, ("node", f"node-{node.pk}"), Counts(seconds=10, requests=10)))
            rows.append(
                (at, node.pk, ("backend", pool), Counts(seconds=10, requests=10, status_5xx=5, latency={100: 10}))
            )
    services.store_buckets(10, rows)
    return end


def test_a_series_has_holes_where_nobody_looked_and_zeros_where_nothing_happened(env: Env, instant: datetime) -> None:
    end = history(env, 10, instant)
    names = [f"pool-{pool.pk}" for pool in env.pools.values()]
    found = selectors.series(env.operator, "backend", names, minutes=5, points=30, latency=True)
    busy, quiet = found[names[0]], found[names[1]]
    assert (len(busy.x), busy.x[-1]) == (30, end)
    assert busy.requests == (4.0,) * 12 + (None,) * 6 + (4.0,) * 12 or busy.requests.count(None) == 6
    assert (busy.requests[-1], busy.errors[-1], busy.p95_ms[-1]) == (4.0, 2.0, 97.5)
    assert (quiet.requests[-1], quiet.p95_ms[-1]) == (0.0, None)
    assert quiet.requests.count(None) == 6


def test_the_newest_point_is_unknown_until_every_collector_has_stored_its_nodes(
    env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    def newest(after: float) -> tuple[float | None, ...]:
        for module in (observed, flows):
            monkeypatch.setattr(module, "now", lambda: datetime.fromtimestamp(end + 10 + after, UTC))
        of_pool = selectors.series(env.operator, "backend", [name], minutes=5, points=30)[name]
        every = selectors.overall_series(env.operator, minutes=5, points=15)
        assert (of_pool.requests[-2], every.requests[-2], flows.steps([name], 5)[-2].served) == (4.0, 4.0, 4.0)
        over = flows.rates_over([name], 5)[end]
        flow = None if over is None else sum(over.served.values())
        return of_pool.requests[-1], every.requests[-1], flows.steps([name], 5)[-1].served, flow

    name = f"pool-{env.pools['acme'].pk}"
    end = history(env, 10, datetime.fromtimestamp(start_of(now().timestamp(), 20), UTC))
    assert newest(1) == (4.0, 4.0, 4.0, 4.0)
    Sample.objects.filter(at=datetime.fromtimestamp(end, UTC), node__in=env.nodes[:2]).delete()
    assert newest(1) == (None, 4.0, None, None), "what half of the nodes did is no dip"
    assert newest(6) == (2.0, 3.0, 2.0, 2.0), "by then no other collector stores it: its nodes are silent"


def test_series_longer_than_an_hour_are_made_of_minutes(env: Env, instant: datetime) -> None:
    end = history(env, 10, instant)
    rolling.roll_up(end)
    name = f"pool-{env.pools['acme'].pk}"
    found = selectors.series(env.operator, "backend", [name], minutes=120, points=120)[name]
    assert len(found.x) == 120
    assert {round(value) for value in found.requests if value is not None} == {4}


def test_series_of_foreign_objects_are_left_out(env: Env, live_redis: str) -> None:
    names = [f"pool-{pool.pk}" for pool in env.pools.values()]
    assert set(selectors.series(env.globex, "backend", names)) == {names[1]}
    assert selectors.series(env.globex, "node", [f"node-{env.nodes[0].pk}"]) == {}
    assert set(selectors.series(env.globex, "backend", ["pool-999999999", "srv-1"])) == set()


def test_the_overall_series_of_a_customer_is_that_of_its_pools(env: Env, instant: datetime) -> None:
    history(env, 5, instant)
    assert selectors.overall_series(env.operator, minutes=5, points=30).requests[-1] == 4.0
    assert selectors.overall_series(env.acme, minutes=5, points=30).requests[-1] == 4.0
    assert selectors.overall_series(env.globex, minutes=5, points=30).requests[-1] == 0.0


def every_selector(env: Env, actor: Actor) -> list[Callable[[], object]]:
    pools = list(Pool.objects.values_list("pk", flat=True))
    routes = list(Route.objects.values_list("pk", flat=True))
    return [
        lambda: selectors.live_numbers(actor),
        lambda: selectors.pool_numbers(actor, pools),
        lambda: selectors.route_numbers(actor, routes),
        lambda: selectors.server_rows(actor, pools[0]),
        lambda: selectors.node_numbers(actor),
        lambda: selectors.problems(actor),
        lambda: selectors.series(actor, "backend", [f"pool-{pk}" for pk in pools], latency=True),
        lambda: selectors.overall_series(actor, latency=True),
    ]


def queries_of(env: Env, actor: Actor) -> list[int]:
    counts = []
    for select in every_selector(env, actor):
        with CaptureQueriesContext(connection) as queries:
            select()
        counts.append(len(queries))
    return counts


def test_the_number_of_queries_does_not_grow_with_the_rows(env: Env, live_redis: str) -> None:
    show(env)
    set_condition("pool", env.pools["acme"].pk, Type.HEALTHY, False, Reason.NO_SERVER_UP)
    before = queries_of(env, env.operator)
    template = env.pools["acme"]
    for number in range(20):
        pool = Pool.objects.create(account=template.account, name=f"more-{number}")
        set_condition("pool", pool.pk, Type.HEALTHY, False, Reason.NO_SERVER_UP)
        route = env.routes["acme"]
        route.pk, route.name = None, f"more-{number}"
        route.save()
    assert queries_of(env, env.operator) == before
    assert max(before) <= 8


def test_a_reason_of_a_collector_of_a_later_version_is_unknown_and_breaks_no_page(env: Env, live_redis: str) -> None:
    lease.share("a test")
    pool = env.pools["acme"].pk
    said = {"object_kind": "pool", "object_id": pool, "type": "Healthy", "reason": "RestsForAWhile"}
    Condition.objects.filter(object_kind="pool", object_id=pool).delete()
    Condition.objects.create(**said, status=False, message="It rests.", since=now())
    assert selectors.pool_numbers(env.acme, [pool])[pool].health == "unknown"
    assert selectors.pools_at_a_glance([pool])[pool][0] == "unknown"
    assert components.pool_states([pool]) == {pool: State.UNKNOWN}
