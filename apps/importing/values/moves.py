"""Paths, hosts and headers that rules change: what is asked below them, said of the request as the client sent it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from apps.importing.logic.answers import about_host, about_path, about_text
from apps.importing.logic.formulas import And, Atom, Formula, all_of, any_of, atoms_of, negated, replaced
from apps.importing.logic.questions import Questions

# So many questions about the request before come at most of those about the one that was changed.
MOST = 64
KEPT = "kept"  # the name of a path that was kept before it was changed
TWICE = "the path was changed above in a way that cannot be followed"
WRITTEN = "a line above writes this header from others"
Changed = Callable[[Atom], Formula]
_LITERAL = re.compile(r"\^?((?:/[A-Za-z0-9_-]+)*/?)")


@dataclass(frozen=True, slots=True)
class Move:
    """Where the condition holds, a question about the new request is `asked` of the one before."""

    condition: Formula
    asked: Changed

    def within(self, condition: Formula) -> Move:
        """The same, where another condition holds as well."""
        return Move(all_of([condition, self.condition]), self.asked)

    def before(self, atom: Atom) -> Formula:
        """The question about the request as it was before the move."""
        here = self.asked(atom)
        if here is atom or (here is False and _is_elsewhere(atom, self.condition)):
            return atom
        return any_of([all_of([self.condition, here]), all_of([negated(self.condition), atom])])


def before(formula: Formula, moves: list[Move], questions: Questions) -> Formula:
    """The formula about the request as the client sent it; `moves` are those that were made, the last one last."""
    most = MOST + sum(1 for _ in atoms_of(formula)) if moves else 0
    for move in reversed(moves):
        formula = replaced(formula, move.before)
        if sum(1 for _ in atoms_of(formula)) > most:
            return questions.unknown(TWICE)
    return formula


def of_path(asked: Changed) -> Changed:
    """The change of questions about the path, but not about one that was kept."""
    return lambda atom: asked(atom) if atom.subject == "path" and atom.name != KEPT else atom


def _is_elsewhere(atom: Atom, condition: Formula) -> bool:
    """Whether no path that the question takes fulfils the condition."""
    parts = condition.parts if isinstance(condition, And) else (condition,)
    asked = [part for part in parts if isinstance(part, Atom) and part.subject == "path"]
    return any(_are_apart(beginnings(atom), beginnings(each)) for each in asked)


def _are_apart(some: list[str], others: list[str]) -> bool:
    return all(not one.startswith(other) and not other.startswith(one) for one in some for other in others)


def beginnings(atom: Atom) -> list[str]:
    """How the paths begin that a question about them takes."""
    if atom.match in ("str", "beg"):
        found = list(atom.values)
    elif atom.match == "segment":
        found = [f"/{value}" for value in atom.values]
    else:
        found = [head(value) if atom.match == "reg" else "" for value in atom.values]
    return [text.lower() for text in found]


def head(expression: str) -> str:
    """The plain text with which every path begins that an expression takes; of a replacement that it makes."""
    found = _LITERAL.match(expression)
    if found is None or "|" in expression or expression[found.end() : found.end() + 1] not in ("(", "\\", ""):
        return ""
    return found[1] if expression.startswith(("^", "/")) else ""


def fixed(path: str) -> Changed:
    """The new path is this one."""
    return of_path(lambda atom: about_path(atom, path))


def unknown(questions: Questions) -> Changed:
    """Nobody knows the new path."""
    return of_path(lambda _: questions.unknown(TWICE))


def by_pattern(replacement: str, questions: Questions) -> Changed:
    """Of the new path only its beginning is known."""
    begin = [head(replacement).lower()]
    return of_path(lambda atom: not _are_apart(beginnings(atom), begin) and questions.unknown(TWICE))


def host_set(host: str) -> Changed:
    """The new host is this one."""
    return lambda atom: about_host(atom, host) if atom.subject == "host" else atom


def header_set(name: str, text: str | None, questions: Questions, *, adds: bool = False) -> Changed:
    """The header says this, and none of that name is left where it is empty; nobody knows of None what it says."""

    def asked(atom: Atom) -> Formula:
        if (atom.subject, atom.name.lower()) != ("header", name.lower()):
            return atom
        if text is None:
            return atom.match == "found" or questions.unknown(WRITTEN)
        said = bool(text) and about_text(atom, text)
        return any_of([said, atom]) if adds else said

    return asked


def has_prefix(prefix: str, questions: Questions) -> Formula:
    """Whether a path is the prefix or below it."""
    return any_of([questions.atoms.get("path", "str", (prefix,)), questions.atoms.get("path", "beg", (f"{prefix}/",))])


def stripped(prefix: str, questions: Questions) -> Changed:
    """`prefix` is taken away from the beginning of paths that have it."""
    begins = has_prefix(prefix, questions)

    def asked(atom: Atom) -> Formula:
        return any_of([all_of([begins, _behind(atom, prefix, questions)]), all_of([negated(begins), atom])])

    return of_path(asked)


def put_before(prefix: str, questions: Questions) -> Changed:
    """`prefix`, without a slash at its end, is put before every path."""

    def asked(atom: Atom) -> Formula:
        if _are_apart(beginnings(atom), [f"{prefix}/".lower()]):
            return False
        if about_path(atom, prefix) and atom.match in ("sub", "dir", "segment"):
            return True
        if atom.match in ("sub", "dir", "end"):
            spans = any("/" in value.strip("/") for value in atom.values)
            return questions.unknown(TWICE) if spans else atom
        if atom.match not in ("str", "beg"):
            return questions.unknown(TWICE)
        as_compared = str.lower if atom.ignore_case else str
        values, begin = [as_compared(value) for value in atom.values], as_compared(prefix)
        if atom.match == "beg" and any(begin.startswith(value) for value in values):
            return True
        left = tuple(value.removeprefix(begin) for value in values if value.startswith(f"{begin}/"))
        return _same(atom, left, questions) if left else False

    return of_path(asked)


def replaced_by(prefix: str, new: str, questions: Questions) -> Changed:
    """`prefix` at the beginning of paths that have it becomes `new`; neither has a slash at its end."""
    above, behind = put_before(new, questions), stripped(prefix, questions)
    if not prefix:
        return above
    return behind if not new else lambda atom: replaced(above(atom), behind)


def _behind(atom: Atom, prefix: str, questions: Questions) -> Formula:
    if atom.match == "str":
        bare = (prefix,) if "/" in atom.values else ()
        return _same(atom, (*bare, *(prefix + value for value in atom.values)), questions)
    if atom.match == "beg":
        return True if "/" in atom.values else _same(atom, tuple(prefix + value for value in atom.values), questions)
    if atom.match == "segment":
        first = prefix.strip("/")
        return _same(atom, tuple(f"{first}/{value}" for value in atom.values), questions)
    if atom.match == "reg" and atom.values[0].startswith("^"):
        return _same(atom, (f"^{re.escape(prefix)}{atom.values[0][1:]}",), questions)
    return questions.unknown(TWICE) if about_path(atom, prefix) else atom


def _same(atom: Atom, values: tuple[str, ...], questions: Questions) -> Formula:
    return questions.atoms.get("path", atom.match, values, ignore_case=atom.ignore_case)
