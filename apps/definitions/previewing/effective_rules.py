"""Which rules hold for a route, setting by setting, and whose they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from apps.compiler.grammars.request_log import ERRORS, NONE, SAMPLED
from apps.compiler.policies import Layer, effective, sources
from apps.definitions.freezing.frozen_policies import OWN, Holder, Policies, frozen_rules
from apps.definitions.models import Policy, Route
from apps.definitions.shapes.base.fields import Field, fields_of
from apps.definitions.shapes.base.shape import Shape
from apps.definitions.shapes.base.words import as_texts
from apps.definitions.shapes.traffic.policy import Rules
from apps.fleet.models import Region

# Fields of names with secrets, and of names of lists and regions.
HIDDEN = frozenset({"users", "keys"})
NAMED = frozenset({"allow", "deny", "order"})
_PARTLY = {
    ERRORS: "Only errors among its requests are logged",
    SAMPLED: "Only a sample of its requests is logged",
    NONE: "None of its requests is logged",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its block and name for people, its value as text, and who says it (a policy, or the route)."""

    block: str
    name: str
    value: str
    source: str


def settings_of_policy(row: Policy) -> list[Setting]:
    """Everything that a stored policy says. Raises ValueError where it cannot be read."""
    return _settings(frozen_rules(json.dumps(row.rules, sort_keys=True)), lambda _block, _field: row.name)


def settings_of_route(row: Route) -> list[Setting]:
    """Everything that holds for a stored route. Raises ValueError where stored rules cannot be read."""
    policies = Policies(Route.objects.filter(pk=row.pk))
    text = json.dumps(row.rules, sort_keys=True) if row.rules else ""
    holder = Holder(row.load_balancer_id, row.account_id, row.hostname.name, policies.links[row.pk], text)
    layers = policies.layers(holder)
    rules, said = effective(layers), sources(layers)
    return _settings(rules, lambda block, field: said[block, field], policies.names_in(rules))


def deciders(routes: QuerySet[Route]) -> dict[tuple[int, str], str]:
    """Who says each block of the rules of routes: (9, `access`) → a policy or the route, of several the nearest.

    Routes whose stored rules cannot be read are left out.
    """
    return {(pk, block): source for pk, layers in _layers_of(routes) for block, source in _nearest(layers).items()}


def maintained(routes: QuerySet[Route]) -> dict[int, str]:
    """Routes that show a maintenance page now, with who says so: a policy or the route."""
    return {
        pk: sources(layers)["maintenance", "enabled"]
        for pk, layers in _layers_of(routes)
        if (page := effective(layers).maintenance) and page.enabled
    }


def partly_logged(routes: QuerySet[Route]) -> dict[int, str]:
    """Why the request log has not all requests of these routes: `Only errors among … (policy web)`; else left out."""
    found = {}
    for pk, layers in _layers_of(routes):
        log = effective(layers).log
        if log and log.requests in _PARTLY:
            source = sources(layers)["log", "requests"]
            found[pk] = f"{_PARTLY[log.requests]} ({'its own rules' if source == OWN else f'policy {source}'})"
    return found


def own_overflow(routes: QuerySet[Route]) -> list[tuple[int, str, str]]:
    """Routes that say themselves where their overflow goes: id, name, and where, in words."""
    overflows = {pk: said for pk, layers in _layers_of(routes) if (said := effective(layers).overflow)}
    names = dict(routes.filter(pk__in=overflows).values_list("pk", "name")) if overflows else {}
    found = []
    for pk, said in overflows.items():
        if pk in names:
            regions = {f"rgn-{key}": name for key, name in Region.objects.values_list("pk", "name")}
            order = " → ".join(regions.get(each, each) for each in said.order or ())
            known = {"never": "nowhere", "listed": f"{order}, nowhere else"}
            found.append((pk, names[pk], known.get(said.mode or "", f"{order} first" if order else "as the pool says")))
    return found


def _layers_of(routes: QuerySet[Route]) -> Iterator[tuple[int, list[Layer]]]:
    """Who says something of each route, nearest first; routes whose stored rules cannot be read are left out."""
    policies = Policies(routes)
    columns = ("pk", "load_balancer_id", "account_id", "hostname__name", "rules")
    for pk, front, account, hostname, rules in routes.values_list(*columns).iterator():
        if policies or rules:
            text = json.dumps(rules, sort_keys=True) if rules else ""
            with suppress(ValueError):
                yield pk, policies.layers(Holder(front, account, hostname, policies.links[pk], text))


def _nearest(layers: Sequence[Layer]) -> dict[str, str]:
    """Block → who says it; what is nearer comes later and wins."""
    blocks = [block.name for block in fields_of(Rules)]
    return {
        block: each.source for each in reversed(layers) for block in blocks if getattr(each.rules, block) is not None
    }


def _settings(
    rules: object, source: Callable[[str, str], str], names: Mapping[str, str] | None = None
) -> list[Setting]:
    found = []
    for block in fields_of(Rules):
        values = getattr(rules, block.name)
        shape: type[Shape] | None = block.child
        if values is None or shape is None:
            continue
        for field in fields_of(shape):
            value = getattr(values, field.name, None)  # what nodes do not know is no field there
            if value is not None:
                labels = (field.grammar.labels or {}) if field.grammar else {}
                text = _text(labels.get(value, value) if isinstance(value, str) else _shown(value, field, names or {}))
                found.append(Setting(block.about.label, field.about.label, text, source(block.name, field.name)))
    return found


def _shown(value: Any, field: Field, names: Mapping[str, str]) -> object:
    """Lists and regions by their names, secrets and keys by theirs alone."""
    if field.child and field.many:
        return tuple(f"{each.algorithm} {each.kid}".strip() for each in value)
    if field.name in HIDDEN and value and isinstance(value[0], tuple):
        return tuple(name for name, _ in value)
    return tuple(names.get(each, each) for each in value) if field.name in NAMED else value


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        pairs = value and isinstance(value[0], tuple)
        return ", ".join(as_texts(dict(value)) if pairs else map(str, value)) or "none"
    return str(value)
