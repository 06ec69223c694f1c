"""Differences between snapshots are words of people: no Python text, no id of ours, for any field of the model."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import pytest

from apps.compiler.differences import snapshots as diff
from apps.compiler.differences import words
from apps.compiler.differences.snapshots import diff_snapshots
from apps.compiler.model import fleet as fleets
from apps.compiler.model import shared as model
from apps.compiler.model.access import Access, ConnectionAccess, NetworkList
from apps.compiler.model.authentication import ApiKeys, BasicAuth
from apps.compiler.model.policy import ClientLimit, HeaderChanges, Overflow, Rules, RuleSet, Timeouts
from apps.compiler.model.servers import ServerTls
from apps.compiler.policies import rule_set
from tests.pure.compiler_fixtures import certificate_pem

# What no text for people may have: a class, its text, or an identifier of ours as the name of a thing.
NOT_FOR_PEOPLE = re.compile(
    r"<\w+|=\w+\(|\w+=<|object at 0x|None\b|\b(?:pool|rgn|srv|lst|route|lb|crt|node|bkd|vip|net|rules|keys)-\w+\b"
)


# What a route follows whose rules are others (see `other`).
ELSE = RuleSet("else", Rules(timeouts=Timeouts(response_ms=500)))
OFFICES = NetworkList("net-1", "acme/offices", ("192.0.2.0/24",))


def case() -> fleets.Snapshot:
    """One of everything, each with a name that is not its id."""
    limit = model.Limit(model.LimitKind.RATE, 10, model.LimitScope.BACKEND)
    servers = (model.Server("srv-1", "vm-a", "192.0.2.1", 80), model.Server("srv-2", "vm-b", "192.0.2.2", 80))
    check = model.HealthCheck("/health", "GET", "a.example")
    elsewhere = (fleets.RegionShare("rgn-2", limit, 1.0, 3), fleets.RegionShare("rgn-3", limit, 1.0, 3))
    shop = fleets.Pool(
        "pool-1", "acme/shop", "acme", model.Protocol.HTTP, servers=servers, health_check=check, limit=limit,
        elsewhere=elsewhere, server_keepalive_ms=900,
    )  # fmt: skip
    api = fleets.Pool("pool-2", "acme/api", "acme", model.Protocol.HTTP, servers=(replace(servers[0], id="srv-3"),))
    header = model.ValueCondition("X-Canary", model.ValueMatch.EQUALS, "yes")
    sure = model.Assertion("/", pool="acme/shop", headers=(("X-Canary", "yes"),))
    routed = model.Route(
        "route-1", "all", "acme", "a.example", "/", model.PathKind.PREFIX, ("GET",), (header,),
        (model.WeightedPool("pool-1", 1), model.WeightedPool("pool-2", 1)), None, None, "/x", (sure,),
    )  # fmt: skip
    away = model.Redirect(308, "https", "b.example", "/n")
    moved = replace(routed, id="route-2", path="/old", pools=(), redirect=away)
    closed = replace(routed, id="route-3", path="/shut", pools=(), fixed_response=model.FixedResponse(503, body="shut"))
    secure = model.Listener("lst-1", "https", model.Protocol.HTTPS, 443, "192.0.2.9", ("crt-1",), "pool-1")
    front = model.LoadBalancer(
        "lb-1", "front", "acme", (secure,), (routed, moved, closed), network_lists=(OFFICES,), rule_sets=(ELSE,)
    )
    certificates = tuple(
        model.Certificate(f"crt-{number}", f"tls-{name}", "acme", certificate_pem(f"{name}.example"), ("a.example",))
        for number, name in enumerate(("a", "b"), start=1)
    )
    nodes = tuple(
        fleets.RegionNode(f"node-{n}", f"eu-{name}", "192.0.2.8", 1, 2, 3) for n, name in ((1, "a"), (2, "b"))
    )
    regions = (fleets.Region("rgn-1", "eu", nodes), fleets.Region("rgn-2", "us"), fleets.Region("rgn-3", "asia"))
    address = fleets.FleetAddress("vip-1", "public", "192.0.2.9", fleets.FleetAddressKind.VIP, 7, ("node-1",))
    return fleets.Snapshot(
        "front", "eu", (front,), (shop, api), certificates, region_id="rgn-1", regions=regions,
        bypass_tokens=(fleets.BypassToken("ab" * 32, "pool-1"),), addresses=(address,),
    )  # fmt: skip


def other(value: Any, hint: Any) -> Iterator[Any]:
    """Values that a field might have instead."""
    if isinstance(value, Enum):
        yield from (each for each in type(value) if each is not value)
    elif is_dataclass(value):
        yield from (replace(value, **{name: each}) for name, each in variations(value))  # type: ignore[type-var]
        yield None
    elif isinstance(value, tuple):
        yield from other_members(value)
    elif isinstance(value, str):
        yield from (f"{value[:-1]}2",) if re.fullmatch(r"\w+-\d", value) else ("", "else")
    else:
        yield from other_plain(value, hint)


def other_plain(value: Any, hint: Any) -> Iterator[Any]:
    """Another number or answer, or anything where there was nothing."""
    kind = next((each for each in typing.get_args(hint) or (hint,) if each is not types.NoneType), hint)
    if is_dataclass(kind):
        yield whole_of(kind)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, float):
        yield 0.0
    elif isinstance(value, int):
        yield value + 1
    elif kind in (int, str):
        yield {int: 5, str: "else"}[kind]


def whole_of(kind: Any) -> Any:
    """Options of which every field says something."""
    hints = typing.get_type_hints(kind)
    named = NAMED.get(kind, {})
    return kind(**{each.name: named.get(each.name) or sample(hints[each.name]) for each in fields(kind)})


# Fields that have names of other objects.
LISTS = {"allow": ("net-1",), "deny": ("net-1",)}
NAMED: dict[type, dict[str, Any]] = {
    Access: LISTS,
    ConnectionAccess: LISTS,
    Overflow: {"order": ("rgn-2",)},
    ServerTls: {"client_certificate_id": "crt-1"},
}
PLAIN = {bool: True, int: 5, float: 0.5, str: "else"}


def sample(hint: Any) -> Any:
    """A value that such a field may have."""
    kind = next((each for each in typing.get_args(hint) if each is not types.NoneType), hint)
    kind = hint if typing.get_origin(hint) is tuple else kind
    if typing.get_origin(kind) is tuple:
        members = [each for each in typing.get_args(kind) if each is not Ellipsis]
        return tuple(sample(each) for each in members)
    if is_dataclass(kind):
        return whole_of(kind)
    return next(iter(kind)) if issubclass(kind, Enum) else PLAIN[kind]


def other_members(value: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Another order, none, and each member changed."""
    yield ()
    # The order of objects and of weights says nothing.
    if not any(hasattr(member, "id") or isinstance(member, model.WeightedPool) for member in value):
        yield value[::-1]
    for index, member in enumerate(value):
        if is_dataclass(member):
            changed: list[Any] = [replace(member, **{name: each}) for name, each in variations(member)]  # type: ignore[type-var]
        else:
            changed = [f"{member[:-1]}2"] if isinstance(member, str) and re.fullmatch(r"\w+-\d", member) else []
        yield from ((*value[:index], each, *value[index + 1 :]) for each in changed)


