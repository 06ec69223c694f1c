"""`rewrite`: another path for servers, and for what is asked behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.importing.caddy.context import Caddy
from apps.importing.caddy.placeholders import as_nginx, names_in
from apps.importing.logic.decisions import Effect, change
from apps.importing.logic.formulas import Formula
from apps.importing.nginx.rules.rewriting import NOT_SAID, Moved, moved
from apps.importing.values import moves
from apps.importing.values.fields import mapping
from apps.importing.values.moves import Changed
from apps.importing.values.parsing import Path

SAME = ("{http.request.uri}", "{http.request.uri.path}", "{http.request.orig_uri}", "{http.request.orig_uri.path}")


@dataclass(slots=True)
class Rewritten:
    """Effects with the paths that have them, and how questions about the new path are asked of the one before."""

    effects: list[tuple[Formula, Effect]] = field(default_factory=list)
    asked: list[Changed] = field(default_factory=list)

    def add(self, *effects: Effect, where: Formula = True) -> None:
        """Effects of all paths, or of those of a condition."""
        self.effects += [(where, each) for each in effects]


def rewritten(caddy: Caddy, path: Path) -> Rewritten:
    """What the handler does; parts of it that cannot be said are left out, and what is asked behind them is unknown."""
    found, said = Rewritten(), mapping(caddy.fields.at(*path))
    for name in said:
        if name == "handler":
            caddy.fields.mapped((*path, name))
        elif name == "uri":
            _uri(caddy, (*path, name), str(said[name]), found)
        elif name == "strip_path_prefix":
            _stripped(caddy, (*path, name), str(said[name]), found)
        elif name == "path_regexp":
            for at, each in caddy.fields.each(*path, name):
                _by_pattern(caddy, at, str(each.get("find", "")), str(each.get("replace", "")), found)
        elif name == "query":
            found.add(*_query(caddy, (*path, name)))
        else:
            _impossible(caddy, (*path, name), found)
    return found


def _impossible(caddy: Caddy, path: Path, found: Rewritten) -> None:
    if path[-1] == "method":
        caddy.fields.impossible(path, "Servers get the method of the request.")
        return
    caddy.fields.impossible(path, NOT_SAID)
    found.asked.append(moves.unknown(caddy.context.questions))


def _uri(caddy: Caddy, path: Path, text: str, found: Rewritten) -> None:
    if text in SAME:
        caddy.fields.mapped(path)
        return
    new, mark, query = text.partition("?")
    keeps = not mark or query in ("{http.request.uri.query}", "")
    same = next((each for each in SAME if new.endswith(each)), "")
    before = new.removesuffix(same)
    if not keeps or names_in(before) or not before.startswith("/"):
        _impossible(caddy, path, found)
        return
    caddy.fields.mapped(path)
    if mark and not query:
        found.add(change("rewrite", "drop_query", value=True))
    if same:
        found.add(Effect("change", ("path", "/", before.rstrip("/") + "/")))
        found.asked.append(moves.put_before(before.rstrip("/"), caddy.context.questions))
        return
    try:
        found.add(change("rewrite", "path", grammar.path(before)))
    except GrammarError as error:
        caddy.fields.impossible(path, error.message)
    found.asked.append(moves.fixed(before))


def _stripped(caddy: Caddy, path: Path, prefix: str, found: Rewritten) -> None:
    bare = prefix.rstrip("/")
    if names_in(prefix) or not bare.startswith("/"):
        _impossible(caddy, path, found)
        return
    caddy.fields.mapped(path)
    here = moves.has_prefix(bare, caddy.context.questions)
    found.add(Effect("change", ("path", bare, "")), where=here)
    found.asked.append(moves.stripped(bare, caddy.context.questions))


def _by_pattern(caddy: Caddy, path: Path, find: str, replace: str, found: Rewritten) -> None:
    """A part of the path by a pattern; ours take whole paths."""
    whole = find if find.startswith("^") else ""
    words = as_nginx(replace.replace("$", "")) if "$" not in replace else replace.replace("${", "$").replace("}", "")
    change_of: Moved | None = moved(whole, words) if whole and words else None
    if change_of is None:
        _impossible(caddy, path, found)
        return
    caddy.fields.mapped(path)
    found.add(*change_of.effects)
    found.asked.append(moves.unknown(caddy.context.questions))


def _query(caddy: Caddy, path: Path) -> Iterator[Effect]:
    said: Any = mapping(caddy.fields.at(*path))
    values: dict[str, str] = {}
    for at, each in caddy.fields.each(*path, "set"):
        key, value = str(each.get("key", "")), str(each.get("val", ""))
        if names_in(key + value):
            caddy.fields.impossible(at, "Parameters get fixed values.")
        else:
            caddy.fields.mapped(at)
            values[key] = value
    for name in ("rename", "add", "replace"):
        if name in said:
            caddy.fields.impossible((*path, name), "Parameters are set or removed as a whole.")
    if values:
        yield change("rewrite", "query_set", tuple(values.items()))
    dropped = [name for _, name in caddy.fields.texts(*path, "delete")]
    if dropped:
        caddy.fields.mapped((*path, "delete"))
        yield change("rewrite", "query_drop", tuple(dropped))
