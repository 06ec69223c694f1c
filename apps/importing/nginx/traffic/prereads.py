"""Maps of `stream` by what `ssl_preread` read: TLS names, whether it is TLS at all, protocols of ALPN."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing.nginx.text.directives import Directive, value_of
from apps.importing.verdicts import Ledger

BY_FIRST_BYTES = "Pools of tcp are named, or chosen by what ssl_preread read alone."
VERSIONS = ("TLSv1.2", "TLSv1.3")
_TOKEN = re.compile(r"(?:~\*?(?:\\b|\(\^\|,\))?)?([A-Za-z0-9][A-Za-z0-9./-]*)(?:\\b|\(,\|\$\))?")


@dataclass(slots=True)
class Preread:
    """Targets by TLS name, and by the protocol or ALPN of documents; each with the line that says it."""

    default: tuple[Directive, str] | None = None
    names: dict[str, tuple[Directive, str]] = field(default_factory=dict)
    protocols: dict[tuple[str, str], tuple[Directive, str]] = field(default_factory=dict)


def read_preread(block: Directive, ledger: Ledger) -> Preread | None:
    """What a map says; None for one that asks for something else."""
    reader = _READERS.get(value_of(block))
    if reader is None:
        return None
    ledger.mapped(block.line)
    found, entries = Preread(), list[Directive]()
    for each in block.block or ():
        ledger.mapped(each.line)
        if each.name == "default" and each.args and each.args[0]:
            found.default = each, each.args[0]
        elif each.name not in ("default", "hostnames") and each.args and each.args[0]:
            entries.append(each)
    reader(found, entries, ledger)
    return found


def _read_names(found: Preread, entries: list[Directive], ledger: Ledger) -> None:
    for each in entries:
        try:
            name = grammar.hostname(each.name.lower().removeprefix("."))
        except GrammarError:
            ledger.impossible(each.line, "TLS names are whole ones, or *. and a domain.")
            continue
        if each.name.startswith(("*.", ".")):
            ledger.differs(each.line, "One label before the domain is taken, not several.")
        for host in (name, f"*.{name}") if each.name.startswith(".") else (name,):
            found.names.setdefault(host, (each, each.args[0]))


def _read_versions(found: Preread, entries: list[Directive], ledger: Ledger) -> None:
    """The version of TLS, or nothing; listeners tell no versions apart."""
    by_version = [_version(version, entries) or found.default for version in VERSIONS]
    tls = by_version[0]
    if {target for _, target in filter(None, by_version)} != {tls[1] if tls else ""}:
        for each in entries:
            ledger.impossible(each.line, "A listener tells TLS from what is none, and no versions of it.")
        return
    if (none := _version("", entries)) is not None:
        found.default = none
    if tls is not None and (found.default is None or tls[1] != found.default[1]):
        found.protocols["protocol", "tls"] = tls


def _version(version: str, entries: list[Directive]) -> tuple[Directive, str] | None:
    exact = [each for each in entries if each.name == version]
    patterns = [each for each in entries if each.name.startswith("~") and _finds(each.name, version)]
    return next(((each, each.args[0]) for each in (*exact, *patterns)), None)


def _finds(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern.removeprefix("~").removeprefix("*"), text) is not None
    except re.error:
        return False


def _read_alpn(found: Preread, entries: list[Directive], ledger: Ledger) -> None:
    for each in entries:
        token = _TOKEN.fullmatch(each.name)
        if token is None:
            ledger.impossible(each.line, "A listener asks for one protocol of ALPN by its name.")
        else:
            found.protocols.setdefault(("alpn", token[1]), (each, each.args[0]))


_READERS: dict[str, Callable[[Preread, list[Directive], Ledger], None]] = {
    "$ssl_preread_server_name": _read_names,
    "$ssl_preread_protocol": _read_versions,
    "$ssl_preread_alpn_protocols": _read_alpn,
}
