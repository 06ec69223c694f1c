"""Lists of networks: who may name them, what nodes get of them, and what happens when an entry expires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.compiler.model.access import Access, ConnectionAccess, NetworkList
from apps.compiler.model.shared import LoadBalancer as Front
from apps.compiler.policies import rules_of
from apps.core.errors import Conflict, Invalid
from apps.definitions import selectors
from apps.definitions.freezing import frozen_lists
from apps.definitions.freezing.snapshot import freeze
from apps.definitions.models import LoadBalancer, Route
from apps.definitions.models import NetworkList as Row
from apps.definitions.previewing.effective_rules import settings_of_route
from apps.definitions.reading.describing import describe
from apps.definitions.services import delete_object, save_object
from apps.definitions.shapes.base.words import instant_text
from apps.definitions.writing.kinds.policies import push_expired
from apps.fleet.models import Fleet

NOW = datetime.now(UTC).replace(microsecond=0)
SOON = instant_text(NOW + timedelta(hours=1))
PAST = instant_text(NOW - timedelta(hours=1))


def keep(actor: Actor, name: str, *entries: Any) -> Row:
    """A list, stored; texts are networks alone."""
    wanted = [{"network": each} if isinstance(each, str) else each for each in entries]
    row: Row = save_object(actor=actor, kind="NetworkList", name=name, spec={"entries": wanted})
    return row


def follow(actor: Actor, **access: Any) -> None:
    """A policy of the whole account with this block."""
    spec = {"rules": {"access": access}, "default_for": {"account": True}}
    save_object(actor=actor, kind="Policy", name="who", spec=spec)


def served() -> Front:
    """The load balancer of the tutorial, as its nodes get it."""
    snapshot, _ = freeze(Fleet.objects.get(name="us-central1").pk)
    return snapshot.load_balancers[0]


def held(route: str = "acme/shop") -> Access | None:
    """The block that holds for a route, that of the tutorial unless told otherwise."""
    front = served()
    return rules_of(front, next(each for each in front.routes if each.label == route)).access


def generation() -> int:
    """How often the fleet was asked to change."""
    return Fleet.objects.get(name="us-central1").desired_generation


def test_nodes_get_the_lists_that_rules_name_and_no_others(tutorial_env: Actor, acme: Actor) -> None:
    keep(acme, "spare", "203.0.113.0/24")
    row = keep(acme, "bad", "198.51.100.0/24", "192.0.2.0/24")
    assert served().network_lists == ()
    follow(acme, deny=["bad"])
    assert held() == Access(deny=(f"net-{row.pk}",))
    wanted = ("192.0.2.0/24", "198.51.100.0/24")
    assert served().network_lists == (NetworkList(f"net-{row.pk}", "acme/bad", wanted),)


def test_names_mean_lists_of_the_account_that_says_them(tutorial_env: Actor, acme: Actor, operator: Actor) -> None:
    theirs, own = keep(operator, "bad", "192.0.2.0/24"), keep(acme, "bad", "198.51.100.0/24")
    front = selectors.routes(acme).get(name="shop").load_balancer.name
    spec = {"rules": {"access": {"deny": ["bad"]}}, "default_for": {"load_balancers": [front]}}
    save_object(actor=operator, kind="Policy", name="far", spec=spec)
    assert held() == Access(deny=(f"net-{theirs.pk}",))
    follow(acme, deny=["bad"])
    assert held() == Access(deny=(f"net-{own.pk}",))
    shown = settings_of_route(Route.objects.get(name="shop", account=acme.account))
    assert [(each.value, each.source) for each in shown] == [("bad", "who")]


def test_what_two_accounts_say_in_the_same_words_means_lists_of_their_own(
    tutorial_env: Actor, acme: Actor, operator: Actor
) -> None:
    theirs, own = keep(operator, "bad", "192.0.2.0/24"), keep(acme, "bad", "198.51.100.0/24")
    rules = {"access": {"deny": ["bad"]}}
    spec = describe(selectors.routes(acme).get(name="shop")) | {"rules": rules}
    save_object(actor=acme, kind="Route", name="shop", spec=spec)
    action = {"fixed_response": {"status": 200, "body": "well"}}
    spec = {"load_balancer": spec["load_balancer"], "hostname": "status.example", "action": action, "rules": rules}
    save_object(actor=operator, kind="Route", name="status", spec=spec)
    assert held() == Access(deny=(f"net-{own.pk}",))
    assert held(f"{operator.account.name}/status") == Access(deny=(f"net-{theirs.pk}",))


def test_a_list_of_another_account_does_not_exist(tutorial_env: Actor, acme: Actor, operator: Actor) -> None:
    keep(operator, "theirs", "192.0.2.0/24")
    with pytest.raises(Invalid) as caught:
        follow(acme, allow=["theirs"])
    assert [error.pointer for error in caught.value.field_errors] == ["/spec/rules/access/allow/0"]


def test_a_route_names_lists_by_itself(tutorial_env: Actor, acme: Actor) -> None:
    row = keep(acme, "bad", "192.0.2.0/24")
    spec = describe(selectors.routes(acme).get(name="shop")) | {"rules": {"access": {"deny": ["bad"]}}}
    before = generation()
    save_object(actor=acme, kind="Route", name="shop", spec=spec)
    assert held() == Access(deny=(f"net-{row.pk}",))
    keep(acme, "bad", "192.0.2.0/24", "203.0.113.0/24")
    assert generation() == before + 2
    with pytest.raises(Conflict, match="in use by route shop"):
        delete_object(actor=acme, kind="NetworkList", name="bad")


def test_a_list_that_a_policy_names_stays(tutorial_env: Actor, acme: Actor) -> None:
    keep(acme, "bad", "192.0.2.0/24")
    keep(acme, "bad-two", "192.0.2.0/24")
    follow(acme, deny=["bad-two"])
    delete_object(actor=acme, kind="NetworkList", name="bad")
    with pytest.raises(Conflict, match="in use by policy who"):
        delete_object(actor=acme, kind="NetworkList", name="bad-two")


def test_what_has_expired_is_left_out_and_nodes_are_told(
    tutorial_env: Actor, acme: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    until = {"network": "192.0.2.0/24", "expires_at": SOON, "reason": "scans"}
    row = keep(acme, "bad", until, {"network": "198.51.100.0/24", "expires_at": PAST}, "203.0.113.0/24")
    follow(acme, deny=["bad"])
    assert served().network_lists[0].networks == ("192.0.2.0/24", "203.0.113.0/24")
    before = generation()
    push_expired(NOW)
    assert generation() == before
    later = NOW + timedelta(hours=2)
    push_expired(later)
    push_expired(later)
    assert generation() == before + 1
    row.refresh_from_db()
    assert (row.next_expiry, row.version) == (None, 1)
    monkeypatch.setattr(frozen_lists, "now", lambda: later)
    assert served().network_lists[0].networks == ("203.0.113.0/24",)


def test_a_list_has_each_network_once_in_canonical_form(tutorial_env: Actor, acme: Actor) -> None:
    with pytest.raises(Invalid) as caught:
        keep(acme, "bad", "192.0.2.0/24", "192.0.2.0/24")
    assert [error.pointer for error in caught.value.field_errors] == ["/spec/entries/1/network"]
    for wrong in ("192.0.2.1/24", "192.0.2.1", "0.0.0.0/0 1", "::ffff:192.0.2.0/120;", "a\nb"):
        with pytest.raises(Invalid):
            keep(acme, "bad", wrong)
    assert not Row.objects.exists()


def test_a_list_has_at_most_ten_thousand_networks(tutorial_env: Actor, acme: Actor) -> None:
    many = [f"10.{number // 256}.{number % 256}.0/24" for number in range(10_001)]
    with pytest.raises(Invalid) as caught:
        keep(acme, "bad", *many)
    assert [error.code for error in caught.value.field_errors] == ["too_many"]
    assert len(keep(acme, "bad", *many[:-1]).entries) == 10_000


def let_in(operator: Actor, **access: Any) -> None:
    """The tutorial's listener with this block."""
    front = LoadBalancer.objects.get()
    spec = describe(selectors.load_balancers(operator).get(pk=front.pk))
    spec["listeners"][0]["access"] = access
    save_object(actor=operator, kind="LoadBalancer", name=front.name, spec=spec)


