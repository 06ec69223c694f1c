"""What is wrong becomes one alert for each cause; who may know is told, a few times, and hears when it is over."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import OperationalError

from apps.accounts.actors import Actor
from apps.alerts.evaluate import evaluating
from apps.alerts.evaluate.evaluating import Evaluator
from apps.alerts.looking import watching
from apps.alerts.looking.contract import Look, Seen
from apps.alerts.looking.watching import LOOKS, Watcher
from apps.alerts.models import Alert, Evaluation, Finding, Notification, Silence, Told
from apps.core.clock import now
from apps.core.errors import Invalid
from apps.definitions.models import AlertChannel, Pool
from apps.definitions.services import delete_object, save_object
from apps.definitions.shapes.operations.alert_watches import WATCHES
from apps.fleet.models import Node, Region
from apps.logs import saved
from apps.logs.models import MetricPoint, NodeLog
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.services import store_verdicts
from tests.apps.alerts_env import Installation, hook, make_pool, rule, servers_of, titles

DOWN = (Type.HEALTHY, False, Reason.NO_SERVER_UP, "No server is up.")
WELL = (Type.HEALTHY, True, Reason.ALL_SERVERS_UP, "All servers are up.")


@pytest.fixture
def installation(tutorial_env: Actor) -> Installation:
    """The tutorial's installation, whose collector says nothing yet."""
    return Installation()


def test_every_watch_has_a_look_and_every_look_a_watch() -> None:
    names = [name for names, _, _ in LOOKS for name in names]
    assert sorted(names) == sorted(WATCHES)


def test_a_pool_that_goes_down_is_an_alert_at_once_and_over_ten_seconds_after_it_is_well(
    installation: Installation, acme: Actor
) -> None:
    pool = make_pool(acme, "basket", "10.1.0.1")
    installation.tick()
    assert titles(acme) == []
    installation.pool(pool, failing=servers_of(pool))
    installation.tick()
    assert titles(acme) == ["Pool basket is down"]
    alert = Alert.objects.get(account=acme.account)
    assert (alert.severity, alert.resolved_at) == ("critical", None)
    installation.healthy(pool)
    installation.tick(times=10)
    assert titles(acme) == ["Pool basket is down"]  # it might come back
    installation.tick(times=2)
    assert titles(acme) == []
    alert.refresh_from_db()
    assert alert.resolved_at is not None


def test_what_comes_back_within_ten_seconds_is_the_same_alert(installation: Installation, acme: Actor) -> None:
    pool = make_pool(acme, "basket", "10.1.0.1")
    for _ in range(3):
        installation.pool(pool)
        installation.tick(times=3)
        installation.healthy(pool)
        installation.tick(times=3)
    assert Alert.objects.filter(account=acme.account).count() == 1


def test_two_servers_of_three_pools_are_one_alert_and_its_title_names_the_cause(
    installation: Installation, acme: Actor
) -> None:
    pools = [make_pool(acme, name, "10.1.0.1", "10.1.0.2", "10.1.0.3") for name in ("one", "two", "three")]
    channel = hook(acme)
    for pool in pools:
        installation.pool(pool, down=False, failing=servers_of(pool)[:2])
        installation.tick()  # one after the other, as verdicts come
    (title,) = titles(acme)
    region = Region.objects.order_by("name").first()
    assert title == f"2 servers in {region.name if region else ''} do not answer: 3 pools are affected"
    assert len(installation.messages(channel)) == 1
    # The control: pools without a machine in common are alerts of their own.
    other = make_pool(acme, "other", "10.9.0.9")
    installation.pool(other, failing=servers_of(other))
    installation.tick()
    assert len(titles(acme)) == 2
    assert len(installation.messages(channel)) == 2


def test_pools_that_both_lose_a_whole_region_have_one_cause(installation: Installation, acme: Actor) -> None:
    region = Region.objects.get(name="us-central1")
    pools = [make_pool(acme, f"p{number}", f"10.2.0.{number}", region=region) for number in (1, 2)]
    for pool in pools:
        installation.pool(pool, failing=servers_of(pool))
    installation.tick()
    assert len(titles(acme)) == 1
    assert "region:us-central1" in Alert.objects.get(account=acme.account).keys


