"""A frontend of tcp as a load balancer whose listeners choose pools by the TLS name, or have one pool."""

from __future__ import annotations

from typing import Any

from apps.importing.haproxy.criteria.conditions import Conditions
from apps.importing.haproxy.listeners.admission import NOT_LOOKED_INTO, Admission
from apps.importing.haproxy.listeners.binds import binds_of, listener_of
from apps.importing.haproxy.listeners.certificates import Certificates
from apps.importing.haproxy.listeners.listening import add_options
from apps.importing.haproxy.rules.choosing import Choices
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.haproxy.traffic.frontends import NO_PORT, Made
from apps.importing.logic.certainty import answered, asks, surely
from apps.importing.logic.formulas import Atom, Formula, Or
from apps.importing.logic.hostnames import Hosts
from apps.importing.verdicts import Line, Verdict

BY_NAME = "A tcp listener chooses pools by the TLS name alone; give each protocol a port of its own."
OF_ALL = "Who may connect is said by a listener, for all of its pools; make a listener for each pool."


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
        admission = Admission(self.context, section, conditions)
        self._chosen.clear()
        default, routes = self._choices(section, conditions)
        targets = [default, *self._chosen]
        if admission.named is not None:
            names = self._names(*admission.named)
            routes |= {host: self._pool(default, 443) for host in names if default and host not in routes}
            default = ""
        said = self._of_backends(section, targets) | admission.listener()
        listeners = []
        for bind in binds:
            ledger.belongs(bind.line, f"LoadBalancer {name}")
            listener = listener_of(self.context, bind, "tcp", self.certificates) | said
            add_options(self.context, section, listener)
            if routes:
                listener["sni_routes"] = [{"hostname": host, "pool": pool} for host, pool in routes.items()]
            if default:
                listener["default_pool"] = self._pool(default, bind.port)
            if routes or default:
                listeners.append(listener)
        conditions.close(f"LoadBalancer {name}")
        self._headers(section)
        if listeners:
            self.made.load_balancers[name] = {"fleets": list(self.context.options.fleets), "listeners": listeners}
        else:
            ledger.differs(section.header, "No backend is named here, so connections would be closed.")

    def _of_backends(self, section: Section, names: list[str]) -> dict[str, Any]:
        """What rules of the backends say, where all connections go to one of them."""
        found: dict[str, Any] = {}
        targets = list(dict.fromkeys(filter(None, names)))
        for name in targets:
            backend = self.context.configuration.proxy(name)
            if backend is None or backend is section:
                continue
            conditions = Conditions(backend, self.context.questions, self.context.ledger)
            admission = Admission(self.context, backend, conditions)
            said = admission.listener()
            if admission.named is not None or ("access" in said and len(targets) > 1):
                self.context.ledger.impossible(backend.header, OF_ALL)
            elif said:
                self.context.ledger.differs(backend.header, "Limits of connections are those of the listener.")
                found |= said if len(targets) == 1 else {}
            conditions.close(f"Pool {self.context.name('Pool', name)}")
        return found

    def _headers(self, section: Section) -> None:
        """Lines of http that a tcp proxy inherits or has without using them."""
        for line in section.lines:
            if line.keyword in ("http-request", "http-response", "redirect", "monitor-uri"):
                self.context.ledger.note(line, Verdict.DEAD, "A tcp section has no requests.")

    def _choices(self, section: Section, conditions: Conditions) -> tuple[str, dict[str, str]]:
        """The default backend, and TLS names with their pools."""
        rules: list[Any] = []
        Choices(self.context, conditions, section, but=frozenset({"sni", "tls"})).add(rules)
        default = ""
        routes: dict[str, str] = {}
        of_tls: list[tuple[Line, str, bool]] = []
        for rule in rules:
            backend = str(rule.effect.data[0])
            condition = answered(rule.condition, "port", answer=True)
            if asks(condition, "sni"):  # who asks for a name speaks TLS
                condition = answered(condition, "tls", answer=True)
            if condition is True:
                default = default or backend
                continue
            if asks(condition, "tls"):
                of_tls.append((rule.line, backend, answered(condition, "tls", answer=True) is True))
                continue
            if any(is_all for _, _, is_all in of_tls):
                self.context.ledger.note(rule.line, Verdict.DEAD, "A line above takes all connections of TLS.")
                continue
            names = self._names(rule.line, condition)
            for name in names:
                routes.setdefault(name, self._pool(backend, 443))
                self._chosen.append(backend)
        for line, backend, is_all in of_tls:
            if is_all and default in ("", backend):
                default = backend
                self.context.ledger.differs(line, NOT_LOOKED_INTO)
            else:
                self.context.ledger.impossible(line, BY_NAME)
        return default, routes

    def _names(self, line: Line, condition: Formula) -> list[str]:
        """The TLS names of a condition, which is nothing but those."""
        sure, _ = surely(condition, but=frozenset({"sni"}))
        parts = sure.parts if isinstance(sure, Or) else (sure,)
        found = Hosts()
        for part in parts:
            if not isinstance(part, Atom) or part.subject != "sni":
                self.context.ledger.impossible(line, BY_NAME)
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
