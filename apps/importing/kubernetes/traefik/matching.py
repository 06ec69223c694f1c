"""What a route of Traefik matches: alternatives of one host, one path and conditions each."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.matching import names
from apps.importing.kubernetes.ingress.paths import PathOfOurs, Unsayable, plain_path
from apps.importing.logic.regexes import as_pattern

ANY = "*"
EVERY_PATH = PathOfOurs("prefix", "/", "/")
# More of them than anybody writes by hand.
MOST = 64
_TOKEN = re.compile(r"\s*(\|\||&&|!|\(|\)|,|[A-Za-z]+|`[^`]*`|\"[^\"]*\"|'[^']*')")
_BELOW = re.compile(r"\^?(?:\{[a-z]+:[^}]+\}|\[[^\]]+\]\+|\.\+)\\?\.((?:[a-z0-9-]+\\?\.)+[a-z0-9-]+)\$?")
Asked = tuple[str, tuple[str, ...]]
"""The name of a matcher, and its arguments."""


@dataclass(slots=True)
class Match:
    """One way to match."""

    host: str = ANY
    path: PathOfOurs = EVERY_PATH
    conditions: dict[str, list[Any]] = field(default_factory=dict)


def alternatives(text: str) -> list[Match]:
    """Every way in which a rule such as `Host(a.example) && (Path(/x) || Path(/y))` holds. Raises GrammarError."""
    tokens = _tokens(text)
    found = _either(tokens)
    if tokens:
        raise GrammarError("match", f"This is no rule from {tokens[0]} on.")
    return [_match(each) for each in found]


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text.rstrip()):
        token = _TOKEN.match(text, at)
        if token is None:
            raise GrammarError("match", f"This is no rule from {text[at:].strip()[:20]} on.")
        found.append(token[1])
        at = token.end()
    return found


def _either(tokens: list[str]) -> list[list[Asked]]:
    found = _all(tokens)
    while tokens[:1] == ["||"]:
        del tokens[0]
        found = _bounded([*found, *_all(tokens)])
    return found


def _all(tokens: list[str]) -> list[list[Asked]]:
    found = _one(tokens)
    while tokens[:1] == ["&&"]:
        del tokens[0]
        found = _bounded([[*left, *right] for left, right in product(found, _one(tokens))])
    return found


def _bounded(found: list[list[Asked]]) -> list[list[Asked]]:
    if len(found) > MOST:
        raise GrammarError("match", f"These are more than {MOST} ways to match; write several routes.")
    return found


def _one(tokens: list[str]) -> list[list[Asked]]:
    name = tokens.pop(0) if tokens else ""
    if name == "(":
        found = _either(tokens)
        if tokens[:1] != [")"]:
            raise GrammarError("match", "A bracket is not closed.")
        del tokens[0]
        return found
    if name == "!":
        raise GrammarError("match", "Routes ask for what is there; what is not there (!) has no place.")
    args = []
    if not name.isalpha() or tokens[:1] != ["("]:
        raise GrammarError("match", f"{name or 'Nothing'} is no matcher, such as Host(`a.example`).")
    while tokens and tokens.pop(0) != ")":
        if not tokens or tokens[0][0] not in "`\"'":
            raise GrammarError("match", f"{name} takes texts in quotes.")
        args.append(tokens.pop(0)[1:-1])
    return [[(name, (each,))] for each in args] if name in _OF_EACH else [[(name, tuple(args))]]


def _match(asked: list[Asked]) -> Match:
    found = Match()
    for name, args in asked:
        if name not in _READERS or not args:
            raise GrammarError("match", f"Routes cannot ask {name}.")
        try:
            _READERS[name](found, *args)
        except Unsayable as error:
            raise GrammarError("path", str(error)) from error
        except TypeError as error:
            raise GrammarError("match", f"{name} does not take {len(args)} texts.") from error
    return found


def _host(found: Match, text: str) -> None:
    host = names.hostname_of_route(text.lower())
    if found.host not in (ANY, host):
        raise GrammarError("host", "No request has two hosts.")
    found.host = host


def _hosts_below(found: Match, text: str) -> None:
    below = _BELOW.fullmatch(text)
    if below is None:
        raise GrammarError("host", "Hosts are named, or *. and a domain; no expression matches them.")
    _host(found, "*." + below[1].replace("\\", ""))


def _path(found: Match, path: PathOfOurs) -> None:
    if found.path is not EVERY_PATH:
        raise GrammarError("path", "A route asks for one path.")
    if "{" in path.text and path.kind != "regex":
        raise GrammarError("path", "Expressions in paths are PathRegexp here.")
    found.path = path


def _pattern(found: Match, text: str) -> None:
    pattern = as_pattern(text)
    if pattern is None:
        raise GrammarError("path", "Patterns of routes cannot be like this.")
    _path(found, PathOfOurs("regex", pattern, text))


def _condition(found: Match, kind: str, **said: str) -> None:
    found.conditions.setdefault(kind, []).append(said)


def _header(found: Match, name: str, value: str) -> None:
    _condition(found, "headers", name=grammar.header_name(name), match="equals", value=grammar.header_value(value))


def _header_pattern(found: Match, name: str, value: str) -> None:
    pattern = as_pattern(value)
    if pattern is None:
        raise GrammarError("header", "Patterns of headers cannot be like this.")
    _condition(found, "headers", name=grammar.header_name(name), match="regex", value=pattern)


def _query(found: Match, name: str, value: str = "") -> None:
    name, mark, value_of_v2 = name.partition("=") if not value else (name, "", "")
    said = {"match": "equals", "value": grammar.header_value(value or value_of_v2)} if value or mark else {}
    _condition(found, "query", name=names.parameter_name(name), **(said or {"match": "present"}))


def _method(found: Match, text: str) -> None:
    found.conditions["methods"] = [grammar.method(text.upper())]


def _client(found: Match, *texts: str) -> None:
    try:
        found.conditions["client_networks"] = sorted(str(ipaddress.ip_network(each, strict=False)) for each in texts)
    except ValueError as error:
        raise GrammarError("network", f"{error}.") from error


_OF_EACH = frozenset({"Host", "HostHeader", "HostRegexp", "Path", "PathPrefix", "PathRegexp", "Method"})
_READERS: dict[str, Callable[..., None]] = {
    "Host": _host, "HostHeader": _host, "HostRegexp": _hosts_below,
    "Path": lambda found, text: _path(found, plain_path(text, "Exact")),
    "PathPrefix": lambda found, text: _path(found, plain_path(text, "Prefix")),
    "PathRegexp": _pattern, "Header": _header, "Headers": _header, "HeaderRegexp": _header_pattern,
    "HeadersRegexp": _header_pattern, "Query": _query, "Method": _method, "ClientIP": _client,
}  # fmt: skip
