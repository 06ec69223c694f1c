"""What targets can of the health check of a pool."""

from __future__ import annotations

from collections.abc import Iterator

from apps.compiler.model.servers import CheckKind
from apps.compiler.portability.table.cells import UNUSED, Row, lossy

_REFUSE = "Have unhealthy servers refuse connections."
_GRPC = lossy(
    "gRPC needs HTTP/2, which an ALB uses with these servers only for HTTP/2 clients.",
    "Serve the pool from https listeners, and only to HTTP/2 clients.",
)
_REQUEST = lossy(
    "Target groups send health checks as GET requests, with the server's address as the Host header.",
    "Have the path respond to any method and host.",
)
_QUESTION = lossy(
    "Target groups send health checks without headers and body, and check only the status.",
    "Have the server report its health by the status.",
)
_GOOGLE_QUESTION = lossy(
    "Google Cloud sends health checks without headers and body, and checks only the status.",
    "Have the server report its health by the status.",
)
_TIMES = lossy(
    "Target groups use whole seconds and counts in a fixed range.",
    "Expect servers that fail to get requests for longer than on a fleet.",
)
_GOOGLE_TIMES = lossy(
    "Google Cloud uses whole seconds and counts in a fixed range.",
    "Expect servers that fail to get requests for longer than on a fleet.",
)
_STATUS = lossy("Target groups accept only a status from 200 to 499 as healthy.", "Expect another status.")
_GOOGLE_STATUS = lossy("Google Cloud accepts only 200 as healthy.", "Return 200 from the path of the check.")
_ASKED = lossy("An NLB only connects.", _REFUSE)
_DEFAULT = lossy(
    "Target groups always have a health check; if no server is healthy, all of them get requests, so clients do not "
    "get a 503.",
    "Add a health check with a path, and have servers that must not get requests refuse connections.",
)


def _kinds() -> Iterator[Row]:
    """Each protocol of a check: those for tcp do not apply to an ALB, gRPC not to an NLB."""
    yield Row("health_check.kind", value="grpc", alb=_GRPC, nlb=UNUSED)
    yield Row("health_check.kind", value="tcp", alb=UNUSED, nlb=_ASKED)
    for kind in (CheckKind.POSTGRESQL, CheckKind.MYSQL, CheckKind.REDIS, CheckKind.SMTP, CheckKind.LDAP):
        google = lossy(f"Google Cloud does not support {kind} checks: it only connects.", _REFUSE)
        yield Row("health_check.kind", value=kind, alb=UNUSED, nlb=_ASKED, google=google)


HEALTH_CHECKS = (
    Row(
        "health_check",
        alb=_DEFAULT,
        nlb=_DEFAULT,
        google=lossy(
            "Google Cloud requires a health check: without one here, it connects to each server.",
            "Add a health check with a path.",
        ),
    ),
    *_kinds(),
    Row("health_check.path"),
    Row("health_check.port"),
    Row(
        "health_check.method",
        alb=_REQUEST,
        nlb=_REQUEST,
        google=lossy("Google Cloud sends health checks as GET requests.", "Have the path respond to any method."),
    ),
    Row("health_check.host", alb=_REQUEST, nlb=_REQUEST),
    Row("health_check.expect_status", alb=_STATUS, nlb=_STATUS, google=_GOOGLE_STATUS),
    Row("health_check.expect_statuses", alb=_STATUS, nlb=_STATUS, google=_GOOGLE_STATUS),
    *(
        Row(f"health_check.{name}", alb=_TIMES, nlb=_TIMES, google=_GOOGLE_TIMES)
        for name in ("interval_ms", "timeout_ms", "rise", "fall")
    ),
    *(
        Row(f"health_check.{name}", alb=_QUESTION, nlb=_QUESTION, google=_GOOGLE_QUESTION)
        for name in ("headers", "body", "expect_body")
    ),
    Row("health_check.service", alb=_GRPC, nlb=UNUSED),
    Row("health_check.user", alb=UNUSED, nlb=_ASKED, google=lossy("Google Cloud only connects.", _REFUSE)),
    Row("health_check.send", alb=UNUSED, nlb=_ASKED),
    Row("health_check.expect", alb=UNUSED, nlb=_ASKED),
)
