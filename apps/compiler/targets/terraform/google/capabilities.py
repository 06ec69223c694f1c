"""What Google cannot do for routes, pools, servers, listeners and stacks.

Sources, all of the Compute Engine API reference (https://cloud.google.com/compute/docs/reference/rest/v1/) unless
another page is named:

* urlMaps: HostRule.hosts (`*` is any string of letters, digits, hyphens and dots), HttpRouteRuleMatch (paths of at most
  1 024 characters; regular expressions not for global external load balancers), HttpRedirectAction (`httpsRedirect` in
  maps of http proxies only), HttpFaultAbort (a status without a body). Methods (header `:method`), absent headers
  (`invertMatch`), all five redirects, rewritten prefixes and weights from 0 to 1 000 are there: no incompatibility.
* backendServices: Backend.capacityScaler (0 or 0.1 to 1), Backend.maxRate and the other targets;
  https://cloud.google.com/load-balancing/docs/backend-service says that they are targets, not bounds. The provider
  knows circuit breakers for `INTERNAL_SELF_MANAGED` alone and no balancing by requests in flight.
* urlMaps, requestMirrorPolicy: the load balancer waits for no response of the mirror, and adds `-shadow` to the host.
  Version 7 of the provider has no field for a percentage: copies are of all requests, also of those that are split.
* healthChecks: whole seconds, an answer of 200 to GET; targetHttpsProxies.sslCertificates: at most 15.
* forwardingRules.sourceIpRanges: only regional and `EXTERNAL`, so client networks need Cloud Armor, which is not ours.
* https://cloud.google.com/load-balancing/docs/url-map-size-quota: one URL map has at most 1 MB.
* https://cloud.google.com/load-balancing/docs/https#timeouts_and_retries: connections to servers idle for 600 s.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from ipaddress import AddressValueError, IPv4Address

from apps.compiler.matching.hosts import ONE_LABEL
from apps.compiler.model.shared import (
    CONNECT_TIMEOUT_MS,
    Balance,
    HealthCheck,
    LimitKind,
    Listener,
    LoadBalancer,
    PathKind,
    Protocol,
    Redirect,
    Route,
    Server,
    WhenFull,
)
from apps.compiler.model.stack import ON_FLEETS, CloudPool, RecordType, StackSnapshot
from apps.compiler.portability.incompatibilities import Incompatibility, Severity, Target, lossy, refused
from apps.compiler.portability.rules import unsupported_rules
from apps.compiler.portability.table.asking import told
from apps.compiler.portability.table.cells import Column
from apps.compiler.routing import covers_scheme
from apps.compiler.targets.terraform.google.conditions import unsupported_conditions
from apps.compiler.targets.terraform.google.quotas import unsupported_in_certificate, unsupported_in_url_maps
from apps.compiler.targets.terraform.google.servers import unsupported_on_the_way
from apps.compiler.targets.terraform.google.services import (
    check_times,
    ready_servers,
    whole_seconds,
)
from apps.compiler.targets.terraform.google.url_map import url_map
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
_refused = partial(refused, Target.GOOGLE)
_lossy = partial(lossy, Target.GOOGLE)
_told = partial(told, Column.GOOGLE)

LONGEST_PATH = 1024
MOST_CERTIFICATES = 15
URL_MAP_BYTES = 1_000_000
LEAST_SCALER = 0.1
SERVER_IDLE_MS = 600_000
ANYBODY = ("0.0.0.0/0",)


def unsupported_in_route(route: Route, load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    """Host, path, what it does."""
    if route.hostname.startswith(ONE_LABEL):
        deeper = route.hostname.replace("*", "x.y", 1)
        yield _lossy(
            route, "wildcard_depth", "hostname",
            f"On Google Cloud, * matches any number of labels: the route also matches {deeper}.",
            "Create separate routes for deeper hostnames that must not reach it.",
        )  # fmt: skip
    yield from unsupported_conditions(route)
    if route.path_kind is PathKind.PREFIX and len(route.path) >= LONGEST_PATH:
        yield _refused(
            route, "path_length", "path",
            f"Google Cloud compares at most {LONGEST_PATH} characters, and a prefix needs one for the slash after it.",
            "Use a shorter prefix.",
        )  # fmt: skip
    if route.mirror_pool_id is not None:
        yield _told(route, "mirror_host", "mirror")
    yield from unsupported_rules(Column.GOOGLE, route, load_balancer)
    if route.redirect is not None:
        yield from _of_redirect(route, route.redirect, load_balancer)
    if route.fixed_response is not None and route.fixed_response.body:
        yield _told(route, "fixed_response_body", "fixed_response.body")
    elif route.fixed_response is not None:
        yield _lossy(
            route, "fixed_response_text", "fixed_response.body",
            "Google Cloud returns the status with its own short text instead of an empty body.",
        )  # fmt: skip


def _of_redirect(route: Route, redirect: Redirect, load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    on_https = covers_scheme(route, Protocol.HTTPS)
    if (
        redirect.scheme == "http"
        and on_https
        and any(each.protocol is Protocol.HTTPS for each in load_balancer.listeners)
    ):
        yield _refused(
            route, "redirect_to_http", "redirect.scheme",
            "Google Cloud does not redirect from https to http.",
            "Leave the scheme out, or serve the route only over http.",
        )  # fmt: skip
    if redirect.port is not None:
        yield _told(route, "redirect_port", "redirect.port")
    if redirect.query is not None:
        yield _told(route, "redirect_query", "redirect.query")


def unsupported_in_listener(listener: Listener, _load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    """How many certificates, and what it is told beyond them."""
    yield from unsupported_options(Column.GOOGLE, listener)
    if listener.ends_tls:
        yield _refused(
            listener, "tcp_tls", "certificates",
            "Spillway does not create SSL proxies on Google Cloud, so it cannot end TLS for a tcp listener there.",
            "Leave certificates out and end TLS on the servers, or put the load balancer on a fleet.",
        )  # fmt: skip
    if listener.tls is not None and not listener.tls.http2:
        yield _told(listener, "http2", "tls.http2")
    if listener.protocol is Protocol.HTTPS and listener.default_certificate_id is None:
        yield _lossy(
            listener, "unknown_name", "certificates",
            "If a client requests a name that no certificate covers, Google Cloud presents the first certificate.",
            "Set default_certificate to the certificate that such clients may see.",
        )  # fmt: skip
    if len(listener.certificate_ids) > MOST_CERTIFICATES:
        yield _refused(
            listener, "too_many_certificates", "certificates",
            f"A target proxy accepts at most {MOST_CERTIFICATES} certificates; this listener has "
            f"{len(listener.certificate_ids)}.",
            "Combine hostnames in fewer certificates.",
        )  # fmt: skip


def unsupported_in_load_balancer(load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    """How large its URL maps are, and what is true of all of its requests."""
    fronts = [each for each in load_balancer.listeners if each.protocol is not Protocol.TCP]
    if not fronts:
        return
    beyond = list(unsupported_in_url_maps(load_balancer))
    yield from beyond
    gone = {each.object_id for each in beyond}
    left = replace(load_balancer, routes=tuple(each for each in load_balancer.routes if each.id not in gone))
    size = max(len(json.dumps(url_map("stk-0", left, each).body)) for each in fronts)
    if size > URL_MAP_BYTES:
        yield _refused(
            load_balancer, "url_map_size", "",
            f"A URL map can have at most {URL_MAP_BYTES} bytes; the routes of this load balancer need {size}.",
            "Divide the routes among several load balancers.",
        )  # fmt: skip
    yield _lossy(
        load_balancer, "forwarded_headers", "",
        "Google Cloud appends the client address and its own to the X-Forwarded-For header of the request, and does "
        "not set X-Forwarded-Host, X-Forwarded-Port, X-Real-IP or X-Request-Id.",
        "Have the servers trust only the last two entries.",
    )  # fmt: skip


def unsupported_in_server(server: Server) -> Iterator[Incompatibility]:
    """Where it is: endpoints of a hybrid group are IPv4 addresses."""
    try:
        IPv4Address(server.address)
    except AddressValueError:
        yield _refused(
            server, "server_address", "address",
            f"Network endpoint groups accept only IPv4 addresses, not {server.address}.",
            "Use the server's private IPv4 address.",
        )  # fmt: skip


def unsupported_in_pool(pool: CloudPool) -> Iterator[Incompatibility]:
    """Limits, overflow, choice among servers, checks, times."""
    yield from _of_limits(pool)
    yield from _of_choice(pool)
    yield from _of_health_check(pool, pool.health_check)
    yield from unsupported_on_the_way(pool)
    if pool.connect_timeout_ms != CONNECT_TIMEOUT_MS:
        yield _told(pool, "connect_timeout", "connect_timeout_ms")
    if pool.protocol is Protocol.TCP:
        return
    yield from _of_times(pool)


def _of_times(pool: CloudPool) -> Iterator[Incompatibility]:
    yield _lossy(
        pool, "server_timeout", "server_timeout_ms",
        f"Google Cloud applies the {whole_seconds(pool.server_timeout_ms)} s to a whole response, "
        "not to a pause in it.", "Use a longer server timeout for pools with long downloads or streams.",
    )  # fmt: skip
    if pool.server_keepalive_ms is not None and pool.server_keepalive_ms <= SERVER_IDLE_MS:
        yield _told(pool, "keepalive_race", "server_keepalive_ms")


def _of_limits(pool: CloudPool) -> Iterator[Incompatibility]:
    fitting = LimitKind.CONNECTIONS if pool.protocol is Protocol.TCP else LimitKind.RATE
    kinds = {backend.limit.kind for backend in pool.backends} - {LimitKind.NONE}
    if kinds - {fitting}:
        counts = "connections" if pool.protocol is Protocol.TCP else "requests per second"
        yield _lossy(
            pool, "limit_kind", "limit.kind",
            f"Google Cloud counts {counts} for this protocol and ignores a limit of another kind.",
            f"Use a limit of kind {fitting}.",
        )  # fmt: skip
    if fitting in kinds:
        yield _told(pool, "limit_is_a_target", "limit")
    if kinds and pool.when_full is not WhenFull.SPREAD:
        yield _lossy(
            pool, "when_full", "overflow.when_full",
            f"Google Cloud neither queues nor rejects requests: {pool.when_full} becomes a spread over all regions.",
            "Choose spread, so that fleets do the same.",
        )  # fmt: skip
    if any(0 < backend.capacity_scaler < LEAST_SCALER for backend in pool.backends):
        yield _refused(
            pool, "capacity_scaler", "backends.capacity_scaler",
            f"On Google Cloud, a capacity scaler is 0, or from {LEAST_SCALER} to 1.",
            "Use 0 to drain the region, or at least 0.1.",
        )  # fmt: skip


def _of_choice(pool: CloudPool) -> Iterator[Incompatibility]:
    if len(pool.backends) > 1:
        yield _told(pool, "overflow_order", "overflow.order")
    if any(len({server.weight for server in ready_servers(backend)}) > 1 for backend in pool.backends):
        yield _told(pool, "server_weights", "servers.weight")
    if pool.protocol is Protocol.TCP and pool.balance in (Balance.LEASTCONN, Balance.RANDOM):
        yield _lossy(
            pool, "balance", "balance",
            f"A proxy Network Load Balancer does not support {pool.balance}.", "Use roundrobin or source.",
        )  # fmt: skip


def _of_health_check(pool: CloudPool, check: HealthCheck | None) -> Iterator[Incompatibility]:
    if check is None:
        yield _told(pool, "health_check_default", "health_check")
        return
    if check.path and check.expect_status != 200 and not check.expect_statuses:
        yield _refused(
            pool, "health_check_status", "health_check.expect_status",
            f"Google Cloud accepts only 200 as healthy, not {check.expect_status}.",
            "Return 200 from the path of the check.",
        )  # fmt: skip
    if check.path and check.method != "GET":
        yield _told(pool, "health_check_request", "health_check.method")
    yield from _of_check_times(pool, check)


def _of_check_times(pool: CloudPool, check: HealthCheck) -> Iterator[Incompatibility]:
    becomes = check_times(check)
    if becomes != (check.interval_ms / 1000, check.timeout_ms / 1000, check.rise, check.fall):
        interval, timeout, rise, fall = becomes
        yield _lossy(
            pool, "health_check_times", "health_check",
            f"Google Cloud uses whole seconds in a fixed range: a check every {interval} s with a timeout of "
            f"{timeout} s, healthy after {rise} checks in a row that succeed and unhealthy after {fall} that fail.",
            "Expect servers that fail to get requests for longer than on a fleet.",
        )  # fmt: skip


def unsupported_in_stack(snapshot: StackSnapshot) -> Iterator[Incompatibility]:
    """What needs the whole: client networks, zones of regions, addresses, records."""
    if set(snapshot.network.client_networks) != set(ANYBODY):
        for front in snapshot.load_balancers:
            yield _refused(
                front, "client_networks", "",
                "Google Cloud's global load balancers accept all clients, but the stack restricts client networks.",
                "Put the load balancer on a fleet or on AWS, or open the stack to 0.0.0.0/0.",
            )  # fmt: skip
    yield from _of_locations(snapshot)
    yield from _of_addresses(snapshot)


def _of_locations(snapshot: StackSnapshot) -> Iterator[Incompatibility]:
    """Groups of endpoints stand in a zone, in a network."""
    zones = dict(snapshot.network.zones)
    for pool in snapshot.pools:
        if pool.backends and not snapshot.network.vpc:
            yield _refused(
                pool, "no_network", "", "The stack has no network for its network endpoint groups.",
                "Set network.vpc of the stack to the name or link of the VPC.",
            )  # fmt: skip
        for region in sorted({backend.region for backend in pool.backends} - zones.keys()):
            yield _refused(
                pool, "no_zone", "backends.region",
                f"The stack has no zone for region {region}.", "Add the zone to network.zones of the stack.",
            )  # fmt: skip


def _of_addresses(snapshot: StackSnapshot) -> Iterator[Incompatibility]:
    """Listeners bind addresses that the stack keeps; records of version 6 have none to follow."""
    kept = {address.id for address in snapshot.addresses if address.kind not in ON_FLEETS}
    for front in snapshot.load_balancers:
        for listener in front.listeners:
            if listener.address is not None and listener.address not in kept:
                yield _refused(
                    listener, "address_elsewhere", "static_ip",
                    "The listener's static IP does not belong to this stack.",
                    "Choose a static IP of kind google in this stack.",
                )  # fmt: skip
    for zone in snapshot.zones:
        for record in zone.records:
            if (record.address_id or record.load_balancer_id) and record.type is not RecordType.A:
                yield Incompatibility(
                    Target.GOOGLE, Severity.REFUSED, "record_follows", record.id, record.name, "type",
                    "Static IPs on Google Cloud are IPv4 addresses: only an A record can follow one.", "Use type A.",
                )  # fmt: skip
