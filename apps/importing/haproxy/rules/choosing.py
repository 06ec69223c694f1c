"""`use_backend` and `default_backend`: which backend gets a request, also by maps and by names made of parts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from apps.importing.context import say_unknown
from apps.importing.haproxy.criteria.conditions import Conditions
from apps.importing.haproxy.criteria.samples import Sample, parse_sample
from apps.importing.haproxy.rules.moved import Moved
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.logic.certainty import differing, surely
from apps.importing.logic.decisions import NOWHERE, Effect, Rule
from apps.importing.logic.formulas import Atom, Formula, all_of, any_of, simplified
from apps.importing.verdicts import Line

_DYNAMIC = re.compile(r"(.*?)%(?:\{[^}]*\})?\[(.*)\](.*)", re.DOTALL)
NOT_CHOSEN = "Connections that it is for get the default backend, or are closed; HAProxy does not start without it."


class Choices:
    """The last rules of a frontend; `but` are questions that only those of a tcp section can ask."""

    def __init__(
        self, context: Context, conditions: Conditions, section: Section, *,
        moved: Moved | None = None, but: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self.context = context
        self.moved = moved or Moved(context.questions)
        self.but = but
        self.conditions = conditions
        self.section = section

    def add(self, rules: list[Rule]) -> None:
        """In the order of HAProxy: what is chosen by a condition, then the default."""
        for line in self.section.each("use_backend"):
            words, formula = self.conditions.of(line.words[1:])
            if words:
                rules += self._one(line, words[0], formula)
        default = self.section.last("default_backend")
        if default is not None and len(default.words) > 1:
            rules += self._one(default, default.words[1], True)
        elif self._serves():
            rules += self._into(self.section.header, self.section.name, True)

    def _serves(self) -> bool:
        return self.section.kind == "listen" and any(
            line.keyword in ("server", "server-template", "dispatch") for line in self.section.all_lines()
        )

    def _one(self, line: Line, name: str, formula: Formula) -> Iterator[Rule]:
        ledger = self.context.ledger
        if self._stands_in(line, name, formula):
            return
        condition, unknown = surely(self.moved.before(self._while_up(line, name, formula)), but=self.but)
        for why in unknown:
            say_unknown(self.context, line, why, gone=condition is False)
        for why in differing(condition):
            ledger.differs(line, why)
        if condition is False:
            if not unknown:
                ledger.mapped(line)
            return
        found = _DYNAMIC.fullmatch(name)
        yield from self._named(line, found, condition) if found else self._fixed(line, name, condition)

    def _named(self, line: Line, found: re.Match[str], condition: Formula) -> Iterator[Rule]:
        """By a name that is made of the request."""
        ledger = self.context.ledger
        sample = parse_sample(found[2])
        rules = list(self._dynamic(line, found[1], sample, found[3], condition)) if sample else []
        if rules:
            ledger.mapped(line)
        elif sample and not surely(self.context.questions.map_keys(sample, "str", "name"))[1]:
            ledger.differs(line, "No backend of this file has such a name; its requests get default_backend, or 503.")
        elif ledger.verdict_of(line) is None:
            ledger.impossible(line, "The name of the backend is put together from parts that are not known here.")
            return
        yield from rules
        if line is not list(self.section.each("use_backend"))[-1]:
            yield from self._otherwise(line, condition)

    def _otherwise(self, line: Line, condition: Formula) -> Iterator[Rule]:
        """Who gets requests for whose backend there is no name: no rule below is asked."""
        default = self.section.last("default_backend")
        if default is not None and len(default.words) > 1:
            yield from self._into(default, default.words[1], condition)
        elif self._serves():
            yield from self._into(line, self.section.name, condition)
        else:
            yield Rule(line, condition, NOWHERE, 1)

    def _while_up(self, line: Line, name: str, formula: Formula) -> Formula:
        """The formula with yes for `nbsrv(name) ge 1`: whether the chosen backend itself has a server."""

        def known(atom: Atom) -> bool | None:
            of, *numbers = atom.values or ("",)
            wanted = (atom.subject, atom.match, of) == ("state", "nbsrv", name)
            return True if wanted and numbers in (["gt", "0"], ["ge", "1"]) else None

        left = simplified(formula, known)
        if left != formula:
            self.context.ledger.differs(line, f"While no server of {name} is up, its requests get 503.")
        return left

    def _stands_in(self, line: Line, name: str, formula: Formula) -> bool:
        """Whether the backend only gets requests while no server of another one is up."""
        if not isinstance(formula, Atom) or (formula.subject, formula.match) != ("state", "nbsrv"):
            return False
        of, *numbers = formula.values
        if self.context.configuration.proxy(name) is None or numbers not in (["lt", "1"], ["eq", "0"], ["0"]):
            return False
        self.context.stand_ins.setdefault(of, []).append(name)
        self.context.ledger.differs(line, f"The servers of {name} are backup servers of {of}.")
        return True

    def _fixed(self, line: Line, name: str, condition: Formula) -> Iterator[Rule]:
        is_missing = self.context.configuration.proxy(name) is None
        if is_missing and self.but:
            self.context.ledger.impossible(line, f"There is no backend {name}. {NOT_CHOSEN}")
            return
        if is_missing:
            self.context.ledger.differs(line, f"There is no backend {name}; requests get 503.")
        self.context.ledger.mapped(line)
        yield from self._into(line, name, condition)

    def _into(self, line: Line, name: str, condition: Formula) -> Iterator[Rule]:
        """The backend; before it those of its servers that rules of its own choose (`use-server`)."""
        backend = self.context.configuration.proxy(name)
        if backend is not None:
            for each in backend.each("use-server"):
                yield from self._one_server(each, backend, condition)
        yield Rule(line, condition, Effect("backend", (name,)), 1)

    def _one_server(self, line: Line, backend: Section, condition: Formula) -> Iterator[Rule]:
        conditions = Conditions(backend, self.context.questions, self.context.ledger)
        words, formula = conditions.of(line.words[1:])
        alone = self.context.configuration.with_one_server(backend, words[0]) if words else None
        chosen, unknown = surely(self.moved.before(formula), but=self.but)
        for why in unknown:
            say_unknown(self.context, line, why, gone=chosen is False)
        if alone is None or chosen is False:
            return
        for each in (line, *conditions.lines_of(line.words)):
            self.context.ledger.mapped(each)
        yield Rule(line, all_of([condition, chosen]), Effect("backend", (alone.name,)), 1)

    def _dynamic(self, line: Line, before: str, sample: Sample, after: str, condition: Formula) -> Iterator[Rule]:
        """A rule for each entry of a map, or for each backend whose name fits."""
        for at, (converter, args) in enumerate(sample.converters):
            if converter.startswith("map"):
                bare = Sample(sample.fetch, sample.args, sample.converters[:at])
                yield from self._by_map(line, (before, after), bare, converter, args, condition)
                return
        for section in self.context.configuration.of_kind("backend", "listen"):
            name = section.name
            if name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after):
                key = name[len(before) : len(name) - len(after)]
                formula, unknown = surely(self._key(sample, "str", key))
                if not unknown:
                    yield from self._into(line, name, all_of([condition, formula]))

    def _key(self, sample: Sample, kind: str, key: str) -> Formula:
        """Whether this key is the one of the request."""
        return self.moved.before(self.context.questions.map_keys(sample, kind, key))

    def _by_map(
        self,
        line: Line,
        around: tuple[str, str],
        sample: Sample,
        converter: str,
        args: tuple[str, ...],
        condition: Formula,
    ) -> Iterator[Rule]:
        entries = self.context.files.entries(args[0]) if args else None
        if entries is None:
            self.context.ledger.differs(line, f"The map {args[0] if args else ''} was not given.")
            self.context.need(f"The file {args[0] if args else ''}.")
            entries = []
        kind = converter.partition("_")[2].split("_")[0] or "str"
        if kind == "beg":
            entries = sorted(entries, key=lambda entry: -len(entry[0]))
        targets: dict[str, list[Formula]] = {}
        ordered = kind not in ("str", "")
        for key, value in entries:
            formula, unknown = surely(self._key(sample, kind, key))
            if unknown:
                self.context.ledger.differs(line, f"The map has a key that cannot be asked: {unknown[0]}.")
            elif ordered:
                yield from self._entry(line, around, value, all_of([condition, formula]))
            else:
                targets.setdefault(value, []).append(formula)
        for value, formulas in targets.items():
            yield from self._entry(line, around, value, all_of([condition, any_of(formulas)]))
        if len(args) > 1:
            yield from self._entry(line, around, args[1], condition)

    def _entry(self, line: Line, around: tuple[str, str], value: str, condition: Formula) -> Iterator[Rule]:
        """A backend that a map names and nobody has is the default one, as in HAProxy."""
        name = around[0] + value + around[1]
        if self.context.configuration.proxy(name) is None:
            yield from self._otherwise(line, condition)
        else:
            yield from self._into(line, name, condition)