def variations(thing: Any) -> Iterator[tuple[str, Any]]:
    """Every field of an object but its id, with values that differ."""
    hints = typing.get_type_hints(type(thing))
    for each in fields(thing):
        if each.name not in ("id", "rule_sets"):  # rules that are others have another id, which their routes name
            value = getattr(thing, each.name)
            yield from ((each.name, new) for new in other(value, hints[each.name]) if new != value)


def snapshots() -> list[tuple[str, fleets.Snapshot]]:
    """The case with one field of one object changed, for every field and object."""
    whole = case()
    return [(name, replace(whole, **{name: value})) for name, value in variations(whole)]


SAID = {"load_balancers", "pools", "certificates", "bypass_tokens", "addresses"}


def sentences() -> list[str]:
    """All that is said of all these changes, in both directions."""
    whole = case()
    pairs = [pair for _, changed in snapshots() for pair in ((whole, changed), (changed, whole))]
    empty = fleets.Snapshot("front", "eu")
    pairs += [(whole, empty), (empty, whole)]
    return [change.sentence for before, after in pairs for change in diff_snapshots(before, after)]


def test_every_change_of_what_people_define_is_said_and_says_nothing_of_ours() -> None:
    whole = case()
    silent = [name for name, changed in snapshots() if name in SAID and not diff_snapshots(whole, changed)]
    assert silent == []
    said = sentences()
    assert len(said) > 150
    assert [sentence for sentence in said if NOT_FOR_PEOPLE.search(sentence)] == []


def test_control_a_value_that_nobody_put_into_words_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "say", lambda value, *_: str(value))
    assert any(NOT_FOR_PEOPLE.search(sentence) for sentence in sentences())


