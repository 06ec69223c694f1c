"""The rules that hold for a route against their grammars, once more, right before they are rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import ip_network

from apps.compiler import client_limits, grammar, header_text
from apps.compiler.checks.access import errors_of_access, refusing_status
from apps.compiler.checks.authentication import asked_of_authentication
from apps.compiler.checks.examination import Notes
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import cookies, request_log, rewriting
from apps.compiler.grammars.servers import cookie_name, retry_count
from apps.compiler.matching import patterns
from apps.compiler.model.policy import ClientLimit, Cors, HeaderChanges, Rules, Split, TypedHeaders
from apps.compiler.model.servers import OverflowMode
from apps.compiler.model.shared import LoadBalancer

Asked = tuple[str, Callable[[object], object], object]
_FRAMES = frozenset({"deny", "sameorigin"})
_REFERRERS = frozenset({"no-referrer", "same-origin", "strict-origin", "strict-origin-when-cross-origin"})


def check_rules(notes: Notes, load_balancer: LoadBalancer) -> None:
    """A route whose rules are not in their grammar is left out: half of its rules might be what protects it."""
    errors = {each.id: _errors_in(each.rules, load_balancer) for each in load_balancer.rule_sets}
    for route in load_balancer.routes:
        if not route.rule_set:
            continue
        if route.rule_set not in errors:
            notes.quarantine(route, "unknown_rules", "Save the route again; its rules are missing.", "rules")
            continue
        for field, code, message in errors[route.rule_set]:
            notes.quarantine(route, code, message, field)


def _errors_in(rules: Rules, load_balancer: LoadBalancer) -> tuple[tuple[str, str, str], ...]:
    of_lists = errors_of_access(rules.access, load_balancer) if rules.access else ()
    return (*errors_of(rules), *of_lists)


def errors_of(rules: Rules) -> tuple[tuple[str, str, str], ...]:
    """Field, code and sentence of everything that is wrong."""
    return tuple(
        (field, *error) for field, ask, value in _asked(rules) if value is not None and (error := _error(ask, value))
    )


def _error(ask: Callable[[object], object], value: object) -> tuple[str, str] | None:
    try:
        ask(value)
    except GrammarError as error:
        return error.code, error.message
    return None


def _asked(rules: Rules) -> Iterator[Asked]:
    yield from _of_headers(
        "request_headers", rules.request_headers, header_text.request_header, header_text.request_text
    )
    yield from _of_headers("response_headers", rules.response_headers, header_text.response_header)
    yield from _of_headers("typed_headers", rules.typed_headers, header_text.response_header)
    if rules.security_headers:
        yield "security_headers.frames", _one_of(_FRAMES), rules.security_headers.frames
        yield "security_headers.referrer", _one_of(_REFERRERS), rules.security_headers.referrer
        yield "security_headers.caching", rewriting.caching, rules.security_headers.caching
        yield "security_headers.hsts_seconds", _seconds, rules.security_headers.hsts_seconds
    yield from _of_cors(rules.cors)
    if rules.rewrite:
        yield "rewrite.host", grammar.server_host, rules.rewrite.host
        yield "rewrite.path", grammar.path, rules.rewrite.path
        yield "rewrite.path_regex", patterns.pattern, rules.rewrite.path_regex
        yield "rewrite.path_replacement", rewriting.replacement, rules.rewrite.path_replacement
        names = (*(rules.rewrite.query_keep or ()), *(rules.rewrite.query_drop or ()))
        for parameter in (*names, *dict(rules.rewrite.query_set or ())):
            yield "rewrite.query", rewriting.parameter, parameter
        for _, value in rules.rewrite.query_set or ():
            yield "rewrite.query_set", rewriting.parameter_value, value
    yield from asked_of_authentication(rules)
    if rules.access:
        yield "access.status", refusing_status, rules.access.status
    if rules.maintenance:
        yield "maintenance.status", grammar.fixed_status, rules.maintenance.status
        yield "maintenance.content_type", grammar.content_type, rules.maintenance.content_type
        yield "maintenance.body", grammar.body, rules.maintenance.body
        yield "maintenance.retry_after_s", _seconds, rules.maintenance.retry_after_s
        for network in rules.maintenance.allow or ():
            yield "maintenance.allow", _network, network
    limit = asked_of_client_limit(rules.client_limit)
    yield from ((f"client_limit.{name}", allowed, said) for name, allowed, said in limit)
    yield from _of_answers(rules)
    yield from _of_forwarding(rules)
    yield from _of_split(rules.split)
    if rules.log:
        yield "log.requests", request_log.which, rules.log.requests
        yield "log.one_in", request_log.one_in, rules.log.one_in
        for header in rules.log.headers or ():
            yield "log.headers", request_log.header, header


def asked_of_client_limit(said: ClientLimit | None) -> Iterator[Asked]:
    """The fields of a limit per client."""
    if said is None:
        return
    numbers = {
        "requests": (1, client_limits.MOST_REQUESTS), "burst": (1, client_limits.MOST_REQUESTS),
        "in_flight": (1, client_limits.MOST_IN_FLIGHT), "errors": (1, client_limits.MOST_REQUESTS),
        "bytes_out": (client_limits.LEAST_BYTES, client_limits.MOST_BYTES),
        "bytes_in": (client_limits.LEAST_BYTES, client_limits.MOST_BYTES),
        "ipv4_prefix": (8, 32), "ipv6_prefix": (16, 128), "clients": (100, client_limits.MOST_CLIENTS),
        "ban_after": (1, client_limits.MOST_REQUESTS), "ban_within_s": (10, 3600), "ban_for_s": (10, 86_400),
    }  # fmt: skip
    for name, (lowest, highest) in numbers.items():
        yield name, partial(grammar.integer, lowest=lowest, highest=highest), getattr(said, name)
    for name, words in client_limits.WORDS.items():
        yield name, _one_of(words), getattr(said, name)
    yield "key_name", client_limits.key_name, said.key_name
    for network in said.exempt or ():
        yield "exempt", _network, network


def _of_answers(rules: Rules) -> Iterator[Asked]:
    if rules.error_pages:
        for status in rules.error_pages.statuses or ():
            yield "error_pages.statuses", _error_status, status
        yield "error_pages.content_type", grammar.content_type, rules.error_pages.content_type
        yield "error_pages.body", grammar.body, rules.error_pages.body
    if rules.body:
        yield "body.max_bytes", _bytes, rules.body.max_bytes
    if rules.response_rewrite:
        yield "response_rewrite.location_prefix", rewriting.location, rules.response_rewrite.location_prefix
        yield "response_rewrite.location_replacement", rewriting.location, rules.response_rewrite.location_replacement


def _of_forwarding(rules: Rules) -> Iterator[Asked]:
    if rules.timeouts:
        yield "timeouts.response_ms", _time_ms, rules.timeouts.response_ms
        yield "timeouts.tunnel_ms", _time_ms, rules.timeouts.tunnel_ms
    if rules.retries:
        yield "retries.attempts", retry_count, rules.retries.attempts
    if rules.overflow:
        yield "overflow.mode", _one_of(frozenset(OverflowMode)), rules.overflow.mode
        for region in rules.overflow.order or ():
            yield "overflow.order", grammar.region_id, region
    if rules.bandwidth:
        for name in ("download_bytes_per_s", "upload_bytes_per_s"):
            yield f"bandwidth.{name}", grammar.bandwidth, getattr(rules.bandwidth, name)
        yield "bandwidth.per", _one_of(frozenset({"client", "request"})), rules.bandwidth.per


def _of_split(split: Split | None) -> Iterator[Asked]:
    if split is None:
        return
    yield "split.stick_by", cookies.stick_by, split.stick_by
    yield "split.header", grammar.header_name, split.header
    yield "split.cookie", cookie_name, split.cookie
    yield "split.max_age_s", _seconds, split.max_age_s
    yield "split.same_site", cookies.same_site, split.same_site


def _of_headers(
    block: str,
    changes: HeaderChanges | None,
    name: Callable[[object], str],
    text: Callable[[object], str] = header_text.header_text,
) -> Iterator[Asked]:
    if changes is None:
        return
    for header, value in (pair for _, pairs in changes.written for pair in pairs):
        yield block, name, header
        yield block, text, value
    for header in changes.remove or ():
        yield block, name, header
    for media_type in (changes.types or ()) if isinstance(changes, TypedHeaders) else ():
        yield f"{block}.types", grammar.media_type, media_type


def _of_cors(cors: Cors | None) -> Iterator[Asked]:
    if cors is None:
        return
    for origin in cors.origins or ():
        yield "cors.origins", header_text.origin, origin
    for method in cors.methods or ():
        yield "cors.methods", header_text.cors_method, method
    for header in cors.headers or ():
        yield "cors.headers", header_text.cors_header, header
    for header in cors.exposed_headers or ():
        yield "cors.exposed_headers", grammar.header_shape, header
    yield "cors.max_age_s", _seconds, cors.max_age_s


def _one_of(words: frozenset[str]) -> Callable[[object], object]:
    def ask(value: object) -> object:
        if value not in words:
            raise GrammarError("choice", f"Use one of {', '.join(sorted(words))}.")
        return value

    return ask


def _error_status(value: object) -> int:
    return grammar.integer(value, 400, 599)


def _bytes(value: object) -> int:
    return grammar.integer(value, 0, 1_000_000_000_000)


def _time_ms(value: object) -> int:
    return grammar.integer(value, 1, grammar.MAX_TIME_MS)


def _seconds(value: object) -> int:
    return grammar.integer(value, 0, 100_000_000)


def _network(value: object) -> object:
    try:
        return ip_network(value if isinstance(value, str) else "")
    except ValueError:
        raise GrammarError("network", "Write a network as address/length, such as 192.0.2.0/24.") from None
