"""The way round a few objects: a snapshot without them, or with what they were when every node took them.

Only what carries the traffic of one owner can be withheld (certificates, pools, servers, routes), never a listener, a
load balancer or an address: these are everybody's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from apps.compiler.model.access import NetworkList
from apps.compiler.model.fleet import Pool, Snapshot
from apps.compiler.model.policy import RuleSet
from apps.compiler.model.shared import Certificate, Listener, LoadBalancer, Route, Server
from apps.compiler.routing import number_of

# What a pool says of regions, such as that one is drained.
OF_REGIONS = ("limit", "capacity_scaler", "elsewhere", "when_full")
Thing = Certificate | Pool | Route | Server
KINDS = {"crt": "Certificate", "pool": "Pool", "route": "Route", "srv": "Server"}


@dataclass(frozen=True, slots=True)
class Part:
    """One object that can be withheld, with its owner's name; `part_of` is the pool of a server, else its own id."""

    thing: Thing
    account: str
    label: str
    part_of: str

    @property
    def id(self) -> str:
        """Its id."""
        return self.thing.id

    @property
    def kind(self) -> str:
        """What definitions and the audit log call it."""
        return KINDS[kind_of(self.id)]

    @property
    def content(self) -> str:
        """Changes when anything about the object does; servers are objects of their own."""
        thing = replace(self.thing, servers=()) if isinstance(self.thing, Pool) else self.thing
        return hashlib.sha256(repr(thing).encode()).hexdigest()


def kind_of(object_id: str) -> str:
    """`route` of `route-9`."""
    return object_id.rpartition("-")[0]


def parts_of(snapshot: Snapshot) -> dict[str, Part]:
    """Everything that can be withheld, by id."""
    return {part.id: part for part in _parts(snapshot)}


def _parts(snapshot: Snapshot) -> Iterator[Part]:
    for certificate in snapshot.certificates:
        yield Part(certificate, certificate.account, certificate.label, certificate.id)
    for pool in snapshot.pools:
        yield Part(pool, pool.account, pool.label, pool.id)
        for server in pool.servers:
            yield Part(server, pool.account, f"{pool.label}/{server.label}", pool.id)
    for front in snapshot.load_balancers:
        for route in front.routes:
            yield Part(route, route.account, route.label, route.id)


def suspects(snapshot: Snapshot, good: Snapshot | None) -> dict[str, Part]:
    """What differs from the last snapshot that every node took and can be withheld, owner by owner."""
    old = parts_of(good) if good else {}
    needed = set(_needed_by_listeners(snapshot)) - old.keys()
    changed = [
        part
        for key, part in parts_of(snapshot).items()
        if key not in needed and (key not in old or old[key].thing != part.thing)
    ]
    return {part.id: part for part in sorted(changed, key=lambda part: (part.account, part.kind, number_of(part.id)))}


def _needed_by_listeners(snapshot: Snapshot) -> Iterator[str]:
    """Without these a listener would be gone as well."""
    for listener in (listener for front in snapshot.load_balancers for listener in front.listeners):
        if listener.default_pool_id:
            yield listener.default_pool_id
        if len(listener.certificate_ids) == 1:
            yield listener.certificate_ids[0]


def withhold(snapshot: Snapshot, out: Collection[str], good: Snapshot | None) -> Snapshot:
    """The snapshot with each of these objects as it is in `good`, or without it where it is not there."""
    if not out:
        return snapshot
    old = {key: part.thing for key, part in parts_of(good).items() if key in out} if good else {}
    certificates = tuple(kept for each in snapshot.certificates if (kept := _certificate(each, out, old)))
    present = {each.id for each in certificates}
    fronts = tuple(_front(each, out, old, present, _then(each.id, good)) for each in snapshot.load_balancers)
    pools = tuple(pool for each in snapshot.pools if (pool := _pool(each, out, old)))
    gone = _led_to(fronts, out) - {each.id for each in snapshot.pools}
    # Routes that are as they were lead to pools that may have been deleted meanwhile.
    back = tuple(pool for pool in good.pools if pool.id in gone) if good else ()
    return replace(snapshot, certificates=certificates, pools=(*pools, *back), load_balancers=fronts)


def _led_to(fronts: Iterable[LoadBalancer], out: Collection[str]) -> set[str]:
    """The pools to which these routes lead."""
    routes = (route for front in fronts for route in front.routes if route.id in out)
    return {share.pool_id for route in routes for share in route.pools}


def _then(front_id: str, good: Snapshot | None) -> tuple[tuple[RuleSet, ...], tuple[NetworkList, ...]]:
    """The rules that routes of the load balancer had then, and the lists that those name."""
    found = (each for each in good.load_balancers if each.id == front_id) if good else iter(())
    return next(((each.rule_sets, each.network_lists) for each in found), ((), ()))


def _certificate(new: Certificate, out: Collection[str], old: Mapping[str, Thing]) -> Certificate | None:
    """As it was, for those of its names that it still has: another may be another account's by now."""
    if new.id not in out:
        return new
    was = old.get(new.id)
    if not isinstance(was, Certificate) or was.account != new.account:
        return None
    names = tuple(name for name in was.hostnames if name in new.hostnames)
    return replace(was, hostnames=names) if names else None


def _pool(new: Pool, out: Collection[str], old: Mapping[str, Thing]) -> Pool | None:
    """As it was, but with the shares of regions as they are: a drained region stays drained."""
    if new.id not in out:
        servers = tuple(kept for each in new.servers if (kept := _server(each, out, old)))
        return new if servers == new.servers else replace(new, servers=servers)
    was = old.get(new.id)
    if not isinstance(was, Pool) or was.account != new.account or was.protocol is not new.protocol:
        return None
    now = {name: getattr(new, name) for name in OF_REGIONS}
    return replace(was, **now)


def _server(new: Server, out: Collection[str], old: Mapping[str, Thing]) -> Server | None:
    was = old.get(new.id) if new.id in out else new
    return was if isinstance(was, Server) else None


def _front(
    new: LoadBalancer,
    out: Collection[str],
    old: Mapping[str, Thing],
    present: Collection[str],
    then: tuple[tuple[RuleSet, ...], tuple[NetworkList, ...]],
) -> LoadBalancer:
    routes = tuple(kept for each in new.routes if (kept := _route(each, out, old)))
    listeners = tuple(_listener(each, out, present) for each in new.listeners)
    known = {each.id: each for each in (*then[0], *new.rule_sets)}
    used = {route.rule_set for route in routes}
    return replace(
        new,
        routes=routes,
        listeners=listeners,
        rule_sets=tuple(known[key] for key in sorted(known) if key in used),
        # A list is as it is now: who was denied meanwhile stays denied.
        network_lists=tuple({each.id: each for each in (*then[1], *new.network_lists)}.values()),
    )


def _route(new: Route, out: Collection[str], old: Mapping[str, Thing]) -> Route | None:
    """As it was, unless it had another hostname: that one may be another account's by now."""
    if new.id not in out:
        return new
    was = old.get(new.id)
    same = isinstance(was, Route) and (was.account, was.hostname) == (new.account, new.hostname)
    return was if same and isinstance(was, Route) else None


def _listener(new: Listener, out: Collection[str], present: Collection[str]) -> Listener:
    if not any(key in out for key in new.certificate_ids):
        return new
    return replace(new, certificate_ids=tuple(key for key in new.certificate_ids if key not in out or key in present))
