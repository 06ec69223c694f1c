"""What targets can of the rules of a policy or route, block by block; an NLB has no requests to apply them to.

AWS: the API and the Application Load Balancer guide on rules and attributes; header attributes belong to a whole
listener, and provider 5 has no transforms. A URL map of Google can do several of these (headerAction, corsPolicy,
urlRewrite); none has been tested there yet.
"""

from __future__ import annotations

from apps.compiler.model.capabilities import BANDWIDTH, ROUTE_RETRIES
from apps.compiler.portability.table.cells import UNUSED, Cell, Row, cannot

_OF_ALB = cannot(
    "Spillway does not authenticate clients on an ALB.",
    "Authenticate clients on the servers, or serve the route from a fleet.",
)
_OF_GOOGLE = cannot(
    "Spillway does not authenticate clients on Google Cloud.",
    "Use Identity-Aware Proxy, or authenticate clients on the servers.",
)
_HEADERS = cannot("Spillway has not tested header changes on Google Cloud.", "Set the headers on the servers.")


def _block(name: str, alb: Cell, google: Cell) -> Row:
    return Row(f"rules.{name}", alb=alb, nlb=UNUSED, google=google)


_BANDWIDTH = Row(
    "rules.bandwidth",
    alb=cannot("An ALB cannot limit bandwidth.", "Limit it on the servers, or serve the route from a fleet."),
    nlb=UNUSED,
    google=cannot("Google Cloud cannot limit bandwidth.", "Limit it on the servers, or serve the route from a fleet."),
    since=BANDWIDTH,
    before=cannot(
        f"Bandwidth limits need {BANDWIDTH.needs}.",
        "Upgrade the nodes first, or limit requests and bytes with client_limit.",
    ),
)
_RETRIES_IN_AWS = cannot("An ALB does not retry requests and has no setting for it.", "Leave retries out.")
_RETRIES_AT_GOOGLE = cannot("Spillway has not tested retries per route on Google Cloud.", "Leave retries out.")
_ATTEMPTS = Row(
    "rules.retries.attempts",
    alb=_RETRIES_IN_AWS,
    nlb=UNUSED,
    google=_RETRIES_AT_GOOGLE,
    since=ROUTE_RETRIES,
    before=cannot(
        f"A number of retries per route needs {ROUTE_RETRIES.needs}.",
        "Upgrade the nodes first, or set the retries of the pool.",
    ),
)
POLICIES = (
    _block("basic_auth", _OF_ALB, _OF_GOOGLE),
    _block("api_keys", _OF_ALB, _OF_GOOGLE),
    _block("jwt", _OF_ALB, _OF_GOOGLE),
    _block(
        "access",
        cannot("An ALB rule compares at most five networks.", "Use AWS WAF or security groups."),
        cannot(
            "Google Cloud filters networks with Cloud Armor, which Spillway does not configure.",
            "Use a Cloud Armor policy.",
        ),
    ),
    _block(
        "request_headers",
        cannot("An ALB rule cannot change request headers.", "Set the headers on the servers."),
        _HEADERS,
    ),
    _block(
        "response_headers",
        cannot(
            "An ALB changes only a few fixed response headers, and only for a whole listener.",
            "Set the headers on the servers.",
        ),
        _HEADERS,
    ),
    _block(
        "typed_headers",
        cannot("An ALB compares no header of a response.", "Set the headers on the servers."),
        cannot("Google Cloud compares no header of a response.", "Set the headers on the servers."),
    ),
    _block(
        "security_headers",
        cannot("An ALB sets these headers only for a whole listener.", "Set the headers on the servers."),
        _HEADERS,
    ),
    _block(
        "cors",
        cannot("An ALB sets CORS headers only for a whole listener.", "Answer preflight requests on the servers."),
        cannot("Spillway has not tested CORS on Google Cloud.", "Answer preflight requests on the servers."),
    ),
    _block(
        "rewrite",
        cannot(
            "Version 5 of the Terraform provider cannot rewrite hosts and paths on an ALB.",
            "Have the servers accept the original host and path.",
        ),
        cannot("Spillway has not tested this rewrite on Google Cloud.", "Use the route's prefix rewrite."),
    ),
    _block(
        "response_rewrite",
        cannot("An ALB does not change redirects and cookies of servers.", "Let the servers name public addresses."),
        cannot(
            "Spillway has not tested changes of redirects and cookies on Google Cloud.",
            "Let the servers name public addresses.",
        ),
    ),
    _block(
        "maintenance",
        cannot(
            "Spillway does not serve maintenance pages from an ALB.",
            "Give the route a fixed response during maintenance.",
        ),
        cannot("Google Cloud returns only its own short texts.", "Serve the page from a server."),
    ),
    _block(
        "client_limit",
        cannot(
            "Limits per client on an ALB need AWS WAF, which Spillway does not configure.",
            "Serve the route from a fleet.",
        ),
        cannot(
            "Limits per client on Google Cloud need Cloud Armor, which Spillway does not configure.",
            "Serve the route from a fleet.",
        ),
    ),
    _block(
        "error_pages",
        cannot("An ALB returns its own short error pages.", "Return error pages from the servers."),
        cannot("Spillway has not tested error pages on Google Cloud.", "Return error pages from the servers."),
    ),
    _block(
        "body",
        cannot("An ALB has no setting for the length of bodies.", "Reject long bodies on the servers."),
        cannot("Google Cloud has no setting for the length of bodies.", "Reject long bodies on the servers."),
    ),
    _BANDWIDTH,
    _block(
        "timeouts",
        cannot("An ALB has one idle timeout for the whole load balancer.", "Set the timeout of the pool."),
        cannot("On Google Cloud, a timeout applies to a whole backend service.", "Set the timeout of the pool."),
    ),
    _block("retries", _RETRIES_IN_AWS, _RETRIES_AT_GOOGLE),
    _ATTEMPTS,
    _block(
        "overflow",
        cannot("In AWS, the regions that traffic may go to are those of a pool.", "Set the overflow of the pool."),
        cannot("On Google Cloud, overflow applies to a whole backend service.", "Set the overflow of the pool."),
    ),
    _block(
        "split",
        cannot("Spillway has not tested sticky traffic splits on an ALB.", "Set a cookie on the servers."),
        cannot("Spillway has not tested sticky traffic splits on Google Cloud.", "Set a cookie on the servers."),
    ),
    _block(
        "log",
        cannot("An ALB writes access logs of its own.", "Turn on the access logs of the ALB."),
        cannot("Google Cloud writes request logs of its own.", "Turn on the logging of the backend service."),
    ),
)
