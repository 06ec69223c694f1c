"""Small environments for the tests of the compiler: builders with defaults, hypothesis strategies, a PEM."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import strategies as st

from apps.compiler.model.fleet import Pool, Snapshot
from apps.compiler.model.shared import (
    FixedResponse,
    Listener,
    LoadBalancer,
    PathKind,
    Protocol,
    Route,
    Server,
    ValueCondition,
    ValueMatch,
    WeightedPool,
)

HOSTS = ("a.example", "b.a.example", "*.a.example", "c.b.a.example", "*.b.a.example")
PATHS = ("/", "/api", "/api/v2", "/api/v2/deep", "/apiary")
ASKED_HOSTS = (
    "a.example",
    "b.a.example",
    "x.a.example",
    "c.b.a.example",
    "y.b.a.example",
    "other.example",
    "A.Example:80",
)
ASKED_PATHS = ("/", "/api", "/api/", "/api/v2", "/api/v2/deep/er", "/apiary", "/apiary/x", "/ap", "//api", "/API")
ASKED_METHODS = ("GET", "POST")
ASKED_PROTOCOLS = (Protocol.HTTP, Protocol.HTTPS)
ASKED_HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"X-Canary": "yes"},
    {"x-canary": "no"},
    {"X-Canary": "yes", "X-Beta": "1"},
)


def server(number: int, **fields: Any) -> Server:
    """A server on a documentation address."""
    defaults: dict[str, Any] = {"label": f"server-{number}", "address": "192.0.2.10", "port": 8000 + number}
    return Server(**{"id": f"srv-{number}"} | defaults | fields)


def pool(number: int, **fields: Any) -> Pool:
    """An http pool with one server of its own number."""
    defaults: dict[str, Any] = {"account": "acme", "protocol": Protocol.HTTP, "servers": (server(number),)}
    return Pool(**{"id": f"pool-{number}", "label": f"pool-{number}-label"} | defaults | fields)


def route(number: int, hostname: str = "a.example", path: str = "/", **fields: Any) -> Route:
    """A prefix route to pool-1 unless told otherwise."""
    if not fields.keys() & {"pools", "redirect", "fixed_response"}:
        fields["pools"] = (WeightedPool("pool-1", 1),)
    defaults = {"label": f"route-{number}-label", "account": "acme", "path_kind": PathKind.PREFIX}
    return Route(**{"id": f"route-{number}", "hostname": hostname, "path": path} | defaults | fields)


def listener(number: int, **fields: Any) -> Listener:
    """An http listener on 8080 plus its number."""
    defaults: dict[str, Any] = {"label": f"listener-{number}", "protocol": Protocol.HTTP, "port": 8080 + number}
    return Listener(**{"id": f"lst-{number}"} | defaults | fields)


def front(*routes: Route, listeners: tuple[Listener, ...] | None = None, number: int = 1) -> LoadBalancer:
    """A load balancer with one http listener unless told otherwise."""
    own = (listener(number),) if listeners is None else listeners
    return LoadBalancer(f"lb-{number}", f"front-{number}", "acme", own, routes)


def snapshot(*fronts: LoadBalancer, pools: tuple[Pool, ...] | None = None, **fields: Any) -> Snapshot:
    """A fleet with pool-1 unless told otherwise."""
    return Snapshot("fleet-a", "region-a", fronts, (pool(1),) if pools is None else pools, **fields)


_CANARY, _ANY_CANARY, _NO_BETA = (
    ValueCondition("X-Canary", ValueMatch.EQUALS, "yes"),
    ValueCondition("X-Canary", ValueMatch.PRESENT),
    ValueCondition("X-Beta", ValueMatch.ABSENT),
)
_CONDITIONS = ((), (), (_CANARY,), (_ANY_CANARY,), (_NO_BETA,), (_CANARY, _NO_BETA), (_NO_BETA, _ANY_CANARY))


def _crowded_route(number: int, choose: Callable[[Sequence[Any]], Any]) -> Route:
    """A route on one of few hosts and paths that answers with its own id."""
    return route(
        number,
        choose(HOSTS),
        choose(PATHS),
        path_kind=choose((PathKind.EXACT, PathKind.PREFIX)),
        methods=choose([(), (), ("GET",), ("POST", "PUT")]),
        headers=choose(_CONDITIONS),
        scheme=choose([None, None, None, "http", "https"]),
        fixed_response=FixedResponse(200, body=f"route-{number}"),
    )


# What no cloud takes whole: suffixes, any host, patterns, the query, cookies, client networks.
RICH_HOSTS = (*HOSTS, "**.a.example", "**.b.a.example", "**.example", "*")
RICH_PATHS = ("/", "/", "/api", "/api/v2")
PATTERNS = ("/api.*", "/api/v[0-9]+", ".*/deep/.*", "/(api|apiary)(/x)?", "[^a]+")
RICH_ASKED_HOSTS = (*ASKED_HOSTS, "z.y.b.a.example", "v.example", "example", "w.v.u.t.example.")
RICH_ASKED_PATHS = (
    "/",
    "/api",
    "/api/",
    "/api/v2",
    "/api/v2/deep/er",
    "/apiary/x",
    "//api",
    "/other?a=1&b=x",
    "/api?a=2;a=1",
)
RICH_ASKED_HEADERS: tuple[dict[str, str], ...] = (
    {},
    {"X-Canary": "yes-sir", "Cookie": "s=abc; t=1"},
    {"X-Canary": "yes", "X-Beta": "1", "Cookie": 't=""; s=b'},
)
_STARTS = ValueCondition("X-Canary", ValueMatch.PREFIX, "yes")
_PATTERN = ValueCondition("X-Canary", ValueMatch.REGEX, "yes(-[a-z]+)?")
_QUERIES = (
    ValueCondition("a", ValueMatch.EQUALS, "1"),
    ValueCondition("a", ValueMatch.PRESENT),
    ValueCondition("b", ValueMatch.ABSENT),
    ValueCondition("a", ValueMatch.REGEX, "[0-9]"),
    ValueCondition("b", ValueMatch.PREFIX, "x"),
)
_COOKIES = (
    ValueCondition("s", ValueMatch.EQUALS, "abc"),
    ValueCondition("s", ValueMatch.PREFIX, "a"),
    ValueCondition("t", ValueMatch.PRESENT),
    ValueCondition("t", ValueMatch.ABSENT),
    ValueCondition("s", ValueMatch.REGEX, "[a-c]+"),
)


def _rich_route(number: int, choose: Callable[[Sequence[Any]], Any]) -> Route:
    kind = choose((PathKind.EXACT, PathKind.PREFIX, PathKind.PREFIX, PathKind.REGEX))
    return route(
        number,
        choose(RICH_HOSTS),
        choose(PATTERNS if kind is PathKind.REGEX else RICH_PATHS),
        path_kind=kind,
        methods=choose([(), (), (), ("GET",)]),
        headers=choose([(), (), (), (_CANARY,), (_STARTS,), (_PATTERN, _NO_BETA)]),
        query=choose([(), (), (), *((each,) for each in _QUERIES), _QUERIES[1:3]]),
        cookies=choose([(), (), (), *((each,) for each in _COOKIES)]),
        client_networks=choose([(), (), (), ("127.0.0.0/8",), ("10.0.0.0/8", "2001:db8::/32")]),
        fixed_response=FixedResponse(200, body=f"route-{number}"),
    )


@st.composite
def rich_fronts(draw: st.DrawFn) -> LoadBalancer:
    """A load balancer with up to 14 routes that use everything a route can ask for."""
    numbers = range(1, draw(st.integers(1, 14)) + 1)
    return front(*(_rich_route(number, lambda options: draw(st.sampled_from(options))) for number in numbers))


def rich_crowd(seed: int, routes: int = 60) -> LoadBalancer:
    """One such load balancer with so many routes that every rule of the precedence decides somewhere."""
    dice = random.Random(seed)
    return front(*(_rich_route(number, dice.choice) for number in range(1, routes + 1)))


@st.composite
def fronts(draw: st.DrawFn) -> LoadBalancer:
    """A load balancer with up to 14 routes that answer with their own id, crowded on few hosts and paths."""
    numbers = range(1, draw(st.integers(1, 14)) + 1)
    return front(*(_crowded_route(number, lambda options: draw(st.sampled_from(options))) for number in numbers))


def crowd(seed: int) -> LoadBalancer:
    """One such load balancer with so many routes that every rule of the precedence decides somewhere."""
    dice = random.Random(seed)
    return front(*(_crowded_route(number, dice.choice) for number in range(1, 41)))


@cache
def certificate_pem(*names: str, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None = None) -> str:
    """A self-signed certificate for these names and its key."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(start).not_valid_after(start + dt.timedelta(days=7300))
    alternative = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    certificate = builder.add_extension(alternative, critical=False).sign(key, hashes.SHA256())
    form = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return (certificate.public_bytes(serialization.Encoding.PEM) + private).decode()
