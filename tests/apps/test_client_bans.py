"""Bans by limits: read from the nodes of whose routes they are, named by policy, lifted on every node of the region."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv6Address
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Membership
from apps.audit.models import Entry
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound
from apps.definitions.models import Policy, Route
from apps.definitions.services import save_object
from apps.drivers.proxy.contract import BanEntries, BanEntry
from apps.fleet.models import Fleet, Node
from apps.observe.models import NodeReport
from apps.rollouts.bans.lifting import lift_client_ban
from apps.rollouts.bans.showing import Ban, bans, scopes_of_fleet
from apps.rollouts.models import Rollout
from tests.apps.pushed import Env, put_env, remembered, route
from tests.conftest import actor_of

LIMIT = {"client_limit": {"requests": 5, "ban_after": 3, "ban_for_s": 600}}


def make_limits(env: Env) -> None:
    """A policy of the operator that bans, and a route of acme that says it itself."""
    operator = env.operator
    save_object(actor=operator, kind="Policy", name="strict", spec={"rules": LIMIT})
    save_object(actor=operator, kind="Route", name="home", spec=route("/") | {"policies": ["strict"]})
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    save_object(actor=acme, kind="Pool", name="own", spec=_pool())
    spec = route("/", "own") | {"hostname": "www.acme.example", "rules": LIMIT}
    save_object(actor=operator, kind="Route", name="shop", account="acme", spec=spec)  # which verifies its hostname
    env.reconcile()


def _pool() -> dict[str, Any]:
    servers = [{"name": "s1", "address": "10.0.0.9", "port": 8080}]
    return {"protocol": "http", "backends": [{"region": "here", "servers": servers}]}


LIMITED = remembered(make_limits)


@pytest.fixture
def env(db: None) -> Env:
    """All of it, on two nodes that answer."""
    found = put_env(LIMITED)
    for node in Node.objects.all():
        NodeReport.objects.update_or_create(node=node, defaults={"seen_at": now()})
    return found


@pytest.fixture
def customer(env: Env) -> Actor:
    """Of acme."""
    return actor_of("acme", Account.Kind.CUSTOMER)


def key_of(name: str, address: str = "cb00:7109:0:0", kind: str = "4") -> str:
    """The key under which HAProxy bans an address (203.0.113.9) of the limit of a route."""
    pk = Route.objects.get(name=name).pk
    (scope,) = (scope for scope, found in scopes_of_fleet(Fleet.objects.get()).items() if f"route-{pk}" in found)
    return str(IPv6Address(f"{address}:{kind}:{scope[:4]}:{scope[4:8]}:{scope[8:]}"))


def ban(env: Env, *names: str, nodes: tuple[int, ...] = (0, 1), more: bool = False) -> None:
    """Each node says that it bans 203.0.113.9 by the limits of these routes."""
    entries = tuple(BanEntry("st_banned_600", key_of(name), 300.0) for name in names)
    for number in nodes:
        env.memory[number].bans = BanEntries(entries, more)


def test_a_ban_says_whom_by_which_policy_where_and_until_when(env: Env) -> None:
    ban(env, "home")
    (found,) = bans(env.operator).found
    assert (found.client, found.hashed, found.region, found.fleet) == ("203.0.113.9", False, "here", "here")
    assert (found.limit.account, found.limit.policy, found.limit.routes) == ("operator", "strict", ("home",))
    assert found.nodes == ("n1", "n2")
    assert 290 < (found.until - now()).total_seconds() <= 300


def test_customers_see_the_bans_of_their_own_routes(env: Env, customer: Actor) -> None:
    ban(env, "home", "shop")
    (found,) = bans(customer).found
    assert (found.limit.account, found.limit.policy, found.limit.routes) == ("acme", "", ("shop",))
    assert (found.fleet, found.nodes, bans(customer).silent_nodes) == ("", (), ())
    assert len(bans(env.operator).found) == 2
    nobody = actor_of("globex", Account.Kind.CUSTOMER)
    assert bans(nobody).found == ()


def test_of_ipv6_the_network_is_told_and_of_a_header_a_hash(env: Env) -> None:
    scope = IPv6Address(key_of("home")).exploded.split(":")[5:]
    hashed = f"657:91dd:abba:39b5:6441:f7e3:{scope[1]}:{scope[2]}"
    plain = key_of("home", "2001:db8:1:2", "6")
    env.memory[0].bans = BanEntries(tuple(BanEntry("st_banned_600", key, 9.0) for key in (plain, hashed)))
    found = {(each.client, each.hashed) for each in bans(env.operator).found}
    assert found == {("2001:db8:1:2::", False), ("0657:91dd:abba:39b5:6441:f7e3", True)}


def test_an_entry_of_no_present_limit_is_left_out(env: Env) -> None:
    env.memory[0].bans = BanEntries((BanEntry("st_banned_600", "1:2:3:4:5:6:7:8", 9.0),))
    assert bans(env.operator).found == ()


def test_a_node_that_does_not_answer_is_unknown_and_said(env: Env, customer: Actor) -> None:
    ban(env, "shop", nodes=(0,))
    env.memory[1].unreachable = True
    found = bans(customer)
    assert (len(found.found), found.silent, found.silent_nodes) == (1, 1, ())
    assert bans(env.operator).silent_nodes == ("n2",)
    env.memory[1].unreachable = False
    assert bans(env.operator).silent == 0  # the control


def test_a_node_that_has_not_reported_for_a_while_is_not_waited_for(env: Env) -> None:
    NodeReport.objects.filter(node__name="n1").update(seen_at=None)
    assert bans(env.operator).silent_nodes == ("n1",)


def test_more_than_a_thousand_are_said_and_not_shown(env: Env) -> None:
    tail = ":".join(IPv6Address(key_of("home")).exploded.split(":")[5:])
    keys = [f"a00:{number:x}:0:0:4:{tail}" for number in range(1001)]
    env.memory[0].bans = BanEntries(tuple(BanEntry("st_banned_600", key, 9.0) for key in keys))
    found = bans(env.operator)
    assert (len(found.found), found.more) == (1000, True)
    ban(env, "home", more=True)
    assert bans(env.operator).more
    ban(env, "home")
    assert not bans(env.operator).more  # the control


def test_a_thousand_bans_of_one_account_hide_none_of_another(env: Env, customer: Actor) -> None:
    tail = ":".join(IPv6Address(key_of("home")).exploded.split(":")[5:])
    keys = [f"a00:{number:x}:0:0:4:{tail}" for number in range(1001)]
    entries = [BanEntry("st_banned_600", key, 9.0) for key in (*keys, key_of("shop"))]
    env.memory[0].bans = BanEntries(tuple(entries))
    assert only(bans(customer).found).limit.routes == ("shop",)


def only(found: tuple[Ban, ...]) -> Ban:
    """The one ban there is."""
    (each,) = found
    return each


def test_a_lifted_ban_is_gone_on_every_node_and_stands_in_the_audit(env: Env, customer: Actor) -> None:
    ban(env, "home", "shop")
    found = only(bans(customer).found)
    assert lift_client_ban(actor=customer, region="here", ban=found.id, reason="ticket 7") == "203.0.113.9"
    assert bans(customer).found == ()
    assert len(bans(env.operator).found) == 1, "that of another limit stays"
    entry = Entry.objects.get(action="lift ban")
    assert (entry.object_label, entry.account.name, entry.reason) == ("acme/shop", "acme", "ticket 7")


def test_bans_of_others_cannot_be_lifted(env: Env, customer: Actor) -> None:
    ban(env, "home")
    found = only(bans(env.operator).found)
    with pytest.raises(NotFound):
        lift_client_ban(actor=customer, region="here", ban=found.id)
    with pytest.raises(NotFound):
        lift_client_ban(actor=env.operator, region="elsewhere", ban=found.id)
    with pytest.raises(Forbidden):
        lift_client_ban(actor=replace(env.operator, role=Membership.Role.VIEWER), region="here", ban=found.id)
    assert len(bans(env.operator).found) == 1
    lift_client_ban(actor=env.operator, region="here", ban=found.id)  # the control
    assert bans(env.operator).found == ()


def test_who_lifts_a_ban_is_told_of_a_node_where_it_stands(env: Env, customer: Actor) -> None:
    ban(env, "shop")
    env.memory[1].unreachable = True
    name = only(bans(customer).found).id
    with pytest.raises(Conflict, match=r"^1 of 2 nodes did not answer, so 203\."):
        lift_client_ban(actor=customer, region="here", ban=name)
    with pytest.raises(Conflict, match="n2 did not answer"):
        lift_client_ban(actor=env.operator, region="here", ban=name)
    assert env.memory[0].bans.entries == ()


@pytest.mark.parametrize("wrong", ["", "600", "600-x", "0-::1", "600-1.2.3.4", 600, None, "600-::1;clear table x"])
def test_what_names_no_ban_is_refused(env: Env, wrong: object) -> None:
    with pytest.raises(Invalid) as caught:
        lift_client_ban(actor=env.operator, region="here", ban=wrong)
    assert [each.pointer for each in caught.value.field_errors] == ["/ban"]


def test_where_no_limit_bans_no_node_is_asked(env: Env) -> None:
    Policy.objects.all().update(rules={"client_limit": {"requests": 5}})
    Route.objects.all().update(rules=None)
    env.memory[0].unreachable = True
    assert bans(env.operator).silent == 0


def test_a_ban_by_a_limit_that_some_nodes_still_have_is_shown_and_lifted(env: Env) -> None:
    """A change of the limit is in waves: the second node bans by what it was."""
    settings = {"waves": [50], "soak_seconds": 60}
    save_object(actor=env.operator, kind="Fleet", name="here", spec={"region": "here", "rollout_settings": settings})
    env.reconcile()
    ban(env, "home", nodes=(1,))
    stricter = {"client_limit": LIMIT["client_limit"] | {"ban_after": 2}}
    save_object(actor=env.operator, kind="Policy", name="strict", spec={"rules": stricter})
    env.change_pool("blue", "roundrobin")
    env.reconcile()
    assert Rollout.objects.latest("id").state == "soaking"
    NodeReport.objects.update(seen_at=now())
    (found,) = bans(env.operator).found
    assert (found.client, found.limit.policy, found.nodes) == ("203.0.113.9", "strict", ("n2",))
    assert lift_client_ban(actor=env.operator, region="here", ban=found.id) == "203.0.113.9"
    assert bans(env.operator).found == ()
