"""The difference between two snapshots as sentences, object by object and field by field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from apps.compiler.differences.words import Named, Part, named, say, take_apart, words_of
from apps.compiler.model.fleet import BypassToken, Pool, RegionShare, Snapshot
from apps.compiler.model.listener_options import ConnectionRoute, SniRoute
from apps.compiler.model.policy import Rules
from apps.compiler.model.shared import AnyPool, Listener, LoadBalancer, Route, Server, WeightedPool
from apps.compiler.policies import NOTHING

Objects = dict[tuple[str, str], Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: `action` is added, removed or changed; `before` and `after` are texts, empty where none."""

    action: str
    kind: str
    object_id: str
    label: str
    field: str
    before: str
    after: str
    sentence: str


@dataclass(frozen=True, slots=True)
class _Known:
    """Id → what people call it, and id → rules, of both sides."""

    names: Named
    rules: Mapping[str, Rules]


def diff_snapshots(before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """What changed between two snapshots of one fleet, object by object, in a stable order."""
    known = _Known({**_names(before), **_names(after)}, _rules(before.load_balancers, after.load_balancers))
    return _diff(_objects(before), _objects(after), known)


def diff_routes(
    before: Iterable[LoadBalancer], after: Iterable[LoadBalancer], pools: Iterable[AnyPool]
) -> tuple[Change, ...]:
    """The same of routes alone, on whatever target; `pools` are all that they name."""
    sides = [list(before), list(after)]
    old, new = ({("route", route.id): route for front in side for route in front.routes} for side in sides)
    names = {each.id: each.label for each in pools}
    names |= {each.id: each.label for side in sides for front in side for each in front.network_lists}
    return _diff(old, new, _Known(names, _rules(*sides)))


def _diff(old: Objects, new: Objects, known: _Known) -> tuple[Change, ...]:
    changes: list[Change] = []
    for key in sorted(old.keys() | new.keys(), key=lambda key: (key[0], len(key[1]), key[1])):
        changes += _compare(key[0], old.get(key), new.get(key), known)
    return tuple(changes)


def _objects(snapshot: Snapshot) -> Objects:
    """Everything that has an id, by kind and id; parents without their children."""
    found: Objects = {}
    for front in snapshot.load_balancers:
        found["load balancer", front.id] = front
        found |= {("listener", listener.id): listener for listener in front.listeners}
        found |= {("route", route.id): route for route in front.routes}
        found |= {("network list", each.id): each for each in front.network_lists}
    for pool in snapshot.pools:
        found["pool", pool.id] = pool
        found |= {("server", server.id): server for server in pool.servers}
    found |= {("capacity test of", each.id): each for each in snapshot.bypass_tokens}
    found |= {("challenge of", each.id): each for each in snapshot.challenges or ()}
    found |= {("static IP", each.id): each for each in snapshot.addresses}
    return found | {("certificate", certificate.id): certificate for certificate in snapshot.certificates}


def _rules(*sides: Iterable[LoadBalancer]) -> Mapping[str, Rules]:
    """The rules by an id that equal rules share."""
    return {each.id: each.rules for side in sides for front in side for each in front.rule_sets}


def _names(snapshot: Snapshot) -> Named:
    """Id → what people call it, for all that others refer to or that needs its parent's name as well."""
    found = {each.id: each.label for each in snapshot.pools}
    found |= {each.id: each.label for each in snapshot.regions}
    found |= {each.id: each.label for each in snapshot.certificates}
    found |= {node.id: node.name for region in snapshot.regions for node in region.nodes}
    found |= {each.id: f"{each.label} of {pool.label}" for pool in snapshot.pools for each in pool.servers}
    for front in snapshot.load_balancers:
        found |= {each.id: f"{each.label} of {front.label}" for each in front.listeners}
        found |= {each.id: each.label for each in front.network_lists}
    return found


def _compare(kind: str, old: Any, new: Any, known: _Known) -> list[Change]:
    if old is new or old == new:
        return []
    thing = new if new is not None else old
    title = f"{kind} {_title(thing, known.names)}"
    if old is None or new is None:
        action = "added" if old is None else "removed"
        return [Change(action, kind, thing.id, thing.label, "", "", "", f"{title}: {action}")]
    return list(_field_changes(kind, title, old, new, known))


def _title(thing: Any, names: Named) -> str:
    """A route is known by host and path, a server and a listener with what they belong to, a test by its pool."""
    if isinstance(thing, Route):
        return f"{thing.hostname} {thing.path}"
    if isinstance(thing, BypassToken):
        return named(thing.pool_id, names)
    return names.get(thing.id, thing.label) if isinstance(thing, Server | Listener) else str(thing.label)


def _field_changes(kind: str, title: str, old: Any, new: Any, known: _Known) -> Iterator[Change]:
    for name in _own_fields(new):
        before, after = getattr(old, name), getattr(new, name)
        if before == after:
            continue
        for field_name, was, becomes in _parts(name, before, after, known):
            shown = " replaced" if was == becomes else f" {was} → {becomes}"
            sentence = f"{title}: {field_name}{shown}"
            yield Change("changed", kind, new.id, new.label, name, was, becomes, sentence)


def _parts(name: str, before: Any, after: Any, known: _Known) -> list[Part]:
    """What of a field changed: lists whose members have names are told member by member."""
    if name == "rule_set":
        return _rule_changes(before, after, known)
    if name == "pools":
        return _share_changes(before, after, known.names)
    if name in ("sni_routes", "protocol_routes"):
        return _connection_changes(before, after, known.names)
    if name == "elsewhere":
        return _elsewhere_changes(before, after, known.names)
    if name == "networks":  # there may be thousands
        return [("networks", str(len(before)), str(len(after)))]
    return take_apart(name, before, after, known.names)


def _rule_changes(before: str, after: str, known: _Known) -> list[Part]:
    """What policies say of a route, block by block."""
    old, new = (known.rules.get(each, NOTHING) for each in (before, after))
    blocks = ((each.name, getattr(old, each.name), getattr(new, each.name)) for each in fields(Rules))
    return [part for name, was, now in blocks if was != now for part in take_apart(name, was, now, known.names)]


def _own_fields(thing: Any) -> list[str]:
    """Fields that are said about the object itself; children are objects of their own."""
    children = {LoadBalancer: {"listeners", "routes", "rule_sets", "network_lists"}, Pool: {"servers"}}
    return [each.name for each in fields(thing) if each.name not in children.get(type(thing), set())]


def _share_changes(before: tuple[WeightedPool, ...], after: tuple[WeightedPool, ...], names: Named) -> list[Part]:
    """One part per pool: `pool blue weight`, `50`, `80`; a pool that is not named has no weight."""
    old = {share.pool_id: str(share.weight) for share in before}
    new = {share.pool_id: str(share.weight) for share in after}
    return [
        (f"pool {named(key, names)} weight", old.get(key, "none"), new.get(key, "none"))
        for key in dict.fromkeys((*old, *new))
        if old.get(key) != new.get(key)
    ]


def _connection_changes(
    before: tuple[ConnectionRoute, ...], after: tuple[ConnectionRoute, ...], names: Named
) -> list[Part]:
    """One part per name or protocol: `connections for db.example.com`, the pool before and after."""
    old, new = ({each.said: _taken(each, names) for each in side} for side in (before, after))
    return [
        (f"connections for {key}", old.get(key, "none"), new.get(key, "none"))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]


def _taken(route: ConnectionRoute, names: Named) -> str:
    passed_on = isinstance(route, SniRoute) and route.passthrough
    return named(route.pool_id, names) + (", TLS passed on" if passed_on else "")


def _elsewhere_changes(before: tuple[RegionShare, ...], after: tuple[RegionShare, ...], names: Named) -> list[Part]:
    """What this fleet learned of the pool in other regions, region by region, and in which order it tries them."""
    old, new = ({share.region_id: share for share in side} for side in (before, after))
    found = []
    for key in dict.fromkeys((*old, *new)):
        was, now = old.get(key), new.get(key)
        if was is None or now is None:
            said = ("some" if was else "none", "some" if now else "none")
            found.append((f"servers in {named(key, names)}", *said))
            continue
        for field in ("limit", "capacity_scaler", "ready_servers"):
            first, then = getattr(was, field), getattr(now, field)
            if first != then:
                words = f"{words_of(field)} in {named(key, names)}"
                found.append((words, say(first, names, field), say(then, names, field)))
    if not found:
        first, then = (" then ".join(named(share.region_id, names) for share in side) for side in (before, after))
        found.append(("overflow order", first, then))
    return found
