"""Filters of a rule: headers, redirects, rewrites, CORS; one that is not read answers 500, as the Gateway API says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apps.compiler import grammar, header_text
from apps.compiler.grammar import GrammarError
from apps.importing.kubernetes.manifests.manifest import Manifest
from apps.importing.values.fields import mapping
from apps.importing.values.parsing import Path

NO_FILTER = "This filter is not read, so its requests get 500, as the Gateway API says."
NO_MIRROR = "Only Google Cloud copies requests (mirror of a route); they are served, and not copied."
LOOP = "The redirect leads to where it came from, so it is left out."
LONGEST_AGE_S, USUAL_AGE_S = 86_400, 5


@dataclass(slots=True)
class Filters:
    """Parts of a route that filters say; `broken` where one of them is not read."""

    rules: dict[str, Any] = field(default_factory=dict)
    redirect: dict[str, Any] | None = None
    prefix_rewrite: str = ""
    broken: bool = False


def filters_of(route: Manifest, at: Path, path_kind: str) -> Filters:
    """All filters of a rule, for a match with a path of this kind."""
    found = Filters()
    lists = [(*at, "filters")]
    if is_alone(route, at):  # what is said of the only backend holds for the rule
        lists.append((*at, "backendRefs", 0, "filters"))
    for path, said in (each for name in lists for each in route.each(*name)):
        kind = said.get("type")
        read = READERS.get(str(kind))
        if kind == "RequestMirror":
            route.impossible(path, NO_MIRROR)
        elif read is None:
            route.impossible(path, NO_FILTER)
            found.broken = True
        else:
            route.mapped((*path, "type"))
            read(found, route, path, path_kind)
    return found


def is_alone(route: Manifest, at: Path) -> bool:
    """Whether a rule has one backend."""
    return len(list(route.each(*at, "backendRefs"))) == 1


def _request_headers(found: Filters, route: Manifest, at: Path, _: str) -> None:
    at = (*at, "requestHeaderModifier")
    hosts = [(path, each) for path, each in route.each(*at, "set") if str(each.get("name")).lower() == "host"]
    for path, each in hosts:
        try:
            found.rules.setdefault("rewrite", {})["host"] = grammar.server_host(str(each.get("value")).lower())
            route.mapped(path)
        except GrammarError as error:
            route.impossible(path, error.message)
    _changes(found, route, at, "request_headers", header_text.request_header, [path for path, _ in hosts])


def _response_headers(found: Filters, route: Manifest, at: Path, _: str) -> None:
    _changes(found, route, (*at, "responseHeaderModifier"), "response_headers", header_text.response_header, [])


def _changes(
    found: Filters, route: Manifest, at: Path, block: str, read: Callable[[object], str], skip: list[Path]
) -> None:
    changes: dict[str, Any] = {}
    for name in ("set", "add"):
        values: dict[str, str] = {}
        for path, each in route.each(*at, name):
            if path in skip:
                continue
            try:
                values[read(each.get("name"))] = _plain(each.get("value"))
                route.mapped(path)
            except GrammarError as error:
                route.impossible(path, error.message)
        first = {header.lower(): header for header in reversed(values)}  # of two spellings the first counts
        values = {header: text for header, text in values.items() if first[header.lower()] == header}
        changes |= {name: values} if values else {}
    removed: list[str] = []
    for path, text in route.texts(*at, "remove"):
        try:
            removed.append(read(text))
            route.mapped(path)
        except GrammarError as error:
            route.impossible(path, error.message)
    changes |= {"remove": list(dict.fromkeys(removed))} if removed else {}
    said = found.rules.setdefault(block, {}) if changes else {}
    for name, more in changes.items():
        said[name] = {**said[name], **more} if isinstance(more, dict) and name in said else more


def _plain(value: object) -> str:
    """The text of a header, in which nothing is a variable."""
    if isinstance(value, str) and header_text.begins_variable(value):
        raise GrammarError("variable", "Braces before letters have no place: they are variables here.")
    return header_text.header_text(value)


def _redirect(found: Filters, route: Manifest, at: Path, path_kind: str) -> None:
    said = mapping(route.at(*at, "requestRedirect"))
    made: dict[str, Any] = {"code": said.get("statusCode", 302)}
    try:
        grammar.redirect_code(made["code"])
        if said.get("scheme"):
            made["scheme"] = grammar.url_scheme(said["scheme"])
        if said.get("hostname"):
            made["host"] = grammar.redirect_host(said["hostname"])
        if said.get("port"):
            made["port"] = grammar.port(said["port"])
        made |= _new_path(route, (*at, "requestRedirect", "path"), path_kind)
    except GrammarError as error:
        route.impossible(at, f"{error.message} Its requests get 500.")
        found.broken = True
        return
    if made.keys() == {"code"}:
        route.impossible(at, f"{LOOP} Its requests get 500.")
        found.broken = True
        return
    route.mapped((*at, "requestRedirect"))
    found.redirect = made


def _rewrite(found: Filters, route: Manifest, at: Path, path_kind: str) -> None:
    said = mapping(route.at(*at, "urlRewrite"))
    try:
        if said.get("hostname"):
            found.rules.setdefault("rewrite", {})["host"] = grammar.server_host(said["hostname"])
        new = _new_path(route, (*at, "urlRewrite", "path"), path_kind)
    except GrammarError as error:
        route.impossible(at, f"{error.message} Its requests get 500.")
        found.broken = True
        return
    if "path" in new:
        found.rules.setdefault("rewrite", {})["path"] = new["path"]
    found.prefix_rewrite = new.get("prefix", "")
    route.mapped((*at, "urlRewrite"))


def _new_path(route: Manifest, at: Path, path_kind: str) -> dict[str, str]:
    kind = route.at(*at, "type")
    if kind is None:
        return {}
    if kind == "ReplaceFullPath":
        return {"path": grammar.path(route.at(*at, "replaceFullPath") or "/")}
    if path_kind != "prefix":
        raise GrammarError("prefix", "Only the prefix of a PathPrefix can be replaced.")
    return {"prefix": grammar.prefix_path(str(route.at(*at, "replacePrefixMatch") or "/").rstrip("/") or "/")}


def _cors(found: Filters, route: Manifest, at: Path, _: str) -> None:
    at = (*at, "cors")
    block: dict[str, Any] = {}
    for name, ours, read, usual in (
        ("allowOrigins", "origins", header_text.origin, []),
        ("allowMethods", "methods", header_text.cors_method, ["GET", "HEAD", "POST"]),
        ("allowHeaders", "headers", header_text.cors_header, []),
        ("exposeHeaders", "exposed_headers", grammar.header_shape, []),
    ):
        values = []
        for path, text in route.texts(*at, name):
            try:
                values.append(read(text))
                route.mapped(path)
            except GrammarError as error:
                route.impossible(path, error.message)
        if values or usual:
            block[ours] = list(dict.fromkeys(values)) or usual
    if "origins" not in block:
        route.impossible(at, "No origin is left, so no other page may read responses.")
        return
    _credentials(block, route, at)
    found.rules["cors"] = block


def _credentials(block: dict[str, Any], route: Manifest, at: Path) -> None:
    age, credentials = route.at(*at, "maxAge"), bool(route.at(*at, "allowCredentials"))
    block["max_age_s"] = min(age, LONGEST_AGE_S) if type(age) is int and age >= 0 else USUAL_AGE_S
    route.mapped((*at, "maxAge"))
    route.mapped((*at, "allowCredentials"))
    if credentials and "*" in block["origins"]:
        credentials = False
        route.differs((*at, "allowCredentials"), "Name the origins: * has no credentials here.")
    block["credentials"] = credentials


Reader = Callable[[Filters, Manifest, Path, str], None]
READERS: dict[str, Reader] = {
    "RequestHeaderModifier": _request_headers,
    "ResponseHeaderModifier": _response_headers,
    "RequestRedirect": _redirect,
    "URLRewrite": _rewrite,
    "CORS": _cors,
}
