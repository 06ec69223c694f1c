"""What policies cost a request, with and without following any.

`python -m tests.bench.policies_cost [--rounds 4] [--seconds 5]`: wrk against one node each, by turns. Each node has the
same pool behind 20 hosts:

* *no policies*: the load balancer has none;
* *beside policies*: it has 20, which all other routes follow, and the route that is asked for follows none;
* *headers*, *CORS*, *limit per client*, *token* (RS256): the route that is asked for follows one of the 20;
* *sticky*: its pool knows clients by their cookie;
* *all*: all of it.

CPU per request is the node's own: other work on the machine hardly moves it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.authentication import Jwt, JwtKey
from apps.compiler.model.fleet import RegionNode, Snapshot
from apps.compiler.model.policy import ClientLimit, Cors, HeaderChanges, ResponseHeaders, Rules, SecurityHeaders
from apps.compiler.model.servers import Persistence
from apps.compiler.model.shared import LoadBalancer
from apps.compiler.policies import rule_set
from tests.bench.backends import instant_backends
from tests.bench.overflow_cost import read, wrk
from tests.bench.overflow_env import Node, PoolPlan, host, plain, rate, running_node, snapshot_of
from tests.bench.tables import facts, table
from tests.ports import spare_port

POLICIES = 20
WARM_SECONDS = 1
GOAL = 1.15
NONE, BESIDE = "no policies", "beside policies"
ISSUER, AUDIENCE = "https://login.example", "shop"


@dataclass(frozen=True, slots=True)
class Way:
    """What the route that is asked for follows, whether its pool knows clients, and what a client sends."""

    rules: Rules | None = None
    sticky: bool = False
    sent: tuple[str, ...] = ()


def headers(number: int) -> Rules:
    """Two headers to the server, one less to the client, two for browsers."""
    return Rules(
        request_headers=HeaderChanges(set=(("X-Team", f"team-{number}"), ("X-Client", "{client_address}"))),
        response_headers=ResponseHeaders(remove=("Server",)),
        security_headers=SecurityHeaders(hsts_seconds=60 + number, no_sniff=True),
    )


def cors(number: int) -> Rules:
    """One origin that may read responses."""
    return Rules(cors=Cors((f"https://app-{number}.example",), ("GET", "PUT"), credentials=True))


def both(number: int) -> Rules:
    """Headers and CORS."""
    return replace(headers(number), cors=cors(number).cors)


def ways() -> dict[str, Way]:
    """Each way to ask; the key of the token is new each time."""
    key = rsa.generate_private_key(65537, 2048)
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    claims = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 86_400, "sub": "anna"}
    bearer = f"Authorization: Bearer {jwt.encode(claims, key, 'RS256')}"
    asks = Jwt(ISSUER, AUDIENCE, (JwtKey("RS256", pem),), claims=(("sub", "X-User"),))
    limit = ClientLimit(requests=1_000_000)
    return {
        NONE: Way(),
        BESIDE: Way(),
        "headers": Way(headers(0)),
        "CORS": Way(cors(0)),
        "limit per client": Way(Rules(client_limit=limit)),
        "token": Way(Rules(jwt=asks), sent=(bearer,)),
        "sticky": Way(sticky=True),
        "all": Way(replace(both(0), client_limit=limit, jwt=asks), sticky=True, sent=(bearer,)),
    }


def followed(front: LoadBalancer, asked: Rules | None) -> LoadBalancer:
    """The first route follows `asked`; every other route one of POLICIES policies that say something else each."""
    sets = tuple(rule_set(both(number)) for number in range(1, POLICIES + 1))
    first = () if asked is None else (rule_set(asked),)
    routes = [replace(route, rule_set=sets[index % POLICIES].id) for index, route in enumerate(front.routes)]
    routes[0] = replace(routes[0], rule_set=first[0].id if first else "")
    return replace(front, routes=tuple(routes), rule_sets=(*sets, *first))


def wanted(bare: Snapshot, name: str, way: Way) -> Snapshot:
    """What the node of this way runs."""
    first, *rest = bare.pools
    if way.sticky:
        first = replace(first, persistence=Persistence())
    front = bare.load_balancers[0] if name == NONE else followed(bare.load_balancers[0], way.rules)
    return replace(bare, pools=(first, *rest), load_balancers=(front,))


@dataclass(frozen=True, slots=True)
class Cost:
    """One go of wrk: requests/s, and the node's CPU in µs per request."""

    way: str
    per_s: float
    cpu_us: float


def cost(name: str, node: Node, sent: Sequence[str], seconds: int) -> Cost:
    """Ask for so long, after a second that does not count; raises ValueError when some requests failed."""
    wrk(node, 1, WARM_SECONDS, sent)
    before = node.cpu_seconds()
    per_s, _, count = read(wrk(node, 1, seconds, sent))
    return Cost(name, per_s, (node.cpu_seconds() - before) * 1e6 / count)


def known_by(node: Node, way: Way) -> tuple[str, ...]:
    """The header with the cookie that a first answer sets, where the pool knows clients."""
    if not way.sticky:
        return ()
    sent = dict(line.split(": ", 1) for line in way.sent)
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=10)
    try:
        connection.request("GET", "/", headers={"Host": host(1), **sent})
        return (f"Cookie: {connection.getresponse().headers['Set-Cookie'].partition(';')[0]}",)
    finally:
        connection.close()


def measure(rounds: int, seconds: int, directory: Path) -> list[Cost]:
    """All ways by turns, so that the machine's moods fall on each of them."""
    with ExitStack() as stack:
        (port,) = stack.enter_context(instant_backends(directory, ("rgn-1",)))
        reach = RegionNode("node-0", "n0", "127.0.0.1", 0, 0, 0)
        bare = plain(snapshot_of([PoolPlan((rate(1),), ((port,),))] * (POLICIES + 1), (), 0))
        order = []
        for name, way in ways().items():
            compilation = compile_snapshot(wanted(bare, name, way))
            if compilation.left_out:
                raise RuntimeError(f"{name}: {compilation.left_out}")
            node = Node("node-0", "rgn-1", directory / name.replace(" ", "-"), spare_port(), reach)
            stack.enter_context(running_node(compilation.output, node))
            order.append((name, node, (*way.sent, *known_by(node, way))))
        return [cost(*each, seconds) for turn in range(rounds) for each in (order if turn % 2 else order[::-1])]


def main() -> int:
    """Print a table and one line of JSON; 1 when a route without policies pays more than the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=5)
    given = parser.parse_args()
    print(facts(), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        costs = measure(given.rounds, given.seconds, Path(folder))
    names = list(dict.fromkeys(each.way for each in costs))[::-1]
    cpu = {name: statistics.median(each.cpu_us for each in costs if each.way == name) for name in names}
    speed = {name: statistics.median(each.per_s for each in costs if each.way == name) for name in names}
    rows = [
        [
            name,
            f"{cpu[name]:.1f}",
            f"{cpu[name] / cpu[NONE]:.2f}",
            f"{speed[name]:.0f}",
            f"{speed[name] / speed[NONE]:.2f}",
        ]
        for name in names
    ]
    print(table(("route", "node's CPU µs/request", "ratio", "requests/s", "ratio"), rows))
    ratio = cpu[BESIDE] / cpu[NONE]
    print(f"A route without policies beside {POLICIES}: {ratio:.2f} × the CPU, goal {GOAL}.")
    print(json.dumps({"cpu_us": cpu, "per_s": speed}))
    return int(ratio > GOAL)


if __name__ == "__main__":
    sys.exit(main())
