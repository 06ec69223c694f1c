"""SHOW, the differences: between two snapshots as sentences, between two bundles as text without secrets."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from apps.compiler.bundle import MANIFEST, Bundle
from apps.compiler.model import Certificate, HealthCheck, Limit, LoadBalancer, Pool, Route, Snapshot, WeightedPool

_MAX_LINES = 2000
_HIDDEN = ("certs/", "secrets/")


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
    old, new = _objects(before), _objects(after)
    names = {**_pool_labels(before), **_pool_labels(after)}
    changes: list[Change] = []
    for key in sorted(old.keys() | new.keys(), key=lambda key: (key[0], len(key[1]), key[1])):
        changes += _compare(key[0], old.get(key), new.get(key), names)
    return tuple(changes)


def _objects(snapshot: Snapshot) -> dict[tuple[str, str], Any]:
    """Everything that has an id, by kind and id; parents without their children."""
    found: dict[tuple[str, str], Any] = {}
    for front in snapshot.load_balancers:
        found["load balancer", front.id] = front
        found |= {("listener", listener.id): listener for listener in front.listeners}
        found |= {("route", route.id): route for route in front.routes}
    for pool in snapshot.pools:
        found["pool", pool.id] = pool
        found |= {("server", server.id): server for server in pool.servers}
    found |= {("capacity test of", each.id): each for each in snapshot.test_passes}
    found |= {("static IP", each.id): each for each in snapshot.addresses}
    return found | {("certificate", certificate.id): certificate for certificate in snapshot.certificates}


def _pool_labels(snapshot: Snapshot) -> dict[str, str]:
    return {pool.id: pool.label for pool in snapshot.pools}


def _compare(kind: str, old: Any, new: Any, names: Mapping[str, str]) -> list[Change]:
    if old is new or old == new:
        return []
    thing = new if new is not None else old
    title = f"{kind} {_title(thing)}"
    if old is None or new is None:
        action = "added" if old is None else "removed"
        return [Change(action, kind, thing.id, thing.label, "", "", "", f"{title}: {action}")]
    return list(_field_changes(kind, title, old, new, names))


def _title(thing: Any) -> str:
    """A route is known by host and path, everything else by its label."""
    return f"{thing.hostname} {thing.path}" if isinstance(thing, Route) else str(thing.label)


def _field_changes(kind: str, title: str, old: Any, new: Any, names: Mapping[str, str]) -> Iterator[Change]:
    for name in _own_fields(new):
        before, after = getattr(old, name), getattr(new, name)
        if before == after:
            continue
        parts = _share_changes(before, after, names) if name == "pools" else [(name, _say(before), _say(after))]
        for field_name, was, becomes in parts:
            shown = "" if name == "pem" else f" {was} → {becomes}"
            sentence = f"{title}: {field_name.replace('_', ' ')}{shown or ' replaced'}"
            yield Change("changed", kind, new.id, new.label, name, was, becomes, sentence)


def _own_fields(thing: Any) -> list[str]:
    """Fields that are said about the object itself; children are objects of their own."""
    children = {LoadBalancer: {"listeners", "routes"}, Pool: {"servers"}}.get(type(thing), set())
    return [each.name for each in fields(thing) if each.name not in children]


def _share_changes(
    before: tuple[WeightedPool, ...], after: tuple[WeightedPool, ...], names: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """One part per pool: `pool blue weight`, `50`, `80`; a pool that is not named has no weight."""
    old = {share.pool_id: str(share.weight) for share in before}
    new = {share.pool_id: str(share.weight) for share in after}
    return [
        (f"pool {names.get(key, key)} weight", old.get(key, "none"), new.get(key, "none"))
        for key in dict.fromkeys((*old, *new))
        if old.get(key) != new.get(key)
    ]


def _say(value: Any) -> str:
    """A value for people; a certificate's text is never said."""
    match value:
        case None | () | "":
            return "none"
        case tuple():
            return ", ".join(map(_say, value))
        case HealthCheck():
            return f"{value.method} {value.path or 'connect'} every {value.interval_ms} ms"
        case Limit():
            return f"{value.kind} {value.value} per {value.scope}"
        case Certificate():
            return str(value.label)
        case str() if value.startswith("-----BEGIN"):
            return "(hidden)"
        case _:
            return _say_fields(value) if hasattr(value, "__dataclass_fields__") else str(value)


def _say_fields(value: Any) -> str:
    parts = ((each.name, getattr(value, each.name)) for each in fields(value))
    return " ".join(f"{name}={part}" for name, part in parts if part not in (None, "", ()))


def diff_bundles(before: Bundle, after: Bundle, context: int = 2) -> str:
    """A unified difference of the text files; certificates are named, never shown; long ones are cut with a count.

    `context` is how many lines stand around each change: 0 where the reader may not see what others have there.
    """
    lines: list[str] = []
    for path in sorted((before.files.keys() | after.files.keys()) - {MANIFEST}):
        old, new = before.files.get(path, b""), after.files.get(path, b"")
        if old == new:
            continue
        lines += [f"{path}: changed (not shown)"] if path.startswith(_HIDDEN) else _unified(path, old, new, context)
    if len(lines) > _MAX_LINES:
        lines = [*lines[:_MAX_LINES], f"… {len(lines) - _MAX_LINES} more lines"]
    return "\n".join(lines)


def _unified(path: str, old: bytes, new: bytes, context: int) -> list[str]:
    old_lines, new_lines = old.decode().splitlines(), new.decode().splitlines()
    if path.startswith("maps/"):
        return _map_difference(path, old_lines, new_lines)
    names = (f"running/{path}", f"wanted/{path}")
    return list(difflib.unified_diff(old_lines, new_lines, *names, lineterm="", n=context))


def _map_difference(path: str, old_lines: list[str], new_lines: list[str]) -> list[str]:
    """Maps are sets of lines, so their difference needs no context and takes no quadratic time."""
    old, new = set(old_lines), set(new_lines)
    changed = sorted([(line, "-") for line in old - new] + [(line, "+") for line in new - old])
    return [f"--- running/{path}", f"+++ wanted/{path}", *(sign + line for line, sign in changed)]
