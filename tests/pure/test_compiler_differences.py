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

from apps.compiler import diff
from apps.compiler.diff import diff_snapshots
from apps.compiler.model import fleet as fleets
from apps.compiler.model import shared as model
from tests.pure.compiler_fixtures import certificate_pem

# What no text for people may have: a class, its text, or an identifier of ours as the name of a thing.
NOT_FOR_PEOPLE = re.compile(
    r"<\w+|=\w+\(|\w+=<|object at 0x|None\b|\b(?:pool|rgn|srv|lst|route|lb|crt|node|bkd|vip)-\d+\b"
)


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
    front = model.LoadBalancer("lb-1", "front", "acme", (secure,), (routed, moved, closed))
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
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, float):
        yield 0.0
    elif isinstance(value, int):
        yield value + 1
    elif kind in (int, str):
        yield {int: 5, str: "else"}[kind]


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
        if each.name != "id":
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
    assert [sentence for sentence in said if "something else" in sentence] == []


def test_control_a_value_that_nobody_put_into_words_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "_say", lambda value, *_: str(value))
    assert any(NOT_FOR_PEOPLE.search(sentence) for sentence in sentences())


def test_control_an_id_as_a_name_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "_named", lambda key, _: key)
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
