"""Routes that decide as a list of rules does, and the proof of it over every path and condition that occurs.

1. Keys are the paths that the rules tell apart; examples show their borders.
2. Questions besides host and path (methods, headers …) become conditions. For each example and each set of conditions
   that hold, smallest sets first, the rules say what is right and the routes so far what they would do.
3. Where the two differ, a route with this key and these conditions is added. It names more conditions than those that
   it corrects, so it comes before them in the order of routing.py, which needs no negation.
4. All examples are asked once more. What still differs is said.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import combinations

from apps.importing.logic.answers import about_path
from apps.importing.logic.decisions import Decision, Program, Run, Undecided
from apps.importing.logic.formulas import Atom, atoms_of
from apps.importing.logic.paths import Key, Paths, paths_of
from apps.importing.values.networks import EVERYBODY, Ranges, addresses, common

MOST_QUESTIONS = 7
# Of more questions two are asked at once, of many more one, and of still more none.
MOST_PAIRED = 16
MOST_ASKED = 64
# Where a condition stands in the order of routing.py.
SLOTS = ("method", "header", "query", "cookie", "source", "scheme")


@dataclass(frozen=True, slots=True)
class Draft:
    """A route to be: key, conditions that must hold, and what happens."""

    key: Key
    conditions: frozenset[Atom]
    decision: Decision

    def rank(self, number: int) -> tuple[object, ...]:
        """As routing.py ranks it; `number` is its place among keys of equal rank."""
        counts = [sum(atom.subject == slot for atom in self.conditions) for slot in SLOTS]
        method, header, query, cookie, source, scheme = counts
        return (
            *self.key.position(), not method, -header, -query, -cookie, not source, not scheme, number,
            -len(self.conditions),
        )  # fmt: skip


@dataclass(slots=True)
class Solution:
    """Routes in the order in which they are created; `differing` are examples that they do not decide as before, each
    with the lines that are lost there. `too_many` questions are not asked together, and `unasked` ones not at all.
    """

    drafts: list[Draft] = field(default_factory=list)
    differing: list[tuple[str, Decision]] = field(default_factory=list)
    too_many: bool = False
    unasked: frozenset[Atom] = frozenset()
    seen: set[int] = field(default_factory=set)


class Solver:
    """Solves the rules of one frontend for one host."""

    def __init__(self, frontend: Program, backends: Mapping[str, Program], known: Mapping[Atom, bool]) -> None:
        self.frontend = frontend
        self.backends = backends
        self.answers = known
        self._seen: set[int] = set()

    def solve(self) -> Solution:
        """The routes; where prefixes or longer patterns come too early, in other orders until one decides as before."""
        atoms = self._path_atoms()
        best = self._with(paths_of(atoms))
        ways = ((False, True, False), (True, False, False), (True, True, False), (True, True, True))
        for by_pattern, in_order, crossed in ways:
            if not best.differing:
                break
            other = self._with(paths_of(atoms, by_pattern=by_pattern, in_order=in_order, crossed=crossed))
            if len(other.differing) < len(best.differing):
                best = other
        return best

    def _path_atoms(self) -> list[Atom]:
        """Questions about paths of the frontend and of the backends that it may choose."""
        programs = [self.frontend]
        named = [rule.effect.data[0] for rule in self.frontend.rules if rule.effect.kind == "backend"]
        programs += [self.backends[str(name)] for name in dict.fromkeys(named) if str(name) in self.backends]
        found = (
            atom for program in programs for rule in (*program.rules, *program.answers)
            for atom in atoms_of(rule.condition)
        )  # fmt: skip
        return list(dict.fromkeys(atom for atom in found if atom.subject == "path"))

    def decide(self, path: str, holding: frozenset[Atom], asked: Sequence[Atom] | None = None) -> Decision:
        """What the rules say; a question that is not among the `asked` ones raises Undecided."""

        def known(atom: Atom) -> bool | None:
            if atom.subject == "path":
                return about_path(atom, path)
            if atom in self.answers:
                return self.answers[atom]
            return atom in holding if asked is None or atom in asked else None

        decision = Run(self.backends, known).decide(self.frontend)
        self._seen.update(line.number for line in decision.lines)
        return decision

    def _questions(self, examples: Sequence[str]) -> list[Atom]:
        """What must be answered besides the path for any of the examples."""
        asked: dict[Atom, None] = {}
        for path in examples:
            self._explore(path, frozenset(), asked, frozenset())
        if len(asked) > MOST_QUESTIONS:
            for atom in (None, *list(asked)):
                for path in examples:
                    self._look_further(path, frozenset({atom} if atom else ()), asked)
        return list(asked)

    def _look_further(self, path: str, holding: frozenset[Atom], asked: dict[Atom, None]) -> None:
        """Questions behind those that were explored, of a request for which these alone have yes for an answer."""

        def known(atom: Atom) -> bool:
            if atom.subject == "path":
                return about_path(atom, path)
            if atom in self.answers:
                return self.answers[atom]
            asked.setdefault(atom)
            return atom in holding

        Run(self.backends, known).decide(self.frontend)

    def _explore(self, path: str, holding: frozenset[Atom], asked: dict[Atom, None], known: frozenset[Atom]) -> None:
        try:
            self.decide(path, holding, tuple(known))
        except Undecided as undecided:
            atom = undecided.atom
            asked.setdefault(atom)
            if len(known) <= MOST_QUESTIONS:
                self._explore(path, holding, asked, known | {atom})
                self._explore(path, holding | {atom}, asked, known | {atom})

    def _with(self, paths: Paths) -> Solution:
        asked = self._questions(paths.examples)
        too_many = len(asked) > MOST_QUESTIONS
        if too_many:
            self._seen.clear()  # by what was asked together, and is not any more
        cases = Cases(paths, asked[:MOST_ASKED], self.decide)
        for _ in range(3):
            if not cases.correct():
                break
        unasked = frozenset(asked[MOST_ASKED:])
        return Solution(cases.drafts, cases.differing(), too_many, unasked, self._seen)


class Cases:
    """Every example with every set of conditions that may hold, and the routes so far in the order of their ranks."""

    def __init__(self, paths: Paths, asked: Sequence[Atom], decide: Callable[[str, frozenset[Atom]], Decision]) -> None:
        self.drafts: list[Draft] = []
        self._ranks: list[tuple[object, ...]] = []
        self._numbers = {key: number for number, key in enumerate(paths.keys)}
        most = len(asked) if len(asked) <= MOST_QUESTIONS else 2 if len(asked) <= MOST_PAIRED else 1
        together = (each for size in range(most + 1) for each in combinations(asked, size) if _can_hold(each))
        sets = sorted(dict.fromkeys(_with_what_follows(each, asked) for each in together), key=len)
        self._covering = {path: {key for key in paths.keys if key.covers(path)} for path in paths.examples}
        keys = {path: paths.key_of(path) for path in paths.examples}
        order = sorted(paths.examples, key=lambda path: (-self._numbers[keys[path]], _beside(keys[path], path)))
        self._cases = [(keys[path], path, holding, decide(path, holding)) for holding in sets for path in order]
        # From what takes most to what takes least, and from few conditions to many.
        self._cases.sort(key=lambda case: -self._numbers[case[0]])

    def correct(self) -> bool:
        """Add the routes that are missing; whether any was."""
        there = {(draft.key, draft.conditions) for draft in self.drafts}
        before = len(there)
        for key, path, holding, right in self._cases:
            if (key, holding) not in there and self._winner(path, holding) != right:
                self._add(Draft(key, holding, right))
                there.add((key, holding))
        return len(there) > before

    def _add(self, draft: Draft) -> None:
        rank = draft.rank(self._numbers[draft.key])
        at = bisect_left(self._ranks, rank)
        self._ranks.insert(at, rank)
        self.drafts.insert(at, draft)

    def _winner(self, path: str, holding: frozenset[Atom]) -> Decision | None:
        covering = self._covering[path]
        return next(
            (draft.decision for draft in self.drafts if draft.key in covering and draft.conditions <= holding), None
        )

    def differing(self) -> list[tuple[str, Decision]]:
        """Examples that the routes do not decide as the rules do."""
        found = []
        for _, path, holding, right in self._cases:
            winner = self._winner(path, holding)
            if winner != right:
                lost = [line for line in right.lines if winner is None or line not in winner.lines]
                found.append((path, replace(right, lines=tuple(lost) or right.lines[-1:])))
        return found


def _beside(key: Key, path: str) -> int:
    """The path that a key was made of comes first."""
    return 0 if path in (key.text, f"{key.text}/zz") else 1


def _can_hold(atoms: Sequence[Atom]) -> bool:
    """Whether one request can fulfil all of them: it has one method, and comes from one address."""
    methods, sources = _methods(atoms), _sources(atoms)
    return (methods is None or bool(methods)) and bool(sources)


def _with_what_follows(atoms: Sequence[Atom], asked: Sequence[Atom]) -> frozenset[Atom]:
    """With the questions whose methods or networks hold all that these do: none of them can be answered otherwise."""
    methods, sources = _methods(atoms), _sources(atoms)
    follow = (
        each
        for each in asked
        if (each.subject == "method" and methods is not None and methods <= set(each.values))
        or (each.subject == "source" and sources != EVERYBODY and common(sources, addresses(each.values)) == sources)
    )
    return frozenset((*atoms, *follow))


def _methods(atoms: Sequence[Atom]) -> set[str] | None:
    """Those that fulfil all of them; None of any."""
    asked = [set(atom.values) for atom in atoms if atom.subject == "method"]
    return set.intersection(*asked) if asked else None


def _sources(atoms: Sequence[Atom]) -> Ranges:
    return reduce(common, (addresses(atom.values) for atom in atoms if atom.subject == "source"), EVERYBODY)
