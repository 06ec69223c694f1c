"""A frontend of http as a load balancer with its routes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.importing.context import believe
from apps.importing.haproxy.criteria.conditions import Conditions
from apps.importing.haproxy.criteria.numbers import number_holds
from apps.importing.haproxy.listeners.binds import binds_of, listener_of
from apps.importing.haproxy.listeners.certificates import Certificates
from apps.importing.haproxy.listeners.listening import BELIEVED, add_options
from apps.importing.haproxy.listeners.ports import Bind, say_unreachable
from apps.importing.haproxy.pools.backends import protocol_of
from apps.importing.haproxy.rules.moved import Moved, behind
from apps.importing.haproxy.rules.programs import Reader
from apps.importing.haproxy.rules.soft import Soft
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.haproxy.traffic.pages import error_pages, pages_of
from apps.importing.logic.answers import about_host
from apps.importing.logic.conditions import called, conditions_of, told_apart
from apps.importing.logic.decisions import Effect, Program
from apps.importing.logic.formulas import Atom, atoms_of
from apps.importing.logic.hostnames import example_of
from apps.importing.logic.outcomes import Outcome, Unsayable, outcome_of
from apps.importing.logic.solved import LOST, TOO_MANY, Frontend
from apps.importing.logic.solving import Draft
from apps.importing.results.circles import end_circles
from apps.importing.verdicts import Line

TELLING = re.compile(r"\bhdr(?:_\w+)?\(x-forwarded-proto[,)]", re.IGNORECASE)
NAMING = re.compile(r"\bhdr_ip\(", re.IGNORECASE)
OF_TCP = "HAProxy does not start where a section of http uses one of tcp; this one is read as one of http."


@dataclass(slots=True)
class Made:
    """What came of the frontends: specifications by kind and name; `pools` are the backends that routes use.

    `asked` are those of tcp that sections of http use, which HAProxy would not start with; `passed` those of http that
    get connections of sections of tcp.
    """

    load_balancers: dict[str, dict[str, Any]] = field(default_factory=dict)
    routes: dict[str, dict[str, Any]] = field(default_factory=dict)
    pools: dict[str, int] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    passed: dict[str, int] = field(default_factory=dict)

    def load_balancer(self, context: Context, text: str) -> str:
        """A name that no other load balancer has: old files have several sections of one name."""
        return context.free_name("LoadBalancer", text, self.load_balancers)


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a load balancer, each with whether it speaks TLS; `is_told`: a proxy in front says the scheme."""

    ports: tuple[tuple[int, bool], ...]
    is_told: bool

    @property
    def both(self) -> bool:
        """Whether requests of both schemes come."""
        return self.is_told or {encrypted for _, encrypted in self.ports} == {True, False}

    def all_are(self, told: str, scheme: object) -> bool:
        """Whether each request of this scheme, or of any, comes as it is told: by `https`, or at the port `443`."""
        if told in ("http", "https"):
            return scheme == told or (not self.is_told and all(each == (told == "https") for _, each in self.ports))
        asked = [port for port, encrypted in self.ports if scheme is None or encrypted == (scheme == "https")]
        return not self.is_told and all(port == int(told) for port in asked)


