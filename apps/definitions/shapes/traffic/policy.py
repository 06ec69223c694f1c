"""The shape of a Policy: blocks of settings that many routes share, and for whom it holds without being named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from apps.compiler import grammar, header_text
from apps.compiler.grammar import GrammarError
from apps.compiler.grammars import request_log
from apps.compiler.grammars.request_log import WHICH
from apps.compiler.matching.names import network_block
from apps.compiler.model import policy as model
from apps.core.errors import FieldError
from apps.definitions.shapes.base.networks import CIDR
from apps.definitions.shapes.base.reading import escaped
from apps.definitions.shapes.base.shape import SORTED, UNORDERED, About, Data, Distinct, Grammar, Shape, Wrong
from apps.definitions.shapes.base.words import (
    LISTED,
    METHODS,
    Boolean,
    ByName,
    Hostname,
    Pairs,
    at_most,
    read_pairs,
    sorted_pairs,
    text,
    whole,
)
from apps.definitions.shapes.traffic.access import Access
from apps.definitions.shapes.traffic.authentication import ApiKeys, BasicAuth, Jwt
from apps.definitions.shapes.traffic.client_limit import ClientLimit
from apps.definitions.shapes.traffic.policy_answers import Body, ErrorPages
from apps.definitions.shapes.traffic.policy_forwarding import Bandwidth, RequestOverflow, Retries, Split, Timeouts
from apps.definitions.shapes.traffic.policy_rewrite import ResponseRewrite, Rewrite

MOST_HEADERS = 30
MOST_TYPES = 8
MOST_ORIGINS = 20
YEAR_S = 31_536_000
HEADER = r"^[A-Za-z][A-Za-z0-9-]*$"
CORS_HEADER = r"^([A-Za-z][A-Za-z0-9-]*|\*)$"
CORS_METHOD = Grammar(header_text.cors_method, {"type": "string", "enum": [*METHODS, header_text.ANY]})
FRAMES = {"deny": "Nowhere", "sameorigin": "On pages of the same origin"}
CACHING = {
    "no-store": "Never",
    "no-cache": "Revalidate each time",
    "private": "In browsers only, revalidate",
    "hour": "Anywhere, for an hour",
    "immutable": "Anywhere, for a year",
}
REFERRERS = {
    "no-referrer": "Never",
    "same-origin": "To the same origin",
    "strict-origin": "The origin only",
    "strict-origin-when-cross-origin": "The origin only, across origins",
}


def _headers(name: Callable[[object], str], written: Callable[[object], str] = header_text.header_text) -> Grammar:
    def read(value: object) -> Pairs:
        found = read_pairs(value, name, written)
        if len(found) > MOST_HEADERS:
            raise GrammarError("too_many", f"Use at most {MOST_HEADERS} headers.")
        seen: dict[str, str] = {}
        for each, _ in found:
            if seen.setdefault(each.lower(), each) != each:
                raise Wrong(FieldError(f"/{escaped(each)}", "twice", f"Name {each} once, in one spelling."))
        return found

    schema = {
        "type": "object",
        "title": f"at most {MOST_HEADERS} names of headers with a value each",
        "additionalProperties": {"type": "string", "minLength": 1, "maxLength": header_text.MAX_HEADER_TEXT},
    }
    return Grammar(read, schema, sorted_pairs)


def _choice(labels: dict[str, str]) -> Grammar:
    def read(value: object) -> str:
        if isinstance(value, str) and value in labels:
            return value
        raise GrammarError("choice", f"Use one of {', '.join(labels)}.")

    return Grammar(read, {"type": "string", "enum": list(labels)}, labels=labels)


def _replaced(*without: str) -> str:
    held = ", ".join(f"{{{name}}}" for name in header_text.VARIABLES if name not in without)
    return f"Headers with their new values, which may hold {held}."


REPLACED, SENT = _replaced(), _replaced(header_text.SERVER)
REQUEST_HEADER = text(header_text.request_header, "the name of a header", 64, HEADER)
RESPONSE_HEADER = text(header_text.response_header, "the name of a header", 64, HEADER)
RequestPairs = Annotated[Pairs, _headers(header_text.request_header, header_text.request_text)]
ResponsePairs = Annotated[Pairs, _headers(header_text.response_header)]
RemovedFromResponses = Annotated[
    tuple[Annotated[str, RESPONSE_HEADER], ...] | None,
    at_most(MOST_HEADERS, "headers"),
    Distinct(),
    About("Headers removed before clients get the response.", "Remove"),
]


@dataclass(frozen=True, slots=True)
class RequestHeaders(model.HeaderChanges, Shape):
    """Changes of the headers that servers get."""

    sparse: ClassVar = True

    set: Annotated[
        RequestPairs | None,
        About(SENT, "Set"),
    ] = None
    add: Annotated[
        RequestPairs | None,
        About("Headers added to the request.", "Add"),
    ] = None
    remove: Annotated[
        tuple[Annotated[str, REQUEST_HEADER], ...] | None,
        at_most(MOST_HEADERS, "headers"),
        Distinct(),
        About("Headers removed before servers get the request.", "Remove"),
    ] = None


@dataclass(frozen=True, slots=True)
class ResponseHeaders(model.ResponseHeaders, Shape):
    """Changes of the headers that clients get."""

    sparse: ClassVar = True

    set: Annotated[
        ResponsePairs | None,
        About(REPLACED, "Set"),
    ] = None
    add: Annotated[
        ResponsePairs | None,
        About("Headers added to the response.", "Add"),
    ] = None
    remove: RemovedFromResponses = None
    set_if_absent: Annotated[
        ResponsePairs | None,
        About("Headers set in responses that have none of that name, such as a default of yours.", "Set if absent"),
    ] = None


@dataclass(frozen=True, slots=True)
class TypedHeaders(model.TypedHeaders, Shape):
    """Changes of the headers that clients get with responses of some media types, such as pages of HTML."""

    sparse: ClassVar = True

    types: Annotated[
        tuple[Annotated[str, text(grammar.media_type, "a media type", 97)], ...] | None,
        at_most(MOST_TYPES, "media types"),
        Distinct(),
        SORTED,
        About("Responses whose Content-Type begins with one of these, in any case.", "Media types"),
    ] = None
    set: Annotated[
        ResponsePairs | None,
        About(REPLACED, "Set"),
    ] = None
    add: Annotated[
        ResponsePairs | None,
        About("Headers added to the response.", "Add"),
    ] = None
    remove: RemovedFromResponses = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """Headers of all responses are said elsewhere."""
        if not sent.get("types"):
            yield FieldError("/types", "missing", "Name at least one media type; response_headers are for all of them.")
        elif not any(sent.get(name) for name in ("set", "add", "remove")):
            yield FieldError("/set", "missing", "Say which headers are set, added or removed.")


@dataclass(frozen=True, slots=True)
class SecurityHeaders(model.SecurityHeaders, Shape):
    """Headers that make browsers protect users."""

    sparse: ClassVar = True

    hsts_seconds: Annotated[
        Annotated[int, whole(0, 2 * YEAR_S)] | None,
        About(
            "Seconds for which browsers use https only (Strict-Transport-Security); 0 ends it. Sent over https only.",
            "HSTS, seconds",
            example=YEAR_S,
        ),
    ] = None
    hsts_subdomains: Annotated[Boolean | None, About("Whether this also applies to subdomains.", "For subdomains")] = (
        None
    )
    no_sniff: Annotated[
        Boolean | None, About("Whether browsers must use the declared content type.", "No sniffing")
    ] = None
    frames: Annotated[
        Annotated[str, _choice(FRAMES)] | None, About("Where other pages may embed these pages.", "Frames")
    ] = None
    referrer: Annotated[
        Annotated[str, _choice(REFERRERS)] | None, About("What browsers tell other sites about the page.", "Referrer")
    ] = None
    caching: Annotated[
        Annotated[str, _choice(CACHING)] | None,
        About("Cache-Control of responses that do not set it.", "Caching"),
    ] = None


@dataclass(frozen=True, slots=True)
class Cors(model.Cors, Shape):
    """Which origins may read responses in a browser; the load balancer answers preflight requests."""

    sparse: ClassVar = True

    origins: Annotated[
        tuple[Annotated[str, text(header_text.origin, "an origin", 300)], ...] | None,
        at_most(MOST_ORIGINS, "origins"),
        Distinct(),
        About(
            "Origins that may read responses: full origins, https://*.example.com for subdomains, or *.",
            "Origins",
            example="https://app.example.com",
        ),
    ] = None
    methods: Annotated[
        tuple[Annotated[str, CORS_METHOD], ...] | None,
        at_most(7, "methods"),
        Distinct(),
        About("Methods that the origins may use; * for every method.", "Methods"),
    ] = None
    headers: Annotated[
        tuple[Annotated[str, text(header_text.cors_header, "the name of a header, or *", 64, CORS_HEADER)], ...] | None,
        at_most(MOST_HEADERS, "headers"),
        Distinct(),
        About("Request headers that the origins may send; * for every header.", "Request headers"),
    ] = None
    exposed_headers: Annotated[
        tuple[Annotated[str, text(grammar.header_shape, "the name of a header", 64, HEADER)], ...] | None,
        at_most(MOST_HEADERS, "headers"),
        Distinct(),
        About("Response headers that the origins may read.", "Exposed headers"),
    ] = None
    credentials: Annotated[
        Boolean | None,
        About("Whether cookies and credentials are allowed; cannot be combined with *.", "Allow credentials"),
    ] = None
    max_age_s: Annotated[
        Annotated[int, whole(0, 86_400)] | None,
        About("Seconds for which browsers cache the response to a preflight request.", "Max age, seconds"),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """Everybody's pages with somebody's cookies is what no service wants (Fetch standard, CORS protocol)."""
        if sent.get("credentials") is True and "*" in (sent.get("origins") or ()):
            yield FieldError("/credentials", "cors", "Name the origins: * cannot be combined with credentials.")


@dataclass(frozen=True, slots=True)
class Maintenance(model.Maintenance, Shape):
    """A page instead of the service, for all clients outside the exempt networks."""

    sparse: ClassVar = True

    enabled: Annotated[Boolean | None, About("Whether the page is shown now.", "Enabled", example=True)] = None
    status: Annotated[
        Annotated[int, whole(200, 599)] | None, About("The status of the response. Default: 503.", "Status")
    ] = None
    content_type: Annotated[
        Annotated[str, text(grammar.content_type, "a media type", 128)] | None,
        About("The media type of the page. Default: plain text.", "Content type"),
    ] = None
    body: Annotated[
        Annotated[str, text(grammar.body, "text", grammar.MAX_BODY)] | None, About("The text of the page.", "Page")
    ] = None
    retry_after_s: Annotated[
        Annotated[int, whole(1, 86_400)] | None,
        About("When clients should retry, in seconds (Retry-After).", "Retry after, seconds"),
    ] = None
    allow: Annotated[
        tuple[Annotated[str, text(network_block, "a network in CIDR", pattern=CIDR)], ...] | None,
        at_most(200, "networks"),
        Distinct(),
        SORTED,
        About("Networks whose clients still reach the service.", "Exempt networks", example="192.0.2.0/24"),
    ] = None


@dataclass(frozen=True, slots=True)
class Log(model.Log, Shape):
    """Which requests the request log has, and what it keeps of them."""

    component: ClassVar[str] = "RequestLogRules"
    sparse: ClassVar = True

    requests: Annotated[
        Annotated[str, Grammar(request_log.which, {"type": "string", "enum": [*WHICH]}, labels=WHICH)] | None,
        About(
            "Which requests are logged; errors are statuses from 500 and what no server answered. Default: all.",
            "Requests",
            example="errors",
        ),
    ] = None
    one_in: Annotated[
        Annotated[int, whole(*request_log.ONE_IN)] | None,
        About("Of a sample, one request in so many is logged. Default: 100.", "One in"),
    ] = None
    query: Annotated[
        Boolean | None, About("Whether the query is logged; it may hold secrets. Default: no.", "Query")
    ] = None
    headers: Annotated[
        tuple[Annotated[str, text(request_log.header, "the name of a header", 64, HEADER)], ...] | None,
        at_most(request_log.MOST_HEADERS, "headers"),
        Distinct(),
        About("Request headers that are logged, cut after 256 bytes.", "Headers", most=request_log.MOST_HEADERS),
    ] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """A number without a sample says nothing."""
        if sent.get("one_in") and sent.get("requests") not in (None, request_log.SAMPLED):
            yield FieldError("/one_in", "choice", "Set requests to sampled, or leave one_in out.")


@dataclass(frozen=True, slots=True)
class Rules(model.Rules, Shape):
    """Settings for requests. A setting that is left out here may come from a policy further away."""

    sparse: ClassVar = True

    access: Annotated[Access | None, About("Which networks have access.", "Access by network")] = None
    basic_auth: Annotated[BasicAuth | None, About("Names and passwords of users.", "Password")] = None
    # Their id is not said: it is that of whoever says them. Where keys of tokens are fetched, nodes do not know.
    api_keys: Annotated[ApiKeys | None, About("A key for each client program.", "API keys")] = None  # type: ignore[assignment]
    jwt: Annotated[Jwt | None, About("Signed tokens of users.", "Tokens (JWT)")] = None  # type: ignore[assignment]
    request_headers: Annotated[RequestHeaders | None, About("Headers of requests to servers.", "Request headers")] = (
        None
    )
    response_headers: Annotated[
        ResponseHeaders | None, About("Headers of responses to clients.", "Response headers")
    ] = None
    typed_headers: Annotated[
        TypedHeaders | None,
        About("Headers of responses of some media types.", "Headers by media type"),
    ] = None
    security_headers: Annotated[
        SecurityHeaders | None, About("Headers that make browsers protect users.", "Security headers")
    ] = None
    cors: Annotated[Cors | None, About("Which other origins may read responses.", "CORS")] = None
    rewrite: Annotated[Rewrite | None, About("The host, path and query that servers receive.", "Rewrite")] = None
    response_rewrite: Annotated[
        ResponseRewrite | None, About("Redirects and cookies of servers, as clients receive them.", "Response rewrite")
    ] = None
    maintenance: Annotated[Maintenance | None, About("A page instead of the service.", "Maintenance page")] = None
    client_limit: Annotated[ClientLimit | None, About("How many requests one client may send.", "Limit per client")] = (
        None
    )
    error_pages: Annotated[ErrorPages | None, About("Your own pages for error statuses.", "Error pages")] = None
    body: Annotated[Body | None, About("Limits of request bodies.", "Request body")] = None
    bandwidth: Annotated[Bandwidth | None, About("How fast bodies are transferred.", "Bandwidth")] = None
    timeouts: Annotated[Timeouts | None, About("Timeouts instead of those of the pool.", "Timeouts")] = None
    retries: Annotated[Retries | None, About("Which requests are retried.", "Retries")] = None
    overflow: Annotated[
        RequestOverflow | None, About("Where requests go that their region has no room for.", "Overflow")
    ] = None
    log: Annotated[Log | None, About("Which requests are logged, and what of them.", "Request log")] = None
    split: Annotated[Split | None, About("Keeps each client on one side of a split.", "Sticky canary")] = None

    @classmethod
    def together(cls, sent: Data) -> Iterable[FieldError]:
        """A block that says nothing is a mistake."""
        for name, block in sent.items():
            if isinstance(block, Mapping) and all(value is None for value in block.values()):
                yield FieldError(f"/{name}", "missing", f"Fill in at least one field of {name}, or leave it out.")
        if sent.get("jwt") and sent.get("basic_auth"):
            yield FieldError("/basic_auth", "two_headers", "Ask for a password or for a token: both use one header.")


@dataclass(frozen=True, slots=True)
class DefaultFor(Shape):
    """The routes that follow the policy without naming it."""

    account: Annotated[Boolean, About("All routes of the account.", "All routes of the account", "")] = False
    hostnames: Annotated[
        tuple[Hostname, ...],
        LISTED,
        Distinct(),
        SORTED,
        About("Routes of the account with one of these hostnames.", "Hostnames", example="shop.example.com"),
    ] = ()
    load_balancers: Annotated[
        tuple[ByName, ...],
        LISTED,
        Distinct(),
        UNORDERED,
        About("All routes of these load balancers; operators only.", "Load balancers"),
    ] = ()


@dataclass(frozen=True, slots=True)
class PolicySpec(Shape):
    """Settings that many routes share; if several policies apply to a route, the nearest wins field by field."""

    rules: Annotated[Rules, About("The settings.", missing="Fill in rules with at least one block.")]
    default_for: Annotated[DefaultFor, About("The routes that follow it without naming it.")] = DefaultFor()

    @classmethod
    def together(cls, sent: Any) -> Iterable[FieldError]:
        """A policy that says nothing is a mistake."""
        if sent.get("rules") == {}:
            yield FieldError("/rules", "missing", "Fill in at least one block of rules.")
