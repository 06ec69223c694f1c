"""`tcp-request` rules of tcp sections: whom a listener lets in, and how many connections one client may open."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from apps.compiler.model.listener_options import ClientProtocol
from apps.definitions.shapes.traffic.client_limit import MOST_EXEMPT
from apps.importing.context import say_unknown
from apps.importing.haproxy.criteria.conditions import Conditions
from apps.importing.haproxy.criteria.networks import Networks, asks_networks_alone, behind_mask
from apps.importing.haproxy.rules.limits import BANNED, COUNTERS, limit_of, table_of
from apps.importing.haproxy.rules.programs import PASSING, action_of
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.logic.certainty import answered, asks, refusing
from apps.importing.logic.formulas import Atom, Formula, all_of, atoms_of, negated, simplified
from apps.importing.values.networks import NOBODY, union, where, written
from apps.importing.verdicts import Line

GOES_ON = ("inspect-delay", "set-var", "capture", "expect-proxy")
ALONE = "A listener refuses by networks, TLS names and rates alone."
NOT_LOOKED_INTO = "Connections are not looked into; the servers refuse what they do not speak."
# Questions about the beginning of a connection.
FIRST = frozenset({"alpn", "mqtt", *ClientProtocol})
MASKED = "Who may connect is asked in this way; servers, hashes and counts get the whole address of a client."
_MASK = re.compile(r"src,ipmask\(([0-9]|[12][0-9]|3[0-2])\)")
MIXED = "A listener lets in by networks alone, and this asks for more."
CLOSED = (
    "Listeners do not look at this, so who had to show it is kept out; add the networks that may connect to access."
)


def _has_name(atom: Atom) -> bool | None:
    """That clients ask for a name is taken for granted."""
    return True if (atom.subject, atom.match) == ("sni", "found") else None


class Admission:
    """Reads the rules of one section, in their order: what is accepted in a phase passes the rest of it.

    `named` is a line that refuses all TLS names but those of the formula.
    """

    def __init__(self, context: Context, section: Section, conditions: Conditions) -> None:
        self.context, self.section, self.conditions = context, section, conditions
        self.client_limit: dict[str, Any] = {}
        self.named: tuple[Line, Formula] | None = None
        self._bits = 32  # what is left of the addresses of clients
        self._unless: dict[str, list[Formula]] = defaultdict(list)
        self._networks = Networks(context, conditions, section.name)
        for line in section.each("tcp-request"):
            if action_of(line)[0]:
                self._request(line)
        for line in section.each("tcp-response"):
            if action_of(line)[0] in PASSING:
                context.ledger.mapped(line)

    def listener(self) -> dict[str, Any]:
        """The fields of a listener that say it."""
        found: dict[str, Any] = {"client_limit": self.client_limit} if self.client_limit else {}
        if access := self._networks.access():
            found["access"] = access
        return found

    def _request(self, line: Line) -> None:
        action, words = action_of(line)
        words, formula = self.conditions.of(words)
        formula = behind_mask(formula, self._bits, self.context.questions.atoms)
        phase = line.words[1]
        if action in GOES_ON or action.startswith("track"):
            self.context.ledger.mapped(line)
        elif action == "accept":
            self.context.ledger.mapped(line)
            if asks_networks_alone(formula):
                self._networks.accept(phase, formula)
            else:
                self._unless[phase].append(negated(formula))
        elif action in ("reject", "silent-drop"):
            self._refuse(line, phase, all_of([*self._unless[phase], formula]))
        elif action.startswith(COUNTERS):
            self.context.ledger.differs(line, BANNED)
        elif action == "set-src" and (found := _MASK.fullmatch("".join(words))) and formula is True:
            self._bits = min(int(found[1]), self._bits)
            self.context.ledger.differs(line, MASKED)

    def _refuse(self, line: Line, phase: str, formula: Formula) -> None:
        ledger = self.context.ledger
        rates = [atom for atom in atoms_of(formula) if atom.subject == "rate"]
        if rates:
            formula = self._limit(line, phase, formula, rates[0])
        if asks_networks_alone(formula):
            self._networks.refuse(line, phase, formula)
        elif asks(formula, "source") or self._networks.accepted(phase):
            ledger.impossible(line, MIXED)
            self._close(line, phase, formula)
        elif asks(formula, "unknown"):
            self._unknown(line, phase, formula)
        elif simplified(formula, _has_name) is False:
            ledger.differs(line, NOT_LOOKED_INTO)
        elif answered(formula, "sni", answer=False) is True:
            self.named = line, negated(formula)
            ledger.mapped(line)
        else:
            ledger.impossible(line, ALONE)
            self._close(line, phase, formula)

    def _close(self, line: Line, phase: str, formula: Formula) -> None:
        """Of a refusal that cannot be said, keep out who had to show something: what was closed never opens."""
        closed = refusing(formula, but=FIRST)
        if closed is not False and asks_networks_alone(closed):
            self.context.ledger.impossible(line, CLOSED)
            self._networks.refuse(line, phase, closed)

    def _unknown(self, line: Line, phase: str, formula: Formula) -> None:
        """A refusal by what is not known: what connections begin with is the servers' to refuse, all else is lost."""
        unknown = sorted(
            {atom.why for atom in atoms_of(formula) if atom.subject == "unknown" and atom.match not in FIRST}
        )
        for why in unknown:
            say_unknown(self.context, line, why, gone=True)
        if unknown:
            self._close(line, phase, formula)
        else:
            self.context.ledger.differs(line, NOT_LOOKED_INTO)

    def _limit(self, line: Line, phase: str, formula: Formula, atom: Atom) -> Formula:
        """Keep the limit; what is refused whatever the counter says."""
        ledger = self.context.ledger
        named = "" if atom.name.startswith("#") else atom.name
        table = table_of(self.context.configuration, self.section, named)
        limit = limit_of(atom, table, "src")
        if table is not None:
            ledger.mapped(table)
        block = dict(limit.block) if limit else {}
        spared = negated(answered(formula, "rate", answer=True))
        passed = where(spared) if asks_networks_alone(spared) else NOBODY
        exempt = written(union((*passed, *self._networks.accepted(phase))))
        if "requests" not in block or len(exempt) > MOST_EXEMPT:
            ledger.impossible(line, "Listeners limit new connections per client, not this counter.")
            return False
        if limit and "per minute" in limit.differs:
            ledger.differs(line, "The rate is counted per minute.")
        self.client_limit = {"connections": block["requests"], "per": block["per"]}
        if exempt:
            self.client_limit["exempt"] = list(exempt)
        return answered(formula, "rate", answer=False)
