"""ingress-nginx: where requests go, and under which path: rewrites, redirects, further hosts, canaries."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import rewriting
from apps.compiler.matching import patterns
from apps.importing.kubernetes.ingress.settings import Annotations, Canary, Settings

REQUEST = ("$request_uri", "$uri")


def rewrites(settings: Settings, said: Annotations) -> None:
    """`rewrite-target` and `use-regex`; what they make of each path is for the paths to say."""
    settings.use_regex = bool(said.flag("use-regex"))
    said.mapped("use-regex")
    target = said.text("rewrite-target")
    if target is None:
        return
    if not target.startswith("/") or "?" in target or re.search(r"\$(?![0-9])", target):
        said.block(settings, "rewrite-target", "Only a path with $1 to $9 in it can be rewritten to.")
        return
    settings.rewrite = target
    said.mapped("rewrite-target")


def to_https(settings: Settings, said: Annotations) -> None:
    """http is redirected where TLS is configured, unless it is said otherwise."""
    settings.ssl_redirect = said.flag("ssl-redirect") is not False
    settings.force_ssl = bool(said.flag("force-ssl-redirect"))
    said.mapped("ssl-redirect", "force-ssl-redirect")


def redirects(settings: Settings, said: Annotations) -> None:
    """`permanent-redirect` and `temporal-redirect`, which answer instead of the servers."""
    for name, usual in (("permanent-redirect", 301), ("temporal-redirect", 302)):
        url, code = said.text(name), said.text(f"{name}-code")
        if url is None:
            if code is not None:
                said.dead(f"{name}-code", f"There is no {name}.")
            continue
        found = redirect_to(url)
        if found is None:
            said.block(settings, name, "Only a plain URL, or one that ends with $request_uri, can be redirected to.")
            continue
        found["code"] = int(code) if code in ("301", "302", "303", "307", "308") else usual
        if code is not None and str(found["code"]) != code:
            said.differs(f"{name}-code", f"Redirects have 301, 302, 303, 307 or 308; this one has {usual}.")
        settings.redirect = found
        said.mapped(name, f"{name}-code")


def redirect_to(url: str) -> dict[str, Any] | None:
    """A URL as the target of a redirect; None for one that has no place."""
    keeps = next((each for each in REQUEST if url.endswith(each)), "")
    found: dict[str, Any] = {"keep_query": bool(keeps)}
    try:
        parts = urlsplit(url.removesuffix(keeps))
        if parts.fragment or parts.username or "$" in url.removesuffix(keeps) or (keeps and parts.path.strip("/")):
            return None
        if parts.scheme:
            found["scheme"] = grammar.url_scheme(parts.scheme)
        if parts.hostname:
            found["host"] = grammar.redirect_host(parts.hostname)
        if parts.port:
            found["port"] = parts.port
        if not keeps:
            found["path"] = grammar.path(parts.path or "/")
        if parts.query:
            found["query"] = rewriting.query(parts.query)
    except (GrammarError, ValueError):
        return None
    return found if found.keys() & {"scheme", "host", "path"} and not (keeps and not parts.hostname) else None


def roots(settings: Settings, said: Annotations) -> None:
    """`app-root`: where `/` alone leads."""
    root = said.text("app-root")
    if root is None:
        return
    try:
        settings.app_root = grammar.path(root)
        said.mapped("app-root")
    except GrammarError as error:
        said.impossible("app-root", error.message)


def hosts(settings: Settings, said: Annotations) -> None:
    """`server-alias`, `from-to-www-redirect`, `ssl-passthrough`."""
    settings.www = bool(said.flag("from-to-www-redirect"))
    settings.passthrough = bool(said.flag("ssl-passthrough"))
    said.mapped("from-to-www-redirect", "ssl-passthrough")
    for alias in (said.text("server-alias") or "").split(","):
        if not alias.strip():
            continue
        try:
            settings.aliases.append(grammar.hostname(alias.strip().lower()))
            said.mapped("server-alias")
        except GrammarError:
            said.impossible("server-alias", f"{alias.strip()} is no host, nor *. and a host.")


def canaries(settings: Settings, said: Annotations) -> None:
    """`canary` and what chooses it."""
    names = ("canary-by-header", "canary-by-header-value", "canary-by-header-pattern", "canary-by-cookie")
    if not said.flag("canary"):
        said.mapped("canary")
        for name in (*names, "canary-weight", "canary-weight-total"):
            said.dead(name, "This Ingress is no canary.")
        return
    said.mapped("canary")
    total = said.number("canary-weight-total", 1, 1000) or 100
    weight = said.number("canary-weight", 0, total) or 0
    header, value, pattern, cookie = (said.text(name) or "" for name in names)
    if pattern and not value:
        pattern = _header_pattern(said, pattern)
    for name in names:
        if said.text(name) is not None:
            said.mapped(name)
    try:
        header = header and grammar.header_name(header)
    except GrammarError as error:
        said.impossible(names[0], error.message)
        header = ""
    settings.canary = Canary(header, value, "" if value else pattern, cookie, weight, total)


def _header_pattern(said: Annotations, text: str) -> str:
    """nginx looks for it anywhere in the value; ours takes the whole value."""
    begins, ends = text.startswith("^"), text.endswith("$") and not text.endswith("\\$")
    inner = text.removeprefix("^").removesuffix("$") if ends else text.removeprefix("^")
    try:
        return patterns.pattern(f"{'' if begins else '.*'}{inner}{'' if ends else '.*'}")
    except GrammarError as error:
        said.impossible("canary-by-header-pattern", error.message)
        return ""
