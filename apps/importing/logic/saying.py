"""Which lines decide what a route does: equal decisions of other servers and locations have other lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from apps.compiler.matching import patterns
from apps.importing.logic.answers import about_host, about_path
from apps.importing.logic.decisions import Decision, Program, Run
from apps.importing.logic.formulas import Atom
from apps.importing.logic.hostnames import example_of
from apps.importing.logic.paths import REGEX, REST, ROOT, Key
from apps.importing.logic.solved import Indexed
from apps.importing.logic.solving import Draft
from apps.importing.verdicts import Line


@dataclass(frozen=True, slots=True)
class Saying:
    """The rules of a port; `answers` are those that the port itself gives."""

    rules: Indexed
    answers: Mapping[Atom, bool]

    def of_draft(self, hostname: str, draft: Draft) -> Draft:
        """The draft with the lines of this host at a path of its key."""
        for path in _paths_of(draft.key):
            lines = self.lines(hostname, path, draft.decision, draft.conditions)
            if lines is not draft.decision.lines:
                return replace(draft, decision=replace(draft.decision, lines=lines))
        return draft

    def lines(self, hostname: str, path: str, decision: Decision, holding: frozenset[Atom]) -> tuple[Line, ...]:
        """The lines that decide so at the path; those of the decision where another one is made."""
        host = example_of(hostname)

        def known(atom: Atom) -> bool:
            if atom.subject in ("host", "path"):
                return about_host(atom, host) if atom.subject == "host" else about_path(atom, path)
            return self.answers.get(atom, atom in holding)

        found = Run({}, known).decide(Program(tuple(self.rules.of(host))))
        return found.lines if found == decision else decision.lines


def _paths_of(key: Key) -> Iterator[str]:
    if key == ROOT:
        yield REST
    if key.kind == REGEX:
        yield patterns.example_of(key.text)
    bare = key.text.removesuffix("(/.*)?").replace("\\", "").rstrip("/")
    yield from (f"{bare}/zz", bare or "/")
