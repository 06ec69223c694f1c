"""Fixed limits that the API of Google enforces when somebody has approved already, asked before anybody is.

https://cloud.google.com/load-balancing/docs/quotas#url_maps: 1 000 host rules and path matchers in a URL map, 1 000
predicates in a path matcher. https://cloud.google.com/load-balancing/docs/ssl-certificates: keys of global self-managed
certificates are RSA-2048 or ECDSA P-256.

Whatever came last is refused: what is served already stays, whoever adds a route next.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from apps.compiler.model.shared import Certificate, LoadBalancer, Route
from apps.compiler.portability.incompatibilities import Incompatibility, Target, refused
from apps.compiler.routing import number_of
from apps.compiler.targets.terraform.google.url_map import pattern_of, predicates_of, routes_by_matcher
from apps.compiler.targets.terraform.pem import parts_of

MOST_HOSTS = 1000
MOST_PREDICATES = 1000
_refused = partial(refused, Target.GOOGLE)


def unsupported_in_certificate(certificate: Certificate) -> Iterator[Incompatibility]:
    """Which key it has."""
    key = _key_of(certificate)
    if key:
        yield _refused(
            certificate, "key_type", "key",
            f"Google Cloud accepts only certificates with RSA-2048 or ECDSA P-256 keys; this one has {key}.",
            "Use a certificate with one of these keys.",
        )  # fmt: skip


def _key_of(certificate: Certificate) -> str:
    """What kind of key a certificate has that Google does not take; empty for the others."""
    try:
        key = x509.load_pem_x509_certificate(parts_of(certificate.pem).body.encode()).public_key()
    except (ValueError, IndexError):
        return ""  # that it cannot be read is said elsewhere
    if isinstance(key, rsa.RSAPublicKey):
        return "" if key.key_size == 2048 else f"RSA-{key.key_size}"
    if isinstance(key, ec.EllipticCurvePublicKey):
        return "" if isinstance(key.curve, ec.SECP256R1) else f"ECDSA {key.curve.name}"
    return "another kind of key"


def unsupported_in_url_maps(load_balancer: LoadBalancer) -> Iterator[Incompatibility]:
    """Hosts, and how much there is to compare for one of them."""
    matchers = routes_by_matcher(load_balancer)
    oldest = {host: min(number_of(each.id) for each in own) for host, own in _own(load_balancer).items()}
    late = set(sorted(matchers, key=lambda host: oldest[host])[MOST_HOSTS:])
    for route in load_balancer.routes:
        if pattern_of(route.hostname) in late:
            yield _refused(
                route, "too_many_hosts", "hostname",
                f"A URL map can have at most {MOST_HOSTS} hosts; this load balancer has {len(matchers)}.",
                "Put the route on another load balancer, or use a wildcard.",
            )  # fmt: skip
    too_much = {each.id: each for routes in matchers.values() for each in _beyond(routes)}
    for route in too_much.values():
        yield _refused(
            route, "too_many_predicates", "hostname",
            f"Google Cloud compares at most {MOST_PREDICATES} paths and headers for one host; a prefix counts twice, "
            "and each method, header and query parameter counts again.",
            "Combine routes of the host, or check conditions on the servers.",
        )  # fmt: skip


def _own(load_balancer: LoadBalancer) -> dict[str, list[Route]]:
    found: dict[str, list[Route]] = {}
    for route in load_balancer.routes:
        found.setdefault(pattern_of(route.hostname), []).append(route)
    return found


def _beyond(routes: list[Route]) -> Iterator[Route]:
    """The youngest ones, from the one with which it is too much."""
    sum_ = 0
    for route in sorted(routes, key=lambda each: number_of(each.id)):
        sum_ += predicates_of(route)
        if sum_ > MOST_PREDICATES:
            yield route
