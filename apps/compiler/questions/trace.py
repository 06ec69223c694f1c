"""The answer to "what would happen to this request?": who wins, who was passed over and why, what comes of it.

It reads the same model that the renderers read and the same precedence (routing.py), so a trace, an assertion and a
running proxy agree; a test asks all three.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from apps.compiler.matching import patterns
from apps.compiler.matching.conditions import Sent, failing, is_within
from apps.compiler.model.policy import Rewrite, Rules
from apps.compiler.model.shared import Listener, LoadBalancer, PathKind, Protocol, Redirect, Route
from apps.compiler.policies import MAINTENANCE_STATUS, NOTHING, REFUSED_STATUS, allows, rules_of
from apps.compiler.questions.guarding import Refusal, guards_of, refusal
from apps.compiler.routing import bare_host, covers_host, covers_path, covers_scheme, rank, refusal_of

NO_ROUTE_STATUS = 404
SCHEME_PORTS = {"http": 80, "https": 443}
PREFLIGHT_STATUS = 204
# Why a route that takes the request as well comes after the winner, in the order of its rank (routing.py).
LATER = (
    ("host", "its hostname is less specific"),
    ("path_kind", "exact paths win over prefixes, prefixes over patterns, and patterns over the prefix /"),
    ("path", "its path is shorter"),
    ("method", "it matches every method, the winner only some"),
    ("header", "it has fewer header conditions"),
    ("query", "it has fewer query conditions"),
    ("cookie", "it has fewer cookie conditions"),
    ("client", "it matches clients in all networks, the winner only in some"),
    ("scheme", "it matches http and https, the winner only one of them"),
    ("order", "it matches the same requests and was created later"),
)


@dataclass(frozen=True, slots=True)
class Question:
    """A request as a client sends it; `path` may carry a query, `client` is its address where that is known."""

    host: str
    path: str = "/"
    method: str = "GET"
    scheme: Protocol = Protocol.HTTPS
    headers: Mapping[str, str] = field(default_factory=dict)
    client: str = ""

    @property
    def sent(self) -> Sent:
        """What conditions look at."""
        lower = {name.lower(): value for name, value in self.headers.items()}
        return Sent(lower, self.path.partition("?")[2], self.client)

    @property
    def bare_path(self) -> str:
        """Without the query."""
        return self.path.partition("?")[0]

    @property
    def port(self) -> int:
        """The port that the host carries, 0 for none."""
        found = re.search(r":([0-9]+)\Z", self.host)
        return int(found[1]) if found else 0

    @property
    def bare_host(self) -> str:
        """Lower case, without the port and a final dot."""
        return bare_host(self.host)


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A route of the same host that did not get it; `code` is a word of LATER: what misses, or what came first."""

    route: Route
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Share:
    """A pool and the part of the requests that it gets, 0 to 1."""

    pool_id: str
    part: float


@dataclass(frozen=True, slots=True)
class Trace:
    """What happens: `pools` get it with `path`, or `status` is answered (with `location` for a redirect).

    `mirror_pool_id` is the pool that gets a copy. `listener` is the one that takes it, None where the load balancer has
    none of this scheme; `is_closed` where it lets nobody in from there. `refusal` says why it, or a policy, lets nobody
    in; `guards` are blocks of rules that may refuse it before.
    """

    winner: Route | None
    passed_over: tuple[PassedOver, ...] = ()
    listener: Listener | None = None
    pools: tuple[Share, ...] = ()
    path: str = ""
    status: int | None = None
    location: str | None = None
    mirror_pool_id: str | None = None
    is_closed: bool = False
    refusal: Refusal | None = None
    guards: tuple[str, ...] = ()


def trace(load_balancer: LoadBalancer, question: Question) -> Trace:
    """What the load balancer does with the request."""
    listener = _listener(load_balancer, question.scheme)
    lists = load_balancer.network_lists
    if listener and (closed := refusal(listener.access, lists, question.client)):
        return Trace(None, (), listener, is_closed=True, refusal=closed)
    refused = refusal_of(question.host, question.bare_path, question.method)
    if refused is not None:
        return Trace(None, (), listener, status=refused)
    sent = question.sent
    around = sorted((each for each in load_balancer.routes if covers_host(each, question.bare_host)), key=rank)
    misses = [(route, _miss(route, question, sent)) for route in around]
    winner = next((route for route, miss in misses if miss is None), None)
    passed = tuple(
        PassedOver(route, *(miss or _later(winner, route)))
        for route, miss in misses
        if route is not winner and (miss or winner)
    )
    rules = rules_of(load_balancer, winner) if winner else NOTHING
    found = _outcome(winner, rules, passed, listener, question)
    if winner is None:
        return found
    if rules.access and (kept_out := refusal(rules.access, lists, question.client)):
        return Trace(winner, passed, listener, status=rules.access.status or REFUSED_STATUS, refusal=kept_out)
    return replace(found, guards=guards_of(rules, question.client))


def _miss(route: Route, question: Question, sent: Sent) -> tuple[str, str] | None:
    """Why the route does not take the request, None when it does."""
    if not covers_scheme(route, question.scheme):
        return "scheme", f"it matches only {route.scheme}"
    if not covers_path(route, question.bare_path):
        return "path", f"it matches only {_paths_of(route)}"
    if route.methods and question.method not in route.methods:
        return "method", f"it matches only {', '.join(sorted(route.methods))}"
    return failing(route, sent)


