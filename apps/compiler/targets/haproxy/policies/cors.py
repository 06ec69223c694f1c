"""Cross-origin requests: preflights are answered here, and responses say which origin may read them.

A browser's Origin is looked up whole; only wildcards have rules of their own. `txn.cors` is what a response allows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from apps.compiler.header_text import ANY
from apps.compiler.model.policy import Cors
from apps.compiler.model.shared import Listener
from apps.compiler.targets.haproxy.policies.lookup import SAID, Lookup
from apps.compiler.targets.haproxy.writer import Argument, Section, Value

_HAS_ORIGIN = ("{", "var(txn.origin)", "-m", "found", "}")
_IS_ALLOWED = ("{", "var(txn.cors)", "-m", "found", "}")
_IS_PREFLIGHT = ("{", "method", "OPTIONS", "}", "{", "req.hdr(access-control-request-method)", "-m", "found", "}")
_PREFLIGHT = ("access-control-allow-methods", "access-control-allow-headers", "access-control-max-age")
# Parts that may be open: what the browser asks for is what it may do.
_ASKED = {
    _PREFLIGHT[0]: ("access-control-request-method", "txn.cors_methods"),
    _PREFLIGHT[1]: ("access-control-request-headers", "txn.cors_headers"),
}
_RESPONSE = ("access-control-allow-credentials", "access-control-expose-headers")


def texts(cors: Cors) -> dict[str, str]:
    """Origins that are named whole, and what is said of each part; open to all is `any`."""
    found = {f"origin-{each}": SAID for each in cors.origins or () if "*" not in each}
    for name, allowed in zip(_ASKED, (cors.methods or ("GET",), cors.headers or ()), strict=True):
        found |= {f"any-{name}": SAID} if ANY in allowed else {name: ",".join(allowed)} if allowed else {}
    found |= {_PREFLIGHT[2]: str(cors.max_age_s)} if cors.max_age_s is not None else {}
    found |= {_RESPONSE[0]: "true"} if cors.credentials else {}
    found |= {_RESPONSE[1]: ",".join(cors.exposed_headers)} if cors.exposed_headers else {}
    return found | ({"any": SAID} if _is_open(cors) else {})


def add(section: Section, _listener: Listener, lookup: Lookup, blocks: Mapping[str, Cors]) -> None:
    """Who may read is decided once; the preflight is answered, and the response says the same."""
    section.add("http-request", "set-var(txn.origin)", "req.fhdr(origin)", "if", *lookup.any_holds())
    section.add("http-request", "set-var(txn.cors)", "var(txn.origin)", "if", *lookup.has_of("origin", "txn.origin"))
    for code in sorted(blocks):
        for ends in _wildcards(blocks[code]):
            section.add("http-request", "set-var(txn.cors)", "var(txn.origin)", "if", *lookup.holds(code), *ends)
    section.add("http-request", "set-var(txn.cors)", "str(*)", "if", *_HAS_ORIGIN, *lookup.has("any"))
    _add_preflight(section, lookup, {name for cors in blocks.values() for name in texts(cors)})
    _add_response(section, lookup)


def _is_open(cors: Cors) -> bool:
    return ANY in (cors.origins or ()) and not cors.credentials


def _wildcards(cors: Cors) -> list[tuple[Argument, ...]]:
    """The conditions of origins below a domain, one for each scheme."""
    ends = [each for each in cors.origins or () if "*" in each and each != ANY]
    found: list[tuple[Argument, ...]] = []
    for scheme in sorted({each.partition("*")[0] for each in ends}):
        tails = [Value(each.partition("*")[2]) for each in ends if each.startswith(scheme)]
        begins = ("{", "var(txn.origin)", "-m", "beg", scheme, "}")
        found.append((*begins, "{", "var(txn.origin)", "-m", "end", "--", *tails, "}"))
    return found


def _add_preflight(section: Section, lookup: Lookup, known: Collection[str]) -> None:
    """A header that nobody speaks of is sent empty, which says to a browser that nothing more is allowed."""
    said: list[Argument] = []
    for name in _PREFLIGHT:
        text: Argument = lookup.text(name)
        if f"any-{name}" in known:
            header, variable = _ASKED[name]
            section.add("http-request", f"set-var-fmt({variable})", text, "if", *_IS_PREFLIGHT)
            asked = lookup.has(f"any-{name}")
            section.add("http-request", f"set-var({variable})", f"req.fhdr({header})", "if", *_IS_PREFLIGHT, *asked)
            text = f"%[var({variable})]"
        said += ["hdr", name, text]
    section.add("http-request", "return", "status", "204", *said, "if", *_IS_ALLOWED, *_IS_PREFLIGHT)


def _add_response(section: Section, lookup: Lookup) -> None:
    rule = "http-after-response"
    section.add(rule, "set-header", "Access-Control-Allow-Origin", "%[var(txn.cors)]", "if", *_IS_ALLOWED)
    for name in _RESPONSE:
        section.add(rule, "set-header", name, lookup.text(name), "if", *_IS_ALLOWED, *lookup.has(name))
    # What a cache keeps for one origin is not another's.
    closed = ("!", *lookup.has("any"))
    section.add(rule, "add-header", "Vary", "Origin", "if", *lookup.any_holds(), *closed)
