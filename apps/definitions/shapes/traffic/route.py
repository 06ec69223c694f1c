"""The shape of a Route: which requests it takes, what happens to them, and what is asserted of that."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from apps.compiler import grammar
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import rewriting
from apps.compiler.matching import names, patterns
from apps.compiler.matching.hosts import covers
from apps.compiler.model import shared as model
from apps.compiler.model.shared import PathKind, ValueMatch
from apps.core.errors import FieldError
from apps.definitions.shapes.base.networks import NetworkBlock
from apps.definitions.shapes.base.shape import ALWAYS, SORTED, About, Check, Data, Distinct, Grammar, Shape, Wrong
from apps.definitions.shapes.base.words import (
    LISTED,
    PATH,
    Boolean,
    Host,
    Method,
    Name,
    Path,
    Port,
    Reference,
    RouteHostname,
    at_most,
    text,
    whole,
    word,
)
from apps.definitions.shapes.servers.objective import ServiceObjective
from apps.definitions.shapes.traffic.policy import Rules

# What besides hostname and path decides whether a request matches.
MATCH = ("methods", "headers", "query", "cookies", "client_networks", "scheme")
KINDS = {
    PathKind.PREFIX: "Prefix: this path and everything below it",
    PathKind.EXACT: "Exact: only this path",
    PathKind.REGEX: "Pattern: paths that a regular expression matches as a whole",
}
PATHS = {PathKind.PREFIX: grammar.prefix_path, PathKind.EXACT: grammar.path, PathKind.REGEX: patterns.pattern}
MATCHES = {
    ValueMatch.EQUALS: "equals",
    ValueMatch.PREFIX: "begins with",
    ValueMatch.REGEX: "matches",
    ValueMatch.PRESENT: "is present",
    ValueMatch.ABSENT: "is absent",
}
MOST_CONDITIONS = 16
MOST_NETWORKS = 100
CODES = {
    "301": "301 permanent",
    "302": "302 found",
    "303": "303 see other",
    "307": "307 temporary, same method",
    "308": "308 permanent, same method",
}
# A location is only compared with ours, so it is as wide as those can be.
_LOCATION = re.compile(r"https?://[A-Za-z0-9.:-]{1,260}/[A-Za-z0-9._~+=:@&!%?/-]{0,2048}")
BY_PARAMETER = AfterValidator(lambda found: tuple(sorted(found, key=lambda each: (each.name, each.value))))
BY_NAME = AfterValidator(lambda headers: tuple(sorted(headers, key=lambda each: (each.name.lower(), each.value))))
PREFIX = text(grammar.prefix_path, "a path without a slash at its end", grammar.MAX_PATH, PATH)
HeaderName = Annotated[str, text(grammar.header_name, "a header name", 64, r"^[A-Za-z][A-Za-z0-9-]*$")]
HEADER_VALUE = {"type": "string", "title": "text", "maxLength": 256}
Scheme = Annotated[
    str,
    Grammar(grammar.url_scheme, {"type": "string", "enum": ["http", "https"]}),
]


def _text(value: object) -> str:
    return grammar.printable(value, patterns.LONGEST)


def _compared(value: str, data: Data) -> None:
    match = data.get("match")
    if match in model.COMPARING and not value:
        raise GrammarError("missing", "Fill in value.")
    if match in (ValueMatch.PRESENT, ValueMatch.ABSENT) and value:
        raise GrammarError("header_value", "Only a condition that compares has a value; leave it out.")
    if value:
        (patterns.pattern if match is ValueMatch.REGEX else grammar.header_value)(value)


Match = Annotated[
    ValueMatch,
    word(ValueMatch, MATCHES),
    About("How it is compared; a pattern must match the whole value.", "Condition", ""),
]
Compared = Annotated[
    str,
    text(_text, "text", patterns.LONGEST, blank=True),
    Check(_compared),
    ALWAYS,
    About("The value to compare with, as it is sent.", "Value", "", "yes"),
]
ParameterName = Annotated[str, text(names.parameter_name, "a name", 64, r"^(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+$")]


@dataclass(frozen=True, slots=True)
class HeaderCondition(model.ValueCondition, Shape):
    """A header that a request must have."""

    name: Annotated[HeaderName, About("The name of the header; case does not matter.", "Header", "", "X-Canary")]
    match: Match = ValueMatch.EQUALS
    value: Compared = ""


@dataclass(frozen=True, slots=True)
class QueryCondition(model.ValueCondition, Shape):
    """A query parameter that a request must have; if it occurs several times, one of them must match."""

    name: Annotated[ParameterName, About("The name of the parameter.", "Query parameter", "", "version")]
    match: Match = ValueMatch.EQUALS
    value: Compared = ""


@dataclass(frozen=True, slots=True)
class CookieCondition(model.ValueCondition, Shape):
    """A cookie that a request must have; one without a value is absent."""

    name: Annotated[ParameterName, About("The name of the cookie.", "Cookie", "", "beta")]
    match: Match = ValueMatch.EQUALS
    value: Compared = ""


@dataclass(frozen=True, slots=True)
class Share(Shape):
    """A pool's share of a route: its weight out of the sum of the weights."""

    pool: Annotated[Reference, About("A pool; `account/pool` for a shared one.", "Pool", "", "shop")]
    weight: Annotated[
        int, whole(0, 1000), About("Its share of requests, relative to the sum of all weights.", "Weight", "")
    ] = 100


