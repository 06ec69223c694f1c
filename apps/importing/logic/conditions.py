"""Questions about requests as conditions of a route: methods, headers, query, cookies, networks, scheme."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.matching import names
from apps.compiler.matching.patterns import LONGEST
from apps.importing.logic.formulas import Atom
from apps.importing.logic.regexes import as_pattern, checked, literal
from apps.importing.values.networks import addresses, common, written

MOST_NETWORKS = 100
_FIELDS = {"header": "headers", "query": "query", "cookie": "cookies"}
# What names say with its value; that of a header, parameter or cookie may prove who asks.
_SAID = frozenset({"method", "scheme"})
WEBSOCKET = {"name": "Sec-WebSocket-Key", "match": "present"}
WEBSOCKET_WHY = "WebSockets are known by the header Sec-WebSocket-Key, which they must send."


def condition_of(atom: Atom) -> tuple[str, Any] | None:
    """The field of a route and what it holds; None for a question that no route asks."""
    if atom.subject == "method":
        known = [value.upper() for value in atom.values if value.upper() in grammar.METHODS]
        return ("methods", sorted(known)) if known else None
    if atom.subject == "source":
        return ("client_networks", sorted(atom.values)) if len(atom.values) <= MOST_NETWORKS else None
    if atom.subject == "scheme":
        return "scheme", "https"
    if is_websocket(atom):
        return "headers", WEBSOCKET
    field = _FIELDS.get(atom.subject)
    if field is None:
        return None
    try:
        (grammar.header_name if field == "headers" else names.parameter_name)(atom.name)
    except GrammarError:
        return None
    compared = _compared(atom)
    return (field, {"name": atom.name, **compared}) if compared else None


def is_websocket(atom: Atom) -> bool:
    """Whether it asks for the upgrade to a WebSocket."""
    values = [value.lower() for value in atom.values]
    return (atom.subject, atom.name) == ("header", "upgrade") and values == ["websocket"]


def _compared(atom: Atom) -> dict[str, str] | None:
    if atom.match == "found":
        return {"match": "present"}
    if atom.match in ("str", "beg") and len(atom.values) == 1 and not _has_case(atom):
        try:
            value = grammar.header_value(atom.values[0])
        except GrammarError:
            pass
        else:
            return {"match": "equals" if atom.match == "str" else "prefix", "value": value}
    pattern = _pattern(atom)
    return {"match": "regex", "value": pattern} if pattern else None


def _has_case(atom: Atom) -> bool:
    return atom.ignore_case and any(value.lower() != value.upper() for value in atom.values)


def _pattern(atom: Atom) -> str | None:
    if atom.match == "reg":
        return as_pattern(atom.values[0], ignore_case=atom.ignore_case) if len(atom.values) == 1 else None
    around = {"str": ("", ""), "beg": ("", ".*"), "end": (".*", ""), "sub": (".*", ".*"), "dom": (".*", ".*")}
    before, after = around.get(atom.match, ("", None))
    if after is None or not atom.values:
        return None
    literals = [literal(value, ignore_case=atom.ignore_case) for value in atom.values]
    text = before + (literals[0] if len(literals) == 1 else f"({'|'.join(literals)})") + after
    return checked(text) if len(text) <= LONGEST else None


def called(atoms: Iterable[Atom]) -> str:
    """What the name of a route says of them."""
    words = (
        f"{atom.subject}-{atom.values[0]}" if atom.subject in _SAID and atom.values else atom.name or atom.subject
        for atom in atoms
    )
    return "".join(f"-{word}" for word in sorted(words))


def told_apart(atoms: Iterable[Atom]) -> str:
    """All that they ask, which no name may say."""
    return "-".join(sorted(map(repr, atoms)))


def conditions_of(atoms: Iterable[Atom]) -> dict[str, Any]:
    """Fields of a route that ask all of them, which can hold together: methods and networks that are in each."""
    found: dict[str, Any] = {}
    for atom in sorted(atoms, key=repr):
        said = condition_of(atom)
        if said is None:
            continue
        field, value = said
        if field == "client_networks" and field in found:  # they may lie in each other, and of none is everybody
            found[field] = list(written(common(addresses(tuple(found[field])), addresses(atom.values))))
        elif field == "methods":
            found[field] = [each for each in found.get(field, value) if each in value]
        elif field in ("client_networks", "scheme"):
            found[field] = value
        elif value not in found.setdefault(field, []):
            found[field].append(value)
    return found