def _paths_of(route: Route) -> str:
    if route.path_kind is PathKind.REGEX:
        return f"paths of the pattern {route.path}"
    return f"the path {route.path}" if route.path_kind is PathKind.EXACT else f"{route.path} and paths below it"


def _later(winner: Route | None, route: Route) -> tuple[str, str]:
    assert winner is not None  # noqa: S101 - a route that takes the request is passed over for another
    pairs = zip(rank(winner), rank(route), strict=True)
    later = next(reason for reason, (first, second) in zip(LATER, pairs, strict=True) if first != second)
    # `/` comes after patterns; beside another prefix it is the shorter one.
    return LATER[2] if later is LATER[1] and winner.path_kind is route.path_kind else later


def _listener(load_balancer: LoadBalancer, scheme: Protocol) -> Listener | None:
    return next((each for each in load_balancer.listeners if each.protocol is scheme), None)


def _outcome(
    winner: Route | None, rules: Rules, passed: tuple[PassedOver, ...], listener: Listener | None, question: Question
) -> Trace:
    if winner is None:
        if listener is not None and listener.default_pool_id:
            return Trace(None, passed, listener, pools=(Share(listener.default_pool_id, 1.0),), path=question.path)
        return Trace(None, passed, listener, status=NO_ROUTE_STATUS)
    if (status := _status_of(rules, question)) is not None:
        return Trace(winner, passed, listener, status=status)
    if winner.redirect is not None:
        location = location_of(winner, winner.redirect, question)
        return Trace(winner, passed, listener, status=winner.redirect.code, location=location)
    if winner.fixed_response is not None:
        return Trace(winner, passed, listener, status=winner.fixed_response.status)
    whole = sum(share.weight for share in winner.pools)
    shares = tuple(Share(share.pool_id, share.weight / whole) for share in winner.pools if share.weight)
    path = _by_rules(rules, rewritten(winner, question.path))
    return Trace(winner, passed, listener, pools=shares, path=path, mirror_pool_id=winner.mirror_pool_id)


def _status_of(rules: Rules, question: Question) -> int | None:
    """The status by which a policy answers before any action: to a preflight, or during maintenance."""
    headers = {name.lower(): value for name, value in question.headers.items()}
    asks = question.method == "OPTIONS" and "access-control-request-method" in headers
    if rules.cors and asks and allows(rules.cors, headers.get("origin", "")):
        return PREFLIGHT_STATUS
    maintenance = rules.maintenance
    if maintenance and is_within(question.client, maintenance.allow or ()):
        return None
    return (maintenance.status or MAINTENANCE_STATUS) if maintenance and maintenance.enabled else None


def _by_rules(rules: Rules, path: str) -> str:
    """The path with its query as policies leave it; a whole path of theirs comes before any prefix rewrite."""
    if rules.rewrite is None:
        return path
    bare, _, query = path.partition("?")
    return _path_by_rules(rules.rewrite, bare) + _query_by_rules(rules.rewrite, query)


def _path_by_rules(rewrite: Rewrite, path: str) -> str:
    if rewrite.path is None and rewrite.path_regex and rewrite.path_replacement:
        return patterns.replaced(rewrite.path_regex, rewrite.path_replacement, path)
    return rewrite.path or path


def _query_by_rules(rewrite: Rewrite, query: str) -> str:
    """With its mark; of a parameter that is kept, the first value."""
    if rewrite.drop_query:
        return ""
    found = [part for part in query.split("&") if part] if query else []
    if rewrite.query_keep is not None:
        first = {part.partition("=")[0]: part for part in reversed(found)}
        found = [first[name] for name in rewrite.query_keep if name in first]
    gone = {*(rewrite.query_drop or ()), *dict(rewrite.query_set or ())}
    found = [part for part in found if part.partition("=")[0] not in gone]
    found += [f"{name}={value}" for name, value in rewrite.query_set or ()]
    return "?" + "&".join(found) if found else ""


def rewritten(route: Route, path: str) -> str:
    """The path (with its query) as the pool gets it."""
    if route.prefix_rewrite is None:
        return path
    bare, mark, query = path.partition("?")
    return _below(route.prefix_rewrite, route, bare) + mark + query


def _below(prefix: str, route: Route, bare: str) -> str:
    """The path with this in place of the prefix that the route matched."""
    return prefix.rstrip("/") + bare[len(route.path.rstrip("/")) :] or "/"


def location_of(route: Route, redirect: Redirect, question: Question) -> str:
    """Where a redirect of the route leads, with the port unless it is the scheme's own.

    One that names no port keeps that of the request, unless it names the scheme: the port belonged to the old one.
    """
    bare, _, query = question.path.partition("?")
    scheme = redirect.scheme or question.scheme.value
    port = redirect.port or (0 if redirect.scheme else question.port)
    shown = f":{port}" if port and port != SCHEME_PORTS[scheme] else ""
    path = redirect.path or (bare if redirect.prefix is None else _below(redirect.prefix, route, bare))
    queries = (query if redirect.keep_query else "", redirect.query or "")
    mark = "?" if any(queries) else ""
    return f"{scheme}://{redirect.host or question.bare_host}{shown}{path}{mark}{'&'.join(filter(None, queries))}"
