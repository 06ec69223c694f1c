"""Small stacks at Google for tests: builders with defaults, a setup with everything, and hypothesis strategies."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from apps.compiler.model.shared import (
    Balance,
    Certificate,
    FixedResponse,
    HealthCheck,
    Limit,
    LimitKind,
    LimitScope,
    LoadBalancer,
    PathKind,
    Protocol,
    Redirect,
    Route,
    ServerState,
    ValueCondition,
    ValueMatch,
    WeightedPool,
)
from apps.compiler.model.stack import (
    AddressKind,
    Cloud,
    CloudAddress,
    CloudBackend,
    CloudPool,
    CloudRecord,
    CloudZone,
    Network,
    RecordType,
    StackSnapshot,
)
from tests.pure.compiler_fixtures import front, listener, route, server

NETWORK = Network(
    vpc="projects/acme-net/global/networks/main",
    zones=(("europe", "europe-west3-a"), ("america", "us-east4-b")),
)
# A certificate and a key that no clock and no random number has touched: documents of golden files are compared.
CHAIN = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nMC4C\n-----END PRIVATE KEY-----\n"


def cloud_pool(number: int, **fields: Any) -> CloudPool:
    """An http pool with one server in Europe."""
    backend = CloudBackend(f"bkd-{number}", "europe", (server(number),))
    defaults: dict[str, Any] = {"account": "acme", "protocol": Protocol.HTTP, "backends": (backend,)}
    return CloudPool(**{"id": f"pool-{number}", "label": f"pool-{number}-label"} | defaults | fields)


def stack(*fronts: LoadBalancer, **fields: Any) -> StackSnapshot:
    """A stack at Google with pool-1 unless told otherwise."""
    defaults: dict[str, Any] = {"project": "acme-prod", "network": NETWORK, "pools": (cloud_pool(1),)}
    return StackSnapshot(
        **{"id": "stk-3", "label": "google", "cloud": Cloud.GOOGLE, "cloud_region": "global", "load_balancers": fronts}
        | defaults
        | fields
    )


def everything() -> StackSnapshot:
    """A stack that uses all that Google can do for us."""
    return stack(
        _shop(),
        front(listeners=(listener(9, protocol=Protocol.TCP, port=5432, default_pool_id="pool-3"),), number=2),
        pools=(_two_regions(), cloud_pool(2, balance=Balance.SOURCE), _database()),
        certificates=(Certificate("crt-1", "acme/shop", "acme", CHAIN + KEY, ("shop.example.com",)),),
        addresses=(
            CloudAddress("ip-4", "shop", "ops", AddressKind.GOOGLE, load_balancer_id="lb-1"),
            CloudAddress("ip-5", "spare", "ops", AddressKind.GOOGLE, protected=False),
        ),
        zones=(_zone(),),
    )


def _shop() -> LoadBalancer:
    canary = ValueCondition("X-Canary", ValueMatch.EQUALS, "yes")
    second = (WeightedPool("pool-2", 1),)
    return front(
        route(1, "shop.example.com", "/"),
        route(2, "shop.example.com", "/api", pools=(WeightedPool("pool-1", 90), WeightedPool("pool-2", 10))),
        route(3, "shop.example.com", "/api", headers=(canary,), pools=second, mirror_pool_id="pool-1"),
        route(4, "shop.example.com", "/old", redirect=Redirect(308, host="www.example.com", keep_query=False)),
        route(5, "shop.example.com", "/v1", prefix_rewrite="/v2", methods=("GET", "POST")),
        route(6, "shop.example.com", "/health", path_kind=PathKind.EXACT, fixed_response=FixedResponse(204)),
        route(7, "*.example.com", "/", redirect=Redirect(302, host="shop.example.com", path="/")),
        route(8, "*.example.com", "/in", headers=(ValueCondition("X-Beta", ValueMatch.ABSENT),)),
        route(9, "bare.example.com", "/only", headers=(ValueCondition("X-Beta", ValueMatch.PRESENT),)),
        listeners=(
            listener(1, port=80),
            listener(2, protocol=Protocol.HTTPS, port=443, address="ip-4", certificate_ids=("crt-1",)),
            listener(3, port=8080, default_pool_id="pool-1"),
        ),
    )


def _two_regions() -> CloudPool:
    check = HealthCheck(path="/health", host="shop.example.com", interval_ms=5000)
    per_server = Limit(LimitKind.RATE, 50, LimitScope.SERVER)
    drained = server(12, state=ServerState.DRAIN, address="192.0.2.12")
    return cloud_pool(
        1,
        backends=(
            CloudBackend("bkd-1", "europe", (server(1), drained), Limit(LimitKind.RATE, 200)),
            CloudBackend("bkd-11", "america", (server(11, address="198.51.100.11"),), per_server, 0.5),
        ),
        health_check=check,
    )


def _database() -> CloudPool:
    limit = Limit(LimitKind.CONNECTIONS, 300)
    backend = CloudBackend("bkd-3", "europe", (server(3, port=5432),), limit)
    return cloud_pool(3, protocol=Protocol.TCP, backends=(backend,), balance=Balance.ROUNDROBIN)


def _zone() -> CloudZone:
    return CloudZone(
        "zone-1", "example.com", "ops", "example.com",
        (
            CloudRecord("rec-1", "@", RecordType.A, 300, address_id="ip-4"),
            CloudRecord("rec-2", "shop", RecordType.A, 60, load_balancer_id="lb-1"),
            CloudRecord("rec-3", "www", RecordType.CNAME, 300, ("shop.example.com.",)),
            CloudRecord("rec-4", "@", RecordType.TXT, 300, ('"v=spf1 \\"${quoted}\\" -all" "and more"',)),
            CloudRecord("rec-5", "@", RecordType.MX, 300, ("10 mail.example.com.",)),
        ),
    )  # fmt: skip


_HOSTS = ("a.example.com", "b.a.example.com", "*.a.example.com", "c.b.a.example.com", "*.b.a.example.com")
_PATHS = ("/", "/api", "/api/v2", "/api/v2/deep", "/apiary")
_CONDITIONS = (
    ValueCondition("X-Canary", ValueMatch.EQUALS, "yes"),
    ValueCondition("X-Canary", ValueMatch.PRESENT),
    ValueCondition("X-Beta", ValueMatch.ABSENT),
)
_REDIRECTS = st.builds(
    Redirect,
    st.sampled_from((301, 302, 303, 307, 308)),
    scheme=st.sampled_from((None, "https")),
    host=st.sampled_from((None, "www.example.com")),
    path=st.sampled_from(("/new", "/new/")),
    keep_query=st.booleans(),
)


@st.composite
def _routes(draw: st.DrawFn, number: int) -> Route:
    """One route; where it leads to a pool, the pool has the route's own number, so that an answer tells the route."""
    kind = draw(st.sampled_from((PathKind.EXACT, PathKind.PREFIX)))
    where: dict[str, Any] = {
        "path_kind": kind,
        "methods": draw(st.sampled_from([(), (), ("GET",), ("POST", "PUT")])),
        "headers": tuple(draw(st.lists(st.sampled_from(_CONDITIONS), max_size=2, unique=True))),
    }
    match draw(st.sampled_from(("pool", "pool", "split", "redirect", "status"))):
        case "redirect":
            where["redirect"] = draw(_REDIRECTS)
        case "status":
            where["fixed_response"] = FixedResponse(draw(st.sampled_from((200, 204, 403, 503))))
        case "split":
            where["pools"] = (WeightedPool(f"pool-{number}", draw(st.integers(0, 1000))), WeightedPool("pool-100", 7))
        case _:
            where["pools"] = (WeightedPool(f"pool-{number}", draw(st.integers(1, 1000))),)
    if "pools" in where and kind is PathKind.PREFIX:
        where["prefix_rewrite"] = draw(st.sampled_from((None, None, "/", "/new", "/new/er")))
    if "pools" in where:
        where["mirror_pool_id"] = draw(st.sampled_from((None, None, "pool-99")))
    return route(number, draw(st.sampled_from(_HOSTS)), draw(st.sampled_from(_PATHS)), **where)


