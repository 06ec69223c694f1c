"""Cross-origin requests: preflights are answered here, and responses say which origin may read them."""

from __future__ import annotations

from apps.compiler.model.policy import Cors
from apps.compiler.model.shared import Listener
from apps.compiler.targets.haproxy.writer import Argument, Call, Section, Value

ANY = "*"
_IS_CROSS_ORIGIN = ("{", "var(txn.origin)", "-m", "found", "}")
_IS_PREFLIGHT = ("{", "method", "OPTIONS", "}", "{", "req.hdr(access-control-request-method)", "-m", "found", "}")


def add(section: Section, listener: Listener, when: tuple[str, ...], cors: Cors) -> None:
    """What a browser sends as Origin is compared whole, or by its end below a wildcard; others get no header at all."""
    del listener
    section.add("http-request", "set-var(txn.origin)", "req.fhdr(origin)", "if", *when)
    for origins in _groups(cors):
        _add_preflight(section, cors, (*when, *_IS_PREFLIGHT, *origins))
        _add_response(section, cors, (*when, *origins))
    if not _is_open(cors):  # what a cache keeps for one origin is not another's
        section.add("http-after-response", "add-header", "Vary", "Origin", "if", *when)


def _is_open(cors: Cors) -> bool:
    return ANY in (cors.origins or ()) and not cors.credentials


def _groups(cors: Cors) -> list[tuple[Argument, ...]]:
    """The conditions of the origin: one for all that are compared whole, one for all wildcards."""
    origins = cors.origins or ()
    if ANY in origins:
        return [_IS_CROSS_ORIGIN]
    whole = [each for each in origins if "*" not in each]
    ends = [each for each in origins if "*" in each]
    found: list[tuple[Argument, ...]] = []
    if whole:
        found.append(("{", "var(txn.origin)", "-m", "str", "--", *map(Value, whole), "}"))
    for scheme in sorted({each.partition("*")[0] for each in ends}):
        tails = [Value(each.partition("*")[2]) for each in ends if each.startswith(scheme)]
        begins = ("{", "var(txn.origin)", "-m", "beg", scheme, "}")
        found.append((*begins, "{", "var(txn.origin)", "-m", "end", "--", *tails, "}"))
    return found


def _allowed(cors: Cors) -> str:
    return ANY if _is_open(cors) else "%[var(txn.origin)]"


def _add_preflight(section: Section, cors: Cors, when: tuple[Argument, ...]) -> None:
    said: list[Argument] = ["hdr", "access-control-allow-methods", _listed(cors.methods or ("GET",))]
    if cors.headers:
        said += ["hdr", "access-control-allow-headers", _listed(cors.headers)]
    if cors.max_age_s is not None:
        said += ["hdr", "access-control-max-age", Value(str(cors.max_age_s))]
    section.add("http-request", "return", "status", "204", *said, "if", *when)


def _add_response(section: Section, cors: Cors, when: tuple[Argument, ...]) -> None:
    rule = "http-after-response"
    section.add(rule, "set-header", "Access-Control-Allow-Origin", _allowed(cors), "if", *when)
    if cors.credentials:
        section.add(rule, "set-header", "Access-Control-Allow-Credentials", "true", "if", *when)
    if cors.exposed_headers:
        exposed = _listed(cors.exposed_headers)
        section.add(rule, "set-header", "Access-Control-Expose-Headers", exposed, "if", *when)


def _listed(names: tuple[str, ...]) -> Call:
    parts: list[str | Value] = []
    for name in names:
        parts += [",", Value(name)] if parts else [Value(name)]
    return Call(tuple(parts))
