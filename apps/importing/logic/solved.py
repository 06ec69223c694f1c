"""The routes of a frontend for every host that it tells apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from apps.compiler.matching import hosts
from apps.importing.logic.answers import about_host
from apps.importing.logic.decisions import Decision, Effect, Program, Rule
from apps.importing.logic.formulas import Atom, atoms_of, simplified
from apps.importing.logic.hostnames import Hosts, example_of, hostnames_of, required_hosts
from apps.importing.logic.solving import Draft, Solution, Solver
from apps.importing.verdicts import Line

TOO_MANY = "Of its many conditions not all are told apart where several of them hold at once."
LOST = "It is lost beside the many other conditions of its place; ask less there, such as one pattern of several texts."


@dataclass(frozen=True, slots=True)
class HostRoutes:
    """The drafts of one hostname."""

    hostname: str
    drafts: tuple[Draft, ...]


@dataclass(slots=True)
class Indexed:
    """A program whose rules are found by the host that they ask for."""

    general: list[tuple[int, Rule]] = field(default_factory=list)
    by_host: dict[str, list[tuple[int, Rule]]] = field(default_factory=dict)

    def of(self, host: str) -> list[Rule]:
        """Rules that may hold for the host, in their order."""
        own = self.by_host.get(host, [])
        merged = sorted([*self.general, *own], key=lambda each: each[0]) if own else self.general
        return [rule for _, rule in merged]


def indexed(rules: tuple[Rule, ...]) -> Indexed:
    """The rules by the hosts that they ask for."""
    found = Indexed()
    for number, rule in enumerate(rules):
        required = required_hosts(rule.condition)
        if required is None:
            found.general.append((number, rule))
        for host in required or ():
            found.by_host.setdefault(host, []).append((number, rule))
    return found


@dataclass(slots=True)
class Frontend:
    """Solves for all hosts; equal lists of rules are solved once."""

    program: Program
    backends: Mapping[str, Program]
    answers: Mapping[Atom, bool]
    known_hosts: tuple[str, ...] = ()
    hosts: Hosts = field(default_factory=Hosts)
    differing: list[tuple[str, str, Decision]] = field(default_factory=list)
    too_many: bool = False
    unasked: set[Atom] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)
    _solved: dict[object, Solution] = field(default_factory=dict)

    def routes(self) -> Iterator[HostRoutes]:
        """Hostnames with their drafts; one whose drafts are those of the wildcard above it is left out."""
        atoms = {atom for rule in self._all_rules() for atom in atoms_of(rule.condition) if atom.subject == "host"}
        self.hosts = hostnames_of(sorted(atoms, key=repr), self.known_hosts)
        index, answers = indexed(self.program.rules), indexed(self.program.answers)
        done: dict[str, tuple[Draft, ...]] = {}
        ordered = sorted(dict.fromkeys((*self.hosts.names, hosts.ANY)), key=hosts.position_of, reverse=True)
        for hostname in ordered:
            drafts = self._of_host(hostname, index, answers)
            above = next((done[each] for each in hosts.names_that_cover(_below(hostname)) if each in done), None)
            done[hostname] = drafts
            if drafts != above:
                yield HostRoutes(hostname, drafts)

    def lost(self) -> Iterator[Line]:
        """Lines that decide nothing, or not all that they did, because there are too many conditions beside theirs."""
        for rule in self._all_rules() if self.too_many else ():
            if rule.line.number not in self.seen or not self.unasked.isdisjoint(atoms_of(rule.condition)):
                yield rule.line

    def _all_rules(self) -> Iterator[Rule]:
        for program in (self.program, *self.backends.values()):
            yield from program.rules
            yield from program.answers

    def _of_host(self, hostname: str, index: Indexed, answers: Indexed) -> tuple[Draft, ...]:
        host = example_of(hostname)

        def known(atom: Atom) -> bool | None:
            return about_host(atom, host) if atom.subject == "host" else self.answers.get(atom)

        def left(rules: list[Rule]) -> tuple[Rule, ...]:
            found = []
            for rule in rules:
                condition = simplified(rule.condition, known)
                if condition is not False:
                    found.append(replace(rule, condition=condition))
                if condition is True and rule.effect.kind == "backend":
                    break
            return tuple(found)

        program = Program(left(index.of(host)), left(answers.of(host)))
        named = dict.fromkeys(str(rule.effect.data[0]) for rule in program.rules if rule.effect.kind == "backend")
        backends = {
            name: Program(left(list(each.rules)), left(list(each.answers)))
            for name in named
            if (each := self.backends.get(name)) is not None and not each.is_empty()
        }
        solution, names = self._solve(program, backends, list(named))
        self.seen |= solution.seen
        self.seen |= {rule.line.number for rule in program.rules if rule.condition is True}
        for path, decision in solution.differing:
            self.differing.append((hostname, path, decision))
        self.too_many |= solution.too_many
        self.unasked |= solution.unasked
        return tuple(_named(draft, names, program) for draft in solution.drafts)

    def _solve(
        self, program: Program, backends: dict[str, Program], named: list[str]
    ) -> tuple[Solution, dict[str, str]]:
        """Backends without rules are numbered, so that frontends of ten thousand hosts are solved a few times."""
        plain = [name for name in named if name not in backends]
        numbers = {name: f"\0{number}" for number, name in enumerate(plain)}
        rules = tuple(_renamed(rule, numbers) for rule in program.rules)
        key = (
            _shape(rules), _shape(program.answers),
            tuple((name, _shape(each.rules), _shape(each.answers)) for name, each in backends.items()),
        )  # fmt: skip
        if key not in self._solved:
            solver = Solver(Program(rules, program.answers), backends, self.answers)
            self._solved[key] = solver.solve()
        return self._solved[key], {number: name for name, number in numbers.items()}


def _shape(rules: tuple[Rule, ...]) -> object:
    return tuple((rule.condition, rule.effect, rule.phase) for rule in rules)


def _below(hostname: str) -> str:
    """A name that this hostname's wildcards cover, and it itself does not."""
    if hostname == hosts.ANY:
        return "x"
    domain = hosts.domain_of(hostname)
    return domain if hostname.startswith("*") else hostname


def _renamed(rule: Rule, numbers: Mapping[str, str]) -> Rule:
    if rule.effect.kind != "backend" or str(rule.effect.data[0]) not in numbers:
        return rule
    return replace(rule, effect=Effect("backend", (numbers[str(rule.effect.data[0])],)))


def _named(draft: Draft, names: Mapping[str, str], program: Program) -> Draft:
    """With the names of the backends again, and the lines of this host."""
    final = draft.decision.final
    if final.kind != "backend" or str(final.data[0]) not in names:
        return draft
    name = names[str(final.data[0])]
    lines = [rule.line for rule in program.rules if rule.effect == Effect("backend", (name,))]
    own = tuple(line for line in draft.decision.lines if line not in lines)
    return replace(draft, decision=replace(draft.decision, final=Effect("backend", (name,)), lines=(*own, *lines)))
