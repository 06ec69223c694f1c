"""An examined snapshot becomes the files of a bundle, with what verification must find in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apps.compiler.bundle import Bind
from apps.compiler.model.fleet import Region, RegionNode, Snapshot
from apps.compiler.model.shared import Certificate, Finding, Listener, LoadBalancer, Protocol
from apps.compiler.routing import number_of
from apps.compiler.targets.haproxy import settings
from apps.compiler.targets.haproxy.bypass_tokens import bypass_map
from apps.compiler.targets.haproxy.frontends import (
    add_latency,
    add_listener,
    add_probe,
)
from apps.compiler.targets.haproxy.listeners.acme_challenges import challenge_map
from apps.compiler.targets.haproxy.listeners.cache import add_caches
from apps.compiler.targets.haproxy.listeners.client_address import address_maps
from apps.compiler.targets.haproxy.listeners.client_certificates import (
    client_files,
    client_maps,
    list_lines,
    resumes_sessions,
)
from apps.compiler.targets.haproxy.listeners.connection_routes import sni_maps
from apps.compiler.targets.haproxy.listeners.same_certificate import names_maps
from apps.compiler.targets.haproxy.listeners.tls import add_quic_secret, certificate_list_path, takes_http3
from apps.compiler.targets.haproxy.listeners.tracing import sampler_maps
from apps.compiler.targets.haproxy.maps import Entries, RouteMaps, asked_at, map_content, route_maps, served_at
from apps.compiler.targets.haproxy.names import refused_map
from apps.compiler.targets.haproxy.overflow import admission, advance
from apps.compiler.targets.haproxy.overflow.ceilings import add_ceilings, add_gate_ceilings, ceiling_map, defaults_of
from apps.compiler.targets.haproxy.overflow.kept_clients import cookie_map
from apps.compiler.targets.haproxy.overflow.limits import limit_maps
from apps.compiler.targets.haproxy.overflow.local_traffic import (
    KEY_MAP,
    add_gates,
    add_peers,
    counts_in_advance,
    needs_queue,
    other_regions,
    own_region,
)
from apps.compiler.targets.haproxy.overflow.remote_traffic import (
    HTTP_LISTENER,
    TCP_LISTENER,
    add_http_remote_traffic,
    add_tcp_remote_traffic,
)
from apps.compiler.targets.haproxy.policies import bandwidth, client_tables
from apps.compiler.targets.haproxy.policies.forwarding import Adders, kept_for_pools
from apps.compiler.targets.haproxy.policies.identity.access import countries_map, network_maps
from apps.compiler.targets.haproxy.policies.identity.authentication import add_userlists, key_maps
from apps.compiler.targets.haproxy.policies.identity.jwt import key_files
from apps.compiler.targets.haproxy.pools import add_fixed_response, add_pool, add_queue
from apps.compiler.targets.haproxy.servers.own_region import OwnRegion
from apps.compiler.targets.haproxy.servers.tls import (
    add_certificates_shown,
    authority_files,
    certificate_path,
    certificates_shown,
)
from apps.compiler.targets.haproxy.static_ips.anycast import BIRD_FILE, render_anycast
from apps.compiler.targets.haproxy.static_ips.vrrp import VRRP_FILE, render_vrrp
from apps.compiler.targets.haproxy.verify import address_verification, config_verification
from apps.compiler.targets.haproxy.writer import Document, Section

CONFIG = "haproxy.cfg"
CertificateList = tuple[tuple[str, ...], ...]
"""The words of each line."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """The files, and beside them the model they were written from, to verify them by."""

    files: Mapping[str, bytes]
    binds: tuple[Bind, ...]
    line_owners: Mapping[int, str]
    document: Document
    maps: Mapping[str, Entries]
    certificate_lists: Mapping[str, CertificateList]
    snapshot: Snapshot


def render(snapshot: Snapshot) -> Rendering:
    """Write every file. The snapshot must have passed the checks; order never depends on that of the input."""
    fronts = sorted(snapshot.load_balancers, key=lambda front: number_of(front.id))
    served = {each.id: each for front in fronts for each in (*_served(front), *_asked(front))}
    of_routes = {name: route_maps(each) for name, each in served.items()}
    document = _document(snapshot, fronts, of_routes)
    text, owners = document.render()
    maps = _maps(snapshot, of_routes)
    lists = _certificate_lists(snapshot)
    files = {CONFIG: text.encode("ascii")}
    files |= {path: map_content(entries) for path, entries in maps.items()}
    files |= {path: _list_content(wanted) for path, wanted in lists.items()}
    files |= {certificate_path(item.id): item.pem.encode("ascii") for item in _used_certificates(snapshot)}
    files |= authority_files(snapshot.pools) | client_files(_listeners(snapshot)) | _address_files(snapshot)
    files |= {path: pem for front in fronts for path, pem in key_files(front).items()}
    return Rendering(files, _binds(snapshot), owners, document, maps, lists, snapshot)


def _served(front: LoadBalancer) -> list[LoadBalancer]:
    """The load balancer as its http listeners serve it: once for all of them, unless a route is of one scheme."""
    served = {each.id: each for each in (served_at(front, listener) for listener in _of_http(front))}
    return [served[name] for name in sorted(served)] or [front]


def _asked(front: LoadBalancer) -> list[LoadBalancer]:
    """Those whose maps are asked for a route."""
    asked = {each.id: each for listener in _of_http(front) for each, _ in asked_at(front, listener)}
    return [asked[name] for name in sorted(asked)] or [front]


def _of_http(front: LoadBalancer) -> list[Listener]:
    return [each for each in front.listeners if each.protocol is not Protocol.TCP]


def _address_files(snapshot: Snapshot) -> dict[str, bytes]:
    """Configurations of keepalived and BIRD, where there are addresses that they move."""
    texts = {
        VRRP_FILE: render_vrrp(snapshot.addresses, _nodes_by_id(snapshot)),
        BIRD_FILE: render_anycast(snapshot.addresses),
    }
    return {path: text.encode("ascii") for path, text in texts.items() if text}


def _nodes_by_id(snapshot: Snapshot) -> dict[str, RegionNode]:
    return {node.id: node for region in snapshot.regions for node in region.nodes}


def check(rendering: Rendering) -> list[Finding]:
    """Config verification of everything that was rendered; empty when the files say what was meant."""
    findings = config_verification.check_config(rendering.files[CONFIG].decode("latin-1"), rendering.document.shapes())
    for path, entries in rendering.maps.items():
        findings += config_verification.check_map(path, rendering.files[path], entries)
    for path, wanted in rendering.certificate_lists.items():
        findings += config_verification.check_certificate_list(path, rendering.files[path], wanted)
    return findings + _check_addresses(rendering)


def _check_addresses(rendering: Rendering) -> list[Finding]:
    snapshot = rendering.snapshot
    texts = {path: rendering.files.get(path, b"").decode("latin-1") for path in (VRRP_FILE, BIRD_FILE)}
    nodes = _nodes_by_id(snapshot)
    findings = address_verification.check_vrrp(texts[VRRP_FILE], VRRP_FILE, snapshot.addresses, nodes)
    return findings + address_verification.check_anycast(texts[BIRD_FILE], BIRD_FILE, snapshot.addresses)


def _document(snapshot: Snapshot, fronts: list[LoadBalancer], maps: Mapping[str, RouteMaps]) -> Document:
    document = Document()
    settings.add_global(document, snapshot.node_settings, resumes_sessions=resumes_sessions(_listeners(snapshot)))
    add_quic_secret(document, snapshot)
    settings.add_resolvers(document)
    settings.add_defaults(document)
    add_userlists(document, fronts)
    settings.add_tables(document)
    add_caches(document, fronts)
    settings.add_redirects(document, told=any(each.has_forwarders for each in _listeners(snapshot)))
    add_ceilings(document, snapshot)
    own = own_region(snapshot)
    if own is not None:
        _add_overflow(document, snapshot, own)
    client_tables.add_tables(document, snapshot)
    bandwidth.add_table(document, fronts)
    for front in fronts:
        for listener in sorted(front.listeners, key=lambda listener: number_of(listener.id)):
            add_listener(document, snapshot, front, listener, maps)
    add_certificates_shown(document, snapshot.pools)
    _add_pools(document, snapshot, own, kept_for_pools(fronts))
    for front in fronts:
        for route in sorted(front.routes, key=lambda route: route.id):
            if route.fixed_response is not None:
                add_fixed_response(document, route, route.fixed_response)
    return document


def _add_pools(document: Document, snapshot: Snapshot, own: Region | None, kept: Mapping[str, Adders]) -> None:
    region = OwnRegion(snapshot.region_id, len(own.nodes) if own is not None else 0)
    for pool in sorted(snapshot.pools, key=lambda pool: number_of(pool.id)):
        defaults = defaults_of(pool, snapshot)
        sections = [add_pool(document, pool, defaults, region)]
        if own is not None and needs_queue(pool):
            sections.append(add_queue(document, pool, defaults, region))
        for add in kept.get(pool.id, ()):
            for section in sections:
                add(section)


def _add_overflow(document: Document, snapshot: Snapshot, own: Region) -> None:
    """Everything that fleets need to count together and to take each other's overflow."""
    add_peers(document, snapshot)
    admission.add_tables(document, flight=admission.needs_of(snapshot)["flight"])
    if counts_in_advance(snapshot):
        advance.add_table(document)
    if not other_regions(snapshot):
        return
    add_http_remote_traffic(document, snapshot, own, _around_remote_traffic)
    if _has_tcp(snapshot):
        add_tcp_remote_traffic(document, snapshot, own)
    add_gates(document, snapshot)
    add_gate_ceilings(document, snapshot)


