"""A frontend of tcp as a load balancer whose listeners choose pools by the TLS name, or have one pool."""

from __future__ import annotations

from typing import Any

from apps.importing.haproxy.criteria.conditions import Conditions
from apps.importing.haproxy.listeners.binds import binds_of, listener_of
from apps.importing.haproxy.listeners.certificates import Certificates
from apps.importing.haproxy.listeners.listening import add_options
from apps.importing.haproxy.rules.choosing import Choices
from apps.importing.haproxy.rules.limits import limit_of, table_of
from apps.importing.haproxy.rules.programs import _action_of
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.haproxy.traffic.frontends import NO_PORT, Made
from apps.importing.logic.certainty import answered, asks, surely
from apps.importing.logic.formulas import Atom, Formula, Or, atoms_of
from apps.importing.logic.hostnames import Hosts
from apps.importing.verdicts import Line, Verdict

FIREWALL = "A tcp listener takes connections of all networks; keep others out by the firewall of the nodes."


class Connections:
    """Reads the tcp frontends of one file."""

    def __init__(self, context: Context, certificates: Certificates, made: Made) -> None:
        self.context = context
        self.certificates = certificates
        self.made = made
        self._chosen: list[str] = []

    def read(self, section: Section) -> None:
        """One frontend or listen section of mode tcp."""
        ledger = self.context.ledger
        self.context.questions.reads_requests = False
        binds = binds_of(self.context, section)
        if not binds:
            ledger.differs(section.header, NO_PORT)
            return
        name = self.context.name("LoadBalancer", section.name)
        ledger.mapped(section.header, f"LoadBalancer {name}")
        conditions = Conditions(section, self.context.questions, ledger)
        limit = self._rules(section, conditions)
        self._chosen.clear()
        default, routes = self._choices(section, conditions)
        listeners = []
        for bind in binds:
            ledger.belongs(bind.line, f"LoadBalancer {name}")
            listener = listener_of(self.context, bind, "tcp", self.certificates) | limit
            add_options(self.context, section, listener)
            if routes:
                listener["sni_routes"] = [{"hostname": host, "pool": pool} for host, pool in routes.items()]
            if default:
                listener["default_pool"] = self._pool(default, bind.port)
            if routes or default:
                listeners.append(listener)
        conditions.close(f"LoadBalancer {name}")
        self._backends(section, [default, *self._chosen])
        self._headers(section)
        if listeners:
            self.made.load_balancers[name] = {"fleets": list(self.context.options.fleets), "listeners": listeners}
        else:
            ledger.differs(section.header, "No backend is named here, so connections would be closed.")

    def _backends(self, section: Section, names: list[str]) -> None:
        """Rules that stand in the backends."""
        for name in dict.fromkeys(filter(None, names)):
            backend = self.context.configuration.proxy(name)
            if backend is None or backend is section:
                continue
            conditions = Conditions(backend, self.context.questions, self.context.ledger)
            if self._rules(backend, conditions):
                self.context.ledger.differs(backend.header, "Limits of connections are those of the listener.")
            conditions.close(f"Pool {self.context.name('Pool', name)}")

    def _headers(self, section: Section) -> None:
        """Lines of http that a tcp proxy inherits or has without using them."""
        for line in section.lines:
            if line.keyword in ("http-request", "http-response", "redirect", "monitor-uri"):
                self.context.ledger.note(line, Verdict.DEAD, "A tcp section has no requests.")

    def _rules(self, section: Section, conditions: Conditions) -> dict[str, Any]:
        """`tcp-request`: what waits for the TLS name is done anyway; limits are kept."""
        ledger = self.context.ledger
        found: dict[str, Any] = {}
        for line in section.each("tcp-request"):
            action, words = _action_of(line)
            _, formula = conditions.of(words)
            if action in ("inspect-delay", "accept", "set-var", "capture", "expect-proxy") or action.startswith(
                "track"
            ):
                ledger.mapped(line)
                if action == "accept" and asks(formula, "source"):
                    ledger.differs(line, FIREWALL)
            elif action in ("reject", "silent-drop"):
                found |= self._refused(section, line, formula)
        for line in section.each("tcp-response"):
            if _action_of(line)[0] in ("inspect-delay", "accept", "set-var"):
                ledger.mapped(line)
        return found

    def _refused(self, section: Section, line: Line, formula: Formula) -> dict[str, Any]:
        for atom in atoms_of(formula):
            if atom.subject != "rate":
                continue
            named = "" if atom.name.startswith("#") else atom.name
            table = table_of(self.context.configuration, section, named)
            limit = limit_of(atom, table, "src")
            if table is not None:
                self.context.ledger.mapped(table)
            block = dict(limit.block) if limit else {}
            if "requests" in block:
                self.context.ledger.mapped(line)
                if limit and "per minute" in limit.differs:
                    self.context.ledger.differs(line, "The rate is counted per minute.")
                return {"client_limit": {"connections": block["requests"], "per": block["per"]}}
            self.context.ledger.impossible(line, "Listeners limit new connections per client, not this counter.")
            return {}
        if asks(formula, "source"):
            self.context.ledger.impossible(line, FIREWALL)
        elif asks(formula, "unknown"):
            self.context.ledger.differs(
                line, "Connections are not looked into; the servers refuse what they do not speak."
            )
        else:
            self.context.ledger.mapped(line)
        return {}

    def _choices(self, section: Section, conditions: Conditions) -> tuple[str, dict[str, str]]:
        """The default backend, and TLS names with their pools."""
        rules: list[Any] = []
        Choices(self.context, conditions, section, but=frozenset({"sni"})).add(rules)
        default = ""
        routes: dict[str, str] = {}
        for rule in rules:
            backend = str(rule.effect.data[0])
            condition = answered(rule.condition, "port", answer=True)
            if condition is True:
                default = default or backend
                continue
            names = self._names(rule.line, condition)
            for name in names:
                routes.setdefault(name, self._pool(backend, 443))
                self._chosen.append(backend)
        return default, routes

    def _names(self, line: Line, condition: Formula) -> list[str]:
        """The TLS names of a condition, which is nothing but those."""
        sure, _ = surely(condition, but=frozenset({"sni"}))
        parts = sure.parts if isinstance(sure, Or) else (sure,)
        found = Hosts()
        for part in parts:
            if not isinstance(part, Atom) or part.subject != "sni":
                self.context.ledger.impossible(line, "A tcp listener chooses pools by the TLS name alone.")
                continue
            for value in part.values:
                if part.match == "str":
                    found.add(value)
                elif part.match in ("end", "dom") and "." in value.strip("."):
                    found.add("*." + value.strip("."))
                    self.context.ledger.differs(line, "One label before the domain is taken, not several.")
                else:
                    self.context.ledger.impossible(line, "TLS names are whole ones, or *. and a domain.")
        for value, why in found.odd.items():
            self.context.ledger.differs(line, f"{value} is no hostname here: {why}")
        return list(found.names)

    def _pool(self, backend: str, port: int) -> str:
        self.made.pools.setdefault(backend, port)
        name = self.context.name("Pool", backend)
        return f"{self.context.options.account}/{name}" if self.context.options.account else name