def test_a_region_whose_nodes_are_all_gone_is_one_alert_of_operators_alone(
    installation: Installation, operator: Actor, acme: Actor
) -> None:
    channel = hook(operator)
    for node in Node.objects.filter(fleet__region__name="us-central1"):
        installation.verdict("node", node.pk, Type.REACHABLE, False, Reason.DOES_NOT_ANSWER, "Connection refused.")
        installation.tick()
    (title,) = titles(operator)
    assert title.endswith("has no node left")
    assert titles(acme) == []
    # The first node was told of; that the region went with the last one is worth a second message, and no third.
    installation.tick(times=5)
    assert [each["title"] for each in installation.messages(channel)][-1] == title
    assert len(installation.messages(channel)) <= 2


def test_a_customer_never_hears_of_others_or_of_nodes(
    installation: Installation, operator: Actor, acme: Actor, globex: Actor
) -> None:
    channel = hook(acme, severities=["critical", "warning", "info"])
    node = Node.objects.all()[0]
    installation.verdict("node", node.pk, Type.REACHABLE, False, Reason.DOES_NOT_ANSWER, "secret of the platform")
    foreign = make_pool(globex, "basket", "10.1.0.1")
    installation.pool(foreign, failing=servers_of(foreign))
    own = make_pool(acme, "mine", "10.1.0.1")  # the same machine, so the same cause for operators
    installation.pool(own, failing=servers_of(own))
    installation.tick(times=3)
    assert titles(acme) == ["Pool mine is down"]
    said = str(installation.messages(channel)) + str(list(Finding.objects.filter(account=acme.account).values()))
    assert "globex" not in said
    assert "basket" not in said
    assert node.name not in said
    assert any("2 pools are affected" in title for title in titles(operator))
    with pytest.raises(Invalid) as refusal:
        rule(acme, "nodes", watches="node_down")
    assert refusal.value.field_errors[0].pointer == "/spec/watches"


def test_a_rule_by_the_name_of_a_built_in_one_takes_its_place_and_only_in_its_account(
    installation: Installation, acme: Actor, globex: Actor
) -> None:
    mine, theirs = make_pool(acme, "mine", "10.1.0.1"), make_pool(globex, "theirs", "10.1.0.2")
    rule(acme, "pool-down", watches="pool_down", enabled=False)
    installation.pool(mine)
    installation.pool(theirs)
    installation.tick()
    assert titles(acme) == []
    assert titles(globex) == ["Pool theirs is down"]
    delete_object(actor=acme, kind="AlertRule", name="pool-down")
    installation.tick()
    assert titles(acme) == ["Pool mine is down"]


def test_a_rule_that_is_switched_off_ends_its_alerts(installation: Installation, acme: Actor) -> None:
    installation.pool(make_pool(acme, "mine", "10.1.0.1"))
    installation.tick()
    assert titles(acme)
    rule(acme, "pool-down", watches="pool_down", enabled=False)
    installation.tick(4, times=4)
    assert titles(acme) == []


def test_what_does_not_last_long_enough_is_no_alert(installation: Installation, acme: Actor) -> None:
    rule(acme, "pool-down", watches="pool_down", for_s=30)
    pool = make_pool(acme, "mine", "10.1.0.1")
    installation.pool(pool)
    installation.tick(14.5, times=2)
    assert titles(acme) == []
    installation.healthy(pool)
    installation.tick()
    assert not Finding.objects.filter(account=acme.account).exists()
    installation.pool(pool)
    installation.tick(15, times=2)
    assert titles(acme) == ["Pool mine is down"]


def test_a_rule_with_names_looks_at_those_alone(installation: Installation, acme: Actor) -> None:
    rule(acme, "pool-down", watches="pool_down", only=["shop-*", "acme/cart"])
    for name in ("shop-a", "cart", "spare"):
        installation.pool(make_pool(acme, name, f"10.1.0.{len(name)}"))
    installation.tick()
    assert sorted(titles(acme)) == ["Pool cart is down", "Pool shop-a is down"]


def test_without_a_collector_nothing_begins_nothing_ends_and_operators_hear_of_it(
    installation: Installation, operator: Actor, acme: Actor
) -> None:
    pool, other = make_pool(acme, "mine", "10.1.0.1"), make_pool(acme, "other", "10.1.0.2")
    installation.pool(pool)
    installation.tick()
    installation.watched = False
    installation.healthy(pool)  # nobody vouches for that
    installation.pool(other)
    installation.tick(5, times=4)
    assert titles(acme) == ["Pool mine is down"]
    assert "No collector watches the nodes" in titles(operator)


