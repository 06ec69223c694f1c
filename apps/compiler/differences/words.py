"""Values of the model in words for people: no name of a class, no id of ours, no secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from apps.compiler.model.access import Access, ConnectionAccess
from apps.compiler.model.policy import Overflow
from apps.compiler.model.shared import (
    Assertion,
    FixedResponse,
    HealthCheck,
    Limit,
    LimitKind,
    LimitScope,
    Redirect,
    ValueCondition,
)

# Id → what people call the object.
Named = Mapping[str, str]
Part = tuple[str, str, str]
# What a field is called where its own name would say too little.
WORDS = {
    "api_keys": "API keys",
    "capacity_scaler": "share of its limit in force",
    "certificate_ids": "certificates",
    "client_certificate_id": "client certificate",
    "cors": "CORS",
    "default_certificate_id": "default certificate",
    "default_pool_id": "default pool",
    "ends_tls": "TLS ended here",
    "elsewhere": "servers elsewhere",
    "ipv4_prefix": "IPv4 prefix",
    "ipv6_prefix": "IPv6 prefix",
    "jwt": "JWT",
    "mirror_pool_id": "mirror",
    "pem": "certificate and key",
    "pool_id": "pool",
    "ready_servers": "servers ready",
    "router_id": "VRRP router id",
    "server_tls": "TLS to servers",
    "tls": "TLS",
}
SECRETS = frozenset({"digest", "pem"})
# Pairs of a name and a secret, of which the names are told.
NAMES_ALONE = frozenset({"users", "keys"})
REFERENCES = frozenset(
    {
        *("certificate_ids", "client_certificate_id", "default_certificate_id", "default_pool_id"),
        *("mirror_pool_id", "nodes", "pool_id"),
    }
)
# The same word is a list of ids in these alone.
REFERENCES_OF: Mapping[type, frozenset[str]] = {
    ConnectionAccess: frozenset({"allow", "deny"}),
    Access: frozenset({"allow", "deny"}),
    Overflow: frozenset({"order"}),
}
MOST, LONGEST = 6, 40


def take_apart(name: str, before: Any, after: Any, names: Named) -> list[Part]:
    """What of a field changed, as (words, before, after): options that were there and stay are told one by one."""
    words = words_of(name)
    if before is None or after is None or not _has_options(before):
        return [(words, say(before, names, name), say(after, names, name))]
    return [
        (f"{words} {words_of(each)}", _option(before, each, names), _option(after, each, names))
        for each in _options(before)
        if getattr(before, each) != getattr(after, each)
    ]


def words_of(name: str) -> str:
    """What people call a field; its unit stands behind its value."""
    return WORDS.get(name) or name.removesuffix(_unit_of(name)).replace("_", " ").strip()


def _unit_of(name: str) -> str:
    return "" if name.endswith("_per_s") else next((each for each in ("ms", "s") if name.endswith(f"_{each}")), "")


def named(key: str, names: Named) -> str:
    """What people call an object; one that is in neither snapshot is not called by our id either."""
    return names.get(key, "one that is no more")


def say(value: Any, names: Named, field: str = "") -> str:
    """A value for people."""
    if field == "capacity_scaler":
        return f"{100 * value:g} %"
    if field in REFERENCES:
        return _references(value, names)
    if field in SECRETS:
        return "(hidden)"
    if isinstance(value, tuple):
        members = [_member(each, names, field) for each in value[:MOST]]
        return ", ".join(members + [f"{len(value) - MOST} more"] * (len(value) > MOST)) or "none"
    said, unit = _say_plain(value, names), _unit_of(field)
    return f"{said} {unit}" if unit and said.isdecimal() else said


def _references(value: Any, names: Named) -> str:
    keys = (value,) if isinstance(value, str) else value or ()
    return ", ".join(named(key, names) for key in keys) or "none"


def _member(value: Any, names: Named, field: str) -> str:
    match value:
        case (str() as name, str() as text):
            return name if field in NAMES_ALONE else f"{name}: {_shortened(text)}"
    return say(value, names)


def _say_plain(value: Any, names: Named) -> str:
    match value:
        case None | "":
            return "none"
        case bool():
            return "yes" if value else "no"
        case str():
            return "(hidden)" if value.startswith("-----BEGIN") else str(value)
        case int() | float():
            return str(value)
    teller = TELLERS.get(type(value))
    return teller(value) if teller else _say_options(value, names)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _has_options(value: Any) -> bool:
    return is_dataclass(value) and type(value) not in TELLERS


def _options(value: Any) -> list[str]:
    return [each.name for each in fields(value) if each.name != "id"]


def _option(options: Any, name: str, names: Named) -> str:
    value = getattr(options, name)
    if name in REFERENCES_OF.get(type(options), ()):
        return _references(value, names)
    return _shortened(say(value, names, name))


def _say_options(options: Any, names: Named) -> str:
    """Field by field, without what it leaves as it is."""
    set_here = (each for each in _options(options) if getattr(options, each) not in (None, (), ""))
    told = (f"{words_of(each)} {_option(options, each, names)}" for each in set_here if each not in SECRETS)
    return ", ".join(told) or "set"


def _say_limit(limit: Limit) -> str:
    if limit.kind is LimitKind.NONE:
        return "no limit"
    unit = "requests/s" if limit.kind is LimitKind.RATE else "in flight"
    return f"{limit.value} {unit}" + (" per server" if limit.scope is LimitScope.SERVER else "")


def _say_check(check: HealthCheck) -> str:
    asked = f"{check.method} {check.path}" if check.path else "connect"
    host = f" at {check.host}" if check.host else ""
    host += f" on port {check.port}" if check.port else ""
    expects = f" expecting {check.expect_status}" if check.path else ""
    times = f"every {check.interval_ms} ms, at most {check.timeout_ms} ms"
    return f"{asked}{host}{expects} {times}, up after {check.rise}, down after {check.fall}"


def _say_redirect(redirect: Redirect) -> str:
    scheme = f"{redirect.scheme}://" if redirect.scheme else ""
    port = f":{redirect.port}" if redirect.port else ""
    path = redirect.path or (f"{redirect.prefix.rstrip('/')}/…" if redirect.prefix else "")
    where = f"{scheme}{redirect.host or ('same host' if scheme or port else '')}{port}{path}" or "same place"
    query = "" if redirect.keep_query else " without the query"
    return f"{redirect.code} to {where}{query}" + (f" with {redirect.query}" if redirect.query else "")


def _say_response(answer: FixedResponse) -> str:
    body = f" “{_shortened(answer.body)}”" if answer.body else ""
    return f"{answer.status} {answer.content_type}{body}"


def _say_condition(condition: ValueCondition) -> str:
    return f"{condition.name} {condition.match.value} {condition.value}".strip()


def _say_assertion(assertion: Assertion) -> str:
    goals = (
        f"pool {assertion.pool}" if assertion.pool else "",
        f"route {assertion.route}" if assertion.route else "",
        "" if assertion.redirect is None else f"redirect {assertion.redirect}".strip(),
        "" if assertion.status is None else f"status {assertion.status}",
    )
    headers = "".join(f" with {name}: {value}" for name, value in assertion.headers)
    return f"{assertion.method} {assertion.host}{assertion.path}{headers} gets {next(filter(None, goals), 'anything')}"


TELLERS: Mapping[type, Callable[[Any], str]] = {
    Limit: _say_limit,
    HealthCheck: _say_check,
    Redirect: _say_redirect,
    FixedResponse: _say_response,
    ValueCondition: _say_condition,
    Assertion: _say_assertion,
}
