"""Matchers of a route as questions about a request."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from apps.compiler.address_spelling import spelled
from apps.importing.caddy.context import Caddy
from apps.importing.caddy.placeholders import names_in
from apps.importing.context import say_unknown
from apps.importing.logic.certainty import differing, surely
from apps.importing.logic.formulas import Formula, all_of, any_of, negated
from apps.importing.logic.questions import path_asked, sayable
from apps.importing.values.fields import listed, mapping
from apps.importing.values.parsing import Path

CASE = "Paths are compared with their case, which Caddy ignored."
NO_FILES = "nodes have no files to look for; put a server behind that has them"
WHY = {"expression": "it is an expression in CEL", "file": NO_FILES, "vars": "it is about variables of Caddy",
       "vars_regexp": "it is about variables of Caddy", "tls": "it is about the TLS connection"}  # fmt: skip
Asked = Callable[[Caddy, Path, Any], Formula]


def condition_of(caddy: Caddy, path: Path) -> Formula:
    """Whether one of the matcher sets at the path holds; what cannot be asked is said, and holds never."""
    sets = caddy.fields.at(*path)
    if not isinstance(sets, list) or not sets:
        return True
    return any_of([_sure(caddy, (*path, at), each) for at, each in enumerate(sets) if isinstance(each, Mapping)])


def _sure(caddy: Caddy, path: Path, matchers: Mapping[str, Any]) -> Formula:
    found = _all(caddy, path, matchers)
    sure, unknown = surely(found)
    for why in unknown:
        for name in matchers:
            if surely(_one(caddy, (*path, name), name, matchers[name]))[1]:
                say_unknown(caddy.context, caddy.line((*path, name)), why, gone=True)
    for why in differing(sure):
        caddy.fields.differs(path, why)
    return sure


def _all(caddy: Caddy, path: Path, matchers: Mapping[str, Any]) -> Formula:
    return all_of([_one(caddy, (*path, name), name, value) for name, value in mapping(matchers).items()])


def _one(caddy: Caddy, path: Path, name: str, value: Any) -> Formula:
    caddy.fields.mapped(path)
    kind, read = _READERS.get(name, (object, None))
    if read is None:
        return caddy.context.questions.unknown(WHY.get(name, f"{name} is no matcher that is known here"))
    if not isinstance(value, kind):
        return caddy.context.questions.unknown(f"this is nothing that {name} is compared with")
    return sayable(caddy.context.questions, read(caddy, path, value))


def _hosts(caddy: Caddy, _: Path, value: Any) -> Formula:
    questions = caddy.context.questions
    names = [str(each).lower() for each in value]
    whole = tuple(name for name in names if "*" not in name and not names_in(name))
    found: list[Formula] = [questions.atoms.get("host", "str", whole)] if whole else []
    for name in (each for each in names if each not in whole):
        domain = name.removeprefix("*.")
        if domain == name or "*" in domain or names_in(name):
            found.append(questions.unknown(f"{name} is no hostname"))
        else:
            found.append(questions.atoms.get("host", "label", (domain,)))
    return any_of(found)


def _paths(caddy: Caddy, path: Path, value: Any) -> Formula:
    found = []
    for text in map(str, value):
        if re.search("[A-Za-z]", text):
            caddy.fields.differs((*path[:4], "listen"), CASE)
        found.append(_path(caddy, text))
    return any_of(found)


def _path(caddy: Caddy, text: str) -> Formula:
    """A star at either end is any text; one inside is any text of a segment."""
    questions, inner = caddy.context.questions, text.strip("*")
    if text == "*":
        return True
    if names_in(text) or "%" in text:
        return questions.unknown(f"{text} is made of the request, or of escaped signs")
    if any(sign in inner for sign in "*?[") or text.count("*") > 2:
        pattern = re.sub(r"\\\*", "[^/]*", re.escape(text)).replace(r"\?", "[^/]")
        return questions.of_regex(f"^{pattern}$", "path", "", ignore_case=False)
    if text.startswith("*"):
        return questions.atoms.get("path", "sub" if text.endswith("*") else "end", (inner,))
    return path_asked(questions, "beg" if text.endswith("*") else "str", inner)


def _path_regexp(caddy: Caddy, _: Path, value: Any) -> Formula:
    return _pattern(caddy, value, "path", "")


def _pattern(caddy: Caddy, value: Any, subject: str, name: str) -> Formula:
    text = str(value.get("pattern", "")) if isinstance(value, Mapping) else str(value)
    plain = text.removeprefix("(?i)")
    return caddy.context.questions.of_regex(plain, subject, name, ignore_case=plain != text)


def _methods(caddy: Caddy, _: Path, value: Any) -> Formula:
    return caddy.context.questions.atoms.get("method", "str", tuple(str(each).upper() for each in value))


def _headers(caddy: Caddy, path: Path, value: Any) -> Formula:
    return all_of([_header(caddy, (*path, name), name, values) for name, values in value.items()])


def _header(caddy: Caddy, path: Path, name: str, values: Any) -> Formula:
    if name.lower() == "host":
        return _hosts(caddy, path, listed(values))
    atoms, name = caddy.context.questions.atoms, name.lower()
    if values is None:
        return negated(atoms.get("header", "found", name=name))
    if values == [] or "*" in listed(values):
        return atoms.get("header", "found", name=name)
    return any_of([_compared(caddy, name, str(each)) for each in listed(values)])


def _compared(caddy: Caddy, name: str, text: str) -> Formula:
    inner = text.strip("*")
    if names_in(text):
        return caddy.context.questions.unknown(f"{text} is made of the request")
    match = {(False, False): "str", (True, False): "end", (False, True): "beg", (True, True): "sub"}
    kind = match[text.startswith("*"), text.endswith("*")]
    return caddy.context.questions.atoms.get("header", kind, (inner,), name=name)


def _header_regexps(caddy: Caddy, _: Path, value: Any) -> Formula:
    named = ((name.lower(), each) for name, each in value.items())
    subjects = ((("host", ""), each) if name == "host" else (("header", name), each) for name, each in named)
    return all_of([_pattern(caddy, each, *subject) for subject, each in subjects])


def _query(caddy: Caddy, _: Path, value: Any) -> Formula:
    questions = caddy.context.questions
    if not value:
        return questions.unknown("whether there is any query")
    found: list[Formula] = []
    for name, values in value.items():
        texts = tuple(str(each) for each in listed(values))
        is_there = "*" in texts
        found.append(questions.atoms.get("query", "found" if is_there else "str", () if is_there else texts, name=name))
    return all_of(found)


def _networks(caddy: Caddy, _: Path, value: Any) -> Formula:
    found = []
    for each in listed(value.get("ranges")):
        try:
            found.append(spelled(ipaddress.ip_network(str(each), strict=False)))
        except ValueError:
            return caddy.context.questions.unknown(f"{each} is no network")
    return caddy.context.questions.atoms.get("source", "in", tuple(sorted(found)))


def _protocol(caddy: Caddy, _: Path, value: Any) -> Formula:
    questions = caddy.context.questions
    if value == "grpc":
        return questions.atoms.get("header", "beg", ("application/grpc",), name="content-type")
    encrypted = questions.atoms.get("scheme", "https")
    known: dict[str, Formula] = {"https": encrypted, "http": negated(encrypted)}
    return known.get(str(value), questions.unknown(f"{value} is a version of HTTP"))


def _not(caddy: Caddy, path: Path, value: Any) -> Formula:
    return negated(any_of([_all(caddy, (*path, at), each) for at, each in enumerate(value)]))


_READERS: Mapping[str, tuple[type, Asked]] = {
    "host": (list, _hosts), "path": (list, _paths), "path_regexp": (dict, _path_regexp), "method": (list, _methods),
    "header": (dict, _headers), "header_regexp": (dict, _header_regexps), "query": (dict, _query),
    "remote_ip": (dict, _networks), "client_ip": (dict, _networks), "protocol": (str, _protocol), "not": (list, _not),
}  # fmt: skip


def hosts_of(caddy: Caddy, routes: Path) -> Iterator[str]:
    """Every host that a matcher of these routes names, as Caddy looks for certificates."""
    for path, _ in caddy.fields.each(*routes):
        for _, matchers in caddy.fields.each(*path, "match"):
            yield from (str(each).lower() for each in listed(matchers.get("host")))
