"""Conditions that routes can ask: what they cannot is taken out of a condition, so that a rule holds only surely."""

from __future__ import annotations

from collections.abc import Callable

from apps.importing.logic.conditions import WEBSOCKET_WHY, condition_of, is_websocket
from apps.importing.logic.formulas import And, Atom, Formula, Not, Or, all_of, any_of, atoms_of, simplified

# `never` is what no request has that comes so far; it is answered with no.
ALWAYS_ASKED = frozenset({"host", "path", "scheme", "port", "never"})


def why_not(atom: Atom) -> str:
    """Why no route asks this; empty where one does."""
    if atom.subject in ("unknown", "state", "rate", "auth", "size", "sni", "answer"):
        return atom.why or f"{atom!r} is nothing that a route can ask"
    if atom.subject in ALWAYS_ASKED or condition_of(atom) is not None:
        return ""
    return f"{atom!r} cannot be a condition of a route"


def differing(formula: Formula) -> list[str]:
    """What is asked in another way."""
    asked = list(atoms_of(formula))
    found = [WEBSOCKET_WHY] if any(is_websocket(atom) for atom in asked) else []
    return found + sorted({atom.why for atom in asked if atom.why and not why_not(atom)})


def surely(formula: Formula, *, but: frozenset[str] = frozenset()) -> tuple[Formula, list[str]]:
    """When it holds whatever the answers to unknown questions are; and those questions.

    `but` are subjects and kinds of comparison to keep.
    """
    unknown = {atom for atom in atoms_of(formula) if not but & {atom.subject, atom.match} and why_not(atom)}
    if not unknown:
        return formula, []
    return _least(formula, unknown, wanted=True), sorted({why_not(atom) for atom in unknown})


def refusing(formula: Formula, *, but: frozenset[str] = frozenset()) -> Formula:
    """When a refusal holds where no unknown question is answered with yes: who must show something is kept out.

    A file that can still be given is asked for, and left to `surely`. `but` are kinds of comparison to keep.
    """

    def known(atom: Atom) -> bool | None:
        asked = (
            atom.match in but or atom.subject in ("state", "rate", "auth", "size") or atom.why.endswith("was not given")
        )
        return False if why_not(atom) and not asked else None

    return simplified(formula, known)


def _least(formula: Formula, unknown: set[Atom], *, wanted: bool) -> Formula:
    """The part of a formula that holds (`wanted`) or may hold for some answers."""
    if isinstance(formula, Atom):
        return (not wanted) if formula in unknown else formula
    if isinstance(formula, Not):
        inside = _least(formula.part, unknown, wanted=not wanted)
        return simplified(Not(inside), lambda _: None)
    if isinstance(formula, And):
        return all_of([_least(part, unknown, wanted=wanted) for part in formula.parts])
    if isinstance(formula, Or):
        return any_of([_least(part, unknown, wanted=wanted) for part in formula.parts])
    return formula


def answered(formula: Formula, subject: str, answer: bool | Callable[[Atom], bool | None]) -> Formula:
    """The formula with this answer to all questions about a subject."""

    def known(atom: Atom) -> bool | None:
        if atom.subject != subject:
            return None
        return answer if isinstance(answer, bool) else answer(atom)

    return simplified(formula, known)


def asks(formula: Formula, subject: str) -> bool:
    """Whether it asks about the subject."""
    return any(atom.subject == subject for atom in atoms_of(formula))


def source_and_rest(formula: Formula) -> list[tuple[Atom, bool, Formula]] | None:
    """(networks, whether they are meant themselves, the rest) for each alternative; None where it is not of this form.

    `A and not office` is one alternative with the networks of `office`, False, and A.
    """
    if isinstance(formula, Or):
        parts = [source_and_rest(part) for part in formula.parts]
        return None if None in parts else [each for part in parts if part is not None for each in part]
    parts_of = formula.parts if isinstance(formula, And) else (formula,)
    sources = [part for part in parts_of if _is_source(part)]
    rest = [part for part in parts_of if not _is_source(part)]
    if len(sources) != 1 or any(asks(part, "source") for part in rest):
        return None
    found = sources[0]
    if isinstance(found, Not) and isinstance(found.part, Atom):
        return [(found.part, False, all_of(rest))]
    return [(found, True, all_of(rest))] if isinstance(found, Atom) else None


def _is_source(formula: Formula) -> bool:
    inside = formula.part if isinstance(formula, Not) else formula
    return isinstance(inside, Atom) and inside.subject == "source"
