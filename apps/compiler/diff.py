"""The differences: between two snapshots as sentences, between two bundles as text without secrets."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from apps.compiler.bundle import FOR_NODES_ALONE, MANIFEST, Bundle, for_people
from apps.compiler.model.fleet import BypassToken, Pool, RegionShare, Snapshot
from apps.compiler.model.listener_options import (
    Cache,
    ClientAddress,
    ClientCertificates,
    Compression,
    Connections,
    ListenerTls,
    SniRoute,
    Tracing,
)
from apps.compiler.model.shared import (
    AnyPool,
    Assertion,
    FixedResponse,
    HealthCheck,
    Limit,
    LimitKind,
    LimitScope,
    Listener,
    LoadBalancer,
    Redirect,
    Route,
    Server,
    ValueCondition,
    WeightedPool,
)

Names = Mapping[str, str]
Objects = dict[tuple[str, str], Any]
_MAX_LINES = 2000


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


def diff_snapshots(before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """What changed between two snapshots of one fleet, object by object, in a stable order."""
    return _diff(_objects(before), _objects(after), {**_names(before), **_names(after)})


def diff_routes(
    before: Iterable[LoadBalancer], after: Iterable[LoadBalancer], pools: Iterable[AnyPool]
) -> tuple[Change, ...]:
    """The same of routes alone, on whatever target; `pools` are all that they name."""
    old, new = ({("route", route.id): route for front in side for route in front.routes} for side in (before, after))
    return _diff(old, new, {each.id: each.label for each in pools})


def _diff(old: Objects, new: Objects, names: Names) -> tuple[Change, ...]:
    changes: list[Change] = []
    for key in sorted(old.keys() | new.keys(), key=lambda key: (key[0], len(key[1]), key[1])):
        changes += _compare(key[0], old.get(key), new.get(key), names)
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


def _names(snapshot: Snapshot) -> Names:
    """Id → what people call it, for all that others refer to or that needs its parent's name as well."""
    found = {each.id: each.label for each in snapshot.pools}
    found |= {each.id: each.label for each in snapshot.regions}
    found |= {each.id: each.label for each in snapshot.certificates}
    found |= {node.id: node.name for region in snapshot.regions for node in region.nodes}
    found |= {each.id: f"{each.label} of {pool.label}" for pool in snapshot.pools for each in pool.servers}
    for front in snapshot.load_balancers:
        found |= {each.id: f"{each.label} of {front.label}" for each in front.listeners}
    return found


def _compare(kind: str, old: Any, new: Any, names: Names) -> list[Change]:
    if old is new or old == new:
        return []
    thing = new if new is not None else old
    title = f"{kind} {_title(thing, names)}"
    if old is None or new is None:
        action = "added" if old is None else "removed"
        return [Change(action, kind, thing.id, thing.label, "", "", "", f"{title}: {action}")]
    return list(_field_changes(kind, title, old, new, names))


def _title(thing: Any, names: Names) -> str:
    """A route is known by host and path, a server and a listener with what they belong to, a test by its pool."""
    if isinstance(thing, Route):
        return f"{thing.hostname} {thing.path}"
    if isinstance(thing, BypassToken):
        return _named(thing.pool_id, names)
    return names.get(thing.id, thing.label) if isinstance(thing, Server | Listener) else str(thing.label)


def _field_changes(kind: str, title: str, old: Any, new: Any, names: Names) -> Iterator[Change]:
    for name in _own_fields(new):
        before, after = getattr(old, name), getattr(new, name)
        if before == after:
            continue
        for field_name, was, becomes in _parts(name, before, after, names):
            shown = " replaced" if was == becomes else f" {was} → {becomes}"
            sentence = f"{title}: {field_name}{shown}"
            yield Change("changed", kind, new.id, new.label, name, was, becomes, sentence)


def _parts(name: str, before: Any, after: Any, names: Names) -> list[tuple[str, str, str]]:
    """What of a field changed, as (words, before, after): lists whose members have names are told member by member."""
    if name == "pools":
        return _share_changes(before, after, names)
    if name == "sni_routes":
        return _sni_changes(before, after, names)
    if name == "elsewhere":
        return _elsewhere_changes(before, after, names)
    if name == "networks":  # there may be thousands
        return [("networks", str(len(before)), str(len(after)))]
    return [(WORDS.get(name, name.replace("_", " ")), _say(before, names, name), _say(after, names, name))]


