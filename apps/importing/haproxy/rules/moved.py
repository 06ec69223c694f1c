"""What rules change of a request, for the rules below them, which ask what was changed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from apps.compiler.header_text import is_format
from apps.importing.logic.certainty import surely
from apps.importing.logic.decisions import Effect, Program, Rule
from apps.importing.logic.formulas import Formula, all_of, negated
from apps.importing.logic.questions import Questions
from apps.importing.values import moves
from apps.importing.values.moves import Changed, Move
from apps.importing.verdicts import Ledger


@dataclass(slots=True)
class Moved:
    """The changes that one proxy makes, in their order; whom it lets through meets no rule of requests below."""

    questions: Questions
    moves: list[Move] = field(default_factory=list)
    _passing: list[Formula] = field(default_factory=list)

    def before(self, formula: Formula) -> Formula:
        """The formula about the request as the client sent it."""
        return moves.before(formula, self.moves, self.questions)

    def add(self, rules: list[Rule]) -> None:
        """What the rules of one line change, under their common condition."""
        for rule in rules:
            effect = rule.effect
            if effect.kind == "allow":
                self._passing.append(negated(rule.condition))
            if (asked := self._asked(effect)) is not None:
                self.moves.append(Move(all_of([*self._passing, rule.condition]), asked))

    def _asked(self, effect: Effect) -> Changed | None:
        if effect.kind != "change":
            return None
        block, name, value = effect.data
        if block == "path":
            return moves.replaced_by(str(name).rstrip("/"), str(value).rstrip("/"), self.questions)
        if block == "request_headers":
            return self._of_header(str(name), value)
        if (block, name) == ("rewrite", "path"):
            return moves.fixed(str(value))
        if (block, name) == ("rewrite", "host"):
            return moves.host_set(str(value))
        return moves.by_pattern(str(value), self.questions) if name == "path_replacement" else None

    def _of_header(self, action: str, value: object) -> Changed:
        header, text = value if isinstance(value, tuple) else (value, "")
        known = None if is_format(text) else text
        return moves.header_set(header, known, self.questions, adds=action == "add")


def behind(program: Program, moved: Moved, ledger: Ledger) -> Program:
    """The program of a backend whose requests were changed before they came to it."""
    if not moved.moves:
        return program
    rules = []
    for rule in program.rules:
        condition, unknown = surely(moved.before(rule.condition))
        for why in unknown:
            ledger.differs(rule.line, f"This cannot be asked: {why}.")
        rules.append(replace(rule, condition=condition))
    return replace(program, rules=tuple(rules))