def test_an_object_of_which_nobody_knows_keeps_its_alert(installation: Installation, acme: Actor) -> None:
    pool = make_pool(acme, "mine", "10.1.0.1")
    installation.pool(pool)
    installation.tick()
    installation.verdict("pool", pool.pk, Type.HEALTHY, None, Reason.NOT_OBSERVED, "No node reports on this pool.")
    installation.tick(5, times=6)
    assert titles(acme) == ["Pool mine is down"]


def test_a_pool_whose_health_check_is_taken_away_keeps_no_alert(installation: Installation, acme: Actor) -> None:
    pool = make_pool(acme, "mine", "10.1.0.1")
    installation.pool(pool)
    installation.tick()
    installation.verdict("pool", pool.pk, Type.HEALTHY, None, Reason.UNCHECKED, "No health check tells.")
    installation.tick(5, times=6)
    assert titles(acme) == []


@pytest.mark.slow(reason="a hundred pools, or a thousand, fail and recover")
@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_many_at_once_are_a_handful_of_messages_and_so_is_their_end(
    installation: Installation, acme: Actor, count: int
) -> None:
    channel = hook(acme)
    for name in ("quota-used", "nobody-told"):
        rule(acme, name, watches=name.replace("-", "_"), enabled=False)
    pools = Pool.objects.bulk_create([Pool(account=acme.account, name=f"p{number}") for number in range(count)])
    for part in (pools[: count // 3], pools[count // 3 : -10], pools[-10:]):  # as they come in, within seconds
        store_verdicts([Verdict("pool", pool.pk, *DOWN) for pool in part], installation.at)
        installation.tick()
    installation.tick(30, times=3)
    assert Alert.objects.filter(account=acme.account, resolved_at=None).count() == count
    said = installation.messages(channel)
    assert 1 <= len(said) <= 6
    assert Told.objects.filter(channel=channel).count() == count
    Notification.objects.update(state="delivered")
    Told.objects.update(delivered_at=installation.at)
    store_verdicts([Verdict("pool", pool.pk, *WELL) for pool in pools], installation.at)
    installation.tick(times=2)
    installation.tick(10, times=2)
    assert Alert.objects.filter(account=acme.account, resolved_at=None).count() == 0
    assert len(said) + len(installation.messages(channel, "resolved")) <= 10
    assert not Told.objects.filter(closed=False).exists()


def test_worse_is_told_again_and_more_of_the_same_is_not(installation: Installation, acme: Actor) -> None:
    channel, pool = hook(acme), make_pool(acme, "mine", "10.1.0.1", "10.1.0.2")
    installation.pool(pool, down=False, failing=servers_of(pool)[:1])
    installation.tick(times=3)
    installation.pool(pool, failing=servers_of(pool))
    installation.tick(times=3)
    assert [each["severity"] for each in installation.messages(channel)] == ["warning", "critical"]
    assert len({row.thread for row in Notification.objects.filter(channel=channel)}) == 1


def test_a_silence_keeps_messages_back_until_it_ends_and_covers_nothing_else(
    installation: Installation, acme: Actor
) -> None:
    channel, pool, other = hook(acme), make_pool(acme, "mine", "10.1.0.1"), make_pool(acme, "other", "10.1.0.2")
    ends = installation.at + timedelta(seconds=30)
    Silence.objects.create(account=acme.account, objects_named="mine", reason="works", ends_at=ends, created_by="x")
    installation.pool(pool)
    installation.pool(other)
    installation.tick(5, times=4)
    assert [each["title"] for each in installation.messages(channel)] == ["Pool other is down"]
    installation.tick(5, times=4)
    assert [each["title"] for each in installation.messages(channel)] == ["Pool other is down", "Pool mine is down"]


def test_another_accounts_silence_silences_nothing(installation: Installation, acme: Actor, globex: Actor) -> None:
    channel, other = hook(acme), hook(globex)
    ends = installation.at + timedelta(hours=1)
    Silence.objects.create(account=globex.account, reason="works", ends_at=ends, created_by="x")
    installation.pool(make_pool(acme, "mine", "10.1.0.1"))
    installation.pool(make_pool(globex, "theirs", "10.1.0.2"))
    installation.tick()
    assert len(installation.messages(channel)) == 1
    assert installation.messages(other) == []


def test_a_channel_that_waits_is_told_only_of_what_nobody_acknowledged(installation: Installation, acme: Actor) -> None:
    first, second = hook(acme), hook(acme, name="boss", wait_minutes=5)
    rule(acme, "nobody-told", watches="nobody_told", enabled=False)
    installation.pool(make_pool(acme, "mine", "10.1.0.1"))
    installation.pool(make_pool(acme, "other", "10.1.0.2"))
    installation.tick(times=5)
    assert len(installation.messages(first)) == 2
    assert installation.messages(second) == []
    Alert.objects.filter(title="Pool mine is down").update(acknowledged_at=installation.at)
    installation.tick(60, times=6)
    assert [each["title"] for each in installation.messages(second)] == ["Pool other is down"]


def test_in_quiet_hours_only_what_is_critical_is_told_and_the_rest_afterwards(
    installation: Installation, acme: Actor
) -> None:
    until = installation.at + timedelta(minutes=10)
    quiet = {"start": f"{installation.at - timedelta(minutes=1):%H:%M}", "end": f"{until:%H:%M}", "zone": "UTC"}
    channel = hook(acme, quiet=quiet)
    rule(acme, "nobody-told", watches="nobody_told", enabled=False)
    bad, worse = make_pool(acme, "bad", "10.1.0.1", "10.1.0.2"), make_pool(acme, "worse", "10.1.0.3")
    installation.pool(bad, down=False, failing=servers_of(bad)[:1])
    installation.pool(worse)
    installation.tick(times=3)
    assert [each["severity"] for each in installation.messages(channel)] == ["critical"]
    installation.tick(60, times=12)
    assert [each["severity"] for each in installation.messages(channel)] == ["critical", "warning"]


def test_that_nobody_was_told_is_an_alert_itself_and_not_of_itself(
    installation: Installation, acme: Actor, operator: Actor
) -> None:
    installation.pool(make_pool(acme, "mine", "10.1.0.1"))
    installation.tick(times=5)
    installation.tick(61, times=3)
    assert titles(acme) == ["Pool mine is down", "Nobody in acme was told of a critical alert"]
    assert not any("Nobody" in title for title in titles(operator) if "acme" in title)  # it wanted no channel
    # The control: once somebody was told it is over.
    channel = hook(acme)
    installation.tick(61, times=2)
    Told.objects.filter(channel=channel).update(delivered_at=installation.at)
    installation.tick(20, times=3)
    assert titles(acme) == ["Pool mine is down"]


def test_what_nobody_heard_of_needs_no_end(installation: Installation, acme: Actor) -> None:
    channel, pool = hook(acme), make_pool(acme, "mine", "10.1.0.1")
    installation.pool(pool)
    installation.tick()
    installation.healthy(pool)
    installation.tick(times=12)
    assert [row.state for row in Notification.objects.filter(channel=channel)] == ["dropped"]
    assert installation.messages(channel, "resolved") == []


def test_one_process_evaluates_and_another_goes_on_when_it_dies(installation: Installation, acme: Actor) -> None:
    first, second = Evaluator(), Evaluator()
    assert first.tick()
    assert not second.tick()
    Evaluation.objects.update(claimed_until=installation.at - timedelta(minutes=1))  # the first one is dead
    assert second.tick()
    assert not first.tick()


def test_a_look_that_the_database_did_not_answer_ends_no_alert(
    installation: Installation, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make_pool(acme, "mine", "10.1.0.1")
    seen = Seen("pool", pool.pk, acme.account.pk, "acme", "mine", "Pool {} is down", "", now(), "/", ("a",))
    wrong = {"pool_down": Look((seen,))}
    answers: list[dict[str, Look] | Exception] = [wrong, OperationalError("canceled"), wrong]

    def look(_: datetime) -> dict[str, Look]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(watching, "LOOKS", ((("pool_down",), timedelta(minutes=1), look),))
    installation.tick()
    installation.watcher = Watcher()  # of the process that goes on
    with pytest.raises(OperationalError):
        installation.tick()
    installation.tick(4, times=4)
    assert titles(acme) == ["Pool mine is down"]
    assert Alert.objects.get(account=acme.account).resolved_at is None


def test_a_process_whose_lease_ran_out_writes_nothing(
    installation: Installation, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Evaluator()
    assert first.tick()
    installation.pool(make_pool(acme, "mine", "10.1.0.1"))
    monkeypatch.setattr(Watcher, "look", lambda *_: Evaluation.objects.update(attempt=99) and {})
    assert not first.tick()
    assert titles(acme) == []


def test_old_alerts_are_forgotten_and_those_that_fire_are_not(installation: Installation, acme: Actor) -> None:
    pool, other = make_pool(acme, "mine", "10.1.0.1"), make_pool(acme, "other", "10.1.0.2")
    installation.pool(pool)
    installation.pool(other)
    installation.tick()
    installation.healthy(pool)
    installation.tick(4, times=4)
    evaluating.prune(installation.at + timedelta(days=31))
    assert [alert.title for alert in Alert.objects.filter(account=acme.account)] == ["Pool other is down"]


def test_a_secret_stays_with_the_place_that_it_was_given_for(installation: Installation, acme: Actor) -> None:
    hook(acme, url="https://hooks.example/x")
    spec = {"type": "webhook", "url": "https://evil.example/x"}
    with pytest.raises(Invalid) as refusal:
        save_object(actor=acme, kind="AlertChannel", name="hook", spec=spec)
    assert refusal.value.field_errors[0].pointer == "/spec/secret"
    kept = save_object(
        actor=acme,
        kind="AlertChannel",
        name="hook",
        spec={"type": "webhook", "url": "https://hooks.example/x", "wait_minutes": 5},
    )
    assert AlertChannel.objects.get(pk=kept.pk).sealed_secret


def test_operators_hear_of_lost_and_waiting_request_lines_by_node(
    installation: Installation, operator: Actor, acme: Actor
) -> None:
    def wrong() -> list[tuple[str, str]]:
        rows = Finding.objects.filter(watches__startswith="log_", ended_at=None).exclude(alert=None)
        return list(rows.values_list("account__name", "title"))

    node, at = Node.objects.all()[0], installation.at
    log = NodeLog.objects.create(node=node, read_at=at)
    installation.tick()
    assert wrong() == []
    NodeLog.objects.filter(pk=log.pk).update(dropped=12, dropped_at=installation.at, read_at=at + timedelta(hours=1))
    installation.tick(11)
    assert wrong() == [("operator", f"Node {node.name} lost request lines")]
    assert "12 lines" in Finding.objects.get(watches="log_dropped").detail
    installation.tick(60, times=7)
    assert wrong() == []
    NodeLog.objects.filter(pk=log.pk).update(read_at=installation.at, waiting_s=50)
    installation.tick(60, times=3)
    assert wrong() == [("operator", f"Node {node.name} has request lines that wait")]
    assert "collect_logs" in Finding.objects.get(watches="log_waiting").detail


def test_a_metric_of_a_saved_search_is_compared_with_the_rule_of_its_account(
    installation: Installation, acme: Actor, globex: Actor
) -> None:
    spec = {"filter": "status>=500", "metric": {"measure": "count"}}
    searches = [saved.save_search(actor=actor, name="failed", spec=spec) for actor in (acme, globex)]
    at = now()
    # Another account's search of the same name has a later minute, and a value that would be too high.
    for search, minute, value in zip(searches, (at - timedelta(minutes=1), at), (30, 3000), strict=True):
        MetricPoint.objects.create(search=search, minute=minute, lines=value, value=value)
    installation.tick(15)
    assert titles(acme) == titles(globex) == []  # nothing is built in
    with pytest.raises(Invalid, match="there is no default"):
        rule(acme, "failing", watches="search_metric")
    rule(acme, "failing", watches="search_metric", only=["failed"], threshold=31)
    installation.tick(15)
    assert titles(acme) == []
    rule(acme, "failing", watches="search_metric", only=["failed"], threshold=30)
    installation.tick(15)
    assert (titles(acme), titles(globex)) == (["Metric failed is too high"], [])
    assert Finding.objects.get(account=acme.account).detail.startswith(
        "Count per minute: 30 per minute in the minute from"
    )
    MetricPoint.objects.all().delete()
    installation.tick(15, times=3)
    assert titles(acme) == ["Metric failed is too high"]  # nobody knows
    MetricPoint.objects.create(search=searches[0], minute=now(), lines=3, value=3)
    installation.tick(15, times=3)
    assert titles(acme) == []
