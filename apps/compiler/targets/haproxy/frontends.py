"""Listeners as frontends; the same rules for every listener of one load balancer.

The steps of an http frontend, in the order of its lines: answer the probe, refuse what no route gets and who has not
the certificate that the host asks for, say who the client is, look the route up, count it, find out what it does,
rewrite, follow its policies, choose the backend. None of them grows with the number of routes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from apps.compiler.bundle import bind_variable
from apps.compiler.model.fleet import Region, Snapshot
from apps.compiler.model.shared import Listener, LoadBalancer, Protocol
from apps.compiler.policies import rules_followed
from apps.compiler.routing import NO_ROUTE
from apps.compiler.targets.haproxy import request_log
from apps.compiler.targets.haproxy.actions import IS_REDIRECT, MAX_POOLS, SPLIT, rewrite_length
from apps.compiler.targets.haproxy.bypass_tokens import add_recognition
from apps.compiler.targets.haproxy.listeners.access import add_access
from apps.compiler.targets.haproxy.listeners.acme_challenges import add_challenges
from apps.compiler.targets.haproxy.listeners.cache import add_cache
from apps.compiler.targets.haproxy.listeners.client_address import (
    add_address_headers,
    add_forwarded,
    add_proxy_protocol,
    has_proxies,
)
from apps.compiler.targets.haproxy.listeners.client_certificates import add_client_rules, add_connection_rules
from apps.compiler.targets.haproxy.listeners.client_limit import add_connection_limit, drop_mark, tell_servers
from apps.compiler.targets.haproxy.listeners.connection_routes import add_connection_routes
from apps.compiler.targets.haproxy.listeners.handover import (
    add_silence,
    add_way,
    hands_over,
    inner,
    inner_name,
    outer,
    socket_of,
)
from apps.compiler.targets.haproxy.listeners.options import add_options
from apps.compiler.targets.haproxy.listeners.same_certificate import add_host_rules
from apps.compiler.targets.haproxy.listeners.tls import add_bind, add_http3
from apps.compiler.targets.haproxy.listeners.tracing import add_traces, tracing_of
from apps.compiler.targets.haproxy.lookup import Asked, add_lookup
from apps.compiler.targets.haproxy.maps import RouteMaps, asked_at, map_path, served_at
from apps.compiler.targets.haproxy.overflow.admission import Rules, add_release, found, needs_of, no
from apps.compiler.targets.haproxy.overflow.ceilings import add_idle_rule, add_source_rules
from apps.compiler.targets.haproxy.overflow.local_traffic import add_home_rules, other_regions, own_region
from apps.compiler.targets.haproxy.overflow.remote_traffic import tcp_marker
from apps.compiler.targets.haproxy.policies.attach import (
    add_lookup_of_rules,
    add_pages,
    add_policies,
    add_sides,
)
from apps.compiler.targets.haproxy.refusals import add_circle_guard, add_loop_guard, add_request_refusals
from apps.compiler.targets.haproxy.settings import HTTP, LATENCY_MAP, LATENCY_TABLE, REDIRECT_BACKEND, ROUTE_TABLE, TCP
from apps.compiler.targets.haproxy.writer import Document, Expanded, Section, Value


def add_listener(
    document: Document,
    snapshot: Snapshot,
    load_balancer: LoadBalancer,
    listener: Listener,
    maps: Mapping[str, RouteMaps],
) -> None:
    """One frontend, named after its listener; `maps` by the id of the load balancer as it is served."""
    defaults = TCP if listener.protocol is Protocol.TCP else HTTP
    section = document.section("frontend", listener.id, "from", defaults, owner=listener.id)
    # The digest covers this file and not the manifest: where the listener binds must be part of it.
    section.add("description", f"{listener.address or '*'}:{listener.port}")
    _add_binds(section, snapshot, outer(listener) if hands_over(listener) else listener)
    add_options(section, listener)
    add_proxy_protocol(section, listener)
    add_access(section, listener)
    own = own_region(snapshot)
    add_connection_limit(section, own, listener)
    if listener.protocol is Protocol.TCP:
        add_circle_guard(section, snapshot.own_addresses, relayed=has_proxies(listener))
        _add_connections(document, section, snapshot, listener)
        return
    asked = [Asked(each.id, maps[each.id], only) for each, only in asked_at(load_balancer, listener)]
    served = served_at(load_balancer, listener)
    _add_http_rules(section, snapshot, served, listener, maps[served.id], asked)
    _add_default(section, listener)


def _add_connections(document: Document, section: Section, snapshot: Snapshot, listener: Listener) -> None:
    """What becomes of connections of tcp; one frontend more where TLS is ended for some names alone."""
    if not hands_over(listener):
        _add_tcp_rules(section, snapshot, listener)
        return
    _add_tcp_rules(section, snapshot, outer(listener))
    add_way(document, listener)
    inside = document.section("frontend", inner_name(listener), "from", TCP, owner=listener.id)
    add_bind(inside, listener, socket_of(listener), "accept-proxy")
    add_options(inside, listener)
    _add_tcp_rules(inside, snapshot, inner(listener))


def _add_tcp_rules(section: Section, snapshot: Snapshot, listener: Listener) -> None:
    own = own_region(snapshot)
    request_log.add_connections(section, listener)
    add_connection_routes(section, listener)
    add_silence(section, listener)
    if listener.ends_tls:
        add_connection_rules(section, listener)
    if own is not None:
        _add_tcp_overflow(section, snapshot, own, listener)
    if own is not None or listener.connection_routes:
        section.add("use_backend", "%[var(txn.action)]")
    _add_default(section, listener)


def _add_default(section: Section, listener: Listener) -> None:
    if listener.default_pool_id:
        section.add("default_backend", listener.default_pool_id)


def _add_tcp_overflow(section: Section, snapshot: Snapshot, own: Region, listener: Listener) -> None:
    if other_regions(snapshot):  # HAProxy opens a map that only this line names from where it was started
        section.add("unique-id-format", tcp_marker(own.id))
    rules = Rules(section, is_http=False, **needs_of(snapshot))
    if not listener.connection_routes:
        rules.let("action", f"str({listener.default_pool_id})")
    add_home_rules(rules, snapshot, own)


def _add_binds(section: Section, snapshot: Snapshot, listener: Listener) -> None:
    """Where clients connect. An address that moves is bound while another node has it: `transparent` lets haproxy.

    Nobody can ask this node there then, so the agent and keepalived's check get a private socket to the same rules.
    Connections of tcp would go on to a server; those listeners are asked about at the worker.
    """
    moves = any(each.address == listener.address for each in snapshot.addresses)
    endpoint = Expanded(f"${{{bind_variable(listener.id)}}}")
    options = ("transparent",) if moves else ()
    add_bind(section, listener, endpoint, *options)
    if moves and listener.protocol is not Protocol.TCP:
        section.add("bind", Expanded(f"unix@${{SPILLWAY_RUN}}/{listener.id}.sock"), "mode", "600")
    add_http3(section, listener, *options)


def _add_http_rules(
    section: Section,
    snapshot: Snapshot,
    load_balancer: LoadBalancer,
    listener: Listener,
    maps: RouteMaps,
    asked: Sequence[Asked],
) -> None:
    own = own_region(snapshot)
    request_log.add_requests(section, traced=tracing_of(listener) is not None)
    add_source_rules(section, snapshot, listener)
    add_idle_rule(section, snapshot)
    add_probe(section, listener.id)
    add_challenges(section, snapshot)
    add_forwarded(section, listener)
    add_loop_guard(section, snapshot.loop_mark)
    add_request_refusals(section)
    add_host_rules(section, listener)
    add_client_rules(section, listener)
    if own is not None:
        add_recognition(section)
    _add_client_facts(section, listener)
    add_lookup(section, asked)
    _add_counters(section)
    used = rules_followed(load_balancer)
    path = partial(map_path, load_balancer.id)
    add_lookup_of_rules(section, used, path)
    _add_action(section, load_balancer, maps, lambda is_split: add_sides(section, used, path, is_split))
    if not listener.default_pool_id:
        no_action = ("if", "!", "{", "var(txn.action)", "-m", "found", "}")
        plain = ("content-type", "text/plain; charset=utf-8", "string", Value(NO_ROUTE))
        section.add("http-request", "return", "status", "404", *plain, *no_action)
    add_cache(section, listener, path)
    _add_rewrites(section, load_balancer)
    drop_mark(section, listener)
    add_policies(section, used, own, listener, path)
    tell_servers(section, listener)
    if own is not None:
        _add_overflow(section, snapshot, own, listener)
    add_pages(section, used, path)
    section.add("use_backend", REDIRECT_BACKEND, "if", *IS_REDIRECT)
    found = ("if", "{", "var(txn.action)", "-m", "found", "}")
    section.add("use_backend", "%[var(txn.action)]", *found)


def _add_overflow(section: Section, snapshot: Snapshot, own: Region, listener: Listener) -> None:
    """A default pool has its limit as any other; what is no pool is looked up in vain and goes on.

    These are the last rules: the first of them that lets a request stay ends them.
    """
    rules = Rules(section, **needs_of(snapshot))
    if listener.default_pool_id:
        rules.let("action", f"str({listener.default_pool_id})", no(found("action")))
    add_home_rules(rules, snapshot, own)
    add_release(rules, own)


def add_probe(section: Section, listener_id: str) -> None:
    """The agent asks each port who answers; the path is secret, the answer comes before any routing.

    Probes are counted under the listener's id among the routes, so that the agent can take them off its numbers.
    """
    probed = ("if", "{", "path", Expanded("/${SPILLWAY_PROBE}"), "}")
    request_log.add_silence(section, *probed)
    section.add("http-request", "track-sc0", f"str({listener_id})", "table", ROUTE_TABLE, *probed)
    section.add(
        "http-request", "return", "status", "200",
        "hdr", "x-spillway-generation", Expanded("${SPILLWAY_GENERATION}"),
        "hdr", "x-spillway-digest", Expanded("${SPILLWAY_DIGEST}"),
        *probed,
    )  # fmt: skip


def _add_client_facts(section: Section, listener: Listener) -> None:
    """What clients claim about themselves is dropped; what we know is said."""
    section.add("http-request", "del-header", "Forwarded")
    section.add("http-request", "del-header", "x-spillway-", "-m", "beg")
    request_log.add_ids(section)
    add_traces(section, listener)
    add_address_headers(section, listener)
    section.add("http-request", "set-header", "X-Forwarded-Host", "%[req.fhdr(host)]")


def _add_counters(section: Section) -> None:
    """Requests and errors per route."""
    section.add("http-request", "track-sc0", "var(txn.route)", "table", ROUTE_TABLE)
    add_latency(section)


def add_latency(section: Section) -> None:
    """How long each pool took: elapsed milliseconds → bucket → `pool-17/100`. Other regions measure what they serve."""
    section.add("http-request", "set-var(txn.start)", "date(0,ms)")
    elapsed = f"date(0,ms),sub(txn.start),map_int({LATENCY_MAP},-1)"
    section.add("http-response", "set-var(txn.bucket)", elapsed)
    # A request that was spread or queued counts as such already, in the same place.
    here = ("if", "{", "be_name", "-m", "beg", "pool-", "}", *no(found("flow")))
    section.add("http-response", "track-sc1", "be_name,concat(/,txn.bucket)", "table", LATENCY_TABLE, *here)
    section.add("http-response", "sc-inc-gpc0(1)", *here)


def _add_action(
    section: Section, load_balancer: LoadBalancer, maps: RouteMaps, add_sides: Callable[[tuple[str, ...]], None]
) -> None:
    """`txn.action` from the map; of a split, the pool whose threshold is the first above a drawn number."""
    action = f"var(txn.route),map_str({map_path(load_balancer.id, 'action')})"
    section.add("http-request", "set-var(txn.action)", action)
    is_split = ("{", "var(txn.action)", "-m", "beg", SPLIT, "}")
    section.add("http-request", "set-var(txn.drawn)", "rand(1000)", "if", *is_split)
    add_sides(is_split)
    for position in range(1, _positions(maps) + 1):
        above = ("{", f"var(txn.action),field({2 * position},|),sub(txn.drawn)", "-m", "int", "gt", "0", "}")
        drawn = ("if", "{", "var(txn.drawn)", "-m", "found", "}")
        section.add(
            "http-request", "set-var(txn.action)", f"var(txn.action),field({2 * position + 1},|)", *drawn, *above
        )


def _positions(maps: RouteMaps) -> int:
    """How many pools a split may have before a reload: 2, 4 or 8, whichever the widest split of today needs."""
    widest = max((action.count("|") // 2 for action in maps.action.values() if action.startswith(SPLIT)), default=2)
    return next(count for count in (2, 4, MAX_POOLS) if widest <= count)


def _add_rewrites(section: Section, load_balancer: LoadBalancer) -> None:
    """One rule per length of prefix, since HAProxy 2.6 cuts by constant lengths only."""
    lengths = sorted({rewrite_length(route) for route in load_balancer.routes if route.prefix_rewrite is not None})
    if not lengths:
        return
    lookup = f"var(txn.route),map_str({map_path(load_balancer.id, 'rewrite')})"
    section.add("http-request", "set-var(txn.rewrite)", lookup)
    section.add("http-request", "del-header", "X-Forwarded-Prefix")
    for length in lengths:
        has_length = ("if", "{", "var(txn.rewrite)", "-m", "beg", f"{length}|", "}")
        new_path = f"%[var(txn.rewrite),field(2,|)]%[path,bytes({length})]"
        section.add("http-request", "set-var-fmt(txn.new_path)", new_path, *has_length)
        if length:  # what the servers do not see of the path
            section.add("http-request", "set-header", "X-Forwarded-Prefix", f"%[path,bytes(0,{length})]", *has_length)
    section.add("http-request", "set-path", "/", "if", "{", "var(txn.new_path)", "-m", "len", "0", "}")
    section.add(
        "http-request", "set-path", "%[var(txn.new_path)]", "if", "{", "var(txn.new_path)", "-m", "len", "gt", "0", "}"
    )
