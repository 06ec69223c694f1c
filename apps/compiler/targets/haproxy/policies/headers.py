"""Blocks that change headers of requests and responses.

There is a rule for each name of a header, not for each policy: the value is looked up. A value with variables is a
format, in which only our variables count, and has a rule of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.compiler.grammars.rewriting import CACHING
from apps.compiler.header_text import Variable, parts
from apps.compiler.model.policy import HeaderChanges, SecurityHeaders
from apps.compiler.model.shared import Listener, Protocol
from apps.compiler.targets.haproxy.policies.lookup import SAID, Lookup
from apps.compiler.targets.haproxy.writer import Opaque, Section, Value

_FETCHES = {
    "client_address": "%[src]",
    "host": "%[var(txn.host)]",
    "method": "%[method]",
    "path": "%[var(txn.path)]",
    "request_id": "%[unique-id]",
    "tls_version": "%[ssl_fc_protocol]",
}
CACHE_CONTROL = "cache-control"
# What servers say of caches is theirs.
SILENT = ("!", "{", "res.hdr(cache-control)", "-m", "found", "}")
HSTS = "strict-transport-security"
OVER_HTTPS = ("{", "var(txn.proto)", "-m", "str", "https", "}")
Blocks = Mapping[str, Any]


def texts(changes: HeaderChanges) -> dict[str, str]:
    """Values without variables, and the names that are removed."""
    found = {f"remove-{name.lower()}": SAID for name in changes.remove or ()}
    for action, pairs in _actions(changes):
        found |= {f"{action}-{name.lower()}": value for name, value in pairs if not _is_format(value)}
    return found


def add_to_request(section: Section, listener: Listener, lookup: Lookup, blocks: Blocks) -> None:
    """What servers get."""
    _add(section, "http-request", listener, lookup, blocks)


def add_to_response(section: Section, listener: Listener, lookup: Lookup, blocks: Blocks) -> None:
    """What clients get, also in answers that no server gave."""
    _add(section, "http-after-response", listener, lookup, blocks)


def _add(section: Section, rule: str, listener: Listener, lookup: Lookup, blocks: Blocks) -> None:
    """Removed, set and added, in this order."""
    for name in _names(name for changes in blocks.values() for name in changes.remove or ()):
        section.add(rule, "del-header", Value(name), "if", *lookup.has("remove-", name))
    for action in ("set", "add"):
        said = [(code, pair) for code in sorted(blocks) for each, pairs in _actions(blocks[code]) if each == action
                for pair in pairs]  # fmt: skip
        for name in _names(name for _, (name, value) in said if not _is_format(value)):
            text, has = lookup.text(f"{action}-", name), lookup.has(f"{action}-", name)
            section.add(rule, f"{action}-header", Value(name), text, "if", *has)
        for code, (header, value) in said:
            if _is_format(value):
                written_value = Opaque(written(value, listener))
                section.add(rule, f"{action}-header", Value(header), written_value, "if", *lookup.holds(code))


def _actions(changes: HeaderChanges) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    return ("set", changes.set or ()), ("add", changes.add or ())


def _names(names: Any) -> list[str]:
    """Names in lower case, each once: header names have no case."""
    return sorted({name.lower() for name in names})


def _is_format(value: str) -> bool:
    return any(isinstance(part, Variable) for part in parts(value))


def written(value: str, listener: Listener) -> str:
    """The value as HAProxy's format: a percent sign of the text is doubled, so only our fetches are ones."""
    return "".join(_part(part, listener) for part in parts(value))


def _part(part: str | Variable, listener: Listener) -> str:
    if isinstance(part, str):
        return part.replace("%", "%%")
    if part.name == "scheme":
        return "%[var(txn.proto)]" if listener.has_forwarders else listener.protocol.value
    return _FETCHES[part.name]


def texts_of_security(said: SecurityHeaders) -> dict[str, str]:
    """The headers for browsers that are said."""
    found = {
        "x-content-type-options": "nosniff" if said.no_sniff else None,
        "x-frame-options": said.frames.upper() if said.frames else None,
        "referrer-policy": said.referrer,
        CACHE_CONTROL: CACHING[said.caching] if said.caching else None,
    }
    if said.hsts_seconds is not None:
        found[HSTS] = f"max-age={said.hsts_seconds}" + ("; includeSubDomains" if said.hsts_subdomains else "")
    return {f"set-{name}": value for name, value in found.items() if value}


def add_security(section: Section, listener: Listener, lookup: Lookup, blocks: Blocks) -> None:
    """Strict-Transport-Security counts over https only (RFC 6797, 7.2)."""
    for key in sorted({key for said in blocks.values() for key in texts_of_security(said)}):
        name = key.removeprefix("set-")
        if name != HSTS or may_be_https(listener):
            has = lookup.has("set-", name)
            more = SILENT if name == CACHE_CONTROL else OVER_HTTPS if name == HSTS and listener.has_forwarders else ()
            section.add("http-after-response", "set-header", Value(name), lookup.text("set-", name), "if", *has, *more)


def may_be_https(listener: Listener) -> bool:
    """Whether TLS of clients ends here, or in front at a proxy that says so."""
    return listener.protocol is Protocol.HTTPS or listener.has_forwarders