def _without_path(prefix: str | None, data: Data) -> None:
    if prefix and data.get("path"):
        raise GrammarError("path_or_prefix", "Set either path or prefix for the redirect.")


@dataclass(frozen=True, slots=True)
class Redirect(model.Redirect, Shape):
    """Where a redirect leads: another scheme, host, port or path."""

    code: Annotated[
        int,
        Grammar(grammar.redirect_code, {"type": "integer", "enum": sorted(grammar.REDIRECT_CODES)}, labels=CODES),
        About("The status of the response.", "Status", ""),
    ]
    scheme: Annotated[Scheme | None, About("Null keeps the scheme of the request.", "Scheme", "")] = None
    host: Annotated[
        Host | None,
        About("Null keeps the host of the request.", "Redirect host", "Leave empty to keep the host of the request."),
    ] = None
    port: Annotated[
        Port | None,
        About(
            "Default: the port of the scheme if one is set, otherwise that of the request. Default ports are left out.",
            "Redirect port",
            "Leave empty for the usual port of the scheme, or the port of the request.",
            absent_when_empty=True,
        ),
    ] = None
    path: Annotated[
        Path | None,
        About("Null keeps the path of the request.", "Redirect path", "Leave empty to keep the path of the request."),
    ] = None
    prefix: Annotated[
        str | None,
        PREFIX,
        Check(_without_path),
        About(
            "Replaces the prefix that the route matched and keeps the rest of the path.",
            "Redirect prefix",
            "Replaces the prefix that the route matched and keeps the rest of the path.",
            absent_when_empty=True,
        ),
    ] = None
    keep_query: Annotated[Boolean, About("Whether the query of the request is kept.", "Keep the query string", "")] = (
        True
    )
    query: Annotated[
        str | None,
        text(rewriting.query, "a query", rewriting.MAX_QUERY),
        About(
            "Added to the end of the query; the whole query if the query of the request is not kept.",
            "Add to the query",
            "Such as from=old, without a question mark.",
            absent_when_empty=True,
        ),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """It leads somewhere else."""
        if sent.keys().isdisjoint(("scheme", "host", "port", "path", "prefix")):
            detail = "Set at least one of scheme, host, port, path and prefix for the redirect."
            yield FieldError("", "redirect_loop", detail)


@dataclass(frozen=True, slots=True)
class FixedResponse(model.FixedResponse, Shape):
    """A response that no server sends."""

    status: Annotated[int, whole(200, 599), About("The status of the response; use a redirect for 3xx.", "Status", "")]
    content_type: Annotated[
        str,
        text(grammar.content_type, "a media type", 128),
        About("The media type of the response.", "Content type", ""),
    ] = "text/plain; charset=utf-8"
    body: Annotated[
        str, text(grammar.body, "text", grammar.MAX_BODY, blank=True), About("The body of the response.", "Body", "")
    ] = ""


def _takes_requests(shares: tuple[Share, ...], _: Data) -> None:
    if not any(share.weight for share in shares):
        raise GrammarError("missing", "Name at least one pool with a weight above 0.")


@dataclass(frozen=True, slots=True)
class Action(Shape):
    """What happens: exactly one of the three."""

    pools: Annotated[
        tuple[Share, ...],
        LISTED,
        at_most(8, "pools in one route"),
        Distinct(("pool",)),
        Check(_takes_requests),
        About("The pools that serve the requests, each with its share.", "Send to pools", absent_when_empty=True),
    ] = ()
    redirect: Annotated[Redirect | None, About("Redirects clients.", "Redirect", absent_when_empty=True)] = None
    fixed_response: Annotated[
        FixedResponse | None,
        About("The load balancer returns a response of its own.", "Return a fixed response", absent_when_empty=True),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """Exactly one of them."""
        if len({"pools", "redirect", "fixed_response"} & sent.keys()) != 1:
            detail = "Use exactly one of pools, redirect and fixed_response."
            yield FieldError("", "one_action", detail)


@dataclass(frozen=True, slots=True)
class AssertedHeader(Shape):
    """A header of the request that is spoken of."""

    name: Annotated[HeaderName, About("The name of the header.")]
    value: Annotated[str, Grammar(grammar.header_value, HEADER_VALUE), About("The value of the header.")]


def _location(value: object) -> str | bool:
    if value is True:
        return True
    if not isinstance(value, str) or not _LOCATION.fullmatch(value):
        raise GrammarError("location", "Write the redirect target, such as https://host/path, or true for any target.")
    return value


@dataclass(frozen=True, slots=True)
class Expectation(Shape):
    """What must happen: exactly one of the four; `redirect` is a location, or true for any."""

    pool: Annotated[
        Reference | None,
        About("The pool that all of the request's traffic goes to.", example="shop", absent_when_empty=True),
    ] = None
    route: Annotated[Name | None, About("The route of the same account that matches.", absent_when_empty=True)] = None
    redirect: Annotated[
        str | bool | None,
        Grammar(_location, {"type": "any", "title": "`https://host/path`, or `true` for anywhere"}),
        About("The target of the redirect.", absent_when_empty=True),
    ] = None
    status: Annotated[int | None, whole(200, 599), About("The status of the response.", absent_when_empty=True)] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """Exactly one of them."""
        if len({"pool", "route", "redirect", "status"} & sent.keys()) != 1:
            yield FieldError("", "one_expectation", "Expect exactly one of pool, route, redirect and status.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion(Shape):
    """A request and its expected result; a revision that fails it is not rolled out."""

    method: Annotated[Method, About("The method of the request.")] = "GET"
    host: Annotated[Host | None, About("A host that the route matches. Default: the route's own.")] = None
    path: Annotated[Path, About("The path of the request.", example="/")]
    headers: Annotated[
        tuple[AssertedHeader, ...],
        LISTED,
        at_most(10, "headers in one assertion"),
        BY_NAME,
        About("Further headers of the request."),
    ] = ()
    expect: Annotated[
        Expectation,
        About("The expected result.", missing="Set expect to exactly one of pool, route, redirect and status."),
    ]


def _of_pools(value: str | None, data: Data) -> None:
    action = data.get("action")
    if value and (data.get("path_kind") in (PathKind.EXACT, PathKind.REGEX) or (action and not action.pools)):
        raise GrammarError("prefix_rewrite", "Only a prefix route to pools can rewrite its prefix.")


def _beside_pools(pool: str | None, data: Data) -> None:
    action = data.get("action")
    if pool and action and not action.pools:
        raise GrammarError("mirror", "Only a route to pools can mirror its requests.")


def _of_prefixes(action: Action, data: Data) -> None:
    if action.redirect and action.redirect.prefix and data.get("path_kind") in (PathKind.EXACT, PathKind.REGEX):
        detail = "Only a prefix route can redirect to another prefix; set the path."
        raise Wrong(FieldError("/redirect/prefix", "prefix", detail))


def _of_this_host(assertions: tuple[Assertion, ...] | None, data: Data) -> None:
    taken = data.get("hostname")
    others = [
        FieldError(f"/{index}/host", "other_host", f"Use a host that this route matches ({taken}), or leave it out.")
        for index, each in enumerate(assertions or ())
        if taken and each.host and not covers(taken, each.host)
    ]
    if others:
        raise Wrong(*others)


def _path(value: object) -> str:
    return grammar.printable(value, grammar.MAX_PATH)


def _is_text(value: str) -> bool:
    """Whether the field itself found nothing wrong."""
    try:
        _path(value)
    except GrammarError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSpec(Shape):
    """Hostname and path (and methods, headers …), and what happens to what matches them."""

    load_balancer: Annotated[Name, About("The load balancer whose listeners serve it.", "Load balancer", "", "front")]
    hostname: Annotated[
        RouteHostname,
        About(
            "The hostname that clients request; the account that uses it first owns it.",
            "Hostname",
            "One hostname, *.example.com for any single label, **.example.com for one or several; * for any host.",
            "shop.example.com",
            note="`*` is for the account that owns the load balancer.",
        ),
    ]
    path: Annotated[
        str,
        text(_path, "a path, or a pattern", grammar.MAX_PATH),
        About("The longest match wins; patterns come after prefixes, and before `/`.", "Path", ""),
    ] = "/"
    path_kind: Annotated[PathKind, word(PathKind, KINDS), About("How the path is compared.", "Path match", "")] = (
        PathKind.PREFIX
    )
    methods: Annotated[
        tuple[Method, ...],
        LISTED,
        Distinct(),
        SORTED,
        About("Default: all methods.", "Methods", "None selected means all methods."),
    ] = ()
    scheme: Annotated[
        Scheme | None,
        About("http or https. Default: both.", "Scheme", "", note="For requests of this scheme only; null for both."),
    ] = None
    headers: Annotated[
        tuple[HeaderCondition, ...],
        LISTED,
        at_most(MOST_CONDITIONS, "conditions on headers"),
        BY_NAME,
        About("Header conditions of the request."),
    ] = ()
    query: Annotated[
        tuple[QueryCondition, ...],
        LISTED,
        at_most(MOST_CONDITIONS, "conditions on the query"),
        BY_PARAMETER,
        About("Conditions on query parameters."),
    ] = ()
    cookies: Annotated[
        tuple[CookieCondition, ...],
        LISTED,
        at_most(MOST_CONDITIONS, "conditions on cookies"),
        BY_PARAMETER,
        About("Conditions on cookies."),
    ] = ()
    client_networks: Annotated[
        tuple[NetworkBlock, ...],
        LISTED,
        at_most(MOST_NETWORKS, "client networks in one route"),
        Distinct(),
        SORTED,
        About(
            "CIDR blocks of the clients. Default: all clients.",
            "Client networks",
            "One per line, such as 192.0.2.0/24. None: all clients.",
        ),
    ] = ()
    action: Annotated[
        Action,
        Check(_of_prefixes),
        About("What happens with the requests.", missing="Fill in pools, redirect or fixed_response."),
    ]
    prefix_rewrite: Annotated[
        str | None,
        PREFIX,
        Check(_of_pools),
        About(
            "Servers receive this instead of the matched prefix.",
            "Rewrite prefix to",
            "Servers receive this instead of the matched prefix.",
        ),
    ] = None
    mirror: Annotated[
        Reference | None,
        Check(_beside_pools),
        About(
            "The pool that gets a copy of every request; nobody waits for its responses. Only on Google Cloud.",
            "Mirror to",
            "A pool that gets a copy of every request. Clients never see its responses.",
            absent_when_empty=True,
        ),
    ] = None
    policies: Annotated[
        tuple[Reference, ...],
        LISTED,
        at_most(8, "policies in one route"),
        Distinct(),
        About(
            "The policies that apply to it, nearest first.",
            "Policies",
            "Names of policies that this route follows, one per line, nearest first.",
            example="web",
        ),
    ] = ()
    rules: Annotated[
        Rules | None, About("Settings of its own, which take precedence over policies.", absent_when_empty=True)
    ] = None
    objective: Annotated[
        ServiceObjective | None,
        About(
            "How many requests must succeed, and be answered in time, over 28 days. All of them have to be logged.",
            "Objective",
            absent_when_empty=True,
        ),
    ] = None
    assertions: Annotated[
        tuple[Assertion, ...] | None,
        at_most(20, "assertions in one route"),
        Check(_of_this_host),
        About(
            "Requests and their expected results, checked with each change.",
            stays=[],
            note="Left out, they stay as they are.",
            most=20,
        ),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """The path is one of its kind."""
        kind, found = sent.get("path_kind", PathKind.PREFIX), sent.get("path", "/")
        if isinstance(kind, str) and kind in PATHS and isinstance(found, str) and _is_text(found):
            try:
                PATHS[PathKind(kind)](found)
            except GrammarError as error:
                yield FieldError("/path", error.code, error.message)
