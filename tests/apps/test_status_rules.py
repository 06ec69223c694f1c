"""Alert rules open incidents of status pages and resolve them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.accounts.actors import Actor
from apps.alerts.models import Alert
from apps.alerts.services import make_silence
from apps.audit.models import Entry
from apps.core.clock import now
from apps.definitions.models import Pool
from apps.observe.evaluate.conditions import Reason, Type
from apps.status import following, services
from apps.status.models import Incident
from tests.apps.alerts_env import Installation, make_pool
from tests.apps.status_env import FIRST, MAJOR, at, installation, make_page, pools_behind

__all__ = ["installation"]


def go_down(installation: Installation, acme: Actor) -> Pool:
    """The pool behind the page of acme has no server up, and the page has followed its rule."""
    make_page(acme, rules=["pool-down"])
    (pool,) = pools_behind(acme)
    installation.pool(pool)
    installation.tick()
    following.follow(installation.at)
    return pool


def test_a_rule_opens_an_incident_in_words_of_visitors_and_resolves_it(installation: Installation, acme: Actor) -> None:
    page, (pool,) = make_page(acme, rules=["pool-down"]), pools_behind(acme)
    installation.healthy(pool)
    installation.tick()
    following.follow(installation.at)
    assert not Incident.objects.exists()
    installation.pool(pool)
    installation.tick()
    for _ in range(2):
        following.follow(installation.at)
    row = Incident.objects.get()
    assert (row.title, row.status, row.impacts) == ("Checkout does not work", "investigating", {"Checkout": MAJOR})
    for word in (pool.name, "pool", "10.", "acme"):
        assert word not in f"{row.title} {row.updates.get().text}"
    installation.healthy(pool)
    installation.tick(12, times=2)
    following.follow(installation.at)
    row.refresh_from_db()
    assert (row.status, row.resolved_at) == ("resolved", installation.at)
    assert row.updates.count() == 2
    actors = Entry.objects.filter(object_kind="Incident").values_list("actor", "account__name", "action")
    assert list(actors.order_by("pk")) == [("spillway", "acme", "create"), ("spillway", "acme", "update")]
    assert page.incidents.count() == 1


def test_what_other_regions_serve_is_called_degraded(installation: Installation, acme: Actor) -> None:
    make_page(acme, rules=["pool-down"])
    (pool,) = pools_behind(acme)
    installation.verdict("pool", pool.pk, Type.HEALTHY, False, Reason.REGION_WITHOUT_SERVERS)
    installation.tick()
    following.follow(installation.at)
    row = Incident.objects.get()
    assert (row.title, row.impacts) == ("Checkout may be slow", {"Checkout": "degraded"})
    installation.pool(pool)
    installation.tick()
    following.follow(installation.at)
    assert Incident.objects.get().impacts == {"Checkout": "major_outage"}


def test_what_nobody_knows_resolves_nothing(installation: Installation, acme: Actor) -> None:
    go_down(installation, acme)
    installation.watched = False
    installation.tick(60, times=3)
    following.follow(installation.at)
    assert Incident.objects.get().resolved_at is None


def test_an_incident_that_a_person_wrote_about_is_theirs_to_close(installation: Installation, acme: Actor) -> None:
    pool = go_down(installation, acme)
    services.write_update(actor=acme, incident_id=Incident.objects.get().pk, spec={"text": "We are at it."})
    installation.healthy(pool)
    installation.tick(12, times=2)
    following.follow(installation.at)
    assert Incident.objects.get().resolved_at is None


def test_rules_that_are_not_named_other_pools_other_accounts_and_silences_open_nothing(
    installation: Installation, acme: Actor, globex: Actor
) -> None:
    page = make_page(acme, rules=["pool-errors"])
    make_page(globex, "globex", components=[], rules=["pool-down"])
    (pool,) = pools_behind(acme)
    other = make_pool(acme, "unrelated", "10.1.0.1")
    installation.pool(pool)
    installation.pool(other)
    installation.tick()
    following.follow(installation.at)
    assert not Incident.objects.exists()
    make_page(acme, rules=["pool-down"])
    silence = {"rule": "pool-down", "ends_at": at(hours=1)}
    row = make_silence(actor=acme, spec=silence, reason="planned")
    following.follow(installation.at)
    assert not Incident.objects.exists()
    row.delete()
    following.follow(installation.at)  # control
    assert Incident.objects.get().page == page


def test_maintenance_keeps_rules_from_opening_and_ends_it_once_they_may(
    installation: Installation, acme: Actor
) -> None:
    page, (pool,) = make_page(acme, rules=["pool-down"]), pools_behind(acme)
    spec = FIRST | {"begins_at": at(seconds=2), "ends_at": at(hours=1)}
    row = services.open_incident(actor=acme, page_id=page.pk, spec=spec)
    Incident.objects.filter(pk=row.pk).update(begins_at=now() - timedelta(minutes=1))
    installation.pool(pool)
    installation.tick()
    following.follow(installation.at)
    assert Incident.objects.count() == 1
    following.follow(installation.at + timedelta(hours=2))
    assert Incident.objects.filter(automatic=True).count() == 1


def test_an_alert_that_touches_the_page_again_has_its_incident_open_again(
    installation: Installation, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MOST_AGAIN", 1)
    go_down(installation, acme)
    said = []
    for _ in range(2):
        for rules in ([], ["pool-down"]):  # so that it no longer touches the page, and touches it again
            make_page(acme, rules=rules)
            following.follow(installation.at)
            row = Incident.objects.get()
            said.append((str(row.status), row.resolved_at is None, row.impacts))
    down = {"Checkout": MAJOR}
    assert said == [("resolved", False, down), ("investigating", True, down), *[("resolved", False, down)] * 2]
    assert [each.text for each in row.updates.all()] == [
        following.CLOSED, following.AGAIN, following.CLOSED, following.OPENED,
    ]  # fmt: skip


def test_an_incident_that_a_person_resolved_is_not_open_again_by_itself(
    installation: Installation, acme: Actor
) -> None:
    go_down(installation, acme)
    spec = {"text": "It was the measuring.", "status": "resolved"}
    services.write_update(actor=acme, incident_id=Incident.objects.get().pk, spec=spec)
    following.follow(installation.at)
    assert Incident.objects.get().resolved_at is not None


@pytest.mark.parametrize("written", [False, True])
def test_an_incident_that_somebody_deleted_is_not_opened_again_by_its_alert(
    installation: Installation, acme: Actor, *, written: bool
) -> None:
    pool = go_down(installation, acme)
    row = Incident.objects.get()
    if written:
        services.write_update(actor=acme, incident_id=row.pk, spec={"text": "We are at it."})
    services.delete_incident(actor=acme, incident_id=row.pk)
    following.follow(installation.at)
    assert not Incident.objects.exists()
    installation.healthy(pool)
    installation.tick(12, times=2)
    installation.pool(pool)
    installation.tick()
    following.follow(installation.at)  # control: another alert
    assert Incident.objects.count() == 1


def test_a_rule_that_the_page_forgets_and_an_alert_that_is_forgotten_leave_nothing_open(
    installation: Installation, acme: Actor
) -> None:
    go_down(installation, acme)
    make_page(acme, rules=[])
    following.follow(installation.at)
    assert Incident.objects.get().resolved_at == installation.at
    Incident.objects.update(resolved_at=None)
    Alert.objects.all().delete()
    following.follow(installation.at + timedelta(minutes=1))
    assert Incident.objects.get().resolved_at == installation.at + timedelta(minutes=1)


def test_what_goes_up_and_down_opens_so_many_a_day(
    installation: Installation, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MOST_OPENED", 2)
    make_page(acme, rules=["pool-down"])
    (pool,) = pools_behind(acme)
    for _ in range(4):
        installation.pool(pool)
        installation.tick()
        following.follow(installation.at)
        installation.healthy(pool)
        installation.tick(12, times=2)
        following.follow(installation.at)
    assert Alert.objects.filter(account=acme.account, title__contains="is down").count() == 4
    assert Incident.objects.count() == 2