def test_a_listener_names_lists_of_its_account(tutorial_env: Actor, acme: Actor, operator: Actor) -> None:
    keep(acme, "offices", "192.0.2.0/24")
    row = keep(operator, "offices", "198.51.100.0/24")
    let_in(operator, allow=["offices"])
    front = served()
    assert front.listeners[0].access == ConnectionAccess(allow=(f"net-{row.pk}",))
    assert [each.id for each in front.network_lists] == [f"net-{row.pk}"]
    before = generation()
    keep(operator, "offices", "198.51.100.0/24", "203.0.113.0/24")
    assert generation() == before + 1
    with pytest.raises(Conflict, match="in use by load balancer"):
        delete_object(actor=operator, kind="NetworkList", name="offices")


def test_a_list_that_a_listener_and_a_policy_name_comes_once(tutorial_env: Actor, operator: Actor) -> None:
    row = keep(operator, "bad", "192.0.2.0/24")
    front = LoadBalancer.objects.get().name
    spec = {"rules": {"access": {"deny": ["bad"]}}, "default_for": {"load_balancers": [front]}}
    save_object(actor=operator, kind="Policy", name="far", spec=spec)
    let_in(operator, deny=["bad"])
    assert [each.id for each in served().network_lists] == [f"net-{row.pk}"]


def test_a_listener_that_names_no_list_of_its_account_is_refused(
    tutorial_env: Actor, acme: Actor, operator: Actor
) -> None:
    keep(acme, "offices", "192.0.2.0/24")
    with pytest.raises(Invalid) as caught:
        let_in(operator, allow=["offices"], deny=["scanners"])
    assert [error.pointer for error in caught.value.field_errors] == [
        "/spec/listeners/0/access/allow/0",
        "/spec/listeners/0/access/deny/0",
    ]


def test_a_listener_whose_list_is_gone_is_not_served(tutorial_env: Actor, operator: Actor) -> None:
    row = keep(operator, "offices", "198.51.100.0/24")
    let_in(operator, allow=["offices"])
    row.delete()
    snapshot, _ = freeze(Fleet.objects.get(name="us-central1").pk)
    assert snapshot.load_balancers[0].listeners == ()
    assert [each.label for each in snapshot.unreadable] == ["http"]
