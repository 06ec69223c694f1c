"""Which hostnames of ours stand for the hosts that a frontend tells apart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.matching import hosts
from apps.importing.logic.formulas import And, Atom, Formula, Or

ANYBODY = "any-other.host.invalid"
_PORT = re.compile(r":[0-9]+\Z")


@dataclass(slots=True)
class Hosts:
    """Hostnames in use; `odd` are values that can be none here, with the reason."""

    names: dict[str, None] = field(default_factory=dict)
    odd: dict[str, str] = field(default_factory=dict)

    def add(self, name: str) -> None:
        """One hostname, a wildcard or a full one; a port is left out."""
        name = _PORT.sub("", name.lower()).removesuffix(".")
        try:
            grammar.hostname(name.removeprefix("*") if name.startswith("**") else name)
        except GrammarError as error:
            self.odd[name] = error.message
            return
        self.names[name] = None


def hostnames_of(atoms: Iterable[Atom], known: Iterable[str]) -> Hosts:
    """Hostnames for all questions about hosts; `known` are names of the file that no question has."""
    found = Hosts()
    atoms = list(atoms)
    for atom in atoms:
        for value in atom.values:
            _add_value(found, atom.match, value)
    exact = [name for name in (*found.names, *(name for name in known if "." in name)) if not name.startswith("*")]
    for atom in atoms:
        if atom.match == "beg":
            for value in atom.values:
                for name in exact[:200]:
                    found.add(name if name.startswith(value) else value.rstrip(".") + "." + name)
    return found


def _add_value(found: Hosts, match: str, value: str) -> None:
    if match in ("str", "label"):
        found.add(value if match == "str" else f"*.{value}")
    elif match in ("end", "dom"):
        domain = value.strip(".")
        if "." not in domain:
            return
        found.add("**." + domain)
        if match == "dom" or not value.startswith("."):
            found.add(domain)
    elif match == "reg" and (suffix := _suffix_of(value)):
        found.add("**." + suffix)
        found.add(suffix)


def _suffix_of(expression: str) -> str:
    r"""`^[a-z]+\.example\.com$` → `example.com`: what all hosts of the expression end with."""
    found = re.search(r"\\\.((?:[a-z0-9-]+\\\.)*[a-z0-9-]+)\)?\$?$", expression.lower())
    domain = found[1].replace("\\.", ".") if found else ""
    return domain if "." in domain else ""


def example_of(hostname: str) -> str:
    """A host for which the answers of the whole hostname hold."""
    if hostname == hosts.ANY:
        return ANYBODY
    return f"any-other.{hosts.domain_of(hostname)}" if hostname.startswith("*") else hostname


def required_hosts(formula: Formula) -> frozenset[str] | None:
    """The hosts of which one must be asked for, None where it may be any."""
    if isinstance(formula, Atom):
        return frozenset(formula.values) if formula.subject == "host" and formula.match == "str" else None
    if isinstance(formula, And):
        found = [each for each in map(required_hosts, formula.parts) if each is not None]
        return frozenset.intersection(*found) if found else None
    if isinstance(formula, Or):
        parts = [required_hosts(part) for part in formula.parts]
        return None if None in parts else frozenset().union(*(each for each in parts if each is not None))
    return None
