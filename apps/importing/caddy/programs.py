"""The routes of a server as a list of rules: handlers one after the other, until one of them answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.importing.caddy.context import Caddy
from apps.importing.caddy.handlers.access import basic_auth, body_limit
from apps.importing.caddy.handlers.answers import EMPTY, answer, refusal
from apps.importing.caddy.handlers.headers import header_changes
from apps.importing.caddy.handlers.proxying import asks_somebody, passed
from apps.importing.caddy.handlers.rewriting import rewritten
from apps.importing.caddy.matchers import condition_of
from apps.importing.logic.certainty import surely
from apps.importing.logic.decisions import Effect, Rule, fixed
from apps.importing.logic.formulas import Formula, all_of, any_of, negated
from apps.importing.nginx.rules.access import AS_WRITTEN
from apps.importing.values import moves
from apps.importing.values.fields import listed, mapping
from apps.importing.values.moves import Move
from apps.importing.values.parsing import Path
from apps.importing.verdicts import Verdict

DEEPEST = 20
NO_FILES = "Nodes serve no files, so clients get 404 here; put a server behind that has them."
NOT_FOUND = fixed(404, "No server is there for this request.\n")
NOT_DONE = "Nodes have no such handler."
OF_NODES = {
    "encode": "", "log_append": "Every request is logged as it is.", "vars": "Nodes serve no files.",
    "tracing": "Set tracing of the listener.", "log_name": "Every request is logged.",
}  # fmt: skip
ABOVE = "Routes above answer every request before this one."
ANSWERING = frozenset({"error", "file_server", "reverse_proxy", "static_response"})
NEVER = "Its condition cannot be asked, so this never holds."
OWN_PAGES = "Nodes have pages of their own for errors; write one into error_pages of a policy."


@dataclass(slots=True)
class Flow:
    """What a request meets: how its path is moved, and whether it is answered in every case."""

    moves: list[Move] = field(default_factory=list)
    ends: bool = False


@dataclass(slots=True)
class Programs:
    """Reads routes into rules; `named` are the routes of a server that handlers name."""

    caddy: Caddy
    named: Path
    rules: list[Rule] = field(default_factory=list)

    def routes(self, path: Path, guard: Formula, before: list[Move], depth: int = 0) -> Flow:
        """Reads a list of routes; what stands behind one that answers every request is dead."""
        groups: dict[str, Formula] = {}
        found = Flow()
        for at, route in self.caddy.fields.each(*path):
            if found.ends:
                self.caddy.fields.dead(at, ABOVE)
                continue
            asked = self._asked(at, [*before, *found.moves])
            group = str(route.get("group") or "")
            if group:
                self.caddy.fields.mapped((*at, "group"))
                earlier = groups.get(group, False)
                groups[group] = any_of([earlier, asked])
                asked = all_of([negated(earlier), asked])
            one = self._route(at, route, guard, asked, [*before, *found.moves], depth)
            if not one.ends:
                found.moves += [each.within(asked) for each in one.moves]
            found.ends = one.ends and asked is True
        return found

    def emit(self, path: Path, condition: Formula, effects: Iterable[Effect]) -> None:
        """Rules of the effects, as far as their condition is certain."""
        sure, _ = surely(condition)
        if sure is not False:
            self.rules += [Rule(self.caddy.line(path), sure, effect) for effect in effects]

    def _asked(self, at: Path, made: list[Move]) -> Formula:
        questions = self.caddy.context.questions
        sure, unknown = surely(moves.before(condition_of(self.caddy, (*at, "match")), made, questions))
        for why in unknown if sure is False else ():  # else who changed the path has said it
            self.caddy.fields.impossible((*at, "match"), f"This cannot be asked: {why}.")
        return sure

    def _route(
        self, at: Path, route: Mapping[str, Any], guard: Formula, asked: Formula, before: list[Move], depth: int
    ) -> Flow:
        now, found = all_of([guard, asked]), Flow()
        if now is False:
            self._never(at, route)
            return found
        for path, handler in self.caddy.fields.each(*at, "handle"):
            if found.ends:
                self.caddy.fields.dead(path, ABOVE)
                continue
            one = self._handler(path, str(handler.get("handler")), now, [*before, *found.moves], depth)
            found = Flow([*found.moves, *one.moves], one.ends)
        if refuses(route):
            for name in ("path", "path_regexp"):
                for matchers, _ in self.caddy.fields.each(*at, "match"):
                    self.caddy.fields.differs((*matchers, name), AS_WRITTEN)
        if route.get("terminal"):
            self.caddy.fields.mapped((*at, "terminal"))
            self.emit((*at, "terminal"), now, [EMPTY])
            found.ends = True
        return found

    def _never(self, at: Path, route: Mapping[str, Any]) -> None:
        """Nothing of it holds for any request."""
        lost = any(
            self.caddy.ledger.verdict_of(line) is Verdict.NOT_POSSIBLE
            for line in self.caddy.fields.below((*at, "match"))
        )
        for name in route:
            if name == "match":
                continue
            if lost:
                self.caddy.fields.impossible((*at, name), NEVER)
            else:
                self.caddy.fields.dead((*at, name), ABOVE)

    def _handler(self, path: Path, name: str, now: Formula, before: list[Move], depth: int) -> Flow:
        if name in ("subroute", "invoke"):
            return self._nested(path, name, now, before, depth)
        if name == "rewrite":
            found = rewritten(self.caddy, path)
            for where, effect in found.effects:
                asked = moves.before(where, before, self.caddy.context.questions)
                self.emit(path, all_of([now, asked]), [effect])
            return Flow([Move(True, asked) for asked in found.asked])
        if name in _HANDLERS:
            self.emit(path, now, list(_HANDLERS[name](self.caddy, path)))
        elif name in OF_NODES:
            self.caddy.fields.node_setting(path, OF_NODES[name])
        elif name == "file_server":
            self.caddy.fields.impossible(path, NO_FILES)
            self.emit(path, now, [NOT_FOUND])
        else:
            self.caddy.fields.impossible(path, f"{NOT_DONE} {name} does nothing here.")
        return Flow(ends=name in ANSWERING)

    def _nested(self, path: Path, name: str, now: Formula, before: list[Move], depth: int) -> Flow:
        self.caddy.fields.mapped((*path, "handler"))
        if depth > DEEPEST:
            self.caddy.fields.impossible(path, f"Routes are nested deeper than {DEEPEST} levels.")
            return Flow()
        if name == "subroute":
            self.caddy.fields.impossible((*path, "errors"), OWN_PAGES)
            return self.routes((*path, "routes"), now, before, depth + 1)
        called = str(self.caddy.fields.at(*path, "name"))
        self.caddy.fields.mapped((*path, "name"))
        route = self.caddy.fields.at(*self.named, called)
        if not isinstance(route, Mapping):
            self.caddy.fields.impossible((*path, "name"), f"There is no route {called}.")
            return Flow()
        return self._route((*self.named, called), route, now, True, before, depth + 1)


def refuses(route: Mapping[str, Any]) -> bool:
    """Whether its handlers, or routes for all requests within it, refuse some."""
    found = []
    for each in map(mapping, listed(route.get("handle"))):
        name, status = each.get("handler"), str(each.get("status_code", ""))
        inner = [one for one in map(mapping, listed(each.get("routes"))) if not one.get("match")]
        found.append(name in ("authentication", "error") or any(map(refuses, inner)))
        found.append(name == "static_response" and (each.get("abort") or status.startswith(("4", "5"))))
        found.append(name == "reverse_proxy" and asks_somebody(each))
    return any(found)


def _headers(caddy: Caddy, path: Path) -> Iterable[Effect]:
    caddy.fields.mapped((*path, "handler"))
    return header_changes(caddy, path)


def _refused(caddy: Caddy, path: Path) -> Iterable[Effect]:
    return [refusal(caddy, path)]


_HANDLERS: Mapping[str, Callable[[Caddy, Path], Iterable[Effect]]] = {
    "authentication": basic_auth, "error": _refused, "headers": _headers, "request_body": body_limit,
    "reverse_proxy": passed, "static_response": answer,
}  # fmt: skip