def _own_fields(thing: Any) -> list[str]:
    """Fields that are said about the object itself; children are objects of their own."""
    children = {LoadBalancer: {"listeners", "routes", "rule_sets", "network_lists"}, Pool: {"servers"}}
    return [each.name for each in fields(thing) if each.name not in children.get(type(thing), set())]


def _share_changes(
    before: tuple[WeightedPool, ...], after: tuple[WeightedPool, ...], names: Names
) -> list[tuple[str, str, str]]:
    """One part per pool: `pool blue weight`, `50`, `80`; a pool that is not named has no weight."""
    old = {share.pool_id: str(share.weight) for share in before}
    new = {share.pool_id: str(share.weight) for share in after}
    return [
        (f"pool {_named(key, names)} weight", old.get(key, "none"), new.get(key, "none"))
        for key in dict.fromkeys((*old, *new))
        if old.get(key) != new.get(key)
    ]


def _sni_changes(before: tuple[SniRoute, ...], after: tuple[SniRoute, ...], names: Names) -> list[tuple[str, str, str]]:
    """One part per hostname: `connections for db.example.com`, the pool before and after."""
    old, new = ({each.hostname: _taken(each, names) for each in side} for side in (before, after))
    return [
        (f"connections for {key}", old.get(key, "none"), new.get(key, "none"))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]


def _taken(route: SniRoute, names: Names) -> str:
    return _named(route.pool_id, names) + (", TLS passed on" if route.passthrough else "")


def _elsewhere_changes(
    before: tuple[RegionShare, ...], after: tuple[RegionShare, ...], names: Names
) -> list[tuple[str, str, str]]:
    """What this fleet learned of the pool in other regions, region by region, and in which order it tries them."""
    old, new = ({share.region_id: share for share in side} for side in (before, after))
    found = []
    for key in dict.fromkeys((*old, *new)):
        was, now = old.get(key), new.get(key)
        if was is None or now is None:
            said = ("some" if was else "none", "some" if now else "none")
            found.append((f"servers in {_named(key, names)}", *said))
            continue
        for field in ("limit", "capacity_scaler", "ready_servers"):
            first, then = getattr(was, field), getattr(now, field)
            if first != then:
                words = f"{WORDS[field]} in {_named(key, names)}"
                found.append((words, _say(first, names, field), _say(then, names, field)))
    if not found:
        first, then = (" then ".join(_named(share.region_id, names) for share in side) for side in (before, after))
        found.append(("overflow order", first, then))
    return found


# What a field is called where its own name would say too little.
WORDS = {
    "capacity_scaler": "share of its limit in force",
    "certificate_ids": "certificates",
    "default_certificate_id": "default certificate",
    "default_pool_id": "default pool",
    "ends_tls": "TLS ended here",
    "elsewhere": "servers elsewhere",
    "limit": "limit",
    "mirror_pool_id": "mirror",
    "pem": "certificate and key",
    "pool_id": "pool",
    "ready_servers": "servers ready",
    "router_id": "VRRP router id",
}


def _named(key: str, names: Names) -> str:
    """What people call an object; one that is in neither snapshot is not called by our id either."""
    return names.get(key, "one that is no more")


def _say(value: Any, names: Names, field: str = "") -> str:
    """A value for people: no name of a class, no id of ours, no secret."""
    if field == "capacity_scaler":
        return f"{100 * value:g} %"
    if field in REFERENCES:
        keys = (value,) if isinstance(value, str) else value or ()
        return ", ".join(_named(key, names) for key in keys) or "none"
    if isinstance(value, tuple):
        return ", ".join(_say(each, names) for each in value) or "none"
    return "(hidden)" if field in SECRETS else _say_plain(value)


def _say_plain(value: Any) -> str:
    match value:
        case None | "":
            return "none"
        case bool():
            return "yes" if value else "no"
        case str():
            return "(hidden)" if value.startswith("-----BEGIN") else str(value)
        case int() | float():
            return str(value)
    teller = TELLERS.get(type(value))
    return teller(value) if teller else "something else"


SECRETS = frozenset({"digest", "pem"})
REFERENCES = frozenset(
    {"certificate_ids", "default_certificate_id", "default_pool_id", "mirror_pool_id", "nodes", "pool_id"}
)


def _say_limit(limit: Limit) -> str:
    if limit.kind is LimitKind.NONE:
        return "no limit"
    unit = "requests/s" if limit.kind is LimitKind.RATE else "in flight"
    return f"{limit.value} {unit}" + (" per server" if limit.scope is LimitScope.SERVER else "")


