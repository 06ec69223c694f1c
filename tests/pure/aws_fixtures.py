"""Small stacks at AWS for tests: builders with defaults, and a hypothesis strategy for stacks of every kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from apps.compiler.model.shared import (
    Balance,
    Certificate,
    HealthCheck,
    Limit,
    LimitKind,
    Listener,
    LoadBalancer,
    Protocol,
    Redirect,
    Route,
    Server,
    ServerState,
    WeightedPool,
    WhenFull,
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
from tests.pure.compiler_fixtures import certificate_pem, fronts, listener, route

NETWORK = Network("vpc-1", ("subnet-a", "subnet-b"), log_bucket="logs")
HOME, AWAY, FAR = "eu", "us", "asia"


def server(number: int, **fields: Any) -> Server:
    """A server on a private address."""
    defaults: dict[str, Any] = {"label": f"server-{number}", "address": f"10.0.0.{number % 250}", "port": 8000 + number}
    return Server(**{"id": f"srv-{number}"} | defaults | fields)


def backend(number: int, region: str = HOME, **fields: Any) -> CloudBackend:
    """A pool's part in a region, with one server of its own number."""
    return CloudBackend(**{"id": f"bkd-{number}", "region": region, "servers": (server(number),)} | fields)


def pool(number: int, *backends: CloudBackend, **fields: Any) -> CloudPool:
    """An http pool with one backend of its own number unless told otherwise."""
    defaults: dict[str, Any] = {"label": f"pool-{number}-label", "account": "acme", "protocol": Protocol.HTTP}
    return CloudPool(**{"id": f"pool-{number}", "backends": backends or (backend(number),)} | defaults | fields)


def front(*routes: Route, listeners: tuple[Listener, ...] | None = None, number: int = 1) -> LoadBalancer:
    """A load balancer that listens on port 80 unless told otherwise."""
    own = (listener(number, port=80),) if listeners is None else listeners
    return LoadBalancer(f"lb-{number}", f"front-{number}", "acme", own, routes)


def stack(*load_balancers: LoadBalancer, pools: tuple[CloudPool, ...] | None = None, **fields: Any) -> StackSnapshot:
    """A stack in Frankfurt with pool-1 unless told otherwise."""
    defaults: dict[str, Any] = {"region": HOME, "network": NETWORK}
    return StackSnapshot(
        "stk-3", "frankfurt", Cloud.AWS, "eu-central-1", load_balancers=load_balancers,
        pools=(pool(1),) if pools is None else pools, **defaults | fields,
    )  # fmt: skip


def certificate(number: int, *names: str) -> Certificate:
    """A certificate for these names."""
    hosts = names or ("a.example",)
    return Certificate(f"crt-{number}", f"certificate-{number}", "acme", certificate_pem(*hosts), hosts)


def address(number: int, kind: AddressKind = AddressKind.ELASTIC, **fields: Any) -> CloudAddress:
    """A static IP of operators."""
    return CloudAddress(f"ip-{number}", f"address-{number}", "ops", kind, **fields)


_STATES = st.sampled_from(list(ServerState))
_CHECKS = st.sampled_from(
    [
        None, HealthCheck(), HealthCheck("/healthz?full=1", interval_ms=10_000, timeout_ms=3000, rise=2, fall=2),
        HealthCheck("/x", method="HEAD", host="a.example", interval_ms=600_000, timeout_ms=400_000, rise=1, fall=50),
        HealthCheck("/teapot", expect_status=500),
    ]
)  # fmt: skip


@st.composite
def pools(draw: st.DrawFn) -> tuple[CloudPool, ...]:
    """Five pools of http, https and tcp in up to three regions; ids are unique among all."""
    found = []
    for number in range(1, 6):
        regions = draw(st.integers(0, 3))
        found.append(
            pool(
                number,
                protocol=Protocol.TCP if number == 5 else draw(st.sampled_from([Protocol.HTTP, Protocol.HTTPS])),
                balance=draw(st.sampled_from(Balance)),
                health_check=draw(_CHECKS),
                server_timeout_ms=draw(st.sampled_from([500, 30_000, 3_600_000])),
                when_full=draw(st.sampled_from(WhenFull)),
                server_keepalive_ms=draw(st.sampled_from([None, 1000])),
            )
        )
        found[-1] = _in_regions(draw, found[-1], number, regions)
    return tuple(found)


