"""Redirects of haproxy.cfg: `redirect` and `http-request redirect` with location, prefix or scheme."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from apps.importing.haproxy.rules.formats import as_target
from apps.importing.logic.decisions import Effect
from apps.importing.logic.targets import HOST, Target

WITH_QUERY = "%[path]?%[query]"
# `https://other.example/%[path]`: the path has a slash of its own.
_TWO_SLASHES = re.compile(r"[^/]/%(?:\{[^}]*\})?(?:\[(?:path|pathq|url|capture\.req\.uri)[,\]]|HU|HP)")
CODES = (301, 302, 303, 307, 308)


def redirect_effect(words: tuple[str, ...]) -> tuple[Effect | None, str]:
    """The effect of the words behind `redirect`, and what of it differs or why it is none."""
    options = _options(words)
    code = int(options.get("code", "302")) if options.get("code", "302").isdecimal() else 302
    if code not in CODES:
        return None, f"There is no redirect with status {code}; use 301, 302, 303, 307 or 308."
    drop_query = "drop-query" in options
    target = _target(options, drop_query=drop_query)
    if target is None:
        return None, "Redirects name scheme, host, port, path and query; this target is made of other parts."
    target = replace(target, slash="append-slash" in options)
    said = [f"{each} is left out" for each in ("set-cookie", "clear-cookie") if each in options]
    if _TWO_SLASHES.search(options.get("location", "")):
        said.append("The location has one slash before the path where HAProxy sent two.")
    if "location" in options and target.host and not (target.path or target.keeps_path):
        said.append("The location has the slash behind its host that HAProxy leaves out.")
    said += ["Where no query is asked for, the location has no question mark."] if asks_query(options) else []
    return Effect("redirect", (code, target)), "; ".join(said)


def asks_query(options: Mapping[str, str]) -> bool:
    """Whether the location is made of path and query, each by itself."""
    return WITH_QUERY in options.get("location", "")


def _options(words: tuple[str, ...]) -> dict[str, str]:
    flags = ("drop-query", "append-slash", "ignore-empty", "keep-query")
    found: dict[str, str] = {}
    at = 0
    while at < len(words):
        if words[at] in flags:
            found[words[at]] = ""
            at += 1
        else:
            found[words[at]] = words[at + 1] if at + 1 < len(words) else ""
            at += 2
    return found


def _target(options: dict[str, str], *, drop_query: bool) -> Target | None:
    if scheme := options.get("scheme"):
        known = scheme.lower() in ("http", "https")
        return Target(scheme.lower(), HOST, keeps_path=True, keep_query=not drop_query) if known else None
    if prefix := options.get("prefix"):
        found = as_target(prefix.rstrip("/") or "/")
        if found is None or found.query or found.keeps_path:
            return None
        before = found.path.rstrip("/")
        return Target(
            found.scheme, found.host, found.drop_from_host, found.port, "", before, keeps_path=True,
            keep_query=not drop_query,
        )  # fmt: skip
    location = options.get("location", "").replace(WITH_QUERY, "%[pathq]")
    return as_target(location, drop_query=drop_query) if location else None
