"""Blocks that change headers of requests and responses.

There is a rule for each name of a header, not for each policy: the value is looked up. A value with variables is a
format, in which only our variables count, and has a rule of its own. What such a value takes from the request is kept
before any header of it is changed; responses know nothing else of their request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from apps.compiler.grammars.rewriting import CACHING
from apps.compiler.header_text import HEADER, SERVER, Variable, is_format, parts, variables
from apps.compiler.model.policy import HeaderChanges, SecurityHeaders, TypedHeaders
from apps.compiler.model.shared import Listener, Protocol
from apps.compiler.targets.haproxy.policies.lookup import SAID, Lookup
from apps.compiler.targets.haproxy.writer import Argument, Call, Opaque, Section, Value

_FETCHES = {
    "client_address": "%[src]",
    "host": "%[var(txn.host)]",
    "method": "%[method]",
    "path": "%[var(txn.path)]",
    "request_id": "%[unique-id]",
    SERVER: "%[srv_name]",
    "tls_cipher": "%[ssl_fc_cipher]",
    "tls_version": "%[ssl_fc_protocol]",
    "uri": "%[var(txn.uri)]",
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
    for action, pairs in changes.written:
        found |= {f"{action}-{name.lower()}": value for name, value in pairs if not is_format(value)}
    return found


def add_to_request(section: Section, listener: Listener, lookup: Lookup, blocks: Blocks) -> None:
    """What servers get."""
    _add(section, "http-request", listener, lookup, blocks)


def add_to_response(section: Section, listener: Listener, lookup: Lookup, blocks: Blocks) -> None:
    """What clients get, also in answers that no server gave."""
    _add(section, "http-after-response", listener, lookup, blocks)


def add_typed(section: Section, listener: Listener, lookup: Lookup, blocks: Mapping[str, TypedHeaders]) -> None:
    """The same for responses of some media types."""
    _keep(section, lookup, blocks)
    for code, said in blocks.items():
        types = map(Value, said.types or ())
        is_type: tuple[Argument, ...] = ("{", "res.hdr(content-type)", "-i", "-m", "beg", *types, "}")
        holds = ("if", *lookup.holds(code), *is_type)
        for name in said.remove or ():
            section.add("http-after-response", "del-header", Value(name), *holds)
        for action, pairs in said.written:
            for name, value in pairs:
                header = Opaque(written(value, listener))
                section.add("http-after-response", f"{action}-header", Value(name), header, *holds, *_answered(value))


def _add(section: Section, rule: str, listener: Listener, lookup: Lookup, blocks: Blocks) -> None:
    """Removed, set where there is none, set and added, in this order."""
    _keep(section, lookup, blocks)
    for name in _names(name for changes in blocks.values() for name in changes.remove or ()):
        section.add(rule, "del-header", Value(name), "if", *lookup.has("remove-", name))
    for action in ("absent", "set", "add"):
        verb = "set-header" if action == "absent" else f"{action}-header"
        said = [(code, pair) for code in sorted(blocks) for each, pairs in blocks[code].written if each == action
                for pair in pairs]  # fmt: skip
        for name in _names(name for _, (name, value) in said if not is_format(value)):
            text, has = lookup.text(f"{action}-", name), lookup.has(f"{action}-", name)
            section.add(rule, verb, Value(name), text, "if", *has, *_given(action, name))
        for code, (header, value) in said:
            if is_format(value):
                written_value = Opaque(written(value, listener))
                given = (*_given(action, header), *_answered(value))
                section.add(rule, verb, Value(header), written_value, "if", *lookup.holds(code), *given)


def _given(action: str, name: str) -> tuple[Argument, ...]:
    """What else must hold: that servers have not said it."""
    return ("!", "{", Call(("res.hdr(", Value(name), ")")), "-m", "found", "}") if action == "absent" else ()


def _answered(value: str) -> tuple[Argument, ...]:
    """That a server answered, where the value says which one."""
    return ("{", "srv_name", "-m", "found", "}") if any(each.name == SERVER for each in variables(value)) else ()


def _keep(section: Section, lookup: Lookup, blocks: Blocks) -> None:
    for code in sorted(blocks):
        holds = ("if", *lookup.holds(code))
        for variable in sorted(set(_variables(blocks[code])), key=lambda each: (each.name, each.of)):
            if variable.name == HEADER:
                section.add("http-request", f"set-var({_kept(variable)})", f"req.fhdr({variable.of})", *holds)
            elif variable.name == "uri":
                section.add("http-request", "set-var(txn.uri)", "var(txn.path)", *holds)
                query = "%[var(txn.path)]?%[query]"
                section.add("http-request", "set-var-fmt(txn.uri)", query, *holds, "{", "query", "-m", "found", "}")


def _variables(changes: HeaderChanges) -> Iterator[Variable]:
    return (each for _, pairs in changes.written for _, value in pairs for each in variables(value))


def _kept(variable: Variable) -> str:
    """Names of headers have no underscore, so each has a variable of its own."""
    return f"txn.header_{variable.of.lower().replace('-', '_')}"


def _names(names: Any) -> list[str]:
    """Names in lower case, each once: header names have no case."""
    return sorted({name.lower() for name in names})


def written(value: str, listener: Listener) -> str:
    """The value as HAProxy's format: a percent sign of the text is doubled, so only our fetches are ones."""
    return "".join(_part(part, listener) for part in parts(value))


def _part(part: str | Variable, listener: Listener) -> str:
    if isinstance(part, str):
        return part.replace("%", "%%")
    if part.name == "scheme":
        return "%[var(txn.proto)]" if listener.has_forwarders else listener.protocol.value
    if part.name == "port":
        return "%[var(txn.port)]" if listener.has_forwarders else "%[dst_port]"
    return f"%[var({_kept(part)})]" if part.name == HEADER else _FETCHES[part.name]


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
