"""Policies: whose rules hold for a route, and what becomes of them when they change."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.compiler.model.policy import Overflow, Rules
from apps.compiler.policies import rules_of
from apps.core.errors import Conflict, Invalid
from apps.definitions import selectors
from apps.definitions.freezing.snapshot import freeze
from apps.definitions.models import LoadBalancer, Policy
from apps.definitions.previewing.effective_rules import settings_of_route
from apps.definitions.reading.describing import describe
from apps.definitions.services import delete_object, save_object
from apps.definitions.writing.rules.usage import users_of
from apps.fleet.models import Fleet, Region

NO_SNIFF = {"security_headers": {"no_sniff": True}}


def keep(actor: Actor, name: str, rules: dict[str, Any], **default_for: Any) -> Policy:
    """A policy, stored."""
    row: Policy = save_object(actor=actor, kind="Policy", name=name, spec={"rules": rules, "default_for": default_for})
    return row


def give(actor: Actor, **fields: Any) -> None:
    """Change the route of the tutorial."""
    spec = copy.deepcopy(describe(selectors.routes(actor).get(name="shop"))) | fields
    save_object(actor=actor, kind="Route", name="shop", spec=spec)


def held(name: str = "acme/shop") -> Rules:
    """The rules that hold for a route on the nodes."""
    snapshot, _ = freeze(Fleet.objects.get(name="us-central1").pk)
    front = next(front for front in snapshot.load_balancers if any(each.label == name for each in front.routes))
    return rules_of(front, next(each for each in front.routes if each.label == name))


def test_a_route_without_policies_has_no_rules(tutorial_env: Actor, acme: Actor) -> None:
    keep(acme, "spare", NO_SNIFF)
    assert held() == Rules()


def test_a_route_takes_what_it_names_and_loses_it_again(tutorial_env: Actor, acme: Actor) -> None:
    keep(acme, "web", NO_SNIFF)
    give(acme, policies=["web"])
    found = held().security_headers
    assert found is not None
    assert found.no_sniff is True
    give(acme, policies=[])
    assert held() == Rules()


def test_overflow_of_a_route_names_regions_that_are_there_and_stay(
    tutorial_env: Actor, acme: Actor, operator: Actor
) -> None:
    with pytest.raises(Invalid) as refused:
        keep(acme, "web", {"overflow": {"mode": "listed", "order": ["nowhere"]}})
    assert [each.pointer for each in refused.value.field_errors] == ["/spec/rules/overflow/order/0"]
    region = Region.objects.get(name="europe-west1")
    keep(acme, "web", {"overflow": {"mode": "listed", "order": [region.name]}})
    give(acme, policies=["web"])
    assert held().overflow == Overflow("listed", (f"rgn-{region.pk}",))
    [shown] = [
        each for each in settings_of_route(selectors.routes(acme).get(name="shop")) if each.name != "Overflow to"
    ]
    assert (shown.name, shown.value, shown.source) == ("Overflow order", region.name, "web")
    assert "policy web" in " ".join(users_of(operator, region))
    give(acme, policies=[], rules={"overflow": {"mode": "never"}})
    narrowed = held().overflow
    assert narrowed is not None
    assert (narrowed.mode, narrowed.order) == ("never", None)


def test_the_nearest_wins_field_by_field(tutorial_env: Actor, acme: Actor, operator: Actor) -> None:
    far = {"security_headers": {"no_sniff": True, "frames": "deny", "referrer": "no-referrer", "hsts_seconds": 1}}
    front = LoadBalancer.objects.get()
    keep(operator, "all", far, load_balancers=[front.name])
    keep(acme, "account", {"security_headers": {"hsts_seconds": 2, "frames": "sameorigin"}}, account=True)
    keep(acme, "host", {"security_headers": {"hsts_seconds": 3}}, hostnames=["shop.acme.example"])
    keep(acme, "first", {"security_headers": {"hsts_seconds": 4}})
    keep(acme, "second", {"security_headers": {"hsts_seconds": 5, "referrer": "same-origin"}})
    host = selectors.routes(acme).get(name="shop").hostname.name
    keep(acme, "host", {"security_headers": {"hsts_seconds": 3}}, hostnames=[host])

    def told() -> tuple[Any, ...]:
        found = held().security_headers
        assert found is not None
        return found.hsts_seconds, found.frames, found.referrer, found.no_sniff

    assert told() == (3, "sameorigin", "no-referrer", True)
    give(acme, policies=["first", "second"])
    assert told() == (4, "sameorigin", "same-origin", True)
    give(acme, policies=["second", "first"])
    assert told() == (5, "sameorigin", "same-origin", True)
    give(acme, rules={"security_headers": {"hsts_seconds": 0, "no_sniff": False}})
    assert told() == (0, "sameorigin", "same-origin", False)


def test_the_policies_of_one_account_hold_for_no_other(tutorial_env: Actor, acme: Actor, operator: Actor) -> None:
    host = selectors.routes(acme).get(name="shop").hostname.name
    keep(operator, "foreign", NO_SNIFF, account=True, hostnames=[host])
    assert held() == Rules()
    with pytest.raises(Invalid) as caught:
        give(acme, policies=[f"{operator.account.name}/foreign"])
    assert [error.pointer for error in caught.value.field_errors] == ["/spec/policies/0"]


def test_each_account_on_a_load_balancer_follows_its_own_policies(
    tutorial_env: Actor, acme: Actor, operator: Actor
) -> None:
    action = {"fixed_response": {"status": 200, "body": "well"}}
    spec = {"load_balancer": LoadBalancer.objects.get().name, "hostname": "status.example", "action": action}
    save_object(actor=operator, kind="Route", name="status", spec=spec)
    keep(operator, "foreign", NO_SNIFF, account=True, hostnames=["status.example"])
    assert held() == Rules()
    assert held(f"{operator.account.name}/status").security_headers is not None


def test_a_customer_sets_no_defaults_of_the_operators_load_balancer(tutorial_env: Actor, acme: Actor) -> None:
    with pytest.raises(Invalid) as caught:
        keep(acme, "mine", NO_SNIFF, load_balancers=[LoadBalancer.objects.get().name])
    assert [error.code for error in caught.value.field_errors] == ["not_yours"]
    assert not Policy.objects.exists()


@pytest.mark.parametrize("default_for", [{"account": True}, {"hostnames": ["{host}"]}, {}])
def test_a_change_of_a_policy_is_pushed_to_whoever_serves_its_routes(
    tutorial_env: Actor, acme: Actor, default_for: dict[str, Any]
) -> None:
    host = selectors.routes(acme).get(name="shop").hostname.name
    wanted = {key: [host] if key == "hostnames" else value for key, value in default_for.items()}
    keep(acme, "web", NO_SNIFF, **wanted)
    give(acme, policies=[] if wanted else ["web"])
    before = Fleet.objects.get(name="us-central1").desired_generation
    keep(acme, "web", {"security_headers": {"no_sniff": False}}, **wanted)
    assert Fleet.objects.get(name="us-central1").desired_generation == before + 1


def test_a_policy_that_a_route_names_stays(tutorial_env: Actor, acme: Actor) -> None:
    keep(acme, "web", NO_SNIFF)
    give(acme, policies=["web"])
    with pytest.raises(Conflict, match="in use by route shop"):
        delete_object(actor=acme, kind="Policy", name="web")


def test_routes_with_equal_rules_share_them(tutorial_env: Actor, acme: Actor) -> None:
    keep(acme, "web", NO_SNIFF, account=True)
    snapshot, _ = freeze(Fleet.objects.get(name="us-central1").pk)
    routes = [route for front in snapshot.load_balancers for route in front.routes if route.account == "acme"]
    assert len({route.rule_set for route in routes}) == 1
    assert sum(len(front.rule_sets) for front in snapshot.load_balancers) == 1
