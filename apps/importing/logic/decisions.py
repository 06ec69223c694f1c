"""A list of rules asked with answers: what happens to a request, or which question must be answered first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apps.importing.logic.formulas import Atom, Formula, Known, atoms_of, simplified
from apps.importing.verdicts import Line


@dataclass(frozen=True, slots=True)
class Effect:
    """What a rule does. Kinds: backend, redirect, fixed and allow end the list; change adds to what will be done.

    `data` depends on the kind: the name of a backend; a redirect's fields; a block of rules, its field and the value.
    """

    kind: str
    data: tuple[object, ...] = ()


def change(block: str, name: str, value: object) -> Effect:
    """An effect that adds to what will be done."""
    return Effect("change", (block, name, value))


def fixed(status: int, body: str = "", content_type: str = "text/plain; charset=utf-8") -> Effect:
    """An answer without a server."""
    return Effect("fixed", (status, content_type, body))


@dataclass(frozen=True, slots=True)
class Rule:
    """An effect under a condition. `phase` 0 are http-request rules, of which `allow` ends the rest; 1 all others."""

    line: Line
    condition: Formula
    effect: Effect
    phase: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """Rules in their order; `answers` are those about responses of servers, in the order of their lines.

    `access` is the block of listeners by which connections are closed before any rule.
    """

    rules: tuple[Rule, ...] = ()
    answers: tuple[Rule, ...] = ()
    access: Mapping[str, list[str]] = field(default_factory=dict)

    def is_empty(self) -> bool:
        """Whether nothing is decided here."""
        return not self.rules and not self.answers


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens: the effect that ends the list, and the changes before it; `lines` say why."""

    final: Effect
    changes: tuple[Effect, ...] = ()
    lines: tuple[Line, ...] = field(default=(), compare=False)


NOWHERE = Effect("fixed", (503, "text/plain; charset=utf-8", "No server is there for this request.\n"))


class Undecided(Exception):
    """A question that has no answer yet."""

    def __init__(self, atom: Atom) -> None:
        super().__init__(repr(atom))
        self.atom = atom


@dataclass(slots=True)
class Run:
    """One walk through the rules of a frontend, and then of the backend that it chose."""

    backends: Mapping[str, Program]
    known: Known
    changes: list[Effect] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def decide(self, frontend: Program) -> Decision:
        """Raises Undecided for the first question without an answer."""
        final = self._walk(frontend.rules) or NOWHERE
        of_pool = final.kind == "backend"
        if of_pool:
            program = self.backends.get(str(final.data[0]), Program())
            final = self._walk(program.rules) or final
            of_pool = final.kind == "backend"
            self._answer(program.answers, of_pool=of_pool)
        self._answer(frontend.answers, of_pool=of_pool)
        return Decision(final, tuple(self.changes), tuple(self.lines))

    def _walk(self, rules: tuple[Rule, ...]) -> Effect | None:
        allowed = False
        for rule in rules:
            if allowed and rule.phase == 0:
                continue
            if not self._holds(rule):
                continue
            self.lines.append(rule.line)
            if rule.effect.kind == "change":
                self.changes.append(rule.effect)
            elif rule.effect.kind == "allow":
                allowed = True
            else:
                return rule.effect
        return None

    def _answer(self, rules: tuple[Rule, ...], *, of_pool: bool) -> None:
        """`http-response` is for responses of servers, `http-after-response` (phase 1) for all."""
        for rule in rules:
            if (of_pool or rule.phase == 1) and self._holds(rule):
                self.lines.append(rule.line)
                self.changes.append(rule.effect)

    def _holds(self, rule: Rule) -> bool:
        left = simplified(rule.condition, self.known)
        if isinstance(left, bool):
            return left
        raise Undecided(next(atoms_of(left)))
