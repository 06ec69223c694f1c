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
from apps.compiler.portability.rules import Sentences, unsupported_rules
from apps.compiler.targets.terraform.aws import limits
from apps.compiler.targets.terraform.aws.balancers import speaks_http2
from apps.compiler.targets.terraform.aws.listener_rules.conditions import unsupported_conditions
from apps.compiler.targets.terraform.aws.listener_rules.patterns import conditions_of, path_patterns
from apps.compiler.targets.terraform.aws.servers import unsupported_on_the_way
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
CONTENT_TYPES = frozenset({"text/plain", "text/css", "text/html", "application/javascript", "application/json"})
REDIRECT_CODES = frozenset({301, 302})
_PATTERN_PATH = re.compile(r"[A-Za-z0-9_.$/~\"'@:+-]+")
_REDIRECT_PATH = re.compile(r"[A-Za-z0-9_.$/~\"'@:+-]+")
_TOP_LEVEL = re.compile(r"[a-z]+")
_PRIVATE = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
_DEFAULT_PORTS = {Protocol.HTTP: 80, Protocol.HTTPS: 443}

# What the API and the Application Load Balancer guide say of rules and attributes; header attributes belong to a whole
# listener, and provider 5 has no transforms.
RULES: Sentences = {
    "basic_auth": ("ALB: Spillway asks nobody there.", "Let the servers ask."),
    "api_keys": ("ALB: Spillway asks nobody there.", "Let the servers ask."),
    "jwt": ("ALB: Spillway asks nobody there.", "Let the servers ask."),
    "access": ("ALB: a rule compares at most five networks.", "Use AWS WAF, or security groups."),
    "request_headers": ("ALB: a rule cannot change request headers.", "Let the servers set them."),
    "response_headers": (
        "ALB: only a few fixed headers can be changed, and for a whole listener.",
        "Let the servers set them.",
    ),
    "security_headers": ("ALB: these headers are set for a whole listener only.", "Let the servers set them."),
    "cors": ("ALB: CORS headers are set for a whole listener only.", "Let the servers answer preflight requests."),
    "rewrite": (
        "ALB: version 5 of the provider cannot rewrite hosts and paths.",
        "Let the servers answer below the path itself.",
    ),
    "maintenance": (
        "ALB: maintenance pages are not rendered there.",
        "Give the route a fixed response for that time.",
    ),
    "client_limit": ("ALB: limits per client need AWS WAF, which is not rendered.", "Serve the route from a fleet."),
    "error_pages": ("ALB: errors have its own short pages.", "Let the servers answer with a page."),
    "body": ("ALB: bodies are bounded by nothing but its own limits.", "Let the servers refuse long bodies."),
    "timeouts": ("ALB: the idle timeout is that of the whole load balancer.", "Set the timeout of the pool."),
    "retries": ("ALB: it repeats nothing, and nothing can be said of it.", "Leave retries out."),
    "split": ("ALB: clients that stay on their side of a split were not tried.", "Let the servers set a cookie."),
}


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
            f"A rule of an ALB compares at most {limits.VALUES_PER_RULE} values.", "Name fewer conditions.",
        )  # fmt: skip
    if route.prefix_rewrite is not None:
        yield _refused(
            route, "prefix_rewrite", "prefix_rewrite",
            "ALB: no prefix rewrite.", "Let the servers answer below the path itself.",
        )  # fmt: skip
    yield from unsupported_rules(Target.AWS, route, load_balancer, RULES)
    if route.redirect is not None:
        yield from _of_redirect(route, route.redirect, load_balancer)
    if route.fixed_response is not None:
        yield from _of_fixed_response(route, route.fixed_response)


