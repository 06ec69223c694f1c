"""Which rules hold for a request, by two maps, so that their number costs a request nothing.

| map | key | value |
|---|---|---|
| `maps/lb-1-rules.map` | route | the id of the rules that hold (`rules-3f2a…`), kept as `txn.rules` |
| `maps/lb-1-values.map` | rules and a key of a block | a text in base64, or the code of a block |

What is a plain text (the value of a header, an origin) is looked up, by one rule for all policies. Other blocks have
rules of their own; their code is the block's letters and a digest of what it says, so equal blocks of many rules are
written once. A request without policies fails the first test of each rule, and a load balancer without policies has no
rules of them.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.compiler.model.fleet import Region
from apps.compiler.model.policy import Rules
from apps.compiler.model.shared import Listener, LoadBalancer, Route
from apps.compiler.policies import followed, rules_followed
from apps.compiler.targets.haproxy import request_log
from apps.compiler.targets.haproxy.policies import (
    bandwidth,
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
from apps.compiler.targets.haproxy.policies.identity import access, authentication, jwt
from apps.compiler.targets.haproxy.policies.lookup import Lookup
from apps.compiler.targets.haproxy.writer import Section

Blocks = Mapping[str, Any]
"""What routes follow of a block, each different one once, by its code."""
Add = Callable[[Section, Listener, Lookup, Blocks], None]
"""Writes the rules of all blocks of one kind."""
AddOne = Callable[[Section, tuple[str, ...], Any], None]
"""Writes the rules of one block; the words (`{ … }`) are the condition under which it holds."""
Path = Callable[[str], str]
"""The path of a map of the load balancer by its name."""


def each(add_one: AddOne) -> Add:
    """Rules of its own for every block that says something else."""

    def add(section: Section, _listener: Listener, lookup: Lookup, blocks: Blocks) -> None:
        for code, said in blocks.items():
            add_one(section, lookup.holds(code), said)

    return add


def nothing(_block: Any) -> Mapping[str, str]:
    """Nothing of it is looked up."""
    return {}


@dataclass(frozen=True, slots=True)
class Block:
    """A block of `Rules`: the letters of its codes, what writes its rules, and what these look up (key → text).

    Blocks of which the same is `written` have one code.
    """

    name: str
    letters: str
    add: Add
    texts: Callable[[Any], Mapping[str, str]] = nothing
    written: Callable[[Any], object] = repr

    def code(self, said: Any) -> str:
        """The name of a block by what is written of it."""
        return self.letters + hashlib.sha256(str(self.written(said)).encode()).hexdigest()[:10]

    def said(self, used: Iterable[Rules]) -> Blocks:
        """What these rules say."""
        values = [value for rules in used if (value := getattr(rules, self.name)) is not None]
        return dict(sorted({self.code(value): value for value in values}.items()))


PAGES_BLOCK = Block("error_pages", "er", each(error_pages.add))
# While a split is decided, before any other block.
SPLIT_BLOCK = Block("split", "sp", each(split.add))
# In the order in which a request meets them.
BLOCKS = (
    PAGES_BLOCK,
    Block("log", "lo", each(request_log.add_policy)),
    Block("access", "ac", each(access.add)),
    Block("cors", "co", cors.add, cors.texts),
    Block("client_limit", client_limit.LETTERS, each(client_limit.add), written=client_limit.what_a_client_is),
    Block("basic_auth", "ba", each(authentication.add_basic)),
    Block("api_keys", "ak", each(authentication.add_api_keys), written=authentication.what_is_written),
    Block("jwt", "jw", each(jwt.add)),
    Block("maintenance", "ma", each(maintenance.add)),
    Block("body", "bo", each(body.add)),
    Block("bandwidth", "bw", bandwidth.add, bandwidth.texts),
    Block("timeouts", "ti", each(forwarding.add_timeouts)),
    Block("retries", "re", each(forwarding.add_retries)),
    Block("security_headers", "se", headers.add_security, headers.texts_of_security),
    Block("response_headers", "rs", headers.add_to_response, headers.texts),
    Block("typed_headers", "th", headers.add_typed),
    Block("request_headers", "rq", headers.add_to_request, headers.texts),
    Block("rewrite", "rw", each(rewrite.add)),
    Block("response_rewrite", "rr", rewrite.add_to_responses),
)
ALL_BLOCKS = (SPLIT_BLOCK, *BLOCKS)


def rules_map(routes: Iterable[Route]) -> dict[str, str]:
    """Of these routes those with rules → the id of the rules."""
    return {route.id: route.rule_set for route in routes if route.rule_set}


def values_map(load_balancer: LoadBalancer) -> dict[str, str]:
    """Everything that is looked up of the rules that any route follows."""
    found: dict[str, str] = {}
    for used in followed(load_balancer):
        for block in ALL_BLOCKS:
            said = getattr(used.rules, block.name)
            if said is not None:
                found[f"{used.id}/{block.letters}"] = block.code(said)
                texts = block.texts(said).items()
                found |= {f"{used.id}/{block.letters}-{key}": _encoded(text) for key, text in texts}
    return found


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def add_lookup_of_rules(section: Section, used: list[Rules], path: Path) -> None:
    """Look up what holds for the route. Nothing where no route has policies."""
    if used:
        section.add("http-request", "set-var(txn.rules)", f"var(txn.route),map_str({path('rules')})")


def add_sides(section: Section, used: list[Rules], path: Path, is_split: tuple[str, ...]) -> None:
    """By what clients stay on their side of a split, once it is known that the action is one."""
    lookup = Lookup(path("values"), SPLIT_BLOCK.letters)
    for code, said in SPLIT_BLOCK.said(used).items():
        split.add(section, (*is_split, *lookup.holds(code)), said)


def add_policies(section: Section, used: list[Rules], own: Region | None, listener: Listener, path: Path) -> None:
    """Write every block that holds for any route."""
    for block in BLOCKS:
        lookup = Lookup(path("values"), block.letters)
        if said := block.said(used):
            block.add(section, listener, lookup, said)
            if block.name == "client_limit":
                client_limit.add_verdict(section, own, used, lookup, path("limits"))


def add_pages(section: Section, used: list[Rules], path: Path) -> None:
    """Pages of errors: the last rules for responses, and the formats of HAProxy's own errors."""
    found = PAGES_BLOCK.said(used)
    for code, said in found.items():
        error_pages.add_to_answers(section, Lookup(path("values"), PAGES_BLOCK.letters).holds(code), said)
    error_pages.add_errors(section, found.values(), path("pages"))


def pages_map(load_balancer: LoadBalancer) -> dict[str, str]:
    """The lines of the pages of HAProxy's own errors."""
    return error_pages.pages_map(PAGES_BLOCK.said(rules_followed(load_balancer)).values())
