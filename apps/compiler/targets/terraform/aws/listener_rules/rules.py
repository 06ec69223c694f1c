"""The rules of a listener for AWS: routes in our precedence, actions, and what no route takes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.compiler.model.shared import Balance, FixedResponse, Listener, LoadBalancer, Protocol, Redirect, Route
from apps.compiler.model.stack import CloudPool
from apps.compiler.routing import NO_ROUTE, as_served_by
from apps.compiler.targets.terraform.aws.groups import STICKY_S, Groups
from apps.compiler.targets.terraform.aws.listener_rules.patterns import Condition, beyond, conditions_of
from apps.compiler.targets.terraform.aws.listener_rules.priorities import (
    Position,
    allot,
    position_of,
    position_of_guard,
)
from apps.compiler.targets.terraform.aws.listener_rules.shares import (
    Share,
    fitting,
    shares_of_pool,
    shares_of_route,
    weights_of,
)
from apps.compiler.targets.terraform.aws.naming import tags
from apps.compiler.targets.terraform.draft import Draft, Resource
from apps.compiler.targets.terraform.expressions import literal, resource_name

_DEFAULT_PORTS = {"HTTP": "80", "HTTPS": "443"}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule before it has a number; the guard of a wildcard has no route."""

    position: Position
    name: str
    owner: str
    account: str
    conditions: list[Condition]
    route: Route | None = None


def rules_of(load_balancer: LoadBalancer, protocol: Protocol) -> list[Rule]:
    """The rules that every listener of this protocol gets, in their order."""
    routes = as_served_by(load_balancer, protocol).routes
    found = [*_routes(routes), *_guards(load_balancer, routes)]
    return sorted(found, key=lambda rule: rule.position)


def add_rules(
    draft: Draft,
    groups: Groups,
    pools: Mapping[str, CloudPool],
    load_balancer: LoadBalancer,
    rules: Sequence[Rule],
    listener: Listener,
    standing: Resource,
) -> None:
    """The rules (`rules_of`) of one listener, `standing` its resource."""
    actions = _Actions(groups, pools, load_balancer, listener)
    for rule, priority in zip(rules, allot([rule.position for rule in rules]), strict=True):
        body = {
            "listener_arn": standing["arn"],
            "priority": priority,
            "action": [actions.of_route(rule.route) if rule.route else actions.without_route()],
            "condition": rule.conditions,
            "tags": tags(rule.owner, rule.account),
        }
        draft.add("aws_lb_listener_rule", resource_name(listener.id, rule.name), rule.owner, body)


def default_action(
    groups: Groups, pools: Mapping[str, CloudPool], load_balancer: LoadBalancer, listener: Listener
) -> dict[str, Any]:
    """What happens to requests that no route takes: the default pool, or 404."""
    return _Actions(groups, pools, load_balancer, listener).without_route()


def _routes(routes: Sequence[Route]) -> Iterator[Rule]:
    for route in routes:
        for number, conditions in enumerate(conditions_of(route)):
            name = route.id if number == 0 else f"{route.id}-{number + 1}"
            yield Rule(position_of(route, number), name, route.id, route.account, conditions, route)


def _guards(load_balancer: LoadBalancer, routes: Sequence[Route]) -> Iterator[Rule]:
    """Our wildcards stand for one label, ALB's `*` for any: what it would take beyond is sent where nothing matched."""
    for wildcard in sorted({route.hostname for route in routes if route.hostname.startswith("*.")}):
        name = "beyond-" + hashlib.sha256(wildcard.encode()).hexdigest()[:12]
        position = position_of_guard(wildcard)
        yield Rule(position, name, load_balancer.id, load_balancer.account, beyond(wildcard))


@dataclass(frozen=True, slots=True)
class _Actions:
    """The actions of one listener's rules."""

    groups: Groups
    pools: Mapping[str, CloudPool]
    load_balancer: LoadBalancer
    listener: Listener

    def of_route(self, route: Route) -> dict[str, Any]:
        if route.redirect is not None:
            return _redirect(route.redirect)
        if route.fixed_response is not None:
            return _fixed_response(route.fixed_response)
        return self._forward(shares_of_route(route, self.pools))

    def without_route(self) -> dict[str, Any]:
        pool = self.pools.get(self.listener.default_pool_id or "")
        if pool is None:
            return _fixed_response(FixedResponse(404, body=NO_ROUTE))
        return self._forward(shares_of_pool(pool))

    def _forward(self, shares: Sequence[Share]) -> dict[str, Any]:
        """A pool without any backend answers 503, as on a fleet."""
        fit = fitting(shares)
        groups = [self.groups.group(each.pool, each.backend, self.load_balancer.id)["arn"] for each in fit]
        if not groups:
            return _fixed_response(FixedResponse(503))
        if len(groups) == 1:
            return {"type": "forward", "target_group_arn": groups[0]}
        weights = weights_of([share.part for share in fit])
        targets = [{"arn": group, "weight": weight} for group, weight in zip(groups, weights, strict=True)]
        forward: dict[str, Any] = {"target_group": targets}
        if any(each.pool.balance is Balance.SOURCE for each in fit):
            # AWS refuses a rule whose groups are sticky while the choice among them is not.
            forward["stickiness"] = [{"enabled": True, "duration": STICKY_S}]
        return {"type": "forward", "forward": [forward]}


def _redirect(redirect: Redirect) -> dict[str, Any]:
    """A change of the scheme drops the port, which belonged to the old one. Only routes of `/` have a prefix here."""
    port = str(redirect.port) if redirect.port else _DEFAULT_PORTS.get((redirect.scheme or "").upper(), "#{port}")
    path = "/#{path}" if redirect.prefix is None else literal(redirect.prefix.rstrip("/")) + "/#{path}"
    queries = ("#{query}" if redirect.keep_query else "", literal(redirect.query or ""))
    target = {
        "status_code": f"HTTP_{redirect.code}",
        "protocol": redirect.scheme.upper() if redirect.scheme else "#{protocol}",
        "host": redirect.host or "#{host}",
        "port": port,
        "path": literal(redirect.path) if redirect.path else path,
        "query": "&".join(filter(None, queries)),
    }
    return {"type": "redirect", "redirect": [target]}


def _fixed_response(response: FixedResponse) -> dict[str, Any]:
    """The parameter of the content type goes without saying: ALB answers in UTF-8."""
    answer = {"status_code": str(response.status), "content_type": response.content_type.partition(";")[0]}
    if response.body:
        answer["message_body"] = literal(response.body)
    else:
        answer["content_type"] = "text/plain"
    return {"type": "fixed-response", "fixed_response": [answer]}
