"""The short way: a few plain routes changed since the last compilation, so only their map lines are rewritten.

It gives the same bytes as :func:`compile_snapshot`, which it calls whenever a change is not of the simplest kind. The
two snapshots should share their unchanged objects; equal copies are found as well, only slower.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

from apps.compiler.bundle import MANIFEST, Bundle, assemble
from apps.compiler.checks.examination import Notes
from apps.compiler.checks.fields import check_route
from apps.compiler.checks.routes import check_action
from apps.compiler.compile import Compilation, compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import LoadBalancer, PathKind, Route
from apps.compiler.questions.loops import may_loop
from apps.compiler.routing import is_conditional
from apps.compiler.targets.haproxy.actions import action_of
from apps.compiler.targets.haproxy.maps import GROUP, key_of, map_path
from apps.compiler.targets.haproxy.policies.attach import rules_map
from apps.compiler.targets.haproxy.policies.client_limit import limits_map
from apps.compiler.targets.haproxy.verify import config_verification

MAX_CHANGED = 100


def compile_change(previous: Compilation[Bundle], before: Snapshot, after: Snapshot) -> Compilation[Bundle]:
    """Compile `after`, given that `previous` is the compilation of `before`.

    1. Find the routes that differ; anything else that differs asks for the long way.
    2. So does a route that needs rules of its own, fails a check, or could meet another one's host or key.
    3. Replace the lines of those routes in their maps, read the new lines back, seal the files again.
    """
    front = _only_changed_front(before, after)
    if front is None or previous.left_out:
        return compile_snapshot(after)
    old, new = _changed_routes(*front)
    if not _same_rules(*front) or not _is_simple(previous, front[1], old, new) or not _passes(after, new):
        return compile_snapshot(after)
    last = previous.output
    files = _patched(last, front[1], old, new)
    if files is None:
        return compile_snapshot(after)
    bundle = assemble(files, last.binds, last.line_owners, last.nodes, last.addresses)
    return Compilation(bundle, (), previous.warnings)


def _only_changed_front(before: Snapshot, after: Snapshot) -> tuple[LoadBalancer, LoadBalancer] | None:
    """The one load balancer that differs, before and after, when its routes are all that may differ."""
    if len(before.load_balancers) != 1 or len(after.load_balancers) != 1:
        return None  # host names are owned across load balancers; the long way looks at all of them
    old, new = before.load_balancers[0], after.load_balancers[0]
    same = replace(after, load_balancers=()) == replace(before, load_balancers=())
    return (old, new) if same and replace(old, routes=()) == replace(new, routes=()) else None


def _changed_routes(old: LoadBalancer, new: LoadBalancer) -> tuple[list[Route], list[Route]]:
    """Routes that only one side has, as it has them: what is left between a common beginning and a common end."""
    start, shortest = 0, min(len(old.routes), len(new.routes))
    while start < shortest and (old.routes[start] is new.routes[start] or old.routes[start] == new.routes[start]):
        start += 1
    end = 0
    while end < shortest - start and (
        old.routes[-1 - end] is new.routes[-1 - end] or old.routes[-1 - end] == new.routes[-1 - end]
    ):
        end += 1
    return list(old.routes[start : len(old.routes) - end]), list(new.routes[start : len(new.routes) - end])


def _is_simple(previous: Compilation[Bundle], front: LoadBalancer, old: list[Route], new: list[Route]) -> bool:
    """Few routes, none with rules of its own, hosts and ids that stay with the route: nothing else can be touched."""
    if max(len(old), len(new)) > MAX_CHANGED or not all(map(_is_plain, (*old, *new))):
        return False
    if map_path(front.id, "cached") in previous.output.files:
        return False  # which answers are kept follows from all that holds for a route
    if map_path(front.id, "exact") not in previous.output.files:
        return False  # http and https have maps of their own
    if any(may_loop(route, front) for route in front.routes if route.redirect is not None):
        return False
    group = f" {GROUP}".encode()
    if any(group in previous.output.files[map_path(front.id, name)] for name in ("exact", "prefix")):
        return False
    identities = {(route.id, route.hostname, route.account) for route in old}
    return len(old) == len(new) and all((route.id, route.hostname, route.account) in identities for route in new)


def _same_rules(before: LoadBalancer, after: LoadBalancer) -> bool:
    """Whether the same rules hold for any route as before: rules that nobody follows are not written."""
    return {route.rule_set for route in before.routes} == {route.rule_set for route in after.routes}


def _is_plain(route: Route) -> bool:
    """Whether the route lives in maps alone and splits among no more pools than every frontend is ready for."""
    special = (is_conditional(route), route.scheme, route.fixed_response, route.prefix_rewrite, route.mirror_pool_id)
    return not any(each not in (None, False) for each in special) and len(route.pools) <= 2


def _passes(after: Snapshot, routes: list[Route]) -> bool:
    notes = Notes()
    pools = {pool.id: pool for pool in after.pools}
    for route in routes:
        check_route(notes, route)
        check_action(notes, route, pools)
    return not notes.quarantined


def _patched(previous: Bundle, front: LoadBalancer, old: list[Route], new: list[Route]) -> dict[str, bytes] | None:
    """All files but the manifest with the lines of these routes replaced; None when another route has such a line."""
    files = {path: content for path, content in previous.files.items() if path != MANIFEST}
    for name in ("exact", "prefix", "action", "rules", "limits"):
        path = map_path(front.id, name)
        gone, come = _lines(name, front, old), _lines(name, front, new)
        if gone != come:
            content = _replaced(files[path], gone, come)
            if content is None or config_verification.check_map(
                path, "".join(f"{k} {v}\n" for k, v in come.items()).encode(), come
            ):
                return None
            files[path] = content
    return files


def _lines(name: str, front: LoadBalancer, routes: list[Route]) -> dict[str, str]:
    """What the routes say in one of the maps."""
    if name == "rules":
        return rules_map(routes)
    if name == "limits":
        return limits_map(front, routes)
    if name == "action":
        return {route.id: action_of(route) for route in routes}
    kind = PathKind.EXACT if name == "exact" else PathKind.PREFIX
    return {key_of(route): route.id for route in routes if route.path_kind is kind}


def _replaced(content: bytes, gone: dict[str, str], come: dict[str, str]) -> bytes | None:
    """The sorted lines without the first and with the second; a line sorts as its key, space being the lowest sign."""
    lines = content.decode("ascii").splitlines()
    for key, value in gone.items():
        index = bisect_left(lines, f"{key} ")
        if index == len(lines) or lines[index] != f"{key} {value}":
            return None
        del lines[index]
    for key, value in come.items():
        index = bisect_left(lines, f"{key} ")
        if index < len(lines) and lines[index].startswith(f"{key} "):
            return None
        lines.insert(index, f"{key} {value}")
    return ("\n".join(lines) + "\n").encode("ascii") if lines else b""