def _in_regions(draw: st.DrawFn, one: CloudPool, number: int, regions: int) -> CloudPool:
    backends = []
    for index, region in enumerate((HOME, AWAY, FAR)[:regions]):
        key = number * 10 + index
        servers = tuple(
            server(key * 10 + each, state=draw(_STATES), weight=draw(st.sampled_from([0, 50, 100])))
            for each in range(draw(st.integers(0, 2)))
        )
        limit = draw(st.sampled_from([Limit(), Limit(LimitKind.RATE, 100)]))
        scaler, weight = draw(st.sampled_from([0.0, 1.0])), draw(st.sampled_from([0, 1, 333, 1000]))
        backends.append(CloudBackend(f"bkd-{key}", region, servers, limit, scaler, weight))
    return replace(one, backends=tuple(backends))


@st.composite
def stacks(draw: st.DrawFn) -> StackSnapshot:
    """Stacks with listeners of all kinds on all kinds of addresses, crowded routes, zones and records."""
    addresses = (
        address(1, protected=draw(st.booleans())), address(2, AddressKind.ACCELERATOR), address(3),
        address(4, AddressKind.VIP),
    )  # fmt: skip
    static_ips = st.sampled_from([None, "ip-1", "ip-2", "ip-3", "ip-4", "ip-9"])
    listeners = (
        listener(1, port=80, address=draw(static_ips), default_pool_id=draw(st.sampled_from([None, "pool-1"]))),
        listener(2, port=443, protocol=Protocol.HTTPS, address=draw(static_ips), certificate_ids=("crt-1", "crt-2")),
        listener(3, port=draw(st.sampled_from([80, 5432])), protocol=Protocol.TCP, address=draw(static_ips),
                 default_pool_id="pool-5"),
    )  # fmt: skip
    crowded = draw(fronts()).routes
    first = front(*crowded, *_acting_routes(draw), listeners=draw(st.sampled_from([listeners, listeners[:1], ()])))
    second = front(number=7, listeners=(listener(70, port=80, address=draw(static_ips)),))
    return stack(
        first, second,
        pools=draw(pools()),
        certificates=(certificate(1), certificate(2, "*.a.example")),
        addresses=addresses,
        zones=(CloudZone("zone-1", "zone", "ops", "a.example", _records(draw)),),
        network=draw(st.sampled_from(_NETWORKS)),
        endpoint_url=draw(st.sampled_from(["", "http://127.0.0.1:5000"])),
    )  # fmt: skip


_BOTH_VERSIONS = Network("vpc-1", ("b", "a"), ("192.0.2.0/24", "2001:db8::/32", "::/0"), vpc_networks=("10.0.0.0/30",))
_NETWORKS = (NETWORK, NETWORK, _BOTH_VERSIONS, _BOTH_VERSIONS, Network("vpc-1", ("a",)), Network())


def _acting_routes(draw: st.DrawFn) -> tuple[Route, ...]:
    weights = st.integers(0, 1000)
    shares = tuple(WeightedPool(f"pool-{number}", draw(weights)) for number in (1, 2, 3))
    redirect = Redirect(
        draw(st.sampled_from([301, 302, 308])), draw(st.sampled_from([None, "https", "http"])), path="/x"
    )
    return (
        route(101, "split.a.example", pools=shares),
        route(102, "*.split.a.example", "/old", redirect=redirect),
        route(103, "rewritten.a.example", "/v1", prefix_rewrite="/v2"),
        route(104, "d.a.example", "/" + "x" * draw(st.sampled_from([10, 126, 127, 300]))),
    )


_TEXTS = st.one_of(st.text(st.characters(codec="ascii"), max_size=300), st.just('"v=1" "b"'), st.just('"${x}"'))


def _records(draw: st.DrawFn) -> tuple[CloudRecord, ...]:
    kinds = st.sampled_from([RecordType.A, RecordType.AAAA, RecordType.CNAME])
    return (
        CloudRecord("rec-1", "@", draw(kinds), 300, load_balancer_id=draw(st.sampled_from(["lb-1", "lb-7", "lb-9"]))),
        CloudRecord("rec-2", "static", draw(kinds), 60, address_id=draw(st.sampled_from(["ip-1", "ip-2", "ip-4"]))),
        CloudRecord("rec-3", "text", RecordType.TXT, 60, (draw(_TEXTS),)),
        CloudRecord("rec-4", "@", RecordType.NS, 60, ("ns.example.net.",)),
    )
