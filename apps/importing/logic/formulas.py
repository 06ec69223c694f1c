"""Boolean algebra over questions about a request, with three values: yes, no, and not known yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


class Atom:
    """One question about a request; equal questions are one object, so that they are told apart by identity.

    `subject` is what is looked at (host, path, method, header, query, cookie, source, scheme, port, sni, auth, rate,
    never, answer, unknown), `name` the header or parameter, `match` how it is compared (str, beg, end, sub, reg, dom,
    dir, found, segment, label), `values` with what; one of them is enough. `why` says of an unknown one what is not
    known.
    """

    __slots__ = ("ignore_case", "match", "name", "subject", "values", "why")

    def __init__(self, subject: str, name: str, match: str, values: tuple[str, ...], why: str, *, ignore_case: bool):
        self.subject = subject
        self.name = name
        self.match = match
        self.values = values
        self.ignore_case = ignore_case
        self.why = why

    def __repr__(self) -> str:
        named = f"{self.subject}({self.name})" if self.name else self.subject
        return f"{named} {self.match} {' '.join(self.values[:4])}".strip()


_ANY_ORDER = frozenset({"host", "path", "method", "header", "query", "cookie", "source"})


class Atoms:
    """Makes atoms, each question once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Atom] = {}

    def get(
        self,
        subject: str,
        match: str = "str",
        values: tuple[str, ...] = (),
        *,
        name: str = "",
        ignore_case: bool = False,
        why: str = "",
    ) -> Atom:
        """The atom of this question: in which order its values stand, and the case of what has none, is no matter."""
        ignore_case = ignore_case and any(value.lower() != value.upper() for value in values)
        key = (subject, name, match, tuple(sorted(values)) if subject in _ANY_ORDER else values, ignore_case, why)
        if key not in self._known:
            self._known[key] = Atom(subject, name, match, values, why, ignore_case=ignore_case)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    part: Formula


@dataclass(frozen=True, slots=True)
class And:
    """All of them."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One of them."""

    parts: tuple[Formula, ...]


Formula = bool | Atom | Not | And | Or
Known = Callable[[Atom], bool | None]


def negated(formula: Formula) -> Formula:
    """The opposite, without two negations in a row."""
    if isinstance(formula, bool):
        return not formula
    return formula.part if isinstance(formula, Not) else Not(formula)


def all_of(parts: list[Formula]) -> Formula:
    """The conjunction, as short as constants and parts that are equal make it."""
    left = list(dict.fromkeys(part for part in parts if part is not True))
    if any(part is False for part in left):
        return False
    return True if not left else left[0] if len(left) == 1 else And(tuple(left))


def any_of(parts: list[Formula]) -> Formula:
    """The disjunction, as short as constants and parts that are equal make it."""
    left = list(dict.fromkeys(part for part in parts if part is not False))
    if any(part is True for part in left):
        return True
    return False if not left else left[0] if len(left) == 1 else Or(tuple(left))


def simplified(formula: Formula, known: Known) -> Formula:
    """What is left of it when these answers are put in."""
    if isinstance(formula, bool):
        return formula
    if isinstance(formula, Atom):
        answer = known(formula)
        return formula if answer is None else answer
    if isinstance(formula, Not):
        return negated(simplified(formula.part, known))
    decisive = isinstance(formula, Or)
    left: list[Formula] = []
    for part in formula.parts:
        found = simplified(part, known)
        if found is decisive:
            return decisive
        left.append(found)
    return any_of(left) if decisive else all_of(left)


def replaced(formula: Formula, new: Callable[[Atom], Formula]) -> Formula:
    """The formula with another one in the place of each question."""
    if isinstance(formula, Atom):
        return new(formula)
    if isinstance(formula, Not):
        return negated(replaced(formula.part, new))
    if isinstance(formula, And | Or):
        parts = [replaced(part, new) for part in formula.parts]
        return all_of(parts) if isinstance(formula, And) else any_of(parts)
    return formula


def atoms_of(formula: Formula) -> Iterator[Atom]:
    """Every question of it, in order, some more than once."""
    if isinstance(formula, Atom):
        yield formula
    elif isinstance(formula, Not):
        yield from atoms_of(formula.part)
    elif isinstance(formula, And | Or):
        for part in formula.parts:
            yield from atoms_of(part)
