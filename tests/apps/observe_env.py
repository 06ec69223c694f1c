"""Two regions with memory nodes, pools of two customers, and counters to put on the nodes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Hostname, Membership
from apps.definitions.models import Backend, Listener, LoadBalancer, Pool, Route, RoutePool, Server
from apps.drivers.proxy.contract import CounterReading, CounterRow, NodeState
from apps.fleet.models import Fleet, Node, Region
from apps.observe.collect.readings import Reading

START = datetime(2025, 11, 21, 12, 0, 0, tzinfo=UTC)


def row(kind: str, object_id: str, requests: int = 0, **values: object) -> CounterRow:
    """Counters with all responses 2xx unless said otherwise."""
    zero = CounterRow(
        kind=kind, object_id=object_id, parent_id="", requests=requests, status_2xx=requests, status_3xx=0,
        status_4xx=0, status_5xx=0, connections=requests, connections_now=0, queue_now=0, bytes_in=0,
        bytes_out=100 * requests, errors=0, latency_ms=0, status="UP" if kind == "server" else "OPEN",
    )  # fmt: skip
    return zero._replace(**values)  # type: ignore[arg-type]  # field names are the caller's


def state(generation: int = 3, **values: object) -> NodeState:
    """A healthy node."""
    healthy = NodeState(generation, "d" * 64, "d" * 64, "2.6.12", "1", "boot-1", 1, True, 1)
    return replace(healthy, **values)  # type: ignore[arg-type]  # field names are the caller's


def reading(
    node: Node, at: datetime, rows: tuple[CounterRow, ...], epoch: str = "one", **latency: dict[int, int]
) -> Reading:
    """What a node answered at `at`; latency by pool id with an underscore: pool_3={100: 4}."""
    buckets = {name.replace("_", "-"): counts for name, counts in latency.items()}
    return Reading(node.pk, at, at, state(), CounterReading(epoch, at.timestamp(), rows, buckets))


@dataclass
class Env:
    """What `make_env` made."""

    operator: Actor
    acme: Actor
    globex: Actor
    regions: list[Region] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    pools: dict[str, Pool] = field(default_factory=dict)
    servers: list[Server] = field(default_factory=list)
    routes: dict[str, Route] = field(default_factory=dict)
    listener: Listener | None = None


def _actor(name: str, kind: str) -> Actor:
    account, _ = Account.objects.get_or_create(name=name, defaults={"title": name.title(), "kind": kind})
    return Actor(f"somebody of {name}", account, Membership.Role.ADMIN)


def make_env() -> Env:
    """us and eu with two nodes each; a pool of acme in both, one of globex in us; a route to each."""
    operator = _actor("operator", Account.Kind.OPERATOR)
    env = Env(operator, _actor("acme", Account.Kind.CUSTOMER), _actor("globex", Account.Kind.CUSTOMER))
    balancer = LoadBalancer.objects.create(account=operator.account, name="main")
    for name in ("eu", "us"):
        region = Region.objects.create(account=operator.account, name=name, title=name.upper())
        fleet = Fleet.objects.create(account=operator.account, region=region, name=f"{name}-fleet")
        balancer.fleets.add(fleet)
        env.regions.append(region)
        for number in (1, 2):
            name_of_node = f"{name}-{number}"
            url = f"memory://observe-{name_of_node}"
            env.nodes.append(Node.objects.create(account=operator.account, fleet=fleet, name=name_of_node, url=url))
    env.listener = Listener.objects.create(
        account=operator.account, load_balancer=balancer, name="http", protocol="http", port=8080
    )
    _add_pool(env, balancer, env.acme, env.regions)
    _add_pool(env, balancer, env.globex, env.regions[1:])
    return env


def _add_pool(env: Env, balancer: LoadBalancer, owner: Actor, regions: list[Region]) -> None:
    name = owner.account.name
    pool = env.pools[name] = Pool.objects.create(account=owner.account, name=f"{name}-web")
    for region in regions:
        backend = Backend.objects.create(
            account=owner.account, pool=pool, region=region, limit_kind="rate", limit_value=10, limit_scope="backend"
        )
        for number in (1, 2):
            env.servers.append(
                Server.objects.create(
                    account=owner.account,
                    backend=backend,
                    name=f"{region.name}-{number}",
                    address="10.0.0.1",
                    port=8000 + number,
                )
            )
    host = Hostname.objects.create(account=owner.account, name=f"{name}.example")
    route = env.routes[name] = Route.objects.create(
        account=owner.account, name=f"{name}-route", load_balancer=balancer, hostname=host, path="/", action="pools"
    )
    RoutePool.objects.create(route=route, pool=pool)
