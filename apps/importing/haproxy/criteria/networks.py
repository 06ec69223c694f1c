"""`tcp-request` rules that ask for networks alone: each phase in its order, all of them as one list of a listener."""

from __future__ import annotations

from collections import defaultdict
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import chain

from apps.compiler.checks.access import MAX_NETWORKS
from apps.importing.haproxy.criteria.conditions import Conditions
from apps.importing.haproxy.traffic.context import Context
from apps.importing.logic.formulas import Atom, Atoms, Formula, atoms_of, replaced
from apps.importing.values.networks import FirstMatch, Ranges, shorter, union, where
from apps.importing.verdicts import Line

MANY = "A list holds at most 10 000 networks, and this takes more."


def asks_networks_alone(formula: Formula) -> bool:
    """Whether networks decide it."""
    return all(atom.subject == "source" for atom in atoms_of(formula))


def behind_mask(formula: Formula, bits: int, atoms: Atoms) -> Formula:
    """The formula about clients as they come, where HAProxy asks for the first bits of their IPv4 address alone."""

    def asked(atom: Atom) -> Formula:
        if atom.subject != "source":
            return atom
        found = [widened for value in atom.values if (widened := _of_masked(ip_network(value), bits))]
        return atoms.get("source", atom.match, tuple(sorted(found)), why=atom.why) if found else False

    return replaced(formula, asked)


def _of_masked(network: IPv4Network | IPv6Network, bits: int) -> str:
    """The network of all clients whose masked address is in this one; empty where none is."""
    if network.version == 6 or network.prefixlen <= bits:
        return str(network)
    whole = network.supernet(new_prefix=bits)
    return str(whole) if whole.network_address == network.network_address else ""


class Networks:
    """What is accepted in a phase (`connection`, `session`, `content`) passes the rest of it, and no other one."""

    def __init__(self, context: Context, conditions: Conditions, called: str) -> None:
        """`called` names the list where no acl does."""
        self.context, self.conditions, self.called = context, conditions, called
        self._phases: dict[str, FirstMatch] = defaultdict(FirstMatch)
        self._atoms: dict[Atom, None] = {}
        self._refusing: list[Line] = []

    def accept(self, phase: str, formula: Formula) -> None:
        """The next rule lets these in."""
        self._add(phase, formula, denies=False)

    def refuse(self, line: Line, phase: str, formula: Formula) -> None:
        """The next rule keeps these out."""
        self._add(phase, formula, denies=True)
        self._refusing.append(line)
        self.context.ledger.mapped(line)

    def _add(self, phase: str, formula: Formula, *, denies: bool) -> None:
        self._phases[phase].add(where(formula), denies=denies)
        self._atoms |= dict.fromkeys(atoms_of(formula))

    def accepted(self, phase: str) -> Ranges:
        """Whom the rules of the phase let in so far."""
        return self._phases[phase].accepted

    def access(self) -> dict[str, list[str]]:
        """The block of a listener; empty where nobody is kept out."""
        refused = union(chain.from_iterable(each.denied for each in self._phases.values()))
        kind, networks = shorter(refused)
        if refused and len(networks) <= MAX_NETWORKS:
            return {kind: [self._list(kind, networks)]}
        for line in self._refusing if refused else ():
            self.context.ledger.impossible(line, MANY)
        return {}

    def _list(self, kind: str, networks: tuple[str, ...]) -> str:
        """The name of the list; that of the acl which says just these networks."""
        for atom in self._atoms:
            if len(atom.values) == len(networks) and set(atom.values) == set(networks):
                return self.context.network_list(atom.values, self.conditions.label_of(atom))
        return self.context.network_list(networks, f"{self.called}-{kind}")
