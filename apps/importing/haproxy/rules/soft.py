"""Rules that ask who a client is or how much it sent: a refusal by them becomes a policy of all that it is for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import authentication
from apps.importing.haproxy.rules.limits import BANNED, Limit, Tracker, in_period, limit_of, period_of, table_of
from apps.importing.haproxy.rules.requests import has_own_text
from apps.importing.haproxy.rules.users import NO_GROUPS, users_of
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.logic.certainty import answered, asks
from apps.importing.logic.decisions import Effect, Rule, change
from apps.importing.logic.formulas import Atom, Formula, all_of, any_of, atoms_of
from apps.importing.verdicts import Line

OWN_TEXT = "Clients that are refused get a text of Spillway, not this one."


@dataclass(slots=True)
class Soft:
    """What one proxy counts, and the rules that come of it."""

    context: Context
    section: Section
    trackers: dict[str, list[Tracker]] = field(default_factory=dict)
    periods: dict[str, str] = field(default_factory=dict)

    def track(self, line: Line, action: str, words: tuple[str, ...], condition: Formula) -> None:
        """`track-sc0 src table x`: what is counted. The limit that looks at it says the rest."""
        table = words[words.index("table") + 1] if "table" in words[:-1] else ""
        index = action.removeprefix("track-sc").strip("()")[:1] or "0"
        self.trackers.setdefault(f"#{index}", []).append(Tracker(line, words[0] if words else "src", table, condition))
        self.context.ledger.mapped(line)

    def authentication(self, line: Line, words: tuple[str, ...], formula: Formula) -> Rule | None:
        """`http-request auth realm X if !{ http_auth(users) }`."""
        realm = words[words.index("realm") + 1] if "realm" in words[:-1] else ""
        lists = self._userlists(line, formula)
        if not lists:
            self.context.ledger.impossible(line, "Name the userlist in the condition: unless { http_auth(users) }.")
            return None
        return self._asks_password(line, lists[0], realm, answered(formula, "auth", answer=False))

    def _userlists(self, line: Line, formula: Formula) -> list[str]:
        """Names of the lists of users that it asks for."""
        asked = [atom for atom in atoms_of(formula) if atom.subject == "auth"]
        if any(atom.values for atom in asked):
            self.context.ledger.differs(line, NO_GROUPS)
        return [atom.name for atom in asked]

    def _asks_password(self, line: Line, userlist: str, realm: str, condition: Formula) -> Rule | None:
        pairs = users_of(self.context, userlist)
        if pairs is None:
            self.context.ledger.impossible(line, f"There is no userlist {userlist}, or it has no users.")
            return None
        return Rule(line, condition, change("basic_auth", "users", (tuple(pairs), _realm(realm))))

    def rules(self, line: Line, formula: Formula, effects: list[Effect], phase: int) -> Iterator[Rule]:
        """The effects under their condition; a refusal of who is over a limit or has no password as a policy."""
        refuses = any(effect.kind == "fixed" for effect in effects)
        if refuses and asks(formula, "rate"):
            self._say_status(line, effects, 429)
            yield from self._limits(line, formula)
        elif refuses and asks(formula, "size"):
            self._say_status(line, effects, 413)
            yield from self._sizes(line, formula)
        elif refuses and asks(formula, "auth") and answered(formula, "auth", answer=True) is False:
            lists = self._userlists(line, formula)
            rule = self._asks_password(line, lists[0], "", answered(formula, "auth", answer=False))
            if rule is not None:
                yield rule
        else:
            yield from (Rule(line, formula, effect, phase) for effect in effects)

    def _say_status(self, line: Line, effects: list[Effect], status: int) -> None:
        """A policy refuses with a status and a text of its own."""
        if any(each.kind == "fixed" and each.data[0] != status for each in effects):
            self.context.ledger.differs(line, f"What is over the bound gets {status}.")
        if any(map(has_own_text, effects)):
            self.context.ledger.differs(line, OWN_TEXT)

    def _sizes(self, line: Line, formula: Formula) -> Iterator[Rule]:
        """A refusal of long bodies."""
        for atom in dict.fromkeys(each for each in atoms_of(formula) if each.subject == "size"):
            most = max(0, int(atom.values[0]) - (1 if atom.match == "ge" else 0))
            yield Rule(line, answered(formula, "size", answer=True), change("body", "max_bytes", most))

    def _limits(self, line: Line, formula: Formula) -> Iterator[Rule]:
        for atom in dict.fromkeys(each for each in atoms_of(formula) if each.subject == "rate"):
            limit, tracked = self._limit(atom)
            if limit is None and atom.match.startswith(("get_gp", "gpc", "gpt")):
                self.context.ledger.differs(line, BANNED)
                continue
            if limit is None:
                why = f"Clients are limited by requests, errors and bytes, not by {atom.match}."
                self.context.ledger.impossible(line, why)
                continue
            limit = self._in_one_period(limit)
            if limit.differs:
                self.context.ledger.differs(line, limit.differs)
            self.context.ledger.mapped(line)
            condition = answered(formula, "rate", lambda each, asked=atom: each is asked)  # type: ignore[misc]
            condition = all_of([condition, tracked])
            for name, value in limit.block:
                yield Rule(line, condition, change("client_limit", name, value))

    def _in_one_period(self, limit: Limit) -> Limit:
        """The limit in the period in which this proxy's limits of other things are counted."""
        found = period_of(limit)
        if found is None:
            return limit
        others = {per for name, per in self.periods.items() if name != found[0]}
        per = found[1] if not others or found[1] in others else others.pop()
        self.periods[found[0]] = per
        return in_period(limit, per)

    def _limit(self, atom: Atom) -> tuple[Limit | None, Formula]:
        """The limit, and for which requests it is counted."""
        trackers = self.trackers.get(atom.name, [])
        named = "" if atom.name.startswith("#") else atom.name
        table_name = named or next((each.table for each in trackers), "")
        table = table_of(self.context.configuration, self.section, table_name)
        if table is not None:
            self.context.ledger.mapped(table)
        key = trackers[0].key if trackers else "src"
        tracked = any_of([each.condition for each in trackers]) if trackers else True
        return limit_of(atom, table, key), tracked


def _realm(text: str) -> str:
    try:
        return authentication.realm(text)
    except GrammarError:
        return ""
