"""Maps of `stream` by what a connection begins with: TLS names, whether it is TLS at all, protocols of ALPN."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.verdicts import Ledger

BY_FIRST_BYTES = "Pools of tcp are named, or chosen by what ssl_preread read alone."
VERSIONS = ("TLSv1.2", "TLSv1.3")
# What nginx knows of a connection whose TLS it passes on, and of one whose TLS it ends.
READ = frozenset({"$ssl_preread_server_name", "$ssl_preread_protocol", "$ssl_preread_alpn_protocols"})
ENDED = frozenset({"$ssl_server_name"})
LITERAL = "Without the word hostnames nginx compares it as it stands, and no name has a star or begins with a dot."
_TOKEN = re.compile(r"(?:~\*?(?:\\b|\(\^\|,\))?)?([A-Za-z0-9][A-Za-z0-9./-]*)(?:\\b|\(,\|\$\))?")
Way = tuple[Directive, str]
"""The line that says it, and where connections go."""


@dataclass(slots=True)
class Preread:
    """Targets by TLS name, and by the protocol or ALPN of documents."""

    default: Way | None = None
    names: dict[str, Way] = field(default_factory=dict)
    protocols: dict[tuple[str, str], Way] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prereads:
    """The maps of a file by their variables, of a listener where `known` is what nginx finds out."""

    maps: Mapping[str, Directive]
    known: Collection[str]
    ledger: Ledger

    def read(self, variable: str) -> Preread | None:
        """What the map of `$variable` says; None for one that asks for something else."""
        block = self.maps.get(variable.removeprefix("$"))
        reader = _READERS.get(value_of(block)) if block is not None else None
        if block is None or reader is None:
            return None
        found, entries = Preread(), list[Directive]()
        for each in (block, *(block.block or ())):
            self.ledger.mapped(each.line)
        for each in block.block or ():
            if each.name == "default" and each.args and each.args[0]:
                found.default = each, each.args[0]
            elif each.name not in ("default", "hostnames") and each.args and each.args[0]:
                entries.append(each)
        if value_of(block) in self.known:  # else its variable is empty, whatever a client sends
            reader(self, found, entries)
        return found

    def read_names(self, found: Preread, entries: list[Directive]) -> None:
        """By the name that a client asks for."""
        for each in entries:
            open_ended = each.name.startswith(("*.", ".")) or each.name.endswith(".*")
            if open_ended and each.parent is not None and not any(each.parent.each("hostnames")):
                self.ledger.outdone(each.line, LITERAL)
                continue
            try:
                name = grammar.hostname(each.name.lower().removeprefix("."))
            except GrammarError:
                self.ledger.impossible(each.line, "TLS names are whole ones, or *. and a domain.")
                continue
            if open_ended:
                self.ledger.differs(each.line, "One label before the domain is taken, not several.")
            for host in (name, f"*.{name}") if each.name.startswith(".") else (name,):
                found.names.setdefault(host, (each, each.args[0]))

    def read_versions(self, found: Preread, entries: list[Directive]) -> None:
        """By the version of TLS, or by nothing; listeners tell no versions apart."""
        by_version = [_version(version, entries) or found.default for version in VERSIONS]
        tls = by_version[0]
        if {target for _, target in filter(None, by_version)} != {tls[1] if tls else ""}:
            for each in entries:
                self.ledger.impossible(each.line, "A listener tells TLS from what is none, and no versions of it.")
            return
        found.default = _version("", entries) or found.default
        if tls is not None and tls[1].startswith("$"):
            self._go_on(found, tls)
        elif tls is not None and (found.default is None or tls[1] != found.default[1]):
            found.protocols["protocol", "tls"] = tls

    def _go_on(self, found: Preread, tls: Way) -> None:
        """Where another map says to which pool TLS goes."""
        inner = self.read(tls[1])
        if inner is None:
            self.ledger.impossible(tls[0].line, BY_FIRST_BYTES)
            return
        found.names, found.protocols = inner.names, inner.protocols
        if found.default is tls:
            found.default = inner.default
        elif inner.default is not None:
            found.protocols["protocol", "tls"] = inner.default
        elif found.default is not None:
            why = "Names that the other map does not have go to the default pool, where nginx closes the connection."
            self.ledger.differs(tls[0].line, why)

    def read_alpn(self, found: Preread, entries: list[Directive]) -> None:
        """By the protocols that a client offers inside of TLS."""
        for each in entries:
            token = _TOKEN.fullmatch(each.name)
            if token is None:
                self.ledger.impossible(each.line, "A listener asks for one protocol of ALPN by its name.")
            else:
                found.protocols.setdefault(("alpn", token[1]), (each, each.args[0]))


def _version(version: str, entries: list[Directive]) -> Way | None:
    exact = [each for each in entries if each.name == version]
    patterns = [each for each in entries if each.name.startswith("~") and _finds(each.name, version)]
    return next(((each, each.args[0]) for each in (*exact, *patterns)), None)


def _finds(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern.removeprefix("~").removeprefix("*"), text) is not None
    except re.error:
        return False


_READERS: dict[str, Callable[[Prereads, Preread, list[Directive]], None]] = {
    "$ssl_preread_server_name": Prereads.read_names,
    "$ssl_server_name": Prereads.read_names,
    "$ssl_preread_protocol": Prereads.read_versions,
    "$ssl_preread_alpn_protocols": Prereads.read_alpn,
}
