"""What a pool asks of the way to its servers: encryption, persistence, when they are left out, how many connections.

Each is one optional object of a pool; None is what a pool that says nothing gets. Times are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verify(StrEnum):
    """Whose certificates of servers are taken: of the authorities of the node, of given ones, or anybody's."""

    SYSTEM = "system"
    CA = "ca"
    NONE = "none"


class TlsVersion(StrEnum):
    """The least version of TLS."""

    V1_2 = "1.2"
    V1_3 = "1.3"


class HttpVersion(StrEnum):
    """What http pools speak with their servers."""

    HTTP1 = "1.1"
    HTTP2 = "2"


class ProxyProtocol(StrEnum):
    """Whether each connection to a server begins with the client's address."""

    NONE = "none"
    V1 = "v1"
    V2 = "v2"


class Reuse(StrEnum):
    """Which requests an idle connection to a server may take."""

    SAFE = "safe"
    ALWAYS = "always"
    NEVER = "never"
    CLOSE = "close"


class PersistBy(StrEnum):
    """By what a client is known again."""

    COOKIE = "cookie"
    HEADER = "header"
    SOURCE = "source"


class CookieMode(StrEnum):
    """Whether the load balancer sets a cookie of its own, or puts the server in front of one of the servers'."""

    INSERT = "insert"
    PREFIX = "prefix"


class SameSite(StrEnum):
    """With which requests of other sites browsers send the cookie."""

    LAX = "lax"
    STRICT = "strict"
    NONE = "none"


class OnOverflow(StrEnum):
    """Whether a client stays with its server where its region is full, and where another region served it."""

    BREAKS = "breaks"
    KEEPS = "keeps"


class CheckKind(StrEnum):
    """What a health check speaks."""

    HTTP = "http"
    TCP = "tcp"
    GRPC = "grpc"
    POSTGRESQL = "postgresql"
    MYSQL = "mysql"
    REDIS = "redis"
    SMTP = "smtp"
    LDAP = "ldap"


class Observed(StrEnum):
    """What counts as an error of a server: a connection that fails, or also an answer of 5xx."""

    CONNECTIONS = "connections"
    RESPONSES = "responses"


class RetryOn(StrEnum):
    """After what a request is sent again."""

    CONNECT = "connect"
    NO_ANSWER = "no_answer"
    TIMEOUT = "timeout"
    JUNK = "junk"
    S404 = "404"
    S408 = "408"
    S425 = "425"
    S500 = "500"
    S501 = "501"
    S502 = "502"
    S503 = "503"
    S504 = "504"


class OverflowMode(StrEnum):
    """To which regions a pool's overflow may go."""

    ANYWHERE = "anywhere"
    LISTED = "listed"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class ServerTls:
    """TLS to servers. `ca` is PEM where `verify` is ca; an empty `server_name` is the host that the client asks for."""

    verify: Verify = Verify.SYSTEM
    ca: str = ""
    server_name: str = ""
    min_version: TlsVersion = TlsVersion.V1_2
    client_certificate_id: str | None = None


@dataclass(frozen=True, slots=True)
class Persistence:
    """How a client stays with its server: by a cookie, or by a table of what a header or the client's address says.

    `idle_s` is how long a client is remembered without a request; None is a session of the browser, or half an hour.
    """

    by: PersistBy = PersistBy.COOKIE
    cookie: str = "SERVER"
    mode: CookieMode = CookieMode.INSERT
    http_only: bool = True
    secure: bool = False
    same_site: SameSite = SameSite.LAX
    header: str = ""
    idle_s: int | None = None
    overflow: OnOverflow = OnOverflow.BREAKS


@dataclass(frozen=True, slots=True)
class AgentCheck:
    """A program on each server that says how much it takes: asked on a port of its own."""

    port: int
    interval_ms: int = 2000
    send: str = ""


@dataclass(frozen=True, slots=True)
class OutlierEjection:
    """After so many errors in a row a server is left out, for at least so long, until its checks pass."""

    observe: Observed = Observed.RESPONSES
    errors: int = 5
    return_after_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class Connections:
    """How many requests the nodes of a region together give one server at once (for tcp: connections); more wait.

    With `min_per_server` the number grows from it to `max_per_server` as the pool's own load grows to `full_at`.
    `max_queue` bounds who waits for one server.
    """

    max_per_server: int
    min_per_server: int | None = None
    full_at: int | None = None
    max_queue: int | None = None


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and after what a request is sent again; what is no failed connection only for methods that may be.

    Of all requests at most `budget_percent` are, failed connections aside; None for as many as there are.
    """

    attempts: int = 3
    on: tuple[RetryOn, ...] = (RetryOn.CONNECT, RetryOn.NO_ANSWER)
    budget_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """What a pool says of the way to its servers; each is frozen by its name, as it is stored."""

    server_tls: ServerTls | None = None
    http_version: HttpVersion = HttpVersion.HTTP1
    host_header: str = ""
    request_headers: tuple[tuple[str, str], ...] = ()
    proxy_protocol: ProxyProtocol = ProxyProtocol.NONE
    connection_reuse: Reuse = Reuse.SAFE
    tunnel_timeout_ms: int | None = None
    persistence: Persistence | None = None
    agent_check: AgentCheck | None = None
    outlier_ejection: OutlierEjection | None = None
    slow_start_ms: int | None = None
    connections: Connections | None = None
    retries: Retries | None = None
