"""`tcp-request` rules of tcp sections: whom a listener lets in, and how many connections one client may open."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from apps.importing.haproxy.criteria.conditions import Conditions
from apps.importing.haproxy.rules.limits import limit_of, table_of
from apps.importing.haproxy.rules.programs import _action_of
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.logic.certainty import answered, asks
from apps.importing.logic.formulas import Atom, Formula, all_of, any_of, atoms_of, negated
from apps.importing.values.networks import MOST_NETWORKS, shorter, where, written
from apps.importing.verdicts import Line

GOES_ON = ("inspect-delay", "set-var", "capture", "expect-proxy")
ALONE = "A listener refuses by networks, TLS names and rates alone."
NOT_LOOKED_INTO = "Connections are not looked into; the servers refuse what they do not speak."
MIXED = "A listener lets in by networks alone, and this asks for more."
MANY = "A list holds at most 10 000 networks, and this takes more."
MOST_EXEMPT = 200


class Admission:
    """Reads the rules of one section, in their order: what is accepted in a phase passes the rest of it.

    `named` is a line that refuses all TLS names but those of the formula.
    """

    def __init__(self, context: Context, section: Section, conditions: Conditions) -> None:
        self.context, self.section, self.conditions = context, section, conditions
        self.client_limit: dict[str, Any] = {}
        self.named: tuple[Line, Formula] | None = None
        self._passed: dict[str, list[Formula]] = defaultdict(list)
        self._refused: list[Formula] = []
        for line in section.each("tcp-request"):
            self._request(line)
        for line in section.each("tcp-response"):
            if _action_of(line)[0] in ("inspect-delay", "accept", "set-var"):
                context.ledger.mapped(line)

    def listener(self) -> dict[str, Any]:
        """The fields of a listener that say it."""
        found: dict[str, Any] = {"client_limit": self.client_limit} if self.client_limit else {}
        refused = where(any_of(self._refused))
        if refused:
            kind, networks = shorter(refused)
            found["access"] = {kind: [self._list(kind, networks)]}
        return found

    def _list(self, kind: str, networks: tuple[str, ...]) -> str:
        """The name of the list; that of the acl which says just these networks."""
        for atom in {atom for formula in self._refused for atom in atoms_of(formula)}:
            if set(atom.values) == set(networks):
                return self.context.network_list(atom.values, self.conditions.label_of(atom))
        return self.context.network_list(networks, f"{self.section.name}-{kind}")

    def _request(self, line: Line) -> None:
        action, words = _action_of(line)
        _, formula = self.conditions.of(words)
        phase = line.words[1]
        if action in GOES_ON or action.startswith("track"):
            self.context.ledger.mapped(line)
        elif action == "accept":
            self._passed[phase].append(negated(formula))
            self.context.ledger.mapped(line)
        elif action in ("reject", "silent-drop"):
            self._refuse(line, all_of([*self._passed[phase], formula]))

    def _refuse(self, line: Line, formula: Formula) -> None:
        ledger = self.context.ledger
        rates = [atom for atom in atoms_of(formula) if atom.subject == "rate"]
        if rates:
            formula = self._limit(line, formula, rates[0])
        if all(atom.subject == "source" for atom in atoms_of(formula)):
            if len(shorter(where(any_of([*self._refused, formula])))[1]) > MOST_NETWORKS:
                ledger.impossible(line, MANY)
                return
            self._refused.append(formula)
            ledger.mapped(line)
        elif asks(formula, "source"):
            ledger.impossible(line, MIXED)
        elif asks(formula, "unknown") or asks(formula, "tls"):
            ledger.differs(line, NOT_LOOKED_INTO)
        elif answered(formula, "sni", answer=False) is True:
            self.named = line, negated(formula)
            ledger.mapped(line)
        else:
            ledger.impossible(line, ALONE)

    def _limit(self, line: Line, formula: Formula, atom: Atom) -> Formula:
        """Keep the limit; what is refused whatever the counter says."""
        ledger = self.context.ledger
        named = "" if atom.name.startswith("#") else atom.name
        table = table_of(self.context.configuration, self.section, named)
        limit = limit_of(atom, table, "src")
        if table is not None:
            ledger.mapped(table)
        block = dict(limit.block) if limit else {}
        spared = negated(answered(formula, "rate", answer=True))
        exempt = written(where(spared)) if all(each.subject == "source" for each in atoms_of(spared)) else ()
        if "requests" not in block or len(exempt) > MOST_EXEMPT:
            ledger.impossible(line, "Listeners limit new connections per client, not this counter.")
            return False
        if limit and "per minute" in limit.differs:
            ledger.differs(line, "The rate is counted per minute.")
        self.client_limit = {"connections": block["requests"], "per": block["per"]}
        if exempt:
            self.client_limit["exempt"] = list(exempt)
        return answered(formula, "rate", answer=False)
