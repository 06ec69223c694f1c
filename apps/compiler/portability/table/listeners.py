"""What targets can of the fields of a listener; what a tcp listener knows nothing of does not apply to an NLB.

The sources for clouds stand in their `capabilities.py`.
"""

from __future__ import annotations

from apps.compiler.model.capabilities import HTTP3
from apps.compiler.portability.table.cells import EXACT, UNUSED, Cell, Row, Verdict, lossy

_FLEET = "put the load balancer on a fleet."
_HTTP2 = "An ALB enables HTTP/2 on all of its https listeners or on none, and another listener enables it."


def _clouds(field: str, message: str, remedy: str, verdict: Verdict = Verdict.LOSSY, nlb: Cell | None = None) -> Row:
    """The same of both clouds, `{cloud}` being their name."""
    aws, google = (Cell(verdict, message.format(cloud=name), remedy) for name in ("AWS", "Google Cloud"))
    return Row(f"listeners.{field}", alb=aws, nlb=nlb or aws, google=google)


LISTENERS = (
    Row("listeners.protocol"),
    Row(
        "listeners.port",
        alb=lossy(
            "An ALB compares the Host header as clients send it, which includes a port that is not usual.",
            "Listen on port 80 or 443, or make sure that clients send the host without a port.",
        ),
    ),
    Row("listeners.default_pool"),
    Row(
        "listeners.certificates",
        alb=lossy(
            "If a client requests a name that no certificate covers, an ALB presents the first certificate.",
            "Set default_certificate to the certificate that such clients may see.",
        ),
        nlb=lossy(
            "If a client requests a name that no certificate covers, an NLB presents the first certificate.",
            "Set default_certificate to the certificate that such clients may see.",
        ),
        google=lossy(
            "Google Cloud takes at most 15 certificates, presents the first one for a name that none covers, and "
            "cannot end TLS for a tcp listener here.",
            "Set default_certificate; end TLS of tcp on the servers.",
        ),
    ),
    Row("listeners.default_certificate"),
    _clouds(
        "connections",
        "{cloud} uses its own timeouts and limits for clients; connections has no effect.",
        f"Leave connections out, or {_FLEET}",
    ),
    _clouds(
        "access",
        "{cloud} takes connections of all networks here: its own firewall is not managed by Spillway.",
        f"Leave access out, or {_FLEET}",
        Verdict.NOT,
    ),
    _clouds(
        "client_limit",
        "{cloud} does not limit the new connections of a client.",
        f"Leave client_limit out, or {_FLEET}",
        Verdict.NOT,
    ),
    _clouds(
        "client_address.proxy_protocol_from",
        "{cloud} does not read the PROXY protocol from a load balancer in front of it.",
        f"Have clients connect directly, or {_FLEET}",
        Verdict.NOT,
    ),
    _clouds(
        "client_address.forwarded_from",
        "{cloud} appends each client address to X-Forwarded-For and trusts no proxy in front of it.",
        "Have the servers skip the entries of the proxies in front.",
    ),
    _clouds(
        "client_address.forwarded_header_from",
        "{cloud} does not read the Forwarded header.",
        "Have the servers read it, and trust it only from the proxies in front.",
    ),
    _clouds(
        "client_address.send_forwarded",
        "{cloud} does not send the Forwarded header.",
        "Have the servers read X-Forwarded-For.",
    ),
    _clouds("compression", "{cloud} does not compress responses.", "Compress them on the servers."),
    _clouds("cache", "{cloud} does not cache responses: every request reaches a server.", "Leave the cache out."),
    _clouds(
        "tracing",
        "{cloud} passes traceparent on as it comes, begins no trace, and writes no request lines.",
        "Begin traces at the clients or the servers.",
    ),
    _clouds(
        "monitor_path",
        "{cloud} does not answer the monitor path: requests for it go to the routes.",
        "Add a route with a fixed response.",
    ),
    _clouds(
        "sni_routes",
        "{cloud} forwards all connections of a tcp listener to one pool, whatever name the client requests.",
        f"Create a listener for each name, or {_FLEET}",
        Verdict.NOT,
    ),
    _clouds(
        "protocol_routes",
        "{cloud} forwards all connections of a tcp listener to one pool, whatever clients send first.",
        f"Create a listener for each protocol, or {_FLEET}",
        Verdict.NOT,
    ),
    _clouds(
        "client_certificates",
        "{cloud} verifies client certificates against a trust store, which Spillway does not manage; "
        "without it, every client would get in.",
        "Put the load balancer on a fleet.",
        Verdict.NOT,
    ),
    Row("listeners.tls.preset"),
    Row("listeners.tls.minimum_version"),
    Row(
        "listeners.tls.http2",
        alb=lossy(_HTTP2, "Use the same http2 setting on all of them."),
        nlb=UNUSED,
        google=lossy("Google Cloud always uses HTTP/2 with https clients that support it.", "Leave http2 out."),
    ),
    Row(
        "listeners.tls.http3",
        alb=lossy("An ALB does not serve HTTP/3: clients use HTTP/2.", f"Leave http3 out, or {_FLEET}"),
        nlb=UNUSED,
        since=HTTP3,
        before=lossy(f"HTTP/3 needs {HTTP3.needs} on each node; clients use HTTP/2 meanwhile.", "Upgrade the nodes."),
    ),
    _clouds(
        "tls.same_certificate",
        "{cloud} serves all hosts of a listener on each connection.",
        "Use a load balancer for each certificate.",
        nlb=UNUSED,
    ),
    _clouds(
        "tls.session_tickets",
        "{cloud} gives session tickets to every client that takes them.",
        f"Leave session_tickets out, or {_FLEET}",
    ),
    Row(
        "listeners.tls.alpn",
        alb=UNUSED,
        nlb=lossy(
            "An NLB offers only h2 and http/1.1 (ALPN), so it offers no protocol.", f"Leave alpn out, or {_FLEET}"
        ),
        google=UNUSED,
        haproxy=EXACT,
    ),
)