class Frontends:
    """Reads the http frontends of one file."""

    def __init__(self, context: Context, certificates: Certificates, made: Made) -> None:
        self.context = context
        self.certificates = certificates
        self.made = made
        self._programs: dict[str, Program] = {}
        self._moved = Moved(context.questions)
        self._lines: dict[str, tuple[Line, ...]] = {}
        self._deciding: dict[Line, Section] = {}

    def read(self, section: Section) -> None:
        """One frontend or listen section of mode http."""
        self.context.questions.reads_requests = True
        binds = binds_of(self.context, section)
        if not binds:
            say_unreachable(self.context, section)
            return
        owner = f"LoadBalancer {self.made.load_balancer(self.context, section.name)}"
        self.context.ledger.mapped(section.header, owner)
        program = self._program(section, owner)
        backends = self._backends(program, section)
        solved = [
            self._load_balancer(section, group, program, backends, at)
            for at, group in enumerate(_by_port(program, backends, binds))
        ]
        self._say(section, solved, program)

    def _load_balancer(
        self, section: Section, binds: list[Bind], program: Program, backends: dict[str, Program], at: int
    ) -> Frontend:
        """One for ports that the rules do not tell apart; the first has the name of the section."""
        text = f"{section.name}-{binds[0].port}" if at else section.name
        name = self.made.load_balancer(self.context, text)
        owner = f"LoadBalancer {name}"
        listeners = []
        for bind in binds:
            listener = listener_of(self.context, bind, "http", self.certificates)
            add_options(self.context, section, listener)
            if program.access:
                listener["access"] = dict(program.access)
            for line in (bind.line, *bind.beside):
                self.context.ledger.belongs(line, owner)
            if listener.get("certificates") != []:
                listeners.append(listener)
        self.made.load_balancers[name] = {"fleets": list(self.context.options.fleets), "listeners": listeners}
        return self._routes(section, name, program, backends, binds)

    def _program(self, section: Section, owner: str) -> Program:
        conditions = Conditions(section, self.context.questions, self.context.ledger)
        moved = Moved(self.context.questions)
        program = Reader(self.context, section, conditions, Soft(self.context, section), moved).program()
        if section.kind != "backend":
            self._moved = moved
        conditions.close(owner)
        return program

    def _backends(self, program: Program, section: Section) -> dict[str, Program]:
        """Programs of the backends that the rules name; `listen` sections have theirs already."""
        found: dict[str, Program] = {}
        for rule in program.rules:
            name = str(rule.effect.data[0]) if rule.effect.kind == "backend" else ""
            each = self.context.configuration.proxy(name) if name else None
            if each is None or each is section or name in found:
                continue
            if name not in self._programs:
                is_backend = each.kind == "backend"
                self._deciding |= {line: each for line in each.lines if is_backend}
                self._programs[name] = self._program(each, f"Pool {name}") if is_backend else Program()
            found[name] = behind(self._programs[name], self._moved, self.context.ledger)
        return found

    def _routes(
        self, section: Section, name: str, program: Program, backends: dict[str, Program], binds: list[Bind]
    ) -> Frontend:
        sections = [section, *filter(None, map(self.context.configuration.proxy, backends))]
        listeners = self.made.load_balancers[name]["listeners"]
        lines = [line for each in sections for line in each.lines]
        is_told = believe(self.context, listeners, (line for line in lines if TELLING.search(line.text)))
        believe(self.context, listeners, (line for line in lines if NAMING.search(line.text)), BELIEVED)
        answers = self._answers(program, backends, binds, is_told=is_told)
        known = [host for each in program.rules for host in _hosts_of(each.effect.data)]
        frontend = Frontend(program, backends, answers, tuple(known))
        reached = {each: self.context.configuration.proxy(each) for each in backends}
        lines_of_front = pages_of(self.context, section)
        pages = {"": error_pages(self.context, lines_of_front)}
        for each, backend in reached.items():
            own = pages_of(self.context, backend) if backend else []
            if own and own != lines_of_front:
                pages[each] = error_pages(self.context, lines_of_front + own)
        ports = Ports(tuple((bind.port, bind.has("ssl")) for bind in binds), is_told)
        before = set(self.made.routes)
        for found in frontend.routes():
            for draft in found.drafts:
                self._route(name, found.hostname, draft, pages, ports)
        made = {each: spec for each, spec in self.made.routes.items() if each not in before}
        end_circles(self.context, self.made.load_balancers[name], made, self._lines)
        self.made.routes |= made
        return frontend

    def _answers(
        self, program: Program, backends: Mapping[str, Program], binds: list[Bind], *, is_told: bool
    ) -> dict[Atom, bool]:
        """What the ports decide: the scheme where no proxy in front tells it, and questions about ports."""
        atoms = _atoms_of_all(program, backends)
        schemes = {bind.has("ssl") for bind in binds}
        found: dict[Atom, bool] = {}
        for atom in atoms:
            if atom.subject == "never":
                found[atom] = False
            elif atom.subject == "scheme" and len(schemes) == 1 and not is_told:
                found[atom] = schemes == {True}
            elif atom.subject == "port":
                found[atom] = all(number_holds(atom.values, bind.port) for bind in binds)
        return found

    def _route(
        self, load_balancer: str, hostname: str, draft: Draft, pages: dict[str, dict[str, Any]], ports: Ports
    ) -> None:
        ledger = self.context.ledger
        try:
            outcome = outcome_of(draft.decision, draft.key, hostname, self._pool)
        except Unsayable as error:
            *others, last = draft.decision.lines
            changing = filter(_changes_path, others) if draft.decision.final.kind == "backend" else ()
            for line in (*changing, last):
                ledger.differs(line, f"{hostname}{draft.key.text}: {error}")
            return
        spec: dict[str, Any] = {"load_balancer": load_balancer, "hostname": hostname}
        if (draft.key.kind, draft.key.text) != ("prefix", "/"):
            spec |= {"path": draft.key.text, "path_kind": draft.key.kind}
        if "redirect" in outcome.action and any(map(_rewrites_path, draft.decision.changes)):
            for line in draft.decision.lines[-1:]:
                ledger.differs(
                    line, "Redirects are made of the path that the client asked for, before it is rewritten."
                )
        conditions = conditions_of(draft.conditions)
        redirect = outcome.action.get("redirect", {})
        if ports.both and redirect.get("scheme") == "https" and "scheme" not in conditions and "host" not in redirect:
            conditions["scheme"] = "http"
        spec |= conditions | outcome.spec()
        told = outcome.rules.pop("told", {})
        backend = str(draft.decision.final.data[0]) if draft.decision.final.kind == "backend" else ""
        self._say_told(draft, told if backend else {}, conditions.get("scheme"), ports)
        rules = _rules(outcome, pages.get(backend, pages[""]))
        if rules:
            spec["rules"] = rules
        text = f"{load_balancer}-{'any' if hostname == '*' else hostname.replace('*', 'any')}{_slug(draft)}"
        name = self.context.name("Route", text + called(draft.conditions), told_apart(draft.conditions))
        if name in self.made.routes:
            name = self.context.free_name("Route", f"{text}-more", self.made.routes)
        self.made.routes[name] = spec
        self._lines[name] = draft.decision.lines[-1:]
        for line in draft.decision.lines:
            self._belongs(line, f"Route {name}")

    def _belongs(self, line: Line, route: str) -> None:
        """The line is part of the route, and so is the backend that it stands in, whether or not it has a pool."""
        self.context.ledger.belongs(line, route)
        if line in self._deciding:
            self.context.ledger.mapped(self._deciding[line].header)

    def _say_told(self, draft: Draft, said: dict[str, str], scheme: object, ports: Ports) -> None:
        """What servers were told of scheme and port, where it is not that of the connection."""
        for name, value in said.items():
            if ports.all_are(value, scheme):
                continue
            for line in draft.decision.lines:
                if name in line.text.lower():
                    self.context.ledger.differs(
                        line, f"Servers are told what the connection of the client is, which is not always {value}."
                    )

    def _pool(self, backend: str) -> str | None:
        """The name of the pool of a backend."""
        section = self.context.configuration.proxy(backend)
        if section is None:
            return None
        if protocol_of(section) != "http":
            self.made.asked.add(backend)
            self.context.ledger.differs(section.header, OF_TCP)
        self.made.pools.setdefault(backend, 0)
        return self.context.name("Pool", backend)

    def _say(self, section: Section, solved: list[Frontend], program: Program) -> None:
        """Examples that are decided otherwise, values that can be no hostname, lines that decide nothing."""
        ledger = self.context.ledger
        for frontend in solved:
            self._say_hosts(frontend, program)
            for hostname, path, decision in frontend.differing:
                for line in decision.lines or (section.header,):
                    ledger.differs(line, f"Some requests of {hostname} such as {path} are decided by another line.")
            if frontend.too_many:
                ledger.differs(section.header, TOO_MANY)
            for line in frontend.lost():
                ledger.impossible(line, LOST)
        for rule in program.rules:
            if not any(rule.line.number in each.seen for each in solved) and rule.line is not section.header:
                ledger.outdone(
                    rule.line, "Lines above decide every request before this one, or no host is known for it."
                )

    def _say_hosts(self, frontend: Frontend, program: Program) -> None:
        """Hosts that can be no hostnames, and questions about parts of hosts."""
        for rule in (*program.rules, *program.answers):
            atoms = {each for each in atoms_of(rule.condition) if each.subject == "host"}
            for atom in sorted(atoms, key=repr):
                self._say_host(rule.line, atom, frontend)
                for value in sorted(frontend.hosts.odd.keys() & {value.partition(":")[0] for value in atom.values}):
                    why = f"{value} is no hostname here: {frontend.hosts.odd[value]}"
                    self.context.ledger.differs(rule.line, why)

    def _say_host(self, line: Line, atom: Atom, frontend: Frontend) -> None:
        """Parts of a host are asked of the hosts that the file names; routes have whole ones and endings."""
        whole = atom.match in ("end", "dom") and all("." in value.strip(".") for value in atom.values)
        if atom.match in ("str", "found") or whole:
            return
        named = [name for name in frontend.hosts.names if about_host(atom, example_of(name))]
        if named:
            shown = ", ".join(named[:3])
            self.context.ledger.differs(
                line, f"Of all hosts that fit ({atom!r}), those of this file have routes: {shown}."
            )
        else:
            self.context.ledger.differs(line, f"No host of this file fits ({atom!r}); add routes for those that do.")