def test_control_an_id_as_a_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (diff, words):
        monkeypatch.setattr(module, "named", lambda key, _: key)
    assert any(NOT_FOR_PEOPLE.search(sentence) for sentence in sentences())


def test_a_drained_region_is_told_as_what_the_fleet_learned_of_it() -> None:
    before = case()
    shop = before.pools[0]
    us, asia = shop.elsewhere
    after = replace(before, pools=(replace(shop, elsewhere=(replace(us, capacity_scaler=0.0), asia)), before.pools[1]))
    assert [change.sentence for change in diff_snapshots(before, after)] == [
        "pool acme/shop: share of its limit in force in us 100 % → 0 %"
    ]


def test_a_server_is_named_with_its_pool() -> None:
    before = case()
    shop = before.pools[0]
    after = replace(before, pools=(replace(shop, servers=shop.servers[:1]), before.pools[1]))
    assert [change.sentence for change in diff_snapshots(before, after)] == ["server vm-b of acme/shop: removed"]


def with_rules(rules: Rules) -> fleets.Snapshot:
    """The case whose first route has these rules."""
    whole = case()
    front, made = whole.load_balancers[0], rule_set(rules)
    routes = (replace(front.routes[0], rule_set=made.id), *front.routes[1:])
    return replace(whole, load_balancers=(replace(front, routes=routes, rule_sets=(made,)),))


def told(before: fleets.Snapshot, after: fleets.Snapshot) -> list[str]:
    """The sentences."""
    return [change.sentence for change in diff_snapshots(before, after)]


def test_a_policy_is_told_of_each_route_block_by_block() -> None:
    limited = with_rules(Rules(client_limit=ClientLimit(requests=100), timeouts=Timeouts(response_ms=500)))
    assert told(case(), limited) == [
        "route a.example /: client limit none → requests 100",
        "route a.example /: timeouts none → response 500 ms",
    ]
    wider = with_rules(Rules(client_limit=ClientLimit(requests=50, ban_for_s=60)))
    assert told(limited, wider) == [
        "route a.example /: client limit requests 100 → 50",
        "route a.example /: client limit ban for none → 60 s",
        "route a.example /: timeouts response 500 ms → none",
    ]


def test_lists_and_regions_of_a_policy_have_their_names() -> None:
    after = with_rules(Rules(access=Access(allow=("net-1",), status=403), overflow=Overflow(order=("rgn-2",))))
    assert told(case(), after) == [
        "route a.example /: access none → allow acme/offices, status 403",
        "route a.example /: overflow none → order us",
    ]


def test_networks_that_may_connect_are_told_by_the_names_of_their_lists() -> None:
    whole = case()
    front = whole.load_balancers[0]
    listeners = (replace(front.listeners[0], access=ConnectionAccess(allow=("net-1",))),)
    after = replace(whole, load_balancers=(replace(front, listeners=listeners),))
    assert told(whole, after) == ["listener https of front: access none → allow acme/offices"]
    denied = replace(listeners[0], access=ConnectionAccess(allow=("net-1",), deny=("net-1",)))
    later = replace(whole, load_balancers=(replace(front, listeners=(denied,)),))
    assert told(after, later) == ["listener https of front: access deny none → acme/offices"]


def test_no_secret_of_a_policy_is_told() -> None:
    rules = Rules(basic_auth=BasicAuth(users=(("ann", "$6$hash"),)), api_keys=ApiKeys(keys=(("ci", "digest-1"),)))
    again = replace(rules, basic_auth=BasicAuth(users=(("ann", "$6$other"),)))
    said = [*told(case(), with_rules(rules)), *told(with_rules(rules), with_rules(again))]
    assert said == [
        "route a.example /: basic auth none → users ann",
        "route a.example /: API keys none → keys ci",
        "route a.example /: basic auth users replaced",
    ]


def test_of_many_members_the_first_are_told() -> None:
    changes = HeaderChanges(remove=tuple(f"X-{number}" for number in range(9)))
    assert told(case(), with_rules(Rules(request_headers=changes))) == [
        "route a.example /: request headers none → remove X-0, X-1, X-2, X-3, X-4, X-5, 3 more"
    ]


def test_every_block_of_a_policy_is_told_in_words() -> None:
    said = told(case(), with_rules(whole_of(Rules)))
    assert len(said) == len(fields(Rules))
    assert [sentence for sentence in said if NOT_FOR_PEOPLE.search(sentence) or "no more" in sentence] == []
