"""What not every HAProxy can do, by the table: asked of the builds that nodes reported, and said where one cannot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from apps.compiler.checks.examination import Notes
from apps.compiler.model.capabilities import NodeBuild, unable
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.policy import Rules
from apps.compiler.model.shared import Listener, LoadBalancer
from apps.compiler.portability.table.asking import capability_for

# By the field of a rule that older nodes pass over: what is said of them.
_PASSED_OVER = {
    "bandwidth": "Bandwidth is not limited on {nodes}; limits need {needs} on each node.",
    "retries.attempts": "Retries are counted as the pool says on {nodes}; a route's own number needs {needs}.",
}
_HTTP3 = capability_for("LoadBalancer", "listeners.tls.http3")


def depends_on_builds(snapshot: Snapshot) -> bool:
    """Whether it would be compiled otherwise, or warned of otherwise, if nodes had another HAProxy."""
    fronts = snapshot.load_balancers
    rules = [each.rules for front in fronts for each in front.rule_sets]
    passed_over = any(_said(each, field) for field in _PASSED_OVER for each in rules)
    return passed_over or any(wants_http3(listener) for front in fronts for listener in front.listeners)


def warn_of_older_nodes(notes: Notes, front: LoadBalancer, builds: Iterable[NodeBuild]) -> None:
    """They serve routes without what they cannot do. The first route with each value is told."""
    builds = tuple(builds)
    for field, sentence in _PASSED_OVER.items():
        needed = capability_for("Route", f"rules.{field}")
        lacking = unable(needed, builds)
        sets = {each.id: _said(each.rules, field) for each in front.rule_sets} if lacking else {}
        told: set[object] = {None}
        for route in front.routes if sets else ():
            said = sets.get(route.rule_set)
            if said not in told:
                told.add(said)
                message = sentence.format(nodes=lacking, needs=needed.needs)
                notes.warn(route, field.replace(".", "_"), message, f"rules.{field}")


def _said(rules: Rules, field: str) -> object:
    said: object = rules
    for name in field.split("."):
        said = getattr(said, name, None)
    return said


def wants_http3(listener: Listener) -> bool:
    """Whether somebody asked for it."""
    return listener.tls is not None and listener.tls.http3


def with_possible_http3(notes: Notes, listener: Listener, builds: Iterable[NodeBuild]) -> Listener:
    """The listener without HTTP/3 unless each node speaks it: clients of one that does may come to another one next."""
    builds = tuple(builds)
    if listener.tls is None or not wants_http3(listener):
        return listener
    lacking = unable(_HTTP3, builds)
    if builds and not lacking:
        return listener
    nodes = f"not on {lacking}" if lacking else "but no node of the fleet has reported one"
    message = f"HTTP/3 needs {_HTTP3.needs} on each node, {nodes}; clients use HTTP/2 meanwhile."
    notes.warn(listener, "http3", message, "tls.http3")
    return replace(listener, tls=replace(listener.tls, http3=False))
