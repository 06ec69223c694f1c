"""Listeners as target proxies and global forwarding rules, with their addresses and certificates.

| listener | resources |
|---|---|
| http | URL map, `google_compute_target_http_proxy`, forwarding rule |
| https | the same with `google_compute_target_https_proxy`, its certificates and the stack's TLS policy |
| tcp | `google_compute_target_tcp_proxy` to the pool's backend service, forwarding rule |

Listeners without a static IP share one address of their load balancer: each forwarding rule alone would get another.
A certificate cannot be changed at Google, so its name carries a digest of the chain and the new one comes before the
old one goes. The private key is a variable and never part of the document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from apps.compiler.model.shared import Certificate, Listener, LoadBalancer, Protocol
from apps.compiler.model.stack import AddressKind, StackSnapshot
from apps.compiler.targets.terraform.expressions import key_variable, variable
from apps.compiler.targets.terraform.google.resources import (
    SCHEME,
    Resource,
    google_name,
    id_of,
    labels,
    resource,
    service_of,
    stack_resource,
)
from apps.compiler.targets.terraform.google.url_map import url_map
from apps.compiler.targets.terraform.listener_options import default_first, is_tls13_alone
from apps.compiler.targets.terraform.pem import parts_of

ADDRESS = "google_compute_global_address"
CERTIFICATE = "google_compute_ssl_certificate"
TLS = "tls"
TLS13 = "tls13"


def load_balancer_resources(snapshot: StackSnapshot, load_balancer: LoadBalancer) -> Iterator[Resource]:
    """All of one load balancer but the pools behind it."""
    if any(listener.address is None for listener in load_balancer.listeners):
        yield _address(snapshot, load_balancer.id, load_balancer.account, protected=False)
    for listener in load_balancer.listeners:
        yield from _listener(snapshot, load_balancer, listener)


def address_resources(snapshot: StackSnapshot) -> Iterator[Resource]:
    """The static IPs of the stack, bound or free."""
    for address in snapshot.addresses:
        if address.kind is AddressKind.GOOGLE:
            yield _address(snapshot, address.id, address.account, protected=address.protected)


def tls_policy(snapshot: StackSnapshot) -> Resource:
    """The protocols and ciphers of our own nodes: TLS 1.2 with forward secrecy and AEAD, and TLS 1.3."""
    body = {"profile": "RESTRICTED", "min_tls_version": "TLS_1_2"}
    return stack_resource("google_compute_ssl_policy", snapshot.id, TLS, body)


def tls13_policy(snapshot: StackSnapshot) -> Resource:
    """TLS 1.3 alone, for listeners that want no other."""
    body = {"profile": "RESTRICTED", "min_tls_version": "TLS_1_3"}
    return stack_resource("google_compute_ssl_policy", snapshot.id, TLS13, body)


def certificate_resource(snapshot: StackSnapshot, certificate: Certificate) -> Resource:
    """A certificate chain with its key."""
    parts = parts_of(certificate.pem)
    chain = parts.body + parts.chain
    digest = hashlib.sha256(chain.encode()).hexdigest()[:8]
    body = {
        "name": google_name(snapshot.id, certificate.id, digest),
        "certificate": chain,
        "private_key": variable(key_variable(certificate.id)),
        "lifecycle": {"create_before_destroy": True},
    }
    return resource(CERTIFICATE, snapshot.id, certificate.id, body)


def address_of(load_balancer: LoadBalancer, listener: Listener) -> str:
    """The object whose address the listener has: a static IP, else the load balancer."""
    return listener.address or load_balancer.id


def _address(snapshot: StackSnapshot, object_id: str, account: str, *, protected: bool) -> Resource:
    body: dict[str, Any] = {"labels": labels(snapshot.id, object_id, account), "address_type": "EXTERNAL"}
    if protected:
        body["lifecycle"] = {"prevent_destroy": True}
    return resource(ADDRESS, snapshot.id, object_id, body)


def _listener(snapshot: StackSnapshot, load_balancer: LoadBalancer, listener: Listener) -> Iterator[Resource]:
    """Its URL map where it has one, its proxy, its forwarding rule."""
    if listener.protocol is not Protocol.TCP:
        yield url_map(snapshot.id, load_balancer, listener)
    proxy = _proxy(snapshot, listener)
    yield proxy
    rule = {
        "target": id_of(proxy.kind, listener.id),
        "ip_address": id_of(ADDRESS, address_of(load_balancer, listener)),
        "ip_protocol": "TCP",
        "port_range": str(listener.port),
        "load_balancing_scheme": SCHEME,
        "labels": labels(snapshot.id, listener.id, load_balancer.account),
    }
    yield resource("google_compute_global_forwarding_rule", snapshot.id, listener.id, rule)


def _proxy(snapshot: StackSnapshot, listener: Listener) -> Resource:
    if listener.protocol is Protocol.TCP:
        body: dict[str, Any] = {"backend_service": service_of(listener.default_pool_id or "")}
        return resource("google_compute_target_tcp_proxy", snapshot.id, listener.id, body)
    body = {"url_map": id_of("google_compute_url_map", listener.id)}
    if listener.protocol is Protocol.HTTP:
        return resource("google_compute_target_http_proxy", snapshot.id, listener.id, body)
    body["ssl_certificates"] = [id_of(CERTIFICATE, each) for each in default_first(listener)]
    body["ssl_policy"] = id_of("google_compute_ssl_policy", TLS13 if is_tls13_alone(listener) else TLS)
    if listener.tls is not None and listener.tls.http3:
        body["quic_override"] = "ENABLE"
    return resource("google_compute_target_https_proxy", snapshot.id, listener.id, body)