def _say_check(check: HealthCheck) -> str:
    asked = f"{check.method} {check.path}" if check.path else "connect"
    host = f" at {check.host}" if check.host else ""
    host += f" on port {check.port}" if check.port else ""
    expects = f" expecting {check.expect_status}" if check.path else ""
    times = f"every {check.interval_ms} ms, at most {check.timeout_ms} ms"
    return f"{asked}{host}{expects} {times}, up after {check.rise}, down after {check.fall}"


def _say_redirect(redirect: Redirect) -> str:
    scheme = f"{redirect.scheme}://" if redirect.scheme else ""
    port = f":{redirect.port}" if redirect.port else ""
    path = redirect.path or (f"{redirect.prefix.rstrip('/')}/…" if redirect.prefix else "")
    where = f"{scheme}{redirect.host or ('same host' if scheme or port else '')}{port}{path}" or "same place"
    query = "" if redirect.keep_query else " without the query"
    return f"{redirect.code} to {where}{query}" + (f" with {redirect.query}" if redirect.query else "")


def _say_response(answer: FixedResponse) -> str:
    body = f" “{answer.body[:40]}{'…' if len(answer.body) > 40 else ''}”" if answer.body else ""
    return f"{answer.status} {answer.content_type}{body}"


def _say_condition(condition: ValueCondition) -> str:
    return f"{condition.name} {condition.match.value} {condition.value}".strip()


def _say_assertion(assertion: Assertion) -> str:
    goals = (
        f"pool {assertion.pool}" if assertion.pool else "",
        f"route {assertion.route}" if assertion.route else "",
        "" if assertion.redirect is None else f"redirect {assertion.redirect}".strip(),
        "" if assertion.status is None else f"status {assertion.status}",
    )
    headers = "".join(f" with {name}: {value}" for name, value in assertion.headers)
    return f"{assertion.method} {assertion.host}{assertion.path}{headers} gets {next(filter(None, goals), 'anything')}"


def _say_options(options: Any) -> str:
    """An object of options that was set, field by field, without what it leaves as it is."""
    said = (
        f"{each.name.replace('_', ' ')} {_say(getattr(options, each.name), {})}"
        for each in fields(options)
        if getattr(options, each.name) not in (None, (), "")
    )
    return ", ".join(said) or "set"


TELLERS: Mapping[type, Callable[[Any], str]] = {
    Connections: _say_options,
    ClientAddress: _say_options,
    ClientCertificates: _say_options,
    ListenerTls: _say_options,
    Compression: _say_options,
    Cache: _say_options,
    Tracing: _say_options,
    Limit: _say_limit,
    HealthCheck: _say_check,
    Redirect: _say_redirect,
    FixedResponse: _say_response,
    ValueCondition: _say_condition,
    Assertion: _say_assertion,
}


def diff_bundles(before: Bundle, after: Bundle, context: int = 2) -> str:
    """A unified difference of the text files; certificates are named, never shown; long ones are cut with a count.

    `context` is how many lines stand around each change: 0 where the reader may not see what others have there.
    """
    lines: list[str] = []
    for path in sorted((before.files.keys() | after.files.keys()) - {MANIFEST}):
        old, new = before.files.get(path, b""), after.files.get(path, b"")
        if old == new:
            continue
        hidden = path.startswith(FOR_NODES_ALONE)
        lines += [f"{path}: changed (not shown)"] if hidden else _unified(path, old, new, context)
    if len(lines) > _MAX_LINES:
        lines = [*lines[:_MAX_LINES], f"… {len(lines) - _MAX_LINES} more lines"]
    return "\n".join(lines)


def _unified(path: str, old: bytes, new: bytes, context: int) -> list[str]:
    old_lines, new_lines = for_people(old).splitlines(), for_people(new).splitlines()
    if path.startswith("maps/"):
        return _map_difference(path, old_lines, new_lines)
    names = (f"running/{path}", f"wanted/{path}")
    return list(difflib.unified_diff(old_lines, new_lines, *names, lineterm="", n=context))


def _map_difference(path: str, old_lines: list[str], new_lines: list[str]) -> list[str]:
    """Maps are sets of lines, so their difference needs no context and takes no quadratic time."""
    old, new = set(old_lines), set(new_lines)
    changed = sorted([(line, "-") for line in old - new] + [(line, "+") for line in new - old])
    return [f"--- running/{path}", f"+++ wanted/{path}", *(sign + line for line, sign in changed)]
