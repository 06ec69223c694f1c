"""A frontend of tcp as a load balancer whose listeners have one pool, or choose by TLS name or first bytes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from apps.importing.haproxy.criteria.conditions import Conditions
from apps.importing.haproxy.listeners.admission import Admission
from apps.importing.haproxy.listeners.binds import binds_of, listener_of
from apps.importing.haproxy.listeners.certificates import Certificates
from apps.importing.haproxy.listeners.choices import ASKED, PROTOCOLS, Choice, chosen, names_of
from apps.importing.haproxy.listeners.listening import add_options
from apps.importing.haproxy.listeners.ports import Bind, leave, say_unreachable
from apps.importing.haproxy.pools.backends import protocol_of
from apps.importing.haproxy.rules.choosing import Choices
from apps.importing.haproxy.text.sections import Section
from apps.importing.haproxy.traffic.context import Context
from apps.importing.haproxy.traffic.frontends import Made
from apps.importing.logic.decisions import Effect, Rule
from apps.importing.verdicts import Ledger, Verdict

OF_ALL = "Who may connect is said by a listener, for all of its pools; make a listener for each pool."
UNREAD = "HAProxy chooses before it has read a request here, so this never holds; tcp-request content would wait."
AWAITED = (
    "Nodes wait for the first bytes; HAProxy has often not read them yet without inspect-delay and tcp-request content."
)
_OF_BEGINNING = re.compile(r"\b(?:req[._](?:ssl_|proto_http|payload|len)|payload\(|HTTP\b)")
REFUSALS = (("content", "reject"), ("connection", "reject"), ("content", "silent-drop"))
CLOSING = Effect("fixed")
PASSED = "Connections of a section of tcp go to its servers as they are, where HAProxy reads their requests."


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
        self.context.questions.waits = _waits(section)
        binds = binds_of(self.context, section)
        if not binds:
            say_unreachable(self.context, section)
            return
        name = self.made.load_balancer(self.context, section.name)
        ledger.mapped(section.header, f"LoadBalancer {name}")
        conditions = Conditions(section, self.context.questions, ledger)
        admission = Admission(self.context, section, conditions)
        self._chosen.clear()
        rules: list[Rule] = []
        Choices(self.context, conditions, section, but=ASKED).add(rules)
        rules = [replace(each, effect=CLOSING) if self._is_closing(each, name) else each for each in rules]
        self._say_unread(section, conditions, rules)
        choices = [chosen(rules, bind, say=ledger) for bind in binds]
        for choice in choices:
            _close_others(choice, admission, ledger)
            self._chosen += [*choice.names.values(), *choice.beginnings.values(), choice.default]
        own = admission.listener()
        said = self._of_backends(section, self._chosen, own) | own
        listeners = []
        for bind, choice in zip(binds, choices, strict=True):
            for line in (bind.line, *bind.beside):
                ledger.belongs(line, f"LoadBalancer {name}")
            listener = listener_of(self.context, bind, "tcp", self.certificates) | said
            add_options(self.context, section, listener)
            if (pools := self._pools(bind, choice)) and listener.get("certificates") != []:
                listeners.append(listener | pools)
        conditions.close(f"LoadBalancer {name}")
        self._headers(section)
        if listeners:
            self.made.load_balancers[name] = {"fleets": list(self.context.options.fleets), "listeners": listeners}
        else:
            for line in (section.header, *(bind.line for bind in binds)):
                ledger.differs(line, "No backend is named here, so connections would be closed.")
            leave(self.context, section)

    def _is_closing(self, rule: Rule, name: str) -> bool:
        """Whether it leads to a backend that refuses every connection, as a listener without a default pool does."""
        backend = self.context.configuration.proxy(str(rule.effect.data[0])) if rule.effect.kind == "backend" else None
        if backend is None or any(backend.each("server")):
            return False
        refusals = [each for each in backend.each("tcp-request") if each.words[1:] in REFUSALS]
        for line in (backend.header, *refusals) if refusals else ():
            self.context.ledger.mapped(line, f"LoadBalancer {name}")
        return bool(refusals)

    def _pools(self, bind: Bind, choice: Choice) -> dict[str, Any]:
        """The fields of a listener that name pools."""
        names = [{"hostname": host, "pool": self._pool(pool, 443)} for host, pool in choice.names.items()]
        beginnings = [_asked(each) | {"pool": self._pool(pool, bind.port)} for each, pool in choice.beginnings.items()]
        default = self._pool(choice.default, bind.port) if choice.default else None
        found = {"sni_routes": names, "protocol_routes": beginnings, "default_pool": default}
        return {name: value for name, value in found.items() if value}

    def _say_unread(self, section: Section, conditions: Conditions, rules: list[Rule]) -> None:
        """Lines that ask what HAProxy has not read yet, as it does not wait for the first bytes."""
        if self.context.questions.waits:
            return
        deciding = {rule.line for rule in rules}
        for line in section.each("use_backend"):
            if line not in deciding:
                self.context.ledger.outdone(line, UNREAD)
            elif any(_OF_BEGINNING.search(each.text) for each in (line, *conditions.lines_of(line.words))):
                self.context.ledger.differs(line, AWAITED)

    def _of_backends(self, section: Section, names: list[str], own: dict[str, Any]) -> dict[str, Any]:
        """What rules of the backends say, where all connections go to one of them; `own` is what the section says."""
        found: dict[str, Any] = {}
        targets = list(dict.fromkeys(filter(None, names)))
        for name in targets:
            backend = self.context.configuration.proxy(name)
            if backend is None or backend is section:
                continue
            conditions = Conditions(backend, self.context.questions, self.context.ledger)
            admission = Admission(self.context, backend, conditions)
            said = admission.listener()
            if admission.named is not None or ("access" in said and (len(targets) > 1 or "access" in own)):
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

    def _pool(self, backend: str, port: int) -> str:
        section = self.context.configuration.proxy(backend)
        if section is not None and protocol_of(section) == "http":
            self.made.passed.setdefault(backend, port)
            self.context.ledger.differs(section.header, PASSED)
        else:
            self.made.pools.setdefault(backend, port)
        return self.context.name("Pool", f"{backend} tcp" if backend in self.made.passed else backend)


def _waits(section: Section) -> bool:
    """Whether HAProxy reads anything before it chooses: it waits for what content rules ask, and for nothing else."""
    asks = any(line.words[2:3] != ("inspect-delay",) for line in section.each("tcp-request", "content"))
    return asks and section.last("tcp-request", "inspect-delay") is not None


def _asked(beginning: str) -> dict[str, str]:
    """How a route says what connections begin with."""
    return {"protocol" if beginning in PROTOCOLS else "alpn": beginning}


def _close_others(choice: Choice, admission: Admission, ledger: Ledger) -> None:
    """Where all TLS names but some are refused, those get the pool, and no other connection."""
    if admission.named is None:
        return
    for name in names_of(*admission.named, ledger):
        if choice.default:
            choice.names.setdefault(name, choice.default)
    choice.default = ""
    choice.beginnings.clear()