def _of_host(route: Route, load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    beside = _one_label_below(route, load_balancer)
    if beside:
        yield _refused(
            route, "suffix_over_wildcard", "hostname",
            f"ALB's * stands for any number of labels, so {beside} takes hosts that are for {route.hostname}.",
            f"Use **. in place of {beside}, or exact hosts.",
        )  # fmt: skip
    if route.hostname == hosts.ANY:
        return
    guarded = "*." if route.hostname.startswith("*.") else ""
    if len(guarded + route.hostname) > limits.CONDITION_TEXT:
        yield _refused(
            route, "host_length", "hostname",
            f"ALB compares hosts of at most {limits.CONDITION_TEXT} characters.", "Use a shorter host name.",
        )  # fmt: skip
    if not _TOP_LEVEL.fullmatch(route.hostname.rpartition(".")[2]):
        yield _refused(
            route, "host_top_level", "hostname",
            "ALB takes letters alone after a host's last dot.", "Use a host name below another top-level domain.",
        )  # fmt: skip


def _one_label_below(route: Route, load_balancer: LoadBalancer) -> str:
    """A wildcard for one label whose deeper hosts the route would take; its guard sends them away."""
    if not route.hostname.startswith(hosts.SUFFIX) and route.hostname != hosts.ANY:
        return ""
    wildcards = (each.hostname for each in load_balancer.routes if each.hostname.startswith(hosts.ONE_LABEL))
    return min((each for each in wildcards if each.endswith(hosts.ending_of(route.hostname))), default="")


def _of_path(route: Route) -> Iterator[Incompatibility]:
    if route.path_kind is PathKind.REGEX:
        yield _refused(
            route, "path_regex", "path_kind",
            "The rules that are written for ALB know no regular expressions.", "Use a prefix or exact paths.",
        )  # fmt: skip
        return
    patterns = path_patterns(route)
    if any(len(pattern) > limits.CONDITION_TEXT for pattern in patterns):
        yield _refused(
            route, "path_length", "path",
            f"ALB compares paths of at most {limits.CONDITION_TEXT} characters.", "Use a shorter path.",
        )  # fmt: skip
    if patterns not in ((), ("*",)) and not _PATTERN_PATH.fullmatch(route.path):
        yield _refused(
            route, "path_signs", "path",
            "ALB's path patterns know letters, digits and _ - . $ / ~ @ : + only.", "Use a path without other signs.",
        )  # fmt: skip


def _of_redirect(route: Route, redirect: Redirect, load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    if redirect.code not in REDIRECT_CODES:
        yield _refused(
            route, "redirect_code", "redirect.code",
            f"ALB redirects with 301 and 302 only, not with {redirect.code}.", "Use 301 or 302.",
        )  # fmt: skip
    texts = (redirect.host, redirect.path, (redirect.prefix or "") + "/#{path}", "#{query}&" + (redirect.query or ""))
    if any(len(text or "") > limits.CONDITION_TEXT for text in texts):
        yield _refused(
            route, "redirect_length", "redirect",
            f"ALB redirects to hosts, paths and queries of at most {limits.CONDITION_TEXT} characters.",
            "Use shorter ones.",
        )  # fmt: skip
    if redirect.prefix is not None and route.path != "/":
        yield _refused(
            route, "redirect_prefix", "redirect.prefix",
            "ALB replaces no prefix in a redirect.", "Redirect to a path, or give each path a route of its own.",
        )  # fmt: skip
    if redirect.query is not None and redirect.keep_query:
        yield _lossy(
            route, "redirect_query", "redirect.query",
            "ALB writes ?& before what is added to the query where a request has none.",
        )  # fmt: skip
    said = redirect.path or redirect.prefix
    if said is not None and not _REDIRECT_PATH.fullmatch(said):
        yield _refused(
            route, "redirect_path_signs", "redirect.path",
            "ALB redirects to paths of letters, digits and _ - . $ / ~ @ : + only.", "Use a path without other signs.",
        )  # fmt: skip
    is_https = any(each.protocol is Protocol.HTTPS for each in load_balancer.listeners)
    if redirect.scheme == "http" and is_https:
        yield _refused(
            route, "redirect_to_http", "redirect.scheme",
            "ALB does not redirect from https to http.", "Leave the scheme out, or serve the route by http alone.",
        )  # fmt: skip
    if not any((redirect.scheme, redirect.host, redirect.port, redirect.path, (redirect.prefix or "").rstrip("/"))):
        yield _refused(
            route, "redirect_to_itself", "redirect",
            "ALB refuses a redirect that keeps scheme, host, port and path.", "Change one of them.",
        )  # fmt: skip


def _of_fixed_response(route: Route, response: FixedResponse) -> Iterator[Incompatibility]:
    kind, _, parameter = response.content_type.partition("; ")
    if response.body and (kind not in CONTENT_TYPES or parameter not in ("", "charset=utf-8")):
        yield _refused(
            route, "content_type", "fixed_response.content_type",
            f"ALB answers with {', '.join(sorted(CONTENT_TYPES))} only, in UTF-8.", "Use one of these types.",
        )  # fmt: skip
    if len(response.body) > limits.BODY:
        yield _refused(
            route, "body_length", "fixed_response.body",
            f"ALB answers with at most {limits.BODY} characters; this body has {len(response.body)}.",
            "Use a shorter body, or let a server answer.",
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
            f"ALB compares the Host header as it is sent, and clients put port {listener.port} into it.",
            f"Listen on port {usual}, or make sure that clients send the host alone.",
        )  # fmt: skip
    yield from unsupported_options(Target.AWS, listener)
    of_https = [each for each in load_balancer.listeners if each.protocol is Protocol.HTTPS]
    if listener.tls is not None and not listener.tls.http2 and speaks_http2(of_https):
        yield _lossy(
            listener, "http2", "tls.http2",
            "An ALB speaks HTTP/2 on all of its https listeners or on none, and another one here does.",
            "Set http2 alike on all of them.",
        )  # fmt: skip
    if listener.protocol is Protocol.HTTPS and listener.default_certificate_id is None:
        yield _lossy(
            listener, "unknown_name", "certificates",
            "ALB greets clients that ask for a name of none of the certificates with the first one.",
            "Name the default_certificate that strangers may see.",
        )  # fmt: skip


def unsupported_in_load_balancer(load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    """What is true of all of its requests."""
    if any(each.protocol is not Protocol.TCP for each in load_balancer.listeners):
        yield _lossy(
            load_balancer, "forwarded_headers", "",
            "ALB adds the client to X-Forwarded-For behind what the client sent, and sets neither X-Forwarded-Host "
            "nor X-Real-IP nor X-Request-Id.", "Let servers trust the last entry alone.",
        )  # fmt: skip


def unsupported_in_server(server: Server) -> Iterator[Incompatibility]:
    """Where it is: target groups by IP take private addresses of version 4."""
    try:
        address = IPv4Address(server.address)
    except AddressValueError:
        yield _refused(
            server, "server_address", "address",
            f"Target groups take IPv4 addresses, not {server.address}.", "Give the server's private IPv4 address.",
        )  # fmt: skip
        return
    if not any(address in network for network in _PRIVATE):
        yield _refused(
            server, "server_public", "address",
            f"Target groups take private addresses only; {server.address} is none.",
            "Give its address in 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10.",
        )  # fmt: skip


def unsupported_in_pool(pool: CloudPool) -> Iterator[Incompatibility]:
    """Limits, queue, choice among servers, checks, times."""
    yield from _of_limits(pool)
    yield from _of_balance(pool)
    yield from _of_health_check(pool, pool.health_check)
    if len({server.weight for server in _ready(pool)}) > 1:
        yield _lossy(
            pool, "server_weights", "servers.weight",
            "Target groups know no weights of servers: each gets the same share.", "Put servers of one size in a pool.",
        )  # fmt: skip
    yield from _of_times(pool)
    yield from unsupported_on_the_way(pool)


def _of_times(pool: CloudPool) -> Iterator[Incompatibility]:
    if pool.protocol is Protocol.TCP:
        yield _lossy(
            pool, "server_timeout", "server_timeout_ms",
            f"NLB keeps silent connections for {limits.NLB_IDLE_S} s, whatever the server timeout.",
            "Let servers close connections that they have given up.",
        )  # fmt: skip
        return
    if pool.connect_timeout_ms != limits.CONNECT_TIMEOUT_S * 1000:
        yield _lossy(
            pool, "connect_timeout", "connect_timeout_ms",
            f"ALB tries to connect to a server for {limits.CONNECT_TIMEOUT_S} s, whatever the connect timeout.",
            "Let health checks find servers that do not answer.",
        )  # fmt: skip
    keepalive = pool.server_keepalive_ms
    if keepalive is not None and keepalive <= pool.server_timeout_ms:
        yield _lossy(
            pool, "keepalive_race", "server_keepalive_ms",
            "ALB keeps idle connections for as long as it waits for an answer; a request that meets the server's "
            "closing ends as 502.", "Let servers keep connections for longer than the server timeout.",
        )  # fmt: skip


def _ready(pool: CloudPool) -> Iterator[Server]:
    for backend in pool.backends:
        yield from (each for each in backend.servers if each.state is ServerState.READY and each.weight > 0)


def _of_limits(pool: CloudPool) -> Iterator[Incompatibility]:
    limited = any(backend.limit.kind is not LimitKind.NONE for backend in pool.backends)
    if not limited:
        return
    yield _lossy(
        pool, "limit", "limit",
        "ALB and NLB keep no limit: weights of regions follow the samples, and a surge between two of them passes.",
        "Leave the servers room above the limit.",
    )  # fmt: skip
    if pool.when_full is not WhenFull.SPREAD:
        yield _lossy(
            pool, "when_full", "when_full",
            f"ALB and NLB neither queue nor refuse: {pool.when_full} becomes a spread by weights.",
            "Choose spread, so that fleets do the same.",
        )  # fmt: skip


def _of_balance(pool: CloudPool) -> Iterator[Incompatibility]:
    if pool.protocol is Protocol.TCP:
        if pool.balance is not Balance.SOURCE:
            yield _lossy(
                pool, "balance", "balance",
                f"NLB chooses by a hash of the connection's addresses and ports, not by {pool.balance}.",
                "Choose source where a client must stay with its server.",
            )  # fmt: skip
    elif pool.balance is Balance.SOURCE:
        yield _lossy(
            pool, "balance", "balance",
            "ALB does not hash the client's address: a cookie of its own keeps a client with its server.",
            "Clients without cookies move from server to server; use a tcp pool where that matters.",
        )  # fmt: skip


def _of_health_check(pool: CloudPool, check: HealthCheck | None) -> Iterator[Incompatibility]:
    is_tcp = pool.protocol is Protocol.TCP
    if check is None or (not check.path and not is_tcp):
        asks = "connects to its servers" if is_tcp else "asks GET / and takes any answer from 200 to 499"
        yield _lossy(
            pool, "health_check_default", "health_check",
            f"Target groups always check: this one {asks}.",
            "Write a health check with a path.",
        )  # fmt: skip
    yield _lossy(
        pool, "fail_open", "health_check",
        "When no server of a target group is healthy, all of them get requests, instead of a 503.",
        "Let servers that must not answer refuse connections.",
    )  # fmt: skip
    if check is None:
        return
    lowest, highest = limits.CHECK_STATUS
    if check.path and not check.expect_statuses and not lowest <= check.expect_status <= highest:
        yield _refused(
            pool, "health_check_status", "health_check.expect_status",
            f"Target groups take a status from {lowest} to {highest} for healthy.", "Expect another status.",
        )  # fmt: skip
    if check.path and (check.method != "GET" or check.host):
        yield _lossy(
            pool, "health_check_request", "health_check",
            "Target groups check with GET and the server's own address as Host.",
            "Let the path answer whatever method and host are sent.",
        )  # fmt: skip
    yield from _of_check_times(pool, check)


def _of_check_times(pool: CloudPool, check: HealthCheck) -> Iterator[Incompatibility]:
    becomes = check_times(check)
    wanted = (check.interval_ms / 1000, check.timeout_ms / 1000, check.rise, check.fall)
    if wanted != becomes:
        interval, timeout, rise, fall = becomes
        yield _lossy(
            pool, "health_check_times", "health_check",
            f"Target groups count whole seconds: every {interval} s, {timeout} s to answer, {rise} good and "
            f"{fall} bad checks.", "Servers that fail are left later than on a fleet.",
        )  # fmt: skip
