"""Which pool a tcp listener chooses: by the TLS name, or by what clients send first."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import partial

from apps.compiler.model.listener_options import ClientProtocol
from apps.importing.haproxy.criteria.numbers import number_holds
from apps.importing.haproxy.listeners.ports import Bind
from apps.importing.logic.certainty import surely
from apps.importing.logic.decisions import Rule
from apps.importing.logic.formulas import Atom, Formula, Or, atoms_of, simplified
from apps.importing.logic.hostnames import Hosts
from apps.importing.verdicts import Ledger, Line

PROTOCOLS = frozenset(ClientProtocol)
# What is kept in conditions until a connection is given: its TLS name, and how it begins.
ASKED = frozenset({"sni", "alpn", *PROTOCOLS})
# What begins in no way that rules ask for.
REST = "rest"
_BELOW = re.compile(r"\^?\((?:\?:)?(?:\.[*+]|\[[^\]]+\][*+])\\\.\)[?*]((?:[A-Za-z0-9-]+\\\.)+[A-Za-z0-9-]+)\$")
BY_NAME_ALONE = "A tcp listener chooses pools only by the TLS name and by what clients send first."
CLOSED = "Connections that HAProxy closes for how they begin get this pool too."
ALPN_FIRST = "A protocol of ALPN is looked at before any name."
AMONG_OTHERS = "It is taken wherever the client offers it by ALPN, also among others."
UNNAMED = "TLS that asks for no name is taken as if it asked for one that no route has."
ALONE = "acme-tls/1"  # no client offers it beside others (RFC 8737)


@dataclass(slots=True)
class Choice:
    """Backends by TLS name and by how connections begin, and the one of all others, with the line that says so."""

    names: dict[str, str] = field(default_factory=dict)
    beginnings: dict[str, str] = field(default_factory=dict)
    default: str = ""
    line: Line | None = None


@dataclass(frozen=True, slots=True)
class _Beginning:
    """A connection that rules can tell from others: by its protocol, and what its TLS offers by ALPN."""

    protocol: str = ""
    alpn: str = ""
    is_named: bool = False

    def answer(self, atom: Atom) -> bool | None:
        """None where names decide."""
        if atom.subject == "sni":
            return self.is_named if atom.match == "found" or not self.is_named else None
        if atom.match == "alpn":
            return self.alpn in atom.values
        if atom.match == ClientProtocol.HTTP:
            return self.protocol in (ClientProtocol.HTTP, ClientProtocol.WEBSOCKET)
        return atom.match == self.protocol if atom.match in PROTOCOLS else None


def chosen(rules: list[Rule], bind: Bind, *, say: Ledger) -> Choice:
    """The choice of one port. What it cannot say is said at the lines that it is lost of."""
    found = {name: _of_beginning(rules, bind, each, say) for name, each in _beginnings(rules, bind).items()}
    rest = found.pop(REST)
    named = rest if bind.has("ssl") else found[ClientProtocol.TLS]
    choice = Choice(named.names, {}, rest.default, rest.line)
    for name, each in found.items():
        usual = _otherwise(name, found, bind) or rest
        if each.line is not None and each.default and each.default != usual.default:
            choice.beginnings[name] = each.default
            _say_order(name, each, bind, say)
        elif rest.line is not None and rest.default and not each.default:
            say.differs(rest.line, CLOSED)
    return choice


def _otherwise(name: str, found: dict[str, Choice], bind: Bind) -> Choice | None:
    """What takes connections that no route of their own takes, before the pool of all others does."""
    if name not in PROTOCOLS and not bind.has("ssl"):
        return found[ClientProtocol.TLS]
    of_http = found.get(ClientProtocol.HTTP) if name == ClientProtocol.WEBSOCKET else None
    return of_http if of_http is not None and of_http.default else None


def _beginnings(rules: list[Rule], bind: Bind) -> dict[str, _Beginning]:
    """Each way that a connection may begin, by what a listener calls it; inside of TLS nobody begins it again."""
    asked = [atom for rule in rules for atom in atoms_of(rule.condition)]
    offered = [value for atom in asked if atom.match == "alpn" for value in atom.values]
    is_ended = bind.has("ssl")
    if is_ended:
        offered = [value for value in offered if value in ",".join(bind.all("alpn")).split(",")]
    found = {REST: _Beginning(is_named=is_ended)}
    for name in dict.fromkeys(offered):
        found[name] = _Beginning("" if is_ended else ClientProtocol.TLS, name, is_named=True)
    for each in ClientProtocol:
        if each is not ClientProtocol.TLS or not is_ended:
            found[each] = _Beginning(each, is_named=is_ended or each is ClientProtocol.TLS)
    return found


def _say_order(name: str, found: Choice, bind: Bind, say: Ledger) -> None:
    """What a route of ALPN takes that the line did not."""
    if found.line is None or name in PROTOCOLS:
        return
    if found.names:
        say.differs(found.line, ALPN_FIRST)
    if name != ALONE and not bind.has("ssl"):
        say.differs(found.line, AMONG_OTHERS)


def _of_beginning(rules: list[Rule], bind: Bind, first: _Beginning, say: Ledger) -> Choice:
    """The choice for connections that begin like this."""
    found = Choice()
    for rule in rules:
        backend = str(rule.effect.data[0]) if rule.effect.kind == "backend" else ""
        if first.is_named and any(each.subject == "sni" and each.match == "found" for each in atoms_of(rule.condition)):
            say.differs(rule.line, UNNAMED)
        condition = simplified(rule.condition, partial(_answer, bind, first, found.names.keys()))
        if condition is True:
            found.default, found.line = backend, rule.line
            return found
        if condition is False:
            continue
        for name in names_of(rule.line, condition, say):
            if not backend:
                say.impossible(rule.line, f"Connections for {name} are not closed here; they get what others get.")
            elif name.startswith("*.") or f"*.{name.partition('.')[2]}" not in found.names:
                found.names.setdefault(name, backend)
            else:
                say.differs(rule.line, f"{name} is taken by a line above.")
    return found


def _answer(bind: Bind, first: _Beginning, taken: Collection[str], atom: Atom) -> bool | None:
    if atom.subject == "sni" and atom.match == "str" and atom.values and set(atom.values) <= set(taken):
        return False  # a line above has them
    if atom.subject == "port":
        return number_holds(atom.values, bind.port)
    if atom.match == "alpn" and (atom.name == "agreed") != bind.has("ssl"):
        return False
    return first.answer(atom) if atom.subject in ("sni", "unknown") else None


def _domain_of(atom: Atom, value: str) -> str:
    r"""The domain whose names are asked for, also by an expression such as `^(.+\.)?example\.com$`; else empty."""
    domain = value.strip(".") if atom.match in ("end", "dom", "sub") else ""
    if atom.match == "reg" and (found := _BELOW.fullmatch(value)):
        domain = found[1].replace("\\.", ".").lower()
    return domain if "." in domain else ""


def names_of(line: Line, condition: Formula, say: Ledger) -> Iterator[str]:
    """The TLS names of a condition, which is nothing but those."""
    sure, _ = surely(condition, but=frozenset({"sni"}))
    parts = sure.parts if isinstance(sure, Or) else (sure,)
    found = Hosts()
    for part in parts:
        if not isinstance(part, Atom) or part.subject != "sni":
            say.impossible(line, BY_NAME_ALONE)
            continue
        for value in part.values:
            if part.match == "str":
                found.add(value)
            elif domain := _domain_of(part, value):
                found.add("*." + domain)
                say.differs(line, "One label before the domain is taken, not several.")
                if part.match == "sub":
                    say.differs(line, f"Names in which {value} stands elsewhere are not taken.")
                if part.match != "end" or not value.startswith("."):
                    found.add(domain)
            else:
                say.impossible(line, "TLS names are whole ones, or *. and a domain.")
    for value, why in found.odd.items():
        say.differs(line, f"{value} is no hostname here: {why}")
    yield from found.names
