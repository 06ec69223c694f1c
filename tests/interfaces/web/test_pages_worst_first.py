"""Lists whose rows have a state begin with the worst, on every page of them, and go on by name."""

from __future__ import annotations

import re
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.core.clock import now
from apps.definitions.models import LoadBalancer, Pool, Route, RoutePool
from apps.fleet.models import Fleet, Region
from apps.observe.collect import lease
from apps.observe.evaluate.conditions import Reason, Type, Verdict
from apps.observe.services import store_verdicts
from apps.stacks.models import StackSync
from apps.web.kit import worst_first
from apps.web.routes import hostnames
from apps.web.routes import views as routes
from apps.web.zones import views as zones
from tests.apps.stacks_env import a_stack
from tests.breadth import first_of
from tests.interfaces.people import client_of

pytestmark = pytest.mark.django_db


def set_condition(pool: Pool, reason: Reason) -> None:
    """A collector looks, and said this of the pool."""
    lease.share("a test")
    store_verdicts([Verdict("pool", pool.pk, Type.HEALTHY, reason == Reason.ALL_SERVERS_UP, reason, "")], now())


def order(actor: Actor, path: str, names: str = r"[abcmyz]") -> list[str]:
    """Names of rows as they stand on the page."""
    text = client_of(actor).get(path).content.decode()
    return re.findall(rf'<a class="row-link"[^>]*>({names})<', text)


def next_page(actor: Actor, path: str) -> str:
    """Where the button leads."""
    text = client_of(actor).get(path).content.decode()
    (query,) = re.findall(r'href="(\?[^"]*(?:after|cursor)=[^"]*)"', text)[-1:]
    return path + str(query)


@pytest.fixture
def pools(operator: Actor) -> dict[str, Pool]:
    """Five pools, of which z is down and y degraded."""
    made = {
        name: Pool.objects.create(name=name, account=operator.account, protocol="http", balance="random")
        for name in "abcyz"
    }
    set_condition(made["z"], Reason.NO_SERVER_UP)
    set_condition(made["y"], Reason.SOME_SERVERS_DOWN)
    set_condition(made["a"], Reason.ALL_SERVERS_UP)
    return made


def test_pools_begin_with_those_that_are_down(operator: Actor, pools: dict[str, Pool]) -> None:
    assert order(operator, "/pools") == ["z", "y", "a", "b", "c"]


def test_control_while_nobody_looks_they_are_by_name(
    operator: Actor, pools: dict[str, Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "watched", lambda: False)
    assert order(operator, "/pools") == ["a", "b", "c", "y", "z"]


def test_every_page_of_pools_goes_on_where_the_last_one_ended(
    operator: Actor, pools: dict[str, Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worst_first.keyset_page, "__defaults__", (2,))
    first, second = "/pools", next_page(operator, "/pools")
    third = "/pools" + next_page(operator, second).removeprefix(second)
    assert [order(operator, path) for path in (first, second, third)] == [["z", "y"], ["a", "b"], ["c"]]


@pytest.mark.parametrize("after", first_of(3, ["x", "9/\x00/b", "99/a/b", "", "operator/a", "9/a", "²/a/b", "-1/a/b"]))
def test_an_odd_cursor_is_the_first_page(operator: Actor, pools: dict[str, Pool], after: str) -> None:
    answer = client_of(operator).get("/pools", {"after": after})
    assert answer.status_code == 200
    assert answer.context["rows"][0]["pool"].name == "z"


def test_routes_of_sick_pools_come_first_and_once(
    operator: Actor, pools: dict[str, Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    front = LoadBalancer.objects.create(name="front", account=operator.account)
    name = Hostname.objects.create(account=operator.account, name="a.example", verification="dns")
    for pool in pools.values():
        route = Route.objects.create(
            account=operator.account, name=pool.name, load_balancer=front, hostname=name, path=f"/{pool.name}",
            path_kind="prefix", action="pools",
        )  # fmt: skip
        RoutePool.objects.create(route=route, pool=pool, weight=1)
    rows = client_of(operator).get("/routes").context["rows"]
    assert [row.route.path for row in rows] == ["/z", "/y", "/a", "/b", "/c"]
    monkeypatch.setattr(routes, "PER_PAGE", 2)
    shown, path = [], "/routes"
    for _ in range(2):
        answer = client_of(operator).get(path)
        shown += [row.route.path for row in answer.context["rows"]]
        path = f"/routes?cursor={answer.context['next_cursor']}"
    assert shown == ["/z", "/y", "/a", "/b", "/c"]


def test_hostnames_that_wait_for_verification_come_first(operator: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, dict[str, Any]] = {"a": {"verification": "dns"}, "b": {"released_at": now()}, "y": {}, "z": {}}
    for name, fields in names.items():
        Hostname.objects.create(account=operator.account, name=f"{name}.example", **fields)
    monkeypatch.setattr(hostnames, "PER_PAGE", 3)
    first = client_of(operator).get("/hostnames")
    second = client_of(operator).get("/hostnames", {"after": first.context["next_after"]})
    shown = [[row[0].name[0] for row in each.context["rows"]] for each in (first, second)]
    assert shown == [["y", "z", "a"], ["b"]]


def test_stacks_regions_and_fleets_begin_with_the_worst(operator: Actor) -> None:
    for name in "ab":
        a_stack(operator, name)
    stack = a_stack(operator, "z")
    StackSync.objects.create(stack=stack, compile_error="It cannot be.")
    states = client_of(operator).get("/stacks").context["rows"]
    assert states[0][0].stack.name == "z"
    Region.objects.create(name="aa", account=operator.account, title="A")
    drained = Region.objects.create(name="zz", account=operator.account, title="Z", drained=True)
    rows = client_of(operator).get("/regions").context["rows"]
    assert rows[0]["region"] == drained
    for name, generation in {"m": 0, "n": 5}.items():
        Fleet.objects.create(name=name, account=operator.account, region=drained, desired_generation=generation)
    assert [each["fleet"].name for each in client_of(operator).get("/fleets").context["fleets"]] == ["n", "m"]


def test_zones_begin_with_the_worst() -> None:
    words = ["in_sync", "of_stack", "behind", "failing", "drifted"]
    made = worst_first.by_word([(word, word) for word in words], zones.WORST)
    assert made == ["failing", "drifted", "behind", "in_sync", "of_stack"]
    assert set(zones.WORST) < set(zones.ZONES)
