"""Drafts of routes as the specifications of routes: their names, conditions, rules, and the paths that servers get."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import rewriting
from apps.importing.context import Context
from apps.importing.logic.conditions import called, conditions_of, told_apart
from apps.importing.logic.decisions import Decision, Effect
from apps.importing.logic.outcomes import Outcome, Unsayable, outcome_of
from apps.importing.logic.paths import EXACT, PREFIX, REGEX, Key
from apps.importing.logic.regexes import checked, literal
from apps.importing.logic.solving import Draft
from apps.importing.results.circles import end_circles
from apps.importing.results.made import Made
from apps.importing.verdicts import Line


@dataclass(frozen=True, slots=True)
class Routes:
    """Writes the routes of one load balancer; `both`: its listeners speak http and https."""

    context: Context
    made: Made
    load_balancer: str
    both: bool = False
    lines: dict[str, tuple[Line, ...]] = field(default_factory=dict)

    def add(self, hostname: str, drafts: tuple[Draft, ...]) -> None:
        """The routes of one hostname; a draft that no route can be is said at its line."""
        for draft, outcome in self._sayable(hostname, drafts):
            self._add(hostname, draft, outcome)

    def end_circles(self) -> None:
        """Once all are there: redirects that lead to themselves become answers."""
        own = {name: self.made.routes[name] for name in self.lines}
        end_circles(self.context, self.made.load_balancers[self.load_balancer], own, self.lines)
        self.made.routes |= own

    def _add(self, hostname: str, draft: Draft, outcome: Outcome) -> None:
        spec: dict[str, Any] = {"load_balancer": self.load_balancer, "hostname": hostname}
        if (draft.key.kind, draft.key.text) != (PREFIX, "/"):
            spec |= {"path": draft.key.text, "path_kind": draft.key.kind}
        conditions = conditions_of(draft.conditions)
        redirect = outcome.action.get("redirect", {})
        if self.both and redirect.get("scheme") == "https" and "scheme" not in conditions and "host" not in redirect:
            conditions["scheme"] = "http"
        spec |= conditions | outcome.spec()
        rules = {block: said for block, said in outcome.rules.items() if said}
        if rules:
            spec["rules"] = rules
        text = f"{self.load_balancer}-{'any' if hostname == '*' else hostname.replace('*', 'any')}"
        text += f"-{draft.key.text}" if draft.key.text != "/" else ""
        name = self.context.name("Route", text + called(draft.conditions), told_apart(draft.conditions))
        if name in self.made.routes:
            name = self.context.free_name("Route", f"{text}-more", self.made.routes)
        self.made.routes[name] = json.loads(json.dumps(spec))
        self.lines[name] = draft.decision.lines[-1:]
        for line in draft.decision.lines:
            self.context.ledger.belongs(line, f"Route {name}")

    def _sayable(self, hostname: str, drafts: tuple[Draft, ...]) -> Iterator[tuple[Draft, Outcome]]:
        """Drafts with the parts of their routes.

        A pattern that can only be a prefix becomes one. Prefixes come before patterns, so those below it become some
        too.
        """
        only = [draft for draft in drafts if self._why_not(draft, hostname) and self._can_be_prefix(draft, hostname)]
        above = [f"{_prefix_of(draft)}/" for draft in only]
        for draft in drafts:
            prefix = _as_prefix(draft)
            below = prefix is not None and any(f"{prefix.key.text}/".startswith(each) for each in above)
            found = prefix if prefix is not None and below else draft
            if why := self._why_not(found, hostname):
                for line in found.decision.lines[-1:]:
                    self.context.ledger.impossible(line, f"{hostname}{found.key.text}: {why}")
                continue
            for line in found.decision.lines[-1:] if below else ():
                why = f"{hostname}{found.key.text}: paths below it that an expression takes are answered alike."
                self.context.ledger.differs(line, why)
            yield found, self._outcome(found.decision, found.key, hostname)

    def _why_not(self, draft: Draft, hostname: str) -> str:
        try:
            self._outcome(draft.decision, draft.key, hostname)
        except Unsayable as error:
            return str(error)
        return ""

    def _can_be_prefix(self, draft: Draft, hostname: str) -> bool:
        prefix = _as_prefix(draft)
        return prefix is not None and not self._why_not(prefix, hostname)

    def _outcome(self, decision: Decision, key: Key, hostname: str) -> Outcome:
        """The parts of a route; where servers get another path, by prefix, as a whole, or by a pattern."""
        changes = _moved_once(decision)
        paths = [each for each in changes if each.data[0] == "path"]
        rest = replace(decision, changes=tuple(each for each in changes if each.data[0] != "path"))
        outcome = outcome_of(rest, key, hostname, self.made.names.__getitem__)
        for each in paths if "pools" in outcome.action else ():
            _move(outcome, key, str(each.data[1]), str(each.data[2]))
        return outcome


def _prefix_of(draft: Draft) -> str:
    prefix = _as_prefix(draft)
    return prefix.key.text if prefix is not None else draft.key.text


def _as_prefix(draft: Draft) -> Draft | None:
    prefix = draft.key.text.removesuffix("(/.*)?").replace("\\", "")
    is_one = draft.key.kind == REGEX and draft.key.text.endswith("(/.*)?") and is_path(prefix)
    return replace(draft, key=Key(PREFIX, prefix)) if is_one else None


def _moved_once(decision: Decision) -> list[Effect]:
    """A path that `rewrite` has changed is passed on as it is, whatever path proxy_pass says."""
    found: list[Effect] = []
    moved = ""
    for each in decision.changes:
        name = str(each.data[1])
        mover = "path" if each.data[0] == "path" else name if each.data[0] == "rewrite" else ""
        if mover not in ("path", "path_regex", "path_replacement"):
            found.append(each)
        elif not moved or (moved, mover) == ("path_regex", "path_replacement"):
            found.append(each)
            moved = mover
    return found


def _move(outcome: Outcome, key: Key, old: str, new: str) -> None:
    """What begins with `old` begins with `new`, as nginx replaces it: sign by sign, not by segment."""
    rewrite = outcome.rules.setdefault("rewrite", {})
    if key.kind == EXACT and key.text.startswith(old):
        rewrite["path"] = _plain(new + key.text[len(old) :] or "/")
    elif key.kind == PREFIX and (moved := _prefix(key.text, old, new)) is not None:
        outcome.prefix_rewrite = moved
    else:
        rest = "" if new else "/"  # where nothing takes its place, a slash is what is left
        pattern = checked(f"{literal(old)}{rest}(.*)")
        try:
            replacement = rewriting.replacement(f"{new}{rest}\\1")
        except GrammarError as error:
            raise Unsayable("The new path cannot be said.") from error
        if pattern is None:
            raise Unsayable("The path cannot be rewritten here.")
        rewrite |= {"path_regex": pattern, "path_replacement": replacement}


def _prefix(text: str, old: str, new: str) -> str | None:
    """What takes the place of the whole prefix of a route; None where no prefix does."""
    if text == "/" and not new.endswith("/"):
        return None  # the slash of the path itself is replaced
    if text.rstrip("/") + "/" == old and new.endswith("/"):
        return _plain(new.rstrip("/") or "/")
    if not text.startswith(old):
        return None
    moved = new + text[len(old) :].lstrip("/") if new.endswith("/") else new + text[len(old) :]
    return _plain(moved.rstrip("/") or "/")


def is_path(text: str) -> bool:
    """Whether a route can have the path."""
    try:
        return bool(grammar.path(text))
    except GrammarError:
        return False


def _plain(text: str) -> str:
    try:
        return grammar.path(text)
    except GrammarError as error:
        raise Unsayable(error.message) from error
