"""Which blocks hold for a request: `txn.rules`, a list of codes that a map keeps for each route.

`maps/lb-1-rules.map` says `route-9 |rq3f2a…|co91bc…|`; a code is the block's own and a digest of what it says, so equal
blocks of many policies are written once, and a route that takes one over is a map entry and no reload. A request
without policies passes one test for each rule; without any policy in the load balancer there are no rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apps.compiler.model.fleet import Region
from apps.compiler.model.policy import Rules
from apps.compiler.model.shared import Listener, LoadBalancer
from apps.compiler.targets.haproxy.policies import access, client_limit, cors, headers, maintenance, rewrite
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


# In the order in which a request meets them.
BLOCKS = (
    Block("access", "ac", access.add),
    Block("cors", "co", cors.add),
    Block("client_limit", client_limit.LETTERS, client_limit.add, client_limit.what_a_client_is),
    Block("maintenance", "ma", maintenance.add),
    Block("security_headers", "se", headers.add_security),
    Block("request_headers", "rq", headers.add_to_request),
    Block("response_headers", "rs", headers.add_to_response),
    Block("rewrite", "rw", rewrite.add),
)


def rules_map(load_balancer: LoadBalancer) -> dict[str, str]:
    """Route → its codes; routes without rules are left out."""
    codes = {each.id: _codes(each.rules) for each in load_balancer.rule_sets}
    found = {route.id: codes.get(route.rule_set, "") for route in load_balancer.routes}
    return {route: value for route, value in found.items() if value}


def _codes(rules: Rules) -> str:
    found = [_code(block, said) for block in BLOCKS if (said := getattr(rules, block.name)) is not None]
    return f"|{'|'.join(found)}|" if found else ""


def _code(block: Block, said: Any) -> str:
    return block.letters + hashlib.sha256(str(block.written(said)).encode()).hexdigest()[:10]


def add_policies(
    section: Section, own: Region | None, load_balancer: LoadBalancer, listener: Listener, path: Callable[[str], str]
) -> None:
    """Look up what holds for the route, then write every block that holds for any; `path` is that of a map."""
    used = _used(load_balancer)
    if not used:
        return
    section.add("http-request", "set-var(txn.rules)", f"var(txn.route),map_str({path('rules')})")
    for block, said in _by_block(used):
        for code, value in sorted(said.items()):
            block.add(section, listener, ("{", "var(txn.rules)", "-m", "sub", f"|{code}|", "}"), value)
        if block.name == "client_limit":
            client_limit.add_verdict(section, own, load_balancer, path("limits"))


def _used(load_balancer: LoadBalancer) -> list[Rules]:
    wanted = {route.rule_set for route in load_balancer.routes}
    return [each.rules for each in load_balancer.rule_sets if each.id in wanted]


def _by_block(used: list[Rules]) -> Iterator[tuple[Block, Mapping[str, Any]]]:
    for block in BLOCKS:
        said = [value for rules in used if (value := getattr(rules, block.name)) is not None]
        yield block, {_code(block, value): value for value in said}
