"""Objectives of routes: counted in request lines, late ones too, and unknown where lines are not written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.actors import Actor
from apps.alerts.models import Finding
from apps.core.errors import Invalid
from apps.definitions.models import Route
from apps.definitions.services import save_object
from apps.drivers.logs.contract import Busy, LogStore, Query, Record, TooLarge
from apps.drivers.logs.memory import MemoryStore
from apps.fleet.models import Node
from apps.logs.metrics import families
from apps.logs.models import CountedLines, NodeLog
from apps.logs.objectives import counting
from apps.logs.objectives.counting import count_again, count_due
from apps.logs.objectives.standing import route_standings
from apps.observe.collect import slots
from apps.observe.models import NodeReport, RouteTally
from apps.observe.show.objectives import WHOLE, Aim, Standing, days
from apps.web.objectives.shown import objective_of
from tests.apps.alerts_env import Installation
from tests.interfaces.api.test_api_objects import Api
from tests.interfaces.people import client_of

OBJECTIVE = {"availability": 99.0, "latency_ms": 100, "latency_share": 90}
ROUTE = {"load_balancer": "front", "action": {"fixed_response": {"status": 200}}}
BEGIN = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
ERRORS_ONLY = {"log": {"requests": "errors"}}


class Clock:
    """The time that counting reads, which moves on as the test says."""

    at = BEGIN


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(counting, "now", lambda: found.at)
    return found


@pytest.fixture
def store(tutorial_env: Actor, clock: Clock) -> MemoryStore:
    """Every node hands over its lines."""
    for node in Node.objects.all():
        NodeLog.objects.create(node=node, read_at=clock.at)
    return MemoryStore()


def make(actor: Actor, name: str = "shop", objective: object = OBJECTIVE, **spec: Any) -> Route:
    host = f"{name}.{actor.account.name}.example"
    spec = {**ROUTE, "hostname": host, "objective": objective, **spec}
    route: Route = save_object(actor=actor, kind="Route", name=name, spec=spec)
    return route


def lines(route: Route, at: datetime, good: int, bad: int = 0, *, slow: int = 0, **values: Any) -> Iterator[Record]:
    """Requests of a route in the minute from `at`, the slow ones among the good."""
    usual: dict[str, Any] = {"node": "n", "fleet": "f", "load_balancer": "front", "listener": "http", "method": "GET"}
    for number in range(good + bad):
        served = {"status": 200 if number < good else 503, "response_ms": 101 if number < slow else 100, "total_ms": 5}
        fields = {"id": f"{at.timestamp()}-{number}", "account": route.account_id, "route": route.name}
        yield Record(**{"time": at, **fields, **usual, **served, **values})


def counted(store: LogStore, clock: Clock, at: datetime) -> None:
    """Time has come to this, all nodes are read, and everything is counted."""
    clock.at = at
    NodeLog.objects.update(read_at=at)
    while True:
        before = set(CountedLines.objects.values_list("until", flat=True))
        assert count_due(store, lambda: True) == ""
        if before == set(CountedLines.objects.values_list("until", flat=True)):
            return


def started(store: LogStore, clock: Clock) -> datetime:
    """Somebody counts: from the slot after this on, which is answered, requests are known."""
    counted(store, clock, BEGIN + timedelta(seconds=30))
    return BEGIN + timedelta(minutes=5)


def standing(route: Route, at: datetime) -> Standing:
    return route_standings([route], at)[route.pk]


def sums(aim: Aim, window: str = WHOLE) -> tuple[int, int]:
    return aim.shares[window].total, aim.shares[window].bad


def test_requests_of_a_route_are_counted_from_its_lines_by_status_and_by_its_own_bound(
    store: MemoryStore, clock: Clock, acme: Actor, globex: Actor
) -> None:
    route, quick, other = make(acme), make(acme, "quick", OBJECTIVE | {"latency_ms": 50}), make(globex)
    plain = make(acme, "plain", None)
    begin = started(store, clock)
    batch = [
        *lines(route, begin, 95, 5, slow=20), *lines(quick, begin, 10), *lines(other, begin, 7, 7),
        *lines(plain, begin, 9), *lines(route, begin, 0, 50, test_run="pool-1"),
        *lines(route, begin, 3, kind="connection"), *lines(route, begin, 4, status=None, response_ms=None),
    ]  # fmt: skip
    store.store("one", batch)
    at = begin + timedelta(minutes=6)
    for _ in range(2):  # again makes no difference
        counted(store, clock, at)
        CountedLines.objects.update(until=at - timedelta(minutes=3))
    availability, latency = standing(route, at).aims
    assert (sums(availability), sums(latency)) == ((104, 5), (100, 20))
    assert [sums(aim) for aim in standing(quick, at).aims] == [(10, 0), (10, 10)]
    assert [sums(aim) for aim in standing(other, at).aims] == [(14, 7), (14, 0)]
    assert not RouteTally.objects.filter(route=plain).exists()
    assert (standing(route, at).unknown, standing(route, at).incomplete) == ("", "")


def test_all_routes_of_an_account_are_asked_in_one_question(store: MemoryStore, clock: Clock, acme: Actor) -> None:
    class Asked(MemoryStore):
        questions = 0

        def outcomes(self, account: int, query: Query, **given: Any) -> Any:
            self.questions += 1
            return super().outcomes(account, query, **given)

    asked, queries = Asked(), []
    for number in range(4):
        make(acme, f"shop-{number}", OBJECTIVE | {"latency_ms": (50, 100)[number % 2]})
        clock.at += timedelta(minutes=1)
        with CaptureQueriesContext(
            connection,
        ) as made:
            count_due(asked, lambda: True)
        queries.append(len(made))
    assert asked.questions == 4
    assert queries[3] <= queries[1]


def test_a_node_that_was_away_hands_over_its_lines_and_they_are_counted(
    store: MemoryStore, clock: Clock, acme: Actor
) -> None:
    route = make(acme)
    begin = started(store, clock)
    store.store("one", list(lines(route, begin, 100)))
    at = begin + timedelta(hours=2)
    away = NodeLog.objects.order_by("pk")[0]
    NodeLog.objects.filter(pk=away.pk).update(error="The node does not answer.")
    counted(store, clock, at)
    assert sums(standing(route, at).aims[0]) == (100, 0)
    assert standing(route, at).incomplete == (
        f"Request lines of 1 of {NodeLog.objects.count()} nodes are missing; they are counted when they come."
    )
    NodeLog.objects.filter(pk=away.pk).update(error="")
    late = list(lines(route, begin + timedelta(minutes=1), 60, 40))
    store.store("two", late)
    counted(store, clock, at + timedelta(minutes=1))
    assert sums(standing(route, at).aims[0]) == (100, 0)  # nobody said that they had come
    count_again(late)
    counted(store, clock, at + timedelta(minutes=2))
    at += timedelta(minutes=2)
    assert sums(standing(route, at).aims[0]) == (200, 40)
    assert standing(route, at).incomplete == ""


def test_nobody_waits_for_lines_of_a_node_that_never_ran_anything(
    store: MemoryStore, clock: Clock, acme: Actor
) -> None:
    route = make(acme)
    started(store, clock)
    serving = Node.objects.order_by("pk")[0]
    new = Node.objects.create(account=serving.account, fleet=serving.fleet, name="new", url="memory://new")
    NodeLog.objects.create(node=new, read_at=clock.at, error="It is not there yet.")
    report = NodeReport.objects.create(node=new, last_contact_error="It is not there yet.")
    assert standing(route, clock.at).incomplete == ""
    report.digest = "f" * 64  # control: it has served
    report.save()
    assert standing(route, clock.at).incomplete.startswith("Request lines of 1 of ")


def test_nodes_that_are_silent_and_nodes_that_err_are_counted_together(
    store: MemoryStore, clock: Clock, acme: Actor
) -> None:
    route = make(acme)
    started(store, clock)
    fleet = Node.objects.filter(fleet__load_balancers=route.load_balancer)[0].fleet
    NodeLog.objects.filter(node__fleet__load_balancers=route.load_balancer).update(error="")
    for name, fields in (("silent", {"read_at": None}), ("errs", {"read_at": clock.at, "error": "No space is left."})):
        node = Node.objects.create(account=fleet.account, fleet=fleet, name=name, url=f"memory://{name}")
        NodeLog.objects.create(node=node, **fields)
    assert standing(route, clock.at).incomplete.startswith("Request lines of 2 of ")


def test_a_request_that_took_an_hour_does_not_have_an_hour_counted_again(
    store: MemoryStore, clock: Clock, acme: Actor
) -> None:
    route = make(acme)
    begin = started(store, clock)
    at = begin + timedelta(hours=2)
    counted(store, clock, at)
    before = CountedLines.objects.get().until
    count_again(list(lines(route, at - timedelta(hours=1), 1, total_ms=3_600_000)))
    assert CountedLines.objects.get().until == before
    count_again(list(lines(route, at - timedelta(hours=1), 1, total_ms=10)))
    assert CountedLines.objects.get().until == at - timedelta(hours=1)


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"log": {"requests": "sampled", "one_in": 10}}, "Only a sample of its requests is logged (its own rules)"),
        (ERRORS_ONLY, "Only errors among its requests are logged (its own rules)"),
        ({"log": {"requests": "none"}}, "None of its requests is logged (its own rules)"),
    ],
)
def test_an_objective_of_a_route_that_does_not_log_everything_is_refused(
    tutorial_env: Actor, acme: Actor, rules: dict[str, Any], why: str
) -> None:
    with pytest.raises(Invalid) as refusal:
        make(acme, rules=rules)
    (error,) = refusal.value.field_errors
    assert (error.pointer, error.detail.partition(",")[0]) == ("/spec/objective", why)
    make(acme, objective=None, rules=rules)
    make(acme, rules={"log": {"requests": "all"}})


def test_a_policy_that_drops_lines_makes_the_objective_unknown_and_what_it_left_is_never_counted(
    store: MemoryStore, clock: Clock, acme: Actor
) -> None:
    route = make(acme)
    begin = started(store, clock)
    store.store("one", list(lines(route, begin, 100)))
    counted(store, clock, begin + timedelta(minutes=6))
    save_object(actor=acme, kind="Policy", name="quiet", spec={"default_for": {"account": True}, "rules": ERRORS_ONLY})
    dropped = begin + timedelta(minutes=7)
    store.store("two", list(lines(route, dropped, 0, 100)))
    counted(store, clock, dropped + timedelta(minutes=1))
    now = standing(route, clock.at)
    assert now.unknown == "Only errors among its requests are logged (policy quiet)"
    assert (sums(now.aims[0]), now.aims[0].burns("1h", "5m"), now.known) == ((0, 0), None, 0.0)
    save_object(
        actor=acme,
        kind="Policy",
        name="quiet",
        spec={"default_for": {"account": True}, "rules": {"log": {"requests": "all"}}},
    )
    counted(store, clock, dropped + timedelta(minutes=9))
    assert standing(route, clock.at).unknown == ""
    assert sums(standing(route, clock.at).aims[0]) == (100, 0)


def test_what_was_logged_before_there_was_an_objective_is_not_counted(
    store: MemoryStore, clock: Clock, acme: Actor
) -> None:
    route = make(acme)
    store.store("one", list(lines(route, BEGIN - timedelta(hours=1), 0, 100)))
    store.store("two", list(lines(route, BEGIN, 0, 100)))
    at = started(store, clock) + timedelta(minutes=3)
    counted(store, clock, at)
    assert sums(standing(route, at).aims[0]) == (0, 0)


def test_another_bound_says_nothing_of_what_was_counted_by_the_old_one(
    store: MemoryStore, clock: Clock, acme: Actor
) -> None:
    route = make(acme)
    begin = started(store, clock)
    store.store("one", list(lines(route, begin, 100, slow=50)))
    counted(store, clock, begin + timedelta(hours=2))
    route = make(acme, objective=OBJECTIVE | {"latency_ms": 200})
    at = begin + timedelta(hours=2, minutes=3)
    store.store("two", list(lines(route, at - timedelta(minutes=2), 10)))
    counted(store, clock, at)
    assert [sums(aim) for aim in standing(route, at).aims] == [(110, 0), (10, 0)]


def test_a_store_that_is_busy_is_asked_again_and_a_question_that_is_too_large_is_not(
    store: MemoryStore, clock: Clock, acme: Actor
) -> None:
    class Failing(MemoryStore):
        def outcomes(self, *_: Any, **__: Any) -> Any:
            raise error("Ask again.")

    make(acme)
    begin = started(store, clock)
    before = CountedLines.objects.get().until
    clock.at = begin + timedelta(minutes=6)
    error: Any = Busy
    assert count_due(Failing(), lambda: True) == "Ask again."
    assert CountedLines.objects.get().until == before
    error = TooLarge
    assert count_due(Failing(), lambda: True) == "Ask again."
    assert CountedLines.objects.get().until != before


@pytest.mark.parametrize("ends", [OperationalError("The database is away."), SystemExit()])
def test_what_was_counted_and_not_stored_is_counted_again(
    store: MemoryStore, clock: Clock, acme: Actor, monkeypatch: pytest.MonkeyPatch, ends: BaseException
) -> None:
    def fail(*_: Any) -> None:
        raise ends

    route = make(acme)
    begin = started(store, clock)
    for hour in range(2):
        store.store(f"{hour}", [*lines(route, begin + timedelta(hours=hour), 90, 10)])
    clock.at = begin + timedelta(hours=3)
    with monkeypatch.context() as patched:
        patched.setattr(slots, "store", fail)
        with pytest.raises(type(ends)):
            count_due(store, lambda: True)
    clock.at += timedelta(minutes=1)
    counted(store, clock, clock.at)
    assert sums(standing(route, clock.at).aims[0]) == (200, 20)
    assert CountedLines.objects.get().pending is None


@pytest.mark.slow(reason="counts a month")
def test_28_days_are_sums_of_days_and_what_is_older_is_forgotten(
    store: MemoryStore, clock: Clock, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "AT_ONCE", timedelta(days=1))
    route = make(acme)
    begin = started(store, clock)
    for day in range(30):
        at = begin + timedelta(days=day)
        store.store(f"d{day}", list(lines(route, at, 90, 10)))
        counted(store, clock, at + timedelta(minutes=6))
    at = begin + timedelta(days=29, hours=1)
    counted(store, clock, at)
    slots.prune(at)
    assert sums(standing(route, at).aims[0]) == (2900, 290)  # 28 days and today
    assert not RouteTally.objects.filter(whole_day=False, at__lt=at - timedelta(days=4, minutes=5)).exists()
    found = days("route", route.pk, at)
    assert ({each.total for each in found}, {each.failed for each in found}) == ({100}, {10})
    assert standing(route, at).known > 99
    monkeypatch.setattr("apps.observe.show.objectives.now", lambda: at)
    monkeypatch.setattr("apps.logs.objectives.standing.now", lambda: at)
    history = objective_of(route)
    assert history is not None
    assert history["history"]["highest"] == "10.0 ×"


def firing() -> list[tuple[str, str, str]]:
    rows = Finding.objects.filter(watches__startswith="objective", gone_at=None, account__kind="customer")
    return sorted(rows.exclude(alert=None).values_list("account__name", "rule", "title"))


def test_a_route_that_burns_is_told_its_account_and_does_not_end_while_lines_are_missing(
    store: MemoryStore, clock: Clock, acme: Actor, globex: Actor
) -> None:
    installation = Installation(at=BEGIN)
    route, calm = make(acme), make(globex, "calm")
    begin = started(store, clock)
    for minute in range(60):
        at = begin + timedelta(minutes=minute)
        store.store(f"m{minute}", [*lines(route, at, 80, 20), *lines(calm, at, 100)])
    installation.at = begin + timedelta(minutes=60, seconds=20)
    counted(store, clock, installation.at)
    installation.tick(2)
    name = "Route shop uses up its error budget"
    assert firing() == [
        ("acme", "objective-burning", name),
        ("acme", "objective-burning-fast", name),
        ("acme", "objective-burning-slowly", name),
    ]
    finding = Finding.objects.get(account=acme.account, rule="objective-burning-fast")
    assert "1,200 of 6,000 requests of the last hour ended with 5xx: at least 20.0 times" in finding.detail
    installation.at += timedelta(minutes=20)
    counted(store, clock, installation.at)
    NodeLog.objects.update(read_at=BEGIN)
    installation.tick(62, times=3)
    assert "objective-burning-fast" in str(firing())  # nobody collects lines: nobody knows
    NodeLog.objects.update(read_at=installation.at + timedelta(minutes=3))
    installation.tick(62, times=2)
    assert "objective-burning-fast" not in str(firing())


def test_the_page_and_the_api_say_what_is_left_to_the_routes_account_alone(
    store: MemoryStore, clock: Clock, acme: Actor, globex: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.logs.objectives.standing.now", lambda: clock.at)
    monkeypatch.setattr("apps.observe.show.objectives.now", lambda: clock.at)
    monkeypatch.setattr("apps.web.objectives.shown.now", lambda: clock.at)
    route = make(acme)
    begin = started(store, clock)
    store.store("one", list(lines(route, begin, 995, 5)))
    counted(store, clock, begin + timedelta(minutes=6))
    page = client_of(acme).get(f"/routes/{route.pk}?partial=objective").content.decode()
    assert "99.5 %" in page
    assert "Error budget left: 50 %" in page
    assert "/requests?q=route%3Ashop+status%3E%3D500+test_run%3A%22%22&amp;from=2026-10-26T00" in page
    told = Api(acme)("GET", f"routes/{route.pk}/objective").json()
    assert (told["counted_in"], told["complete"], told["message"]) == ("request_lines", True, "")
    availability = told["aims"][0]
    assert (availability["requests"], availability["missed"], availability["reached"]) == (1000, 5, 99.5)
    assert availability["budget_remaining"] == pytest.approx(0.5)
    assert {each["window"]: each["rate"] for each in availability["burn_rates"]}["1h"] == pytest.approx(0.5)
    assert told["days"] == [{"day": "2026-11-23", "requests": 1000, "failed": 5, "timed": 1000, "slow": 0}]
    assert Api(globex)("GET", f"routes/{route.pk}/objective").status_code == 404
    assert client_of(globex).get(f"/routes/{route.pk}?partial=objective").status_code == 404
    make(acme, objective=None)
    missing = Api(acme)("GET", f"routes/{route.pk}/objective")
    assert (missing.status_code, missing.json()["detail"]) == (404, "This route has no objective; set spec.objective.")
    found = {each.name: each for each in families()}
    assert found["spillway_objective_budget_remaining_ratio"].samples == []


def test_metrics_tell_what_is_left_and_nothing_of_what_is_unknown(
    store: MemoryStore, clock: Clock, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.logs.objectives.standing.now", lambda: clock.at)
    route = make(acme)
    begin = started(store, clock)
    store.store("one", list(lines(route, begin, 995, 5)))
    counted(store, clock, begin + timedelta(minutes=6))
    found = {each.name: each for each in families()}
    (left, _) = found["spillway_objective_budget_remaining_ratio"].samples
    assert left.labels == {"account": "acme", "kind": "route", "name": "shop", "objective": "availability"}
    assert left.value == pytest.approx(0.5)
    rates = {
        (each.labels["objective"], each.labels["window"]) for each in found["spillway_objective_burn_rate"].samples
    }
    assert ("availability", "1h") in rates
    save_object(actor=acme, kind="Policy", name="quiet", spec={"default_for": {"account": True}, "rules": ERRORS_ONLY})
    assert {each.name: each for each in families()}["spillway_objective_burn_rate"].samples == []


def test_an_account_has_so_many_objectives_as_its_quota_says(tutorial_env: Actor, operator: Actor, acme: Actor) -> None:
    acme.account.quotas["objectives"] = 2
    acme.account.save()
    save_object(actor=acme, kind="Pool", name="cart", spec={"objective": {"availability": 99}})
    make(acme)
    with pytest.raises(Invalid, match="objectives"):
        make(acme, "third")
    make(acme, "third", None)
    make(acme, objective=OBJECTIVE | {"availability": 98})
    make(acme, objective=None)
    make(acme, "third")