def _around_remote_traffic(section: Section) -> None:
    add_probe(section, HTTP_LISTENER)
    add_latency(section)


def _has_tcp(snapshot: Snapshot) -> bool:
    return any(pool.protocol is Protocol.TCP for pool in snapshot.pools)


def _maps(snapshot: Snapshot, of_routes: Mapping[str, RouteMaps]) -> dict[str, Entries]:
    maps = {settings.LATENCY_MAP: settings.latency_entries()} | refused_map(snapshot) | challenge_map(snapshot)
    if own_region(snapshot) is not None:
        maps |= limit_maps(snapshot) | ceiling_map(snapshot) | bypass_map(snapshot) | cookie_map(snapshot)
        maps |= {KEY_MAP: {"key": snapshot.overflow_key}}
    maps |= names_maps(snapshot) | countries_map(snapshot.load_balancers)
    for front in snapshot.load_balancers:
        maps |= address_maps(front) | sni_maps(front) | client_maps(front) | sampler_maps(front)
        for each in _asked(front):
            maps |= of_routes[each.id].keys(each.id)
        for each in _served(front):
            maps |= of_routes[each.id].of_routes(each.id) | network_maps(each) | key_maps(each)
    return maps


def _listeners(snapshot: Snapshot) -> list[Listener]:
    listeners = (listener for front in snapshot.load_balancers for listener in front.listeners)
    return sorted(listeners, key=lambda listener: number_of(listener.id))


