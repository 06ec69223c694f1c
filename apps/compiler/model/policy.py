"""What a policy says about requests: blocks of settings, each of which a route takes from the nearest policy.

Every field of a block may be None: nothing is said of it here, and the next policy further away is asked
(:func:`apps.compiler.policies.effective`). Equal blocks of many routes are rendered once.
"""

from __future__ import annotations

from dataclasses import dataclass

from apps.compiler.model.access import Access
from apps.compiler.model.authentication import ApiKeys, BasicAuth, Jwt

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class HeaderChanges:
    """Headers that are set, added and removed, in this order of names; values may hold variables (header_text.py)."""

    set: Pairs | None = None
    add: Pairs | None = None
    remove: tuple[str, ...] | None = None

    @property
    def written(self) -> tuple[tuple[str, Pairs], ...]:
        """How headers are written, each with those that are."""
        return ("set", self.set or ()), ("add", self.add or ())


@dataclass(frozen=True, slots=True)
class ResponseHeaders(HeaderChanges):
    """The same of responses, and headers that are set where a response has none of that name."""

    set_if_absent: Pairs | None = None

    @property
    def written(self) -> tuple[tuple[str, Pairs], ...]:
        """The same, with those that are written where there is none."""
        return ("absent", self.set_if_absent or ()), ("set", self.set or ()), ("add", self.add or ())


@dataclass(frozen=True, slots=True)
class TypedHeaders(HeaderChanges):
    """The same of responses whose Content-Type begins with one of these."""

    types: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SecurityHeaders:
    """Headers by which browsers protect people; `hsts_seconds` is sent over https only."""

    hsts_seconds: int | None = None
    hsts_subdomains: bool | None = None
    no_sniff: bool | None = None
    frames: str | None = None
    referrer: str | None = None
    caching: str | None = None


@dataclass(frozen=True, slots=True)
class Cors:
    """Which origins may read responses in a browser; `*` in `origins` is every one. Preflights are answered here."""

    origins: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    headers: tuple[str, ...] | None = None
    exposed_headers: tuple[str, ...] | None = None
    credentials: bool | None = None
    max_age_s: int | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What servers get instead: another host, another path (whole, or by a pattern), another query or none.

    Of the query, only the parameters `keep` stay, those of `drop` go, those of `set` are written at the end.
    """

    host: str | None = None
    path: str | None = None
    drop_query: bool | None = None
    path_regex: str | None = None
    path_replacement: str | None = None
    query_keep: tuple[str, ...] | None = None
    query_drop: tuple[str, ...] | None = None
    query_set: Pairs | None = None


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Whether clients get a page instead of the service, but for those of `allow` (networks)."""

    enabled: bool | None = None
    status: int | None = None
    content_type: str | None = None
    body: str | None = None
    retry_after_s: int | None = None
    allow: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ClientLimit:
    """What one client may have, counted over all nodes of the region: requests, in all or at once, bytes and errors.

    `key` says what a client is: its address cut to a prefix, or the header or cookie `key_name`. Whoever is over the
    limit `ban_after` times within `ban_within_s` gets nothing for `ban_for_s`.
    """

    requests: int | None = None
    in_flight: int | None = None
    bytes_out: int | None = None
    bytes_in: int | None = None
    errors: int | None = None
    per: str | None = None
    burst: int | None = None
    key: str | None = None
    key_name: str | None = None
    ipv4_prefix: int | None = None
    ipv6_prefix: int | None = None
    counted_for: str | None = None
    action: str | None = None
    log_only: bool | None = None
    exempt: tuple[str, ...] | None = None
    clients: int | None = None
    ban_after: int | None = None
    ban_within_s: int | None = None
    ban_for_s: int | None = None


@dataclass(frozen=True, slots=True)
class ErrorPages:
    """The page that clients get with some statuses: of HAProxy's own errors, with `intercept` of servers' as well."""

    statuses: tuple[int, ...] | None = None
    content_type: str | None = None
    body: str | None = None
    intercept: bool | None = None


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a server may take to answer, and how long an upgraded connection may be silent, instead of the pool."""

    response_ms: int | None = None
    tunnel_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """How large the body of a request may be, and whether it is waited for before a server is chosen."""

    max_bytes: int | None = None
    buffered: bool | None = None


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """How fast bodies go, in bytes per second: of each request, or of all of one client's on a route together."""

    download_bytes_per_s: int | None = None
    upload_bytes_per_s: int | None = None
    per: str | None = None


@dataclass(frozen=True, slots=True)
class Retries:
    """How often requests of some routes are sent again, after what their pools say.

    `after_sending`: also those that a server may have got already (only methods that may be repeated are). `attempts`
    are those after the first, instead of the pool's.
    """

    after_sending: bool | None = None
    attempts: int | None = None


@dataclass(frozen=True, slots=True)
class Overflow:
    """Where requests of some routes may go when their region is full, within what their pools allow.

    `mode` is anywhere, listed or never; `order` are regions, by name as it is stored and by id as it is compiled.
    """

    mode: str | None = None
    order: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """By what a client of a split stays on its side: `cookie`, `address` or `header`."""

    stick_by: str | None = None
    header: str | None = None
    cookie: str | None = None
    max_age_s: int | None = None
    secure: bool | None = None
    http_only: bool | None = None
    same_site: str | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """Which requests the request log has (`requests`: all, errors, sampled, none), and what it keeps beside the path.

    Of `sampled` requests it has one in `one_in`.
    """

    requests: str | None = None
    one_in: int | None = None
    query: bool | None = None
    headers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ResponseRewrite:
    """What clients get instead of what servers say in Location and Set-Cookie.

    `location_replacement` stands in the place of `location_prefix`; `secure_cookies` are sent over https only.
    """

    location_prefix: str | None = None
    location_replacement: str | None = None
    secure_cookies: bool | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The blocks; None for one of which nothing is said."""

    access: Access | None = None
    basic_auth: BasicAuth | None = None
    api_keys: ApiKeys | None = None
    jwt: Jwt | None = None
    request_headers: HeaderChanges | None = None
    response_headers: ResponseHeaders | None = None
    typed_headers: TypedHeaders | None = None
    security_headers: SecurityHeaders | None = None
    cors: Cors | None = None
    rewrite: Rewrite | None = None
    response_rewrite: ResponseRewrite | None = None
    maintenance: Maintenance | None = None
    client_limit: ClientLimit | None = None
    error_pages: ErrorPages | None = None
    body: Body | None = None
    bandwidth: Bandwidth | None = None
    timeouts: Timeouts | None = None
    retries: Retries | None = None
    overflow: Overflow | None = None
    split: Split | None = None
    log: Log | None = None


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules that hold for some routes of a load balancer; `id` is theirs alone."""

    id: str
    rules: Rules