def _atoms_of_all(program: Program, backends: Mapping[str, Program]) -> set[Atom]:
    rules = [rule for each in (program, *backends.values()) for rule in (*each.rules, *each.answers)]
    return {atom for rule in rules for atom in atoms_of(rule.condition)}


def _by_port(program: Program, backends: Mapping[str, Program], binds: list[Bind]) -> list[list[Bind]]:
    """The ports in groups of those for which every question about ports has the same answer."""
    asked = sorted((atom for atom in _atoms_of_all(program, backends) if atom.subject == "port"), key=repr)
    found: dict[tuple[bool, ...], list[Bind]] = {}
    for bind in binds:
        found.setdefault(tuple(number_holds(atom.values, bind.port) for atom in asked), []).append(bind)
    return list(found.values())


def _changes_path(line: Line) -> bool:
    """Whether it is one of those that servers get another path by."""
    return any("path" in word or "uri" in word or word.startswith("req") for word in line.words[:2])


def _rewrites_path(change: Effect) -> bool:
    return change.data[0] == "path" or change.data[:2] in (("rewrite", "path"), ("rewrite", "path_regex"))


def _hosts_of(data: tuple[object, ...]) -> list[str]:
    """Hosts that a redirect names."""
    return [host for each in data if (host := getattr(each, "host", "")) and host.isprintable() and "." in host]


def _rules(outcome: Outcome, pages: dict[str, Any]) -> dict[str, Any]:
    own = {block: said for block, said in outcome.rules.items() if said}
    return own | (pages if "pools" in outcome.action else {})


def _slug(draft: Draft) -> str:
    text = draft.key.text if draft.key.text != "/" or draft.key.kind != "prefix" else ""
    return f"-{text}" if text else ""