def _binds(snapshot: Snapshot) -> tuple[Bind, ...]:
    binds = [
        Bind(listener.id, listener.address, listener.port, listener.protocol.value, takes_http3(listener))
        for listener in _listeners(snapshot)
    ]
    if own_region(snapshot) is not None and other_regions(snapshot):
        binds.append(Bind(HTTP_LISTENER, None, snapshot.overflow_ports.http, Protocol.HTTP.value))
        if _has_tcp(snapshot):
            binds.append(Bind(TCP_LISTENER, None, snapshot.overflow_ports.tcp, Protocol.TCP.value))
    return tuple(binds)


def nodes_of(snapshot: Snapshot) -> dict[str, str]:
    """What each node of the region calls itself → its id, for the manifest."""
    own = own_region(snapshot)
    return {node.name: node.id for node in own.nodes} if own else {}


def addresses_of(snapshot: Snapshot) -> dict[str, str]:
    """Each address that moves → how, for the manifest."""
    return {each.address: each.kind.value for each in sorted(snapshot.addresses, key=lambda each: number_of(each.id))}


def _certificate_lists(snapshot: Snapshot) -> dict[str, CertificateList]:
    """Per listener that ends TLS: certificate files and the host names they may serve; no certificate claims more.

    Who asks for none of these names is shown the first one, unless the listener is strict.
    """
    known = {certificate.id: certificate for certificate in snapshot.certificates}
    return {
        certificate_list_path(listener.id): tuple(
            list_lines(listener, {certificate_path(key): known[key].hostnames for key in _default_first(listener)})
        )
        for listener in _listeners(snapshot)
        if listener.speaks_tls
    }


def _default_first(listener: Listener) -> list[str]:
    default = listener.default_certificate_id
    return sorted(set(listener.certificate_ids), key=lambda key: (key != default, number_of(key)))


def _used_certificates(snapshot: Snapshot) -> list[Certificate]:
    used = {key for listener in _listeners(snapshot) for key in listener.certificate_ids}
    used |= set(certificates_shown(snapshot.pools))
    return [certificate for certificate in snapshot.certificates if certificate.id in used]


def _list_content(wanted: CertificateList) -> bytes:
    return "".join(" ".join(line) + "\n" for line in wanted).encode("ascii")
