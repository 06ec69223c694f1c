"""Where `return` and `rewrite` lead: texts with variables and captures as targets of redirects."""

from __future__ import annotations

import re
from dataclasses import dataclass

from apps.importing.logic.targets import HOST, PATH, QUERY, Target

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_URL = re.compile(
    r"(?:(https?|\x05)://([^/\x03?:\x06]*)(?::([0-9]+))?)?([^?\x04\x06]*)(\x04?)(\x06?)(?:\?(.*))?", re.DOTALL
)
SCHEME, ARGS = "\5", "\6"
# The literal beginning of an expression, and the group that holds the rest of the path.
_BEGINNING = re.compile(r"\^((?:/(?:[A-Za-z0-9_-]|\\\.)+)*)(/?)\((/?)\.[*+]\)\$?")
_HOST_BEGINNING = re.compile(r"\^((?:[A-Za-z0-9_-]|\\\.)+)\((?:\?<(\w+)>)?\.[*+]\)\$?")


@dataclass(frozen=True, slots=True)
class Beginning:
    """A prefix of paths: `old` is taken away, `rest` is what `$1` holds begins with (a slash or nothing)."""

    old: str
    rest: str


def beginning_of(expression: str) -> Beginning | None:
    r"""`^/old/(.*)$` → the prefix `/old/` whose rest `$1` is; None for other expressions."""
    if expression in ("^(.*)$", "^(.*)", "(.*)", "^(/.*)$", "^(/.*)", "^(.+)$"):
        return Beginning("", "/")
    found = _BEGINNING.fullmatch(expression)
    if found is None or (found[2] and found[3]) or not (found[1] or found[2]):
        return None
    return Beginning(found[1].replace("\\", "") + found[2], found[3])


def host_beginning_of(expression: str) -> tuple[str, str] | None:
    r"""`^www\.(.+)$` → `www.` and the name of the group."""
    found = _HOST_BEGINNING.fullmatch(expression)
    return (found[1].replace("\\", "").lower(), found[2] or "1") if found else None


@dataclass(frozen=True, slots=True)
class Captured:
    """What groups of the last expression hold: `path` of a path, `host` of a host without the text before it."""

    path: Beginning | None = None
    host: tuple[str, str] | None = None


def as_target(text: str, captured: Captured, server_name: str) -> Target | None:
    """The target of a redirect; None where it is made of more than scheme, host, path and query."""
    drop: list[str] = []
    moved: list[str] = []

    def part(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if captured.host and name == captured.host[1]:
            drop.append(captured.host[0])
            return HOST
        if name == "1" and captured.path is not None:
            moved.append(captured.path.rest)
            return PATH
        if name == "server_name" and server_name:
            return server_name
        fixed = {"host": HOST, "http_host": HOST, "scheme": SCHEME, "request_uri": PATH + QUERY, "uri": PATH,
                 "document_uri": PATH, "is_args": ARGS, "args": "", "query_string": ""}  # fmt: skip
        return fixed.get(name, "\0")

    plain = _VARIABLE.sub(part, text).replace(f"?{ARGS}", ARGS)
    if plain.endswith("?") and ("$args" in text or "$query_string" in text):
        plain = plain[:-1] + ARGS
    elif ("$args" in text or "$query_string" in text) and ARGS not in plain:
        return None
    found = _URL.fullmatch(plain)
    if "\0" in plain or found is None or len(moved) > 1:
        return None
    return _target(found, drop, moved, captured)


def _target(found: re.Match[str], drop: list[str], moved: list[str], captured: Captured) -> Target | None:
    path, mark, after = found[4].partition(PATH)
    in_query = any(sign in (found[7] or "") for sign in (HOST, PATH, QUERY, SCHEME))
    if after or (found[2] and PATH in found[2]) or in_query:
        return None
    strip, before = "", path
    if moved and captured.path is not None:
        strip = captured.path.old.rstrip("/")
        # What `$1` holds begins with a slash, or follows one; the new text has to end likewise.
        if captured.path.rest == path[-1:] or (not captured.path.rest and not path.endswith("/")):
            return None
        if not found[2] and not path and captured.path.rest != "/":
            return None
        before = path.rstrip("/")
    scheme = found[1] if found[1] not in (None, SCHEME) else ""
    host = found[2] or ""
    return Target(
        scheme=scheme,
        host=host,
        drop_from_host=drop[0] if drop else "",
        port=int(found[3] or 0),
        path="" if mark else found[4],
        before=before if mark else "",
        strip=strip if mark else "",
        keeps_path=bool(mark),
        keep_query=bool(found[5] or found[6]),
        query=found[7] or "",
    )
