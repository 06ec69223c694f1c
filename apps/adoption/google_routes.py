"""Host rules and path matchers of a URL map as routes.

1. Every host gets the rules of its path matcher; path rules are put in the order of their length first.
2. Rules that the matcher of an exact host has in common with that of its wildcard, at its end, are the wildcard's:
   routes of ours fall through to it by themselves.
3. The matcher's default is a route for all paths where something else would take what it took.
4. Where our order puts a later rule first, the report says so; one that was never reached is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apps.adoption.candidates import Candidate, Unsaid, route_of
from apps.adoption.contract import Report, Wish
from apps.adoption.google_pools import Pools
from apps.adoption.google_rules import (
    MIRROR,
    Part,
    action_of,
    candidates_of,
    covers,
    field_of,
    lost_by,
    mirror_of,
    parts_of,
)
from apps.adoption.naming import Names
from apps.adoption.ranking import overlap, rank, shadows
from apps.compiler.grammar import GrammarError, hostname

Block = Mapping[str, Any]
NOT_FOUND: tuple[Any, ...] = ("status", 404)


class Routes:
    """The routes of one URL map as documents."""

    def __init__(self, url_map: Block, wish: Wish, pools: Pools, names: Names, report: Report) -> None:
        self._map, self._wish, self._pools, self._names, self._report = url_map, wish, pools, names, report
        self._matchers = {each["name"]: each for each in url_map.get("pathMatchers", ())}
        self.documents: list[dict[str, Any]] = []

    def adopt(self) -> None:
        """Write the documents of all hosts."""
        self._tell_lost(f"URL map {self._map.get('name')}", self._map, "default")
        if self._map and not _is_of_listener(_default_of(self._map)):
            reason = (
                "It answers every host without a rule, but routes need a hostname. Use the default pool of a listener."
            )
            self._report.left_out(f"URL map {self._map.get('name')}, default", reason)
        matcher_of: dict[str, Block] = {}
        for rule in self._map.get("hostRules", ()):
            for host in rule.get("hosts", ()):
                if self._is_host(host):
                    matcher_of[host] = self._matchers[rule["pathMatcher"]]
        parts = {host: self._parts(host, matcher) for host, matcher in matcher_of.items()}
        for host, matcher in matcher_of.items():
            self._adopt_host(host, matcher, parts[host], parts.get(_wildcard(host)))

    def _is_host(self, host: str) -> bool:
        where = f"host {host}"
        try:
            hostname(host)
        except GrammarError as error:
            what = "Routes need a host name." if host == "*" else error.message
            self._report.left_out(where, f"{what} Its rules could not be imported.")
            return False
        if host.startswith("*."):
            self._report.lossy(where, "A wildcard matches exactly one label; deeper hosts need their own wildcard.")
        return True

    def _parts(self, host: str, matcher: Block) -> list[Part]:
        """What the rules of a matcher take, first come first."""
        found: list[Part] = []
        for label, rule in _rules(matcher):
            where = f"host {host}, {label}"
            try:
                found += parts_of(rule, action_of(rule))
            except Unsaid as unsaid:
                self._report.left_out(where, unsaid.reason)
                continue
            self._tell_lost(where, rule)
        self._tell_lost(f"host {host}, default", matcher, "default")
        return found

    def _tell_lost(self, where: str, rule: Block, word: str = "") -> None:
        """What a rule, or a matcher by default, did besides."""
        kept = MIRROR if not word and mirror_of(rule) else ""
        for loss in lost_by(rule.get(field_of(word, "routeAction")) or {}, kept=kept):
            self._report.lossy(where, loss)
        if rule.get("headerAction"):
            self._report.lossy(where, "Headers are not changed.")
        if rule.get(field_of(word, "customErrorResponsePolicy")):
            self._report.lossy(
                where, "Clients see errors of servers unchanged, without error pages of the load balancer."
            )

    def _adopt_host(self, host: str, matcher: Block, parts: list[Part], over: list[Part] | None) -> None:
        candidates = self._candidates(host, _without_tail(parts, over or []))
        default = self._default(host, matcher, parts, over or [])
        if default is not None:
            candidates.append(default)
        for candidate in self._reached(host, candidates, default):
            self._write(host, candidate)

    def _candidates(self, host: str, parts: list[Part]) -> list[Candidate]:
        try:
            return candidates_of(parts)
        except Unsaid:
            return [found for part in parts for found in self._alone(host, part)]

    def _alone(self, host: str, part: Part) -> list[Candidate]:
        try:
            return candidates_of([part])
        except Unsaid as unsaid:
            self._report.left_out(f"host {host}, path {part.path}", unsaid.reason)
            return []

    def _default(self, host: str, matcher: Block, parts: list[Part], over: list[Part]) -> Candidate | None:
        """The route for all that the rules leave, None where the load balancer does the same without one."""
        try:
            action = action_of(matcher, "default")
        except Unsaid as unsaid:
            self._report.left_out(f"host {host}, default", unsaid.reason)
            return None
        own = set(parts)
        falls_through = any(part not in own and not any(covers(each, part) for each in parts) for part in over)
        if action == _default_of(self._map) and _is_of_listener(action) and not falls_through:
            return None
        return Candidate("/", False, (), (), action, None)

    def _reached(self, host: str, candidates: list[Candidate], default: Candidate | None) -> list[Candidate]:
        """Those that take a request at all; where our precedence asks in another order, the report says so."""
        found: list[Candidate] = []
        for later in candidates:
            where = f"host {host}, path {later.path}"
            if any(shadows(earlier, later) for earlier in found):
                if later is not default:
                    self._report.left_out(where, "A rule before it takes all of its requests, so it never matched.")
                continue
            for earlier in found:
                if rank(later) < rank(earlier) and overlap(earlier, later):
                    self._report.lossy(
                        where,
                        f"It comes before the rule for {earlier.path} in Spillway, and came after it in the cloud.",
                    )
            found.append(later)
        return found

    def _write(self, host: str, candidate: Candidate) -> None:
        where = f"host {host}, path {candidate.path}"
        action = self._action(candidate.action)
        if action is None:
            self._report.left_out(where, "Its backend service could not be imported.")
            return
        name = self._names.of(host.replace("*", "any"), candidate.path)
        spec = route_of(self._wish, host, candidate, action)
        if candidate.rewrite is not None:
            spec["prefix_rewrite"] = candidate.rewrite
        if candidate.mirror is not None:
            spec |= self._mirror(where, candidate.mirror, action)
        if candidate.loss:
            self._report.lossy(where, candidate.loss, "Route", name)
        else:
            self._report.mapped(where, "Route", name)
        self.documents.append({"kind": "Route", "name": name, "account": self._wish.account, "spec": spec})

    def _mirror(self, where: str, service: str, action: dict[str, Any]) -> dict[str, Any]:
        """The pool that gets copies, where it is another than those of the route."""
        name, shares = self._pools.name_of(service), action.get("pools", ())
        if name is None or not shares or name in {share["pool"] for share in shares}:
            self._report.lossy(where, "Requests are not mirrored.")
            return {}
        return {"mirror": name}

    def _action(self, action: tuple[Any, ...]) -> dict[str, Any] | None:
        kind, *words = action
        if kind == "redirect":
            return {"redirect": dict(words)}
        if kind == "status":
            return {"fixed_response": {"status": words[0]}}
        names = [(self._pools.name_of(service), weight) for service, weight in words]
        if any(name is None for name, _ in names):
            return None
        return {"pools": [{"pool": name, "weight": weight} for name, weight in names]}


def _default_of(url_map: Block) -> tuple[Any, ...]:
    try:
        return action_of(url_map, "default")
    except Unsaid:
        return ()


def _wildcard(host: str) -> str:
    return "" if host.startswith("*.") else "*." + host.partition(".")[2]


def _rules(matcher: Block) -> list[tuple[str, Block]]:
    """Route rules by their priority, or path rules as such: longest path first, `/a/*` is what begins with `/a/`."""
    if matcher.get("routeRules"):
        ordered = sorted(matcher["routeRules"], key=lambda rule: int(rule.get("priority", 0)))
        return [(f"route rule {rule.get('priority', 0)}", rule) for rule in ordered]
    pairs = [(path, rule) for rule in matcher.get("pathRules", ()) for path in rule.get("paths", ())]
    pairs.sort(key=lambda pair: (-len(pair[0].rstrip("*")), pair[0].endswith("*")))
    return [(f"path rule {path}", {**rule, "matchRules": [_match(path)]}) for path, rule in pairs]


def _match(path: str) -> Block:
    return {"prefixMatch": path.removesuffix("*")} if path.endswith("*") else {"fullPathMatch": path}


def _without_tail(parts: list[Part], over: Sequence[Part]) -> list[Part]:
    """The parts without those at the end that the wildcard has too."""
    known, end = set(over), len(parts)
    while end and parts[end - 1] in known:
        end -= 1
    return parts[:end]


def _is_of_listener(action: tuple[Any, ...]) -> bool:
    """Whether a listener does it with requests that have no route: its default pool takes them, or 404 answers."""
    return action == NOT_FOUND or (action[:1] == ("pools",) and len(action) == 2)
