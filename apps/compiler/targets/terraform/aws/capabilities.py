"""What AWS cannot do for routes, pools, servers, listeners and load balancers.

Sources: the Elastic Load Balancing API reference (RuleCondition, HttpHeaderConditionConfig, PathPatternConditionConfig,
RedirectActionConfig, FixedResponseActionConfig, TargetGroupTuple, CreateTargetGroup, TargetGroupAttribute,
LoadBalancerAttribute), the Application Load Balancer guide ("Condition types for listener rules", "Quotas") and the
schema of version 5.100 of Terraform's AWS provider. The API has learned to rewrite paths and to compare with regular
expressions since; that version of the provider says neither, so neither is offered here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from apps.compiler.matching import hosts
from apps.compiler.model.shared import (
    CONNECT_TIMEOUT_MS,
    Balance,
    Certificate,
    FixedResponse,
    HealthCheck,
    LimitKind,
    Listener,
    LoadBalancer,
    PathKind,
    Protocol,
    Redirect,
    Route,
    Server,
    ServerState,
    WhenFull,
)
from apps.compiler.model.stack import CloudPool
from apps.compiler.portability.incompatibilities import Incompatibility, Target, lossy, refused
from apps.compiler.portability.rules import unsupported_rules
from apps.compiler.portability.table.asking import told
from apps.compiler.portability.table.cells import Column
from apps.compiler.targets.terraform.aws import limits
from apps.compiler.targets.terraform.aws.balancers import alpn_policy, speaks_http2
from apps.compiler.targets.terraform.aws.listener_rules.conditions import unsupported_conditions
from apps.compiler.targets.terraform.aws.listener_rules.patterns import conditions_of, path_patterns
from apps.compiler.targets.terraform.aws.servers import column_of, unsupported_on_the_way
from apps.compiler.targets.terraform.aws.timeouts import check_times
from apps.compiler.targets.terraform.aws.whole import unsupported_in_stack
from apps.compiler.targets.terraform.listener_options import unsupported_options

__all__ = [
    "unsupported_in_certificate",
    "unsupported_in_listener",
    "unsupported_in_load_balancer",
    "unsupported_in_pool",
    "unsupported_in_route",
    "unsupported_in_server",
    "unsupported_in_stack",
]
_refused = partial(refused, Target.AWS)
_lossy = partial(lossy, Target.AWS)


def _told(thing: Route | Listener | CloudPool, code: str, field: str, value: str = "") -> Incompatibility:
    return told(column_of(thing), thing, code, field, value)


CONTENT_TYPES = frozenset({"text/plain", "text/css", "text/html", "application/javascript", "application/json"})
REDIRECT_CODES = frozenset({301, 302})
_PATTERN_PATH = re.compile(r"[A-Za-z0-9_.$/~\"'@:+-]+")
_REDIRECT_PATH = re.compile(r"[A-Za-z0-9_.$/~\"'@:+-]+")
_TOP_LEVEL = re.compile(r"[a-z]+")
_PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
_DEFAULT_PORTS = {Protocol.HTTP: 80, Protocol.HTTPS: 443}


def unsupported_in_route(route: Route, load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    """Host, path, headers, how many conditions there are, what it does."""
    yield from _of_host(route, load_balancer)
    yield from _of_path(route)
    yield from unsupported_conditions(route)
    if route.path_kind is PathKind.REGEX:
        return
    if not conditions_of(route):
        yield _refused(
            route, "too_many_conditions", "headers",
            f"An ALB rule compares at most {limits.VALUES_PER_RULE} values.", "Use fewer conditions.",
        )  # fmt: skip
    if route.prefix_rewrite is not None:
        yield _told(route, "prefix_rewrite", "prefix_rewrite")
    if route.mirror_pool_id is not None:
        yield _told(route, "mirror", "mirror")
    yield from unsupported_rules(Column.ALB, route, load_balancer)
    if route.redirect is not None:
        yield from _of_redirect(route, route.redirect, load_balancer)
    if route.fixed_response is not None:
        yield from _of_fixed_response(route, route.fixed_response)


def _of_host(route: Route, load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    beside = _one_label_below(route, load_balancer)
    if beside:
        yield _refused(
            route, "suffix_over_wildcard", "hostname",
            f"On an ALB, * matches any number of labels, so {beside} also matches hosts of {route.hostname}.",
            f"Use **. instead of {beside}, or use exact hostnames.",
        )  # fmt: skip
    if route.hostname == hosts.ANY:
        return
    guarded = "*." if route.hostname.startswith("*.") else ""
    if len(guarded + route.hostname) > limits.CONDITION_TEXT:
        yield _refused(
            route, "host_length", "hostname",
            f"An ALB compares hostnames of at most {limits.CONDITION_TEXT} characters.", "Use a shorter hostname.",
        )  # fmt: skip
    if not _TOP_LEVEL.fullmatch(route.hostname.rpartition(".")[2]):
        yield _refused(
            route, "host_top_level", "hostname",
            "An ALB accepts only letters after the last dot of a hostname.",
            "Use a hostname below another top-level domain.",
        )  # fmt: skip


def _one_label_below(route: Route, load_balancer: LoadBalancer) -> str:
    """A wildcard for one label whose deeper hosts the route would take; its guard sends them away."""
    if not route.hostname.startswith(hosts.SUFFIX) and route.hostname != hosts.ANY:
        return ""
    wildcards = (each.hostname for each in load_balancer.routes if each.hostname.startswith(hosts.ONE_LABEL))
    return min((each for each in wildcards if each.endswith(hosts.ending_of(route.hostname))), default="")


def _of_path(route: Route) -> Iterator[Incompatibility]:
    if route.path_kind is PathKind.REGEX:
        yield _told(route, "path_regex", "path_kind", "regex")
        return
    patterns = path_patterns(route)
    if any(len(pattern) > limits.CONDITION_TEXT for pattern in patterns):
        yield _refused(
            route, "path_length", "path",
            f"An ALB compares paths of at most {limits.CONDITION_TEXT} characters.", "Use a shorter path.",
        )  # fmt: skip
    if patterns not in ((), ("*",)) and not _PATTERN_PATH.fullmatch(route.path):
        yield _refused(
            route, "path_signs", "path",
            "A path pattern of an ALB may contain only letters, digits and the characters _ - . $ / ~ @ : +.",
            "Use a path without other characters.",
        )  # fmt: skip


def _of_redirect(route: Route, redirect: Redirect, load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    if redirect.code not in REDIRECT_CODES:
        yield _refused(
            route, "redirect_code", "redirect.code",
            f"An ALB redirects only with 301 and 302, not with {redirect.code}.", "Use 301 or 302.",
        )  # fmt: skip
    texts = (redirect.host, redirect.path, (redirect.prefix or "") + "/#{path}", "#{query}&" + (redirect.query or ""))
    if any(len(text or "") > limits.CONDITION_TEXT for text in texts):
        yield _refused(
            route, "redirect_length", "redirect",
            f"An ALB redirects only to hosts, paths and queries of at most {limits.CONDITION_TEXT} characters.",
            "Shorten them.",
        )  # fmt: skip
    if redirect.prefix is not None and route.path != "/":
        yield _refused(
            route, "redirect_prefix", "redirect.prefix",
            "An ALB cannot replace a prefix in a redirect.", "Redirect to a path, or create a route for each path.",
        )  # fmt: skip
    if redirect.query is not None and redirect.keep_query:
        yield _told(route, "redirect_query", "redirect.query")
    said = redirect.path or redirect.prefix
    if said is not None and not _REDIRECT_PATH.fullmatch(said):
        yield _refused(
            route, "redirect_path_signs", "redirect.path",
            "An ALB redirects only to paths of letters, digits and the characters _ - . $ / ~ @ : +.",
            "Use a path without other characters.",
        )  # fmt: skip
    is_https = any(each.protocol is Protocol.HTTPS for each in load_balancer.listeners)
    if redirect.scheme == "http" and is_https:
        yield _refused(
            route, "redirect_to_http", "redirect.scheme",
            "An ALB does not redirect from https to http.", "Leave the scheme out, or serve the route only over http.",
        )  # fmt: skip
    if not any((redirect.scheme, redirect.host, redirect.port, redirect.path, (redirect.prefix or "").rstrip("/"))):
        yield _refused(
            route, "redirect_to_itself", "redirect",
            "An ALB rejects a redirect that keeps the scheme, host, port and path.", "Change at least one of them.",
        )  # fmt: skip


def _of_fixed_response(route: Route, response: FixedResponse) -> Iterator[Incompatibility]:
    kind, _, parameter = response.content_type.partition("; ")
    if response.body and (kind not in CONTENT_TYPES or parameter not in ("", "charset=utf-8")):
        yield _refused(
            route, "content_type", "fixed_response.content_type",
            f"An ALB returns only {', '.join(sorted(CONTENT_TYPES))}, in UTF-8.", "Use one of these types.",
        )  # fmt: skip
    if len(response.body) > limits.BODY:
        yield _refused(
            route, "body_length", "fixed_response.body",
            f"An ALB returns at most {limits.BODY} characters; this body has {len(response.body)}.",
            "Shorten the body, or serve it from a server.",
        )  # fmt: skip


def unsupported_in_certificate(_certificate: Certificate) -> Iterator[Incompatibility]:
    """None: ACM takes RSA from 1024 to 4096 and the three curves that we take."""
    return iter(())


def unsupported_in_listener(listener: Listener, load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    """Ports, certificates, and what it is told beyond them."""
    usual = _DEFAULT_PORTS.get(listener.protocol)
    if usual is not None and listener.port != usual and load_balancer.routes:
        yield _lossy(
            listener, "port_in_host", "port",
            f"An ALB compares the Host header as clients send it, and clients include port {listener.port} in it.",
            f"Listen on port {usual}, or make sure that clients send the host without a port.",
        )  # fmt: skip
    yield from unsupported_options(column_of(listener), listener)
    of_https = [each for each in load_balancer.listeners if each.protocol is Protocol.HTTPS]
    https = listener.protocol is not Protocol.TCP
    if https and listener.tls is not None and not listener.tls.http2 and speaks_http2(of_https):
        yield _told(listener, "http2", "tls.http2")
    if https and listener.tls is not None and listener.tls.http3:
        yield _told(listener, "http3", "tls.http3")
    if listener.tls is not None and listener.tls.alpn and alpn_policy(listener) is None:
        yield _told(listener, "alpn", "tls.alpn")
    if listener.speaks_tls and listener.default_certificate_id is None:
        yield _told(listener, "unknown_name", "certificates")


def unsupported_in_load_balancer(load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    """What is true of all of its requests."""
    if any(each.protocol is not Protocol.TCP for each in load_balancer.listeners):
        yield _lossy(
            load_balancer, "forwarded_headers", "",
            "An ALB appends the client address to the X-Forwarded-For header of the request, and does not set "
            "X-Forwarded-Host, X-Real-IP or X-Request-Id.", "Have the servers trust only the last entry.",
        )  # fmt: skip


def unsupported_in_server(server: Server) -> Iterator[Incompatibility]:
    """Where it is: target groups by IP take private addresses of version 4."""
    try:
        address = IPv4Address(server.address)
    except AddressValueError:
        yield _refused(
            server, "server_address", "address",
            f"Target groups accept only IPv4 addresses, not {server.address}.",
            "Use the server's private IPv4 address.",
        )  # fmt: skip
        return
    if not any(address in network for network in _PRIVATE):
        yield _refused(
            server, "server_public", "address",
            f"Target groups accept only private addresses; {server.address} is not one.",
            "Use the server's address in 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10.",
        )  # fmt: skip


def unsupported_in_pool(pool: CloudPool) -> Iterator[Incompatibility]:
    """Limits, queue, choice among servers, checks, times."""
    yield from _of_limits(pool)
    yield from _of_balance(pool)
    yield from _of_health_check(pool, pool.health_check)
    if len({server.weight for server in _ready(pool)}) > 1:
        yield _told(pool, "server_weights", "servers.weight")
    yield from _of_times(pool)
    yield from unsupported_on_the_way(pool)


def _of_times(pool: CloudPool) -> Iterator[Incompatibility]:
    if pool.protocol is Protocol.TCP:
        yield _told(pool, "server_timeout", "server_timeout_ms")
        if pool.connect_timeout_ms != CONNECT_TIMEOUT_MS:
            yield _told(pool, "connect_timeout", "connect_timeout_ms")
        return
    if pool.connect_timeout_ms != limits.CONNECT_TIMEOUT_S * 1000:
        yield _told(pool, "connect_timeout", "connect_timeout_ms")
    keepalive = pool.server_keepalive_ms
    if keepalive is not None and keepalive <= pool.server_timeout_ms:
        yield _told(pool, "keepalive_race", "server_keepalive_ms")


def _ready(pool: CloudPool) -> Iterator[Server]:
    for backend in pool.backends:
        yield from (each for each in backend.servers if each.state is ServerState.READY and each.weight > 0)


def _of_limits(pool: CloudPool) -> Iterator[Incompatibility]:
    limited = any(backend.limit.kind is not LimitKind.NONE for backend in pool.backends)
    if not limited:
        return
    yield _told(pool, "limit", "limit")
    if pool.when_full is not WhenFull.SPREAD:
        yield _lossy(
            pool, "when_full", "when_full",
            f"ALBs and NLBs neither queue nor reject requests: {pool.when_full} becomes a spread by weight.",
            "Choose spread, so that fleets do the same.",
        )  # fmt: skip


def _of_balance(pool: CloudPool) -> Iterator[Incompatibility]:
    if pool.protocol is Protocol.TCP:
        if pool.balance is not Balance.SOURCE:
            yield _lossy(
                pool, "balance", "balance",
                f"An NLB chooses a server by a hash of the connection's addresses and ports, not by {pool.balance}.",
                "Choose source if a client must stay with its server.",
            )  # fmt: skip
    elif pool.balance is Balance.SOURCE:
        yield _told(pool, "balance", "balance")


def _of_health_check(pool: CloudPool, check: HealthCheck | None) -> Iterator[Incompatibility]:
    is_tcp = pool.protocol is Protocol.TCP
    if check is None or (not check.path and not is_tcp):
        request = "connects to its servers" if is_tcp else "sends GET / and accepts any status from 200 to 499"
        yield _lossy(
            pool, "health_check_default", "health_check",
            f"Target groups always have a health check: this one {request}.",
            "Add a health check with a path.",
        )  # fmt: skip
    yield _lossy(
        pool, "fail_open", "health_check",
        "If no server of a target group is healthy, all of them get requests; clients do not get a 503.",
        "Have servers that must not get requests refuse connections.",
    )  # fmt: skip
    if check is None:
        return
    lowest, highest = limits.CHECK_STATUS
    if check.path and not check.expect_statuses and not lowest <= check.expect_status <= highest:
        yield _refused(
            pool, "health_check_status", "health_check.expect_status",
            f"Target groups accept only a status from {lowest} to {highest} as healthy.", "Expect another status.",
        )  # fmt: skip
    if check.path and (check.method != "GET" or check.host):
        yield _lossy(
            pool, "health_check_request", "health_check",
            "Target groups send health checks as GET requests, with the server's address as the Host header.",
            "Have the path respond to any method and host.",
        )  # fmt: skip
    yield from _of_check_times(pool, check)


def _of_check_times(pool: CloudPool, check: HealthCheck) -> Iterator[Incompatibility]:
    becomes = check_times(check)
    wanted = (check.interval_ms / 1000, check.timeout_ms / 1000, check.rise, check.fall)
    if wanted != becomes:
        interval, timeout, rise, fall = becomes
        yield _lossy(
            pool, "health_check_times", "health_check",
            f"Target groups use whole seconds: a check every {interval} s with a timeout of {timeout} s, healthy after "
            f"{rise} checks that succeed and unhealthy after {fall} that fail.",
            "Expect servers that fail to get requests for longer than on a fleet.",
        )  # fmt: skip
