"""Policies as the compiler reads them: which rules hold for each route, merged once for all routes alike."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from apps.compiler.model import policy as model
from apps.compiler.model.access import Access
from apps.compiler.model.authentication import ApiKeys
from apps.compiler.policies import NOTHING, Layer, effective, rule_set
from apps.core.errors import FieldError
from apps.definitions.freezing.frozen_keys import KeySets
from apps.definitions.freezing.frozen_lists import NetworkLists
from apps.definitions.models import Policy, Route, RoutePolicy
from apps.definitions.shapes.base.reading import read
from apps.definitions.shapes.traffic.policy import Rules
from apps.fleet.models import Region

OWN = "this route"


class Holder(NamedTuple):
    """What decides which policies hold for a route: routes with equal ones have equal rules."""

    load_balancer: int
    account: int
    hostname: str
    policies: tuple[int, ...]
    rules: str


@lru_cache(maxsize=4096)
def frozen_rules(text: str) -> model.Rules:
    """Stored rules. Raises ValueError where they say nothing that could be meant."""
    errors: list[FieldError] = []
    found = read(Rules, json.loads(text), "", errors)
    if found is None:
        raise ValueError(errors[0].detail)
    return found


def with_id(rules: model.Rules, name: str = "") -> model.Rules:
    """Keys under the id of whoever says them, so that a change is one of their map; of a route, by what they are."""
    said = rules.api_keys
    if said is None or said.keys is None:
        return replace(rules, api_keys=ApiKeys(None, said.header, said.name_header)) if said else rules
    own = f"keys-r{hashlib.sha256(repr(said.keys).encode()).hexdigest()[:18]}"
    return replace(rules, api_keys=ApiKeys(said.keys, said.header, said.name_header, name or own))


class Policies:
    """The policies that hold for some routes, looked up once: three queries, however many routes there are.

    `links` has the policies (ids) that a route names, nearest first; `rule_sets` those that were made so far, by id.
    """

    def __init__(self, routes: QuerySet[Route]) -> None:
        self.links: dict[int, tuple[int, ...]] = defaultdict(tuple)
        self.rule_sets: dict[str, model.RuleSet] = {}
        self.lists = NetworkLists()
        self._key_sets = KeySets()
        self._by_id: dict[int, Policy] = {}
        self._of_account: dict[int, list[Policy]] = defaultdict(list)
        self._of_front: dict[int, list[Policy]] = defaultdict(list)
        self._layers: dict[int, Layer] = {}
        self._found: dict[tuple[int, str, tuple[int, ...]], str] = {}
        rows = list(_policies(routes))
        for route, policy in _links(routes) if rows else ():
            self.links[route] += (policy,)
        for row in rows:
            self._by_id[row.pk] = row
            self._of_account[row.account_id].append(row)
            for front in row.load_balancers.all():
                self._of_front[front.pk].append(row)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._by_id)

    def rule_set_of(self, holder: Holder) -> str:
        """The id of the rules that hold for routes like this one, empty for none. Raises ValueError."""
        rows = self._rows(holder)
        # Many hostnames follow the same policies: what counts is which ones, and what the route says itself.
        said = (holder.account, holder.rules, tuple(row.pk for row in rows))
        if said not in self._found:
            rules = effective(self._layered(holder, rows))
            made = rule_set(rules)
            self.rule_sets[made.id] = made
            self._found[said] = made.id if rules != NOTHING else ""
        return self._found[said]

    def layers(self, holder: Holder) -> list[Layer]:
        """Who says something, nearest first: the route, its policies, its hostname, its account, its load balancer.

        Of several defaults of the same reach the oldest is nearest.
        """
        return self._layered(holder, self._rows(holder))

    def _layered(self, holder: Holder, rows: Iterable[Policy]) -> list[Layer]:
        own = []
        if holder.rules not in ("", "null"):
            own = [Layer(OWN, with_id(self._resolved(holder.rules, holder.account)))]
        return [*own, *(self._layer(row) for row in rows)]

    def _rows(self, holder: Holder) -> list[Policy]:
        """The policies that hold, nearest first."""
        of_account = self._of_account.get(holder.account, [])
        of_hostname = [row for row in of_account if holder.hostname in row.hostnames]
        of_all = [row for row in of_account if row.whole_account]
        of_front = self._of_front.get(holder.load_balancer, [])
        named = [self._by_id[pk] for pk in holder.policies]
        return list(dict.fromkeys([*named, *of_hostname, *of_all, *of_front]))

    def _layer(self, row: Policy) -> Layer:
        if row.pk not in self._layers:
            rules = self._resolved(json.dumps(row.rules, sort_keys=True), row.account_id)
            self._layers[row.pk] = Layer(row.name, with_id(rules, f"keys-{row.pk}"))
        return self._layers[row.pk]

    def _resolved(self, text: str, account: int) -> model.Rules:
        """Stored rules of an account with what they name: its lists of networks, its key sets, regions."""
        found = frozen_rules(text)
        if found.access is not None:
            access = Access(found.access.allow, found.access.deny, found.access.status)
            found = replace(found, access=self.lists.resolved(access, account))
        found = self._key_sets.resolved(found, account)
        said = found.overflow
        if said is None or said.order is None:
            return found
        known = tuple(self._regions[name] for name in said.order if name in self._regions)
        return replace(found, overflow=model.Overflow(said.mode, known))

    @cached_property
    def _regions(self) -> dict[str, str]:
        return {name: f"rgn-{pk}" for pk, name in Region.objects.values_list("pk", "name")}

    def names_in(self, rules: model.Rules) -> dict[str, str]:
        """Ids in these rules → what people call them."""
        regions = {found: name for name, found in self._regions.items()} if rules.overflow else {}
        return (self.lists.names if rules.access else {}) | regions


def _links(routes: QuerySet[Route]) -> Iterable[tuple[int, int]]:
    rows: Any = RoutePolicy.objects.filter(route__in=routes.order_by()).order_by("id")
    found: Iterable[tuple[int, int]] = rows.values_list("route_id", "policy_id")
    return found


def _policies(routes: QuerySet[Route]) -> QuerySet[Policy]:
    """Policies that the routes name, and those that are defaults of theirs; oldest first."""
    own = Q(account__in=routes.order_by().values("account")) & (Q(whole_account=True) | ~Q(hostnames=[]))
    named = Q(pk__in=RoutePolicy.objects.filter(route__in=routes.order_by()).values("policy"))
    of_fronts = Q(load_balancers__in=routes.order_by().values("load_balancer"))
    return Policy.objects.filter(own | named | of_fronts).distinct().prefetch_related("load_balancers").order_by("id")
