"""What no plan may exceed: checked before the first connection, in the asking process and in the generator."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from apps.core.written.numbers import plain
from apps.drivers.load.contract import LoadError, Plan, Request

MOST_ENDPOINTS = 256
MOST_RATE = 200_000.0
MOST_CONNECTIONS = 20_000
MOST_SECONDS = 86_400.0
MOST_TIMEOUT_S = 300.0
MOST_RAMP_S = 300.0
MOST_BODY_BYTES = 1024 * 1024
MOST_ANSWER_BYTES = 1024 * 1024 * 1024
MOST_HEADERS = 64

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
OWN_HEADERS = frozenset({"host", "content-length", "connection", "transfer-encoding", "upgrade", "expect", "te"})

_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_PATH = re.compile(r"[/*][\x21-\x7e]{0,4095}")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VALUE = re.compile(r"[\x20-\x7e]{0,4096}")


def check(plan: Plan) -> None:
    """Raises LoadError with a sentence when the plan is out of bounds."""
    for problem in (*_of_target(plan), *_of_size(plan), *_of_request(plan.request)):
        raise LoadError(problem)


def highest_rate(plan: Plan) -> float:
    """Requests/s that the plan allows."""
    return plan.max_rate or plan.rate


def check_rate(plan: Plan, rate: float) -> None:
    """Raises LoadError when the plan does not allow this rate."""
    if not plan.rate:
        raise LoadError("This plan keeps users busy; it has no rate to set.")
    if not 0 <= rate <= highest_rate(plan):
        raise LoadError(f"The rate must be between 0 and {plain(highest_rate(plan))} requests/s, as the plan says.")


def check_users(plan: Plan, users: int) -> None:
    """Raises LoadError when the plan does not allow so many users."""
    if not plan.users:
        raise LoadError("This plan has a rate; it has no users to set.")
    if not 0 <= users <= plan.max_connections:
        raise LoadError(f"The number of users must be between 0 and {plan.max_connections}, the plan's connections.")


def _of_target(plan: Plan) -> Iterator[str]:
    if not 1 <= len(plan.endpoints) <= MOST_ENDPOINTS:
        yield f"A plan has 1 to {MOST_ENDPOINTS} endpoints."
    for each in plan.endpoints:
        if not _is_address(each.host):
            yield f"{each.host} is not an IP address; names are not resolved."
        if not 1 <= each.port <= 65535:
            yield f"{each.port} is not a port."
    if plan.tls is not None and not _HOST.fullmatch(plan.tls.server_name):
        yield "The TLS server name is not a hostname."


def _of_size(plan: Plan) -> Iterator[str]:
    if (plan.rate > 0) == (plan.users > 0) or plan.rate < 0 or plan.users < 0:
        yield "A plan has either a rate or a number of users above 0."
    if not plan.rate <= highest_rate(plan) <= MOST_RATE:
        yield f"The rate must be at most max_rate, and that at most {plain(MOST_RATE)} requests/s."
    if not max(1, plan.users) <= plan.max_connections <= MOST_CONNECTIONS:
        yield f"There must be a connection for each user, and at most {MOST_CONNECTIONS}."
    limits = (
        ("duration_s", plan.duration_s, 0.1, MOST_SECONDS),
        ("timeout_s", plan.timeout_s, 0.01, MOST_TIMEOUT_S),
        ("ramp_s", plan.ramp_s, 0.0, MOST_RAMP_S),
        ("max_answer_bytes", plan.max_answer_bytes, 1, MOST_ANSWER_BYTES),
    )
    for name, value, lowest, highest in limits:
        if not lowest <= value <= highest:
            yield f"{name} must be between {plain(lowest)} and {plain(highest)}."


def _of_request(request: Request) -> Iterator[str]:
    if not _HOST.fullmatch(request.host):
        yield "The host is not a hostname."
    if request.method not in METHODS:
        yield f"The method must be one of {', '.join(METHODS)}."
    if not _PATH.fullmatch(request.path):
        yield "The path must begin with a slash and have no spaces or control characters."
    if len(request.body) > MOST_BODY_BYTES:
        yield f"A body has at most {MOST_BODY_BYTES} bytes."
    if len(request.headers) > MOST_HEADERS:
        yield f"A request has at most {MOST_HEADERS} headers."
    for name, value in request.headers.items():
        if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            yield "A header's name or value has characters that HTTP does not allow there."
        if name.lower() in OWN_HEADERS:
            yield f"The header {name} is the generator's own."


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host
