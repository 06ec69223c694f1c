"""Saved searches: shared in their account alone, bounded, read with care; and what is measured of them each minute."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import Forbidden, Invalid, NotFound
from apps.drivers.logs.contract import Record, TooLarge
from apps.drivers.logs.memory import MemoryStore
from apps.logs import measuring, saved
from apps.logs.measuring import KEPT, measure_due
from apps.logs.metrics import families
from apps.logs.models import MetricPoint, NodeLog, SavedSearch
from apps.observe.models import NodeReport
from tests.apps.observe_env import make_env
from tests.conftest import actor_of

pytestmark = pytest.mark.django_db
COUNT = {"filter": "status>=500", "metric": {"measure": "count"}}
MOMENT = now().astimezone(UTC).replace(second=30, microsecond=0)
LAST = MOMENT.replace(second=0) - timedelta(minutes=1)
HOSTILE = "a\nb\"c'\\\0\u2028ü🙂$1{}"


@pytest.fixture(autouse=True)
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """No minute ends within a test."""
    monkeypatch.setattr(measuring, "now", lambda: MOMENT)


def lines(account: int, count: int, number: int = 0, **values: object) -> list[Record]:
    """So many lines of the last minute that is over."""
    usual: dict[str, Any] = {"node": "n", "fleet": "f", "load_balancer": "l", "listener": "h", "status": 200}
    at = LAST
    return [
        Record(time=at, id=f"{number}-{each}", account=account, **{**usual, "total_ms": each, **values})
        for each in range(count)
    ]


def measured(store: MemoryStore) -> str:
    return measure_due(store, lambda: True)


def last(row: SavedSearch) -> MetricPoint:
    found = row.points.order_by("-minute").first()
    assert found is not None
    return found


def test_a_search_is_seen_by_its_account_and_operators_alone(acme: Actor, globex: Actor, operator: Actor) -> None:
    row = saved.save_search(actor=acme, name="errors", spec=COUNT)
    saved.save_search(actor=globex, name="errors", spec={"filter": "", "metric": None})
    assert list(saved.searches(acme)) == [row]
    assert saved.searches(operator).count() == 2
    for call in (saved.search, lambda actor, pk: saved.delete_search(actor=actor, search_id=pk)):
        with pytest.raises(NotFound):
            call(globex, row.pk)
    with pytest.raises(Invalid, match="act for"):
        saved.save_search(actor=globex, account="acme", name="x", spec=COUNT)
    viewer = actor_of("acme", "customer", Membership.Role.VIEWER)
    with pytest.raises(Forbidden):
        saved.save_search(actor=viewer, name="x", spec=COUNT)
    assert saved.search(viewer, row.pk) == row
    saved.delete_search(actor=acme, search_id=row.pk)
    entries = Entry.objects.filter(object_kind="SavedSearch", account=acme.account).order_by("pk")
    assert [entry.action for entry in entries] == ["create", "delete"]


@pytest.mark.parametrize(
    ("name", "spec", "pointer"),
    [
        ("Ä b", COUNT, "/name"),
        (HOSTILE, COUNT, "/name"),
        (None, COUNT, "/name"),
        ("x", {"filter": HOSTILE}, "/spec/filter"),
        ("x", {"filter": "stauts:3"}, "/spec/filter"),
        ("x", {"filter": "a" * 2001}, "/spec/filter"),
        ("x", {"filter": 7}, "/spec/filter"),
        ("x", [], "/spec"),
        ("x", {"filter": "", HOSTILE: 1}, f"/spec/{HOSTILE}"),
        ("x", {"filter": "", "metric": "count"}, "/spec/metric"),
        ("x", {"filter": "", "metric": {"measure": ["count"]}}, "/spec/metric/measure"),
        ("x", {"filter": "", "metric": {"measure": "count", "of": "total_ms"}}, "/spec/metric/of"),
        ("x", {"filter": "", "metric": {"measure": "percentile", "of": "status"}}, "/spec/metric/of"),
        ("x", {"filter": "", "metric": {"measure": "percentile", "of": ["x"]}}, "/spec/metric/of"),
        ("x", {"filter": "", "metric": {"measure": "percentile", "percentile": 42}}, "/spec/metric/percentile"),
        ("x", {"filter": "", "metric": {"measure": "percentile", "percentile": [95]}}, "/spec/metric/percentile"),
        ("x", {"filter": "", "metric": {"measure": "share", "among": "nothing:1"}}, "/spec/metric/among"),
    ],
)
def test_what_is_wrong_is_named(acme: Actor, name: object, spec: object, pointer: str) -> None:
    with pytest.raises(Invalid) as caught:
        saved.save_search(actor=acme, name=name, spec=spec)
    assert [each.pointer for each in caught.value.field_errors] == [pointer]
    assert not SavedSearch.objects.exists()


def test_names_are_unique_and_searches_and_metrics_are_bounded(acme: Actor, globex: Actor) -> None:
    for number in range(saved.MOST_SEARCHES):
        spec = COUNT if number < saved.MOST_METRICS else {"filter": ""}
        saved.save_search(actor=acme, name=f"s{number}", spec=spec)
        if number == saved.MOST_METRICS:
            with pytest.raises(Invalid, match="measures at most 10"):
                saved.save_search(actor=acme, name="other", spec=COUNT)
            with pytest.raises(Invalid, match="with this name"):
                saved.save_search(actor=acme, name="s0", spec={"filter": ""})
    with pytest.raises(Invalid, match="at most 50"):
        saved.save_search(actor=acme, name="other", spec={"filter": ""})
    saved.save_search(actor=globex, name="other", spec=COUNT)


def test_nothing_is_measured_while_no_line_comes_from_any_node_and_all_of_it_after_that(acme: Actor) -> None:
    store = MemoryStore()
    row = saved.save_search(actor=acme, name="errors", spec=COUNT)
    for node in make_env().nodes[:2]:
        NodeReport.objects.create(node=node, digest="d" * 64)
        NodeLog.objects.create(node=node, read_at=MOMENT, error="It does not answer.")
    measured(store)
    assert not row.points.exists()
    NodeLog.objects.update(error="", waiting_s=600)
    measured(store)
    assert not row.points.exists()
    store.store("n-1", lines(acme.account.pk, 3, status=500))
    NodeLog.objects.filter(pk=NodeLog.objects.earliest("pk").pk).update(waiting_s=0)
    measured(store)
    assert last(row).value == 3


def test_each_measure_is_measured_of_the_accounts_own_lines(acme: Actor, globex: Actor) -> None:
    store, own = MemoryStore(), acme.account.pk
    stored = [*lines(own, 30), *lines(own, 10, 1, status=500), *lines(globex.account.pk, 99, 2, status=500)]
    store.store("n-1", stored)
    metrics = {
        "count": {"measure": "count"},
        "rate": {"measure": "rate"},
        "share": {"measure": "share", "among": "total<20"},
        "slow": {"measure": "percentile", "of": "total_ms", "percentile": 50},
    }
    rows = {
        name: saved.save_search(actor=acme, name=name, spec={"filter": "status>=500", "metric": metric})
        for name, metric in metrics.items()
    }
    assert measured(store) == ""
    values = {name: last(row).value for name, row in rows.items()}
    # Among the lines below 20 ms, 20 went well and 10 failed.
    assert values == {"count": 10, "rate": pytest.approx(10 / 60), "share": pytest.approx(100 / 3), "slow": 4.5}
    assert {row.points.count() for row in rows.values()} == {60}
    assert rows["count"].points.filter(value=0).count() == 59
    assert rows["slow"].points.filter(value=None).count() == 59


def test_late_lines_are_counted_and_a_minute_has_one_point(acme: Actor) -> None:
    store, row = (
        MemoryStore(),
        saved.save_search(actor=acme, name="all", spec={"filter": "", "metric": {"measure": "count"}}),
    )
    measured(store)
    assert last(row).value == 0
    store.store("n-1", lines(acme.account.pk, 3))
    measured(store)
    assert last(row).value == 0  # not due again within its minute
    SavedSearch.objects.update(measured_until=LAST)
    measured(store)
    assert last(row).value == 3
    assert row.points.count() == 60


def test_history_is_bounded(acme: Actor) -> None:
    row = saved.save_search(actor=acme, name="all", spec={"filter": "", "metric": {"measure": "count"}})
    old = LAST - KEPT
    for age in (timedelta(minutes=5), timedelta(minutes=-5)):
        MetricPoint.objects.create(search=row, minute=old - age, lines=1, value=1)
    measured(MemoryStore())
    assert row.points.filter(minute__lt=old).count() == 0
    assert row.points.filter(minute=old + timedelta(minutes=5)).exists()


def test_a_question_that_is_too_large_holds_up_nobody_else(acme: Actor, globex: Actor) -> None:
    class Choking(MemoryStore):
        asked = 0

        def series(self, account: int, *given: Any, **named: Any) -> Any:
            if account == acme.account.pk:
                self.asked += 1
                raise TooLarge("too much")
            return super().series(account, *given, **named)

    store = Choking()
    for name in ("a", "b"):
        saved.save_search(actor=acme, name=name, spec=COUNT)
    other = saved.save_search(actor=globex, name="c", spec=COUNT)
    assert measured(store) == "too much"
    assert store.asked == 1
    assert other.points.exists()


def test_the_last_minute_is_a_metric_and_an_old_one_is_none(acme: Actor) -> None:
    row = saved.save_search(actor=acme, name="errors", spec=COUNT)
    MetricPoint.objects.create(search=row, minute=now() - timedelta(minutes=2), lines=7, value=7)
    MetricPoint.objects.create(search=row, minute=now() - timedelta(minutes=1), lines=9, value=9)

    def samples() -> list[tuple[dict[str, str], float]]:
        (family,) = (each for each in families() if each.name == "spillway_saved_search_value")
        return [(each.labels, each.value) for each in family.samples]

    assert samples() == [({"account": "acme", "search": "errors"}, 9.0)]
    row.points.filter(value=7).delete()
    row.points.update(minute=now() - timedelta(minutes=10))
    assert samples() == []
