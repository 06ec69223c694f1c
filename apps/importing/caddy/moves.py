"""Paths that handlers change: what is asked behind them, said of the path that the client sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from apps.importing.logic.answers import about_path
from apps.importing.logic.formulas import Atom, Formula, all_of, any_of, atoms_of, negated, replaced
from apps.importing.logic.questions import Questions

MOST = 4
TWICE = "the path was changed above in a way that cannot be followed"
Changed = Callable[[Atom], Formula]


@dataclass(frozen=True, slots=True)
class Move:
    """Where the condition holds, a question about the new path is `asked` of the one before."""

    condition: Formula
    asked: Changed

    def within(self, condition: Formula) -> Move:
        """The same, where another condition holds as well."""
        return Move(all_of([condition, self.condition]), self.asked)


def before(formula: Formula, moves: list[Move], questions: Questions) -> Formula:
    """The formula about the path as the client sent it; `moves` are those that were made, the last one last."""
    atoms = [atom for atom in atoms_of(formula) if atom.subject == "path"]
    if not moves or not atoms:
        return formula
    if len(moves) > MOST:
        return questions.unknown(TWICE)
    *earlier, last = moves
    here = before(replaced(formula, _of_paths(last.asked)), earlier, questions)
    if last.condition is True:
        return here
    other = before(formula, earlier, questions)
    return any_of([all_of([last.condition, here]), all_of([negated(last.condition), other])])


def _of_paths(asked: Changed) -> Changed:
    return lambda atom: asked(atom) if atom.subject == "path" else atom


def fixed(path: str) -> Changed:
    """The new path is this one."""
    return lambda atom: about_path(atom, path)


def unknown(questions: Questions) -> Changed:
    """Nobody knows the new path."""
    return lambda _: questions.unknown(TWICE)


def has_prefix(prefix: str, questions: Questions) -> Formula:
    """Whether a path is the prefix or below it."""
    return any_of([questions.atoms.get("path", "str", (prefix,)), questions.atoms.get("path", "beg", (f"{prefix}/",))])


def stripped(prefix: str, questions: Questions) -> Changed:
    """`prefix` is taken away from the beginning of paths that have it."""
    begins = has_prefix(prefix, questions)

    def asked(atom: Atom) -> Formula:
        return any_of([all_of([begins, _behind(atom, prefix, questions)]), all_of([negated(begins), atom])])

    return asked


def put_before(prefix: str, questions: Questions) -> Changed:
    """`prefix`, without a slash at its end, is put before every path."""

    def asked(atom: Atom) -> Formula:
        if atom.match == "end":
            return atom
        if atom.match not in ("str", "beg"):
            return questions.unknown(TWICE)
        if atom.match == "beg" and any(prefix.startswith(value) for value in atom.values):
            return True
        left = tuple(value.removeprefix(prefix) for value in atom.values if value.startswith(f"{prefix}/"))
        return _same(atom, left, questions) if left else False

    return asked


def _behind(atom: Atom, prefix: str, questions: Questions) -> Formula:
    if atom.match == "str":
        bare = (prefix,) if "/" in atom.values else ()
        return _same(atom, (*bare, *(prefix + value for value in atom.values)), questions)
    if atom.match == "beg":
        return True if "/" in atom.values else _same(atom, tuple(prefix + value for value in atom.values), questions)
    if atom.match == "reg" and atom.values[0].startswith("^"):
        return _same(atom, (f"^{re.escape(prefix)}{atom.values[0][1:]}",), questions)
    return atom


def _same(atom: Atom, values: tuple[str, ...], questions: Questions) -> Formula:
    return questions.atoms.get("path", atom.match, values, ignore_case=atom.ignore_case)
