"""Which blocks hold for a request: `txn.rules`, a list of codes that a map keeps for each route.

`maps/lb-1-rules.map` says `route-9 |rq3f2a…|co91bc…|`; a code is the block's own and a digest of what it says, so equal
blocks of many policies are written once, and a route that takes one over is a map entry and no reload. A request
without policies passes one test for each rule; without any policy in the load balancer there are no rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apps.compiler.model.fleet import Region
from apps.compiler.model.policy import Rules
from apps.compiler.model.shared import Listener, LoadBalancer
from apps.compiler.targets.haproxy.policies import (
    access,
    body,
    client_limit,
    cors,
    error_pages,
    forwarding,
    headers,
    maintenance,
    rewrite,
    split,
)
from apps.compiler.targets.haproxy.writer import Section

Add = Callable[[Section, Listener, tuple[str, ...], Any], None]
"""Writes the rules of one block; the words (`{ … }`) are the condition under which it holds."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of `Rules`: the letters of its codes, what writes its rules, and what of it is written there."""

    name: str
    letters: str
    add: Add
    written: Callable[[Any], object] = repr


PAGES_BLOCK = Block("error_pages", "er", error_pages.add)
# While a split is decided, before any other block.
SPLIT_BLOCK = Block("split", "sp", split.add)
# In the order in which a request meets them.
BLOCKS = (
    PAGES_BLOCK,
    Block("access", "ac", access.add),
    Block("cors", "co", cors.add),
    Block("client_limit", client_limit.LETTERS, client_limit.add, client_limit.what_a_client_is),
    Block("maintenance", "ma", maintenance.add),
    Block("body", "bo", body.add),
    Block("timeouts", "ti", forwarding.add_timeouts),
    Block("retries", "re", forwarding.add_retries),
    Block("security_headers", "se", headers.add_security),
    Block("request_headers", "rq", headers.add_to_request),
    Block("response_headers", "rs", headers.add_to_response),
    Block("rewrite", "rw", rewrite.add),
)
ALL_BLOCKS = (SPLIT_BLOCK, *BLOCKS)


def rules_map(load_balancer: LoadBalancer) -> dict[str, str]:
    """Route → its codes; routes without rules are left out."""
    codes = {each.id: _codes(each.rules) for each in load_balancer.rule_sets}
    found = {route.id: codes.get(route.rule_set, "") for route in load_balancer.routes}
    return {route: value for route, value in found.items() if value}


def _codes(rules: Rules) -> str:
    found = [_code(block, said) for block in ALL_BLOCKS if (said := getattr(rules, block.name)) is not None]
    return f"|{'|'.join(found)}|" if found else ""


def _code(block: Block, said: Any) -> str:
    return block.letters + hashlib.sha256(str(block.written(said)).encode()).hexdigest()[:10]


def used_rules(load_balancer: LoadBalancer) -> list[Rules]:
    """The rules that hold for any of its routes."""
    wanted = {route.rule_set for route in load_balancer.routes}
    return [each.rules for each in load_balancer.rule_sets if each.id in wanted]


def add_lookup_of_rules(section: Section, used: list[Rules], path: str) -> None:
    """Look up what holds for the route; `path` is that of the map. Nothing where no route has policies."""
    if used:
        section.add("http-request", "set-var(txn.rules)", f"var(txn.route),map_str({path})")


def add_sides(section: Section, used: list[Rules], listener: Listener, is_split: tuple[str, ...]) -> None:
    """By what clients stay on their side of a split, once it is known that the action is one."""
    for code, said in _said(used, SPLIT_BLOCK):
        SPLIT_BLOCK.add(section, listener, (*is_split, *_holds(code)), said)


def add_policies(
    section: Section,
    used: list[Rules],
    own: Region | None,
    load_balancer: LoadBalancer,
    listener: Listener,
    path: Callable[[str], str],
) -> None:
    """Write every block that holds for any route; `path` is that of a map."""
    for block in BLOCKS if used else ():
        for code, said in _said(used, block):
            block.add(section, listener, _holds(code), said)
        if block.name == "client_limit":
            client_limit.add_verdict(section, own, load_balancer, path("limits"))


def add_pages(section: Section, used: list[Rules], path: str) -> None:
    """Pages of errors: the last rules for responses, and the formats of HAProxy's own errors."""
    found = _said(used, PAGES_BLOCK)
    for code, said in found:
        error_pages.add_to_answers(section, _holds(code), said)
    error_pages.add_errors(section, [said for _, said in found], path)


def pages_map(load_balancer: LoadBalancer) -> dict[str, str]:
    """The lines of the pages of HAProxy's own errors."""
    if not load_balancer.rule_sets:
        return {}
    return error_pages.pages_map([said for _, said in _said(used_rules(load_balancer), PAGES_BLOCK)])


def _holds(code: str) -> tuple[str, ...]:
    return ("{", "var(txn.rules)", "-m", "sub", f"|{code}|", "}")


def _said(used: list[Rules], block: Block) -> list[tuple[str, Any]]:
    """What routes follow of a block, each different one once, by its code."""
    values = [value for rules in used if (value := getattr(rules, block.name)) is not None]
    return sorted({_code(block, value): value for value in values}.items(), key=lambda each: each[0])