@st.composite
def google_fronts(draw: st.DrawFn) -> LoadBalancer:
    """A load balancer with an http and an https listener and up to 14 routes, crowded on few hosts and paths."""
    routes = [draw(_routes(number)) for number in range(1, draw(st.integers(1, 14)) + 1)]
    default = draw(st.sampled_from((None, None, "pool-99")))
    https = listener(2, protocol=Protocol.HTTPS, port=443, certificate_ids=("crt-1",), default_pool_id=default)
    return front(*routes, listeners=(listener(1, port=80, default_pool_id=default), https))


@st.composite
def google_stacks(draw: st.DrawFn) -> StackSnapshot:
    """A stack of one such load balancer, with pools of every kind of limit, scaler, balance and check."""
    load_balancer = draw(google_fronts())
    numbers = range(1, len(load_balancer.routes) + 1)
    pools = tuple(draw(_pools(number)) for number in (*numbers, 99, 100))
    certificate = Certificate("crt-1", "acme/shop", "acme", CHAIN + KEY, ("a.example.com",))
    address = CloudAddress("ip-4", "shop", "ops", AddressKind.GOOGLE, protected=draw(st.booleans()))
    zones = draw(st.sampled_from(((), (_zone(),))))
    return stack(load_balancer, pools=pools, certificates=(certificate,), addresses=(address,), zones=zones)


@st.composite
def _pools(draw: st.DrawFn, number: int) -> CloudPool:
    limits = st.builds(Limit, st.sampled_from(LimitKind), st.integers(1, 9999), st.sampled_from(LimitScope))
    backends = tuple(
        CloudBackend(
            f"bkd-{2 * number + index}",
            region,
            tuple(
                server(10 * number + index, state=draw(st.sampled_from(ServerState)), weight=draw(st.integers(0, 256)))
                for index in range(draw(st.integers(0, 3)))
            ),
            draw(limits),
            draw(st.sampled_from((0.0, 0.1, 0.25, 1.0))),
        )
        for index, region in enumerate(draw(st.sampled_from((("europe",), ("america", "europe"), ()))))
    )
    check = draw(st.sampled_from((None, HealthCheck(), HealthCheck(path="/up?x=1", interval_ms=500, rise=50))))
    protocol = draw(st.sampled_from((Protocol.HTTP, Protocol.HTTP, Protocol.TCP)))
    return cloud_pool(
        number, backends=backends, health_check=check, balance=draw(st.sampled_from(Balance)), protocol=protocol
    )
