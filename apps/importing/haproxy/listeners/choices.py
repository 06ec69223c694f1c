"""Which pool a tcp listener chooses: by the TLS name. Rules that ask otherwise must agree for all connections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from apps.importing.haproxy.criteria.criteria import number_holds
from apps.importing.haproxy.listeners.ports import Bind
from apps.importing.logic.certainty import surely
from apps.importing.logic.decisions import Rule
from apps.importing.logic.formulas import Atom, Formula, Or, simplified
from apps.importing.logic.hostnames import Hosts
from apps.importing.verdicts import Ledger, Line

# What is kept in conditions until a connection is given: its TLS name, and what its first bytes are.
ASKED = frozenset({"sni", "tls", "http"})
# Connections that rules can tell apart by their first bytes.
BEGINNINGS: dict[str, dict[str, bool]] = {
    "TLS": {"tls": True, "http": False},
    "HTTP": {"tls": False, "http": True},
    "neither TLS nor HTTP": {"tls": False, "http": False},
}
_BELOW = re.compile(r"\^?\((?:\?:)?(?:\.[*+]|\[[^\]]+\][*+])\\\.\)[?*]((?:[A-Za-z0-9-]+\\\.)+[A-Za-z0-9-]+)\$")
BY_NAME_ALONE = "A tcp listener chooses pools by the TLS name alone."
CLOSED = "Connections that do not begin so get this pool too, where HAProxy closes them."


@dataclass(slots=True)
class Choice:
    """Backends by TLS name, and the one of all other connections, with the line that says so."""

    names: dict[str, str] = field(default_factory=dict)
    default: str = ""
    line: Line | None = None


def chosen(rules: list[Rule], bind: Bind, *, say: Ledger) -> Choice:
    """The choice of one port. What it cannot say is said at the lines that it is lost of."""
    found = [_of_beginning(rules, bind, beginning, say) for beginning in BEGINNINGS]
    choice = Choice(found[0].names)
    for each in found:
        if each.line is not None and choice.line is None:
            choice.default, choice.line = each.default, each.line
    for beginning, each in zip(BEGINNINGS, found, strict=True):
        if each.line is not None and each.default != choice.default:
            say.impossible(each.line, BY_NAME_ALONE)
            say.impossible(each.line, f"What begins as {beginning} gets {choice.default} as well.")
        elif each.line is None and choice.line is not None:
            say.differs(choice.line, CLOSED)
    return choice


def _of_beginning(rules: list[Rule], bind: Bind, beginning: str, say: Ledger) -> Choice:
    """The choice for connections that begin like this."""
    found = Choice()
    for rule in rules:
        backend = str(rule.effect.data[0]) if rule.effect.kind == "backend" else ""
        condition = simplified(rule.condition, lambda atom: _answer(atom, bind, BEGINNINGS[beginning]))
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


def _answer(atom: Atom, bind: Bind, first: dict[str, bool]) -> bool | None:
    if atom.subject == "port":
        return number_holds(atom.values, bind.port)
    if atom.subject == "sni" and not first["tls"] and not bind.has("ssl"):
        return False
    return first.get(atom.match) if atom.subject == "unknown" else None


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
