"""What targets can of the fields of a pool: the pool itself, its overflow, its regions and servers.

A tcp pool stands behind an NLB, an http pool behind an ALB. Sources: the files `servers.py` of each cloud.
"""

from __future__ import annotations

from apps.compiler.portability.table.cells import UNUSED, Row, cannot, lossy
from apps.compiler.portability.table.health_checks import HEALTH_CHECKS

_FLEET = "or put the pool on a fleet."
_HEADROOM = "Leave the servers headroom."
_BACKUP = "Put backup servers in a separate pool, and shift a route's weight to it."
_PRIVATE = "Use the server's private IPv4 address."
_NLB_TLS = cannot(
    "An NLB encrypts connections to servers only behind a TLS listener, and not behind a TCP listener.",
    f"Remove TLS from the servers of tcp pools, {_FLEET}",
)
_LIMIT = lossy(
    "ALBs and NLBs enforce no limit: region weights follow the samples, and a surge between two samples passes.",
    "Leave the servers headroom above the limit.",
)
_FULL = lossy("ALBs and NLBs neither queue nor reject requests.", "Choose spread, so that fleets do the same.")
_WEIGHTS = lossy(
    "Target groups do not support server weights: each server gets the same share.",
    "Use servers of the same size in a pool.",
)
_BACKUPS = lossy("Target groups do not support backup servers: these get no requests.", _BACKUP)
_ADDRESS = lossy("Target groups accept only private IPv4 addresses.", _PRIVATE)
_CONNECTIONS = lossy("Target groups do not limit connections to a server.", _HEADROOM)
_REUSE = lossy("ALBs and NLBs have no setting for this.", "Leave it at safe.")
_PROXY = cannot(
    "An NLB supports only version 2 of the PROXY protocol; an ALB does not support it.",
    "Use v2 for tcp; read X-Forwarded-For for http.",
)
_NO_PROXY = cannot(
    "Spillway does not enable the PROXY protocol on Google Cloud.",
    "Read X-Forwarded-For for http; put tcp pools that need the protocol on a fleet.",
)
_TO_SERVERS = (
    Row(
        "server_tls",
        nlb=_NLB_TLS,
        google=lossy(
            "A target TCP proxy forwards bytes unchanged: a tcp pool with TLS is refused.",
            f"Remove TLS from the servers of tcp pools, {_FLEET}",
        ),
    ),
    Row(
        "server_tls.verify",
        alb=lossy(
            "An ALB encrypts connections to servers but accepts any certificate: it verifies neither issuer nor name.",
            "Keep connections to servers inside the VPC.",
        ),
        nlb=_NLB_TLS,
        google=lossy(
            "Google Cloud encrypts connections to servers but accepts any certificate: it verifies neither "
            "issuer nor name.",
            "Keep connections to servers inside your networks.",
        ),
    ),
    Row(
        "server_tls.min_version",
        alb=lossy("An ALB has no setting for the TLS version.", "Reject older versions on the servers."),
        nlb=_NLB_TLS,
        google=lossy("Google Cloud has no setting for the TLS version.", "Reject older versions on the servers."),
    ),
    Row(
        "server_tls.client_certificate",
        alb=cannot("An ALB presents no certificate to servers.", f"Do not require one on the servers, {_FLEET}"),
        nlb=_NLB_TLS,
        google=cannot(
            "Google Cloud presents no certificate to these servers.", f"Do not require one on the servers, {_FLEET}"
        ),
    ),
    Row(
        "http_version",
        alb=lossy(
            "An ALB uses HTTP/2 with these servers only for HTTP/2 clients, and returns an error to other clients.",
            "Serve the pool from https listeners, and only to HTTP/2 clients.",
        ),
        nlb=UNUSED,
        google=lossy("Google Cloud uses HTTP/2 with servers only over TLS.", "Add server_tls."),
    ),
    Row(
        "host_header",
        alb=cannot(
            "An ALB forwards the Host header unchanged.", "Have the servers accept the hostnames that clients request."
        ),
        nlb=UNUSED,
        google=cannot(
            "A backend service forwards the Host header unchanged.",
            "Have the servers accept the hostnames that clients request.",
        ),
    ),
    Row(
        "request_headers",
        alb=cannot(
            "An ALB cannot add request headers for a pool.", "Configure the servers to know which pool they belong to."
        ),
        nlb=UNUSED,
        google=cannot(
            "Spillway does not add request headers for a pool on Google Cloud.",
            "Configure the servers to know which pool they belong to.",
        ),
    ),
    Row("proxy_protocol", alb=_PROXY, google=_NO_PROXY),
    Row("proxy_protocol", value="v1", alb=_PROXY, nlb=_PROXY, google=_NO_PROXY),
    Row(
        "connection_reuse",
        alb=_REUSE,
        nlb=_REUSE,
        google=lossy("Google Cloud has no setting for this.", "Leave it at safe."),
    ),
)
_TIMES = (
    Row(
        "connect_timeout_ms",
        alb=lossy(
            "An ALB tries to connect to a server for 10 s, whatever connect_timeout_ms is.",
            "Use health checks to find servers that do not respond.",
        ),
        nlb=lossy(
            "An NLB has no setting for this: clients wait as long as they want.",
            "Use health checks to find servers that do not respond.",
        ),
        google=lossy("Google Cloud has no setting for this.", "Use health checks to find servers that do not respond."),
    ),
    Row(
        "server_timeout_ms",
        alb=lossy(
            "An ALB has one timeout for all pools of a load balancer, in whole seconds.",
            "Give these pools the same server timeout, in whole seconds up to 4000.",
        ),
        nlb=lossy(
            "An NLB keeps idle connections for 350 s, whatever the server timeout is.",
            "Have the servers close connections that they no longer need.",
        ),
        google=lossy(
            "Google Cloud applies it to a whole response, not to a pause in it, in whole seconds.",
            "Use a longer server timeout for pools with long downloads or streams.",
        ),
    ),
    Row("queue_timeout_ms", alb=UNUSED, nlb=UNUSED, google=UNUSED),
    Row(
        "server_keepalive_ms",
        alb=lossy(
            "An ALB keeps idle connections to servers for as long as it waits for a response; a request fails with 502 "
            "if the server closes the connection at that moment.",
            "Have the servers keep connections for longer than the server timeout.",
        ),
        nlb=UNUSED,
        google=lossy(
            "Google Cloud keeps idle connections to servers for 600 s; a request fails with 502 if the server closes "
            "the connection at that moment.",
            "Have the servers keep connections for 620 s or longer.",
        ),
    ),
    Row(
        "tunnel_timeout_ms",
        alb=lossy("An ALB applies its idle timeout to WebSockets too.", "Have both sides send pings."),
        nlb=lossy("An NLB applies its idle timeout to all connections.", "Have both sides send pings."),
        google=lossy(
            "Google Cloud closes a WebSocket, idle or not, when the timeout of the whole response expires.",
            "Use a longer server timeout for pools with WebSockets.",
        ),
    ),
)
_COOKIE = lossy(
    "An ALB uses its own cookie, AWSALB, with its own flags; it expires after a time, not with the session.",
    "Do not depend on the name of the cookie.",
)
_GOOGLE_COOKIE = lossy(
    "Google Cloud uses its own cookie, GCLB, with its own flags; a client moves when its region is full.",
    "Do not depend on the name of the cookie.",
)
_STICKY = (
    Row("persistence", alb=_COOKIE, google=_GOOGLE_COOKIE),
    Row("persistence.cookie", alb=_COOKIE, nlb=UNUSED, google=_GOOGLE_COOKIE),
    Row(
        "persistence.by",
        value="source",
        alb=lossy("An ALB keeps clients by its own cookie, not by address.", "Use a cookie."),
        google=lossy("Google Cloud uses a hash: clients move when servers change.", "Use a cookie."),
    ),
    Row(
        "persistence.by",
        value="header",
        alb=cannot("Target groups keep clients only by cookie or address.", "Use a cookie."),
        nlb=UNUSED,
        google=lossy("Google Cloud uses a hash: clients move when servers change.", "Use a cookie."),
    ),
    Row(
        "persistence.mode",
        alb=lossy("An ALB sets a second cookie and does not change the servers' cookie."),
        nlb=UNUSED,
        google=lossy("Google Cloud sets a second cookie and does not change the servers' cookie."),
    ),
    Row(
        "persistence.overflow",
        alb=lossy("A client stays with a target, not with the target group of its region."),
        nlb=lossy("A client stays with a target, not with the target group of its region."),
        google=lossy("Clients of a full region move, even with a cookie."),
    ),
)
_CHOICE = (
    Row(
        "balance",
        alb=lossy(
            "An ALB does not hash the client's address; it keeps a client with its server by its own cookie.",
            "Clients without cookies move between servers; use a tcp pool if that matters.",
        ),
        nlb=lossy(
            "An NLB chooses a server by a hash of the connection's addresses and ports.",
            "Choose source if a client must stay with its server.",
        ),
        google=lossy(
            "A proxy Network Load Balancer, for tcp, does not support leastconn and random.",
            "Use roundrobin or source.",
        ),
    ),
    Row(
        "agent_check",
        alb=lossy("AWS does not run agent checks.", "Use the health check."),
        nlb=lossy("AWS does not run agent checks.", "Use the health check."),
        google=lossy("Google Cloud does not run agent checks.", "Use the health check."),
    ),
    Row(
        "outlier_ejection",
        alb=lossy(
            "AWS removes a server only after failed health checks.", "Have the health check fail when requests fail."
        ),
        nlb=lossy(
            "AWS removes a server only after failed health checks.", "Have the health check fail when requests fail."
        ),
        google=lossy(
            "A target TCP proxy removes a server only after failed checks.",
            "Have the health check fail when connections fail.",
        ),
    ),
    Row(
        "slow_start_ms",
        alb=lossy(
            "An ALB supports slow start from 30 to 900 s, and not with least outstanding requests.", "Use roundrobin."
        ),
        nlb=lossy("An NLB sends a server its full share immediately.", "Warm up servers before their check succeeds."),
        google=lossy(
            "Google Cloud sends a server its full share immediately.", "Warm up servers before their check succeeds."
        ),
    ),
    Row(
        "connections",
        alb=_CONNECTIONS,
        nlb=_CONNECTIONS,
        google=lossy("Google Cloud neither limits connections to a single server nor queues.", _HEADROOM),
    ),
    Row(
        "retries",
        alb=lossy("An ALB does not retry requests.", "Retry requests in the clients."),
        nlb=lossy("An NLB does not retry connections.", "Reconnect in the clients."),
        google=lossy(
            "Google Cloud retries a request by its own rules: once, if that is safe.", "Retry requests in the clients."
        ),
    ),
)
_REGIONS = (
    Row(
        "overflow.mode",
        google=lossy(
            "Google Cloud's waterfall uses every region in which the pool has servers.",
            "Create a separate pool for each region that must not take overflow or pass it on.",
        ),
    ),
    Row(
        "overflow.order",
        google=lossy(
            "Google Cloud tries the region nearest to the client first, then the next nearest.",
            "Order the regions by distance, so that fleets do the same.",
        ),
    ),
    Row(
        "overflow.when_full",
        alb=_FULL,
        nlb=_FULL,
        google=lossy("Google Cloud neither queues nor rejects requests.", "Choose spread, so that fleets do the same."),
    ),
    Row(
        "backends.limit",
        alb=_LIMIT,
        nlb=_LIMIT,
        google=lossy(
            "Google Cloud treats a limit as a target that the waterfall fills before it moves on; a surge exceeds it.",
            "Leave the servers headroom above the limit.",
        ),
    ),
    Row(
        "backends.limit.kind",
        value="connections",
        alb=_LIMIT,
        nlb=_LIMIT,
        google=lossy(
            "Google Cloud counts requests per second of http pools, and connections of tcp pools.",
            "Use a limit of the kind that fits.",
        ),
    ),
    Row(
        "backends.capacity_scaler",
        google=lossy(
            "On Google Cloud, a capacity scaler is 0, or from 0.1 to 1.",
            "Use 0 to drain the region, or at least 0.1.",
        ),
    ),
    Row(
        "backends.servers.address",
        alb=_ADDRESS,
        nlb=_ADDRESS,
        google=lossy("Network endpoint groups accept only IPv4 addresses.", _PRIVATE),
    ),
    Row("backends.servers.port"),
    Row(
        "backends.servers.weight",
        alb=_WEIGHTS,
        nlb=_WEIGHTS,
        google=lossy(
            "Network endpoint groups do not support server weights: each server gets the same share.",
            "Use servers of the same size in a pool.",
        ),
    ),
    Row("backends.servers.state"),
    Row(
        "backends.servers.backup",
        alb=_BACKUPS,
        nlb=_BACKUPS,
        google=lossy("Network endpoint groups do not support backup servers: these get no requests.", _BACKUP),
    ),
)
POOLS = (Row("protocol"), *_TIMES, *_TO_SERVERS, *_STICKY, *HEALTH_CHECKS, *_CHOICE, *_REGIONS)
