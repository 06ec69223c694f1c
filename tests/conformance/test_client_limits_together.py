"""Four nodes count a client's requests together: of traffic spread 6:3:1:1 the limit's part is admitted."""

from __future__ import annotations

import re
import socket
import threading
from collections import Counter

import pytest

from apps.compiler.model.listener_options import ConnectionLimit
from apps.compiler.model.policy import ClientLimit, Rules
from apps.compiler.targets.haproxy.policies.client_held import table
from tests.bench.client_limits import CLIENT, LIMIT, Result, measure, measure_bytes, measure_connections
from tests.e2e.overflow_env import Node, OverflowEnv, RegionSetup, regions, wait_until
from tests.e2e.region_servers import HOST

pytestmark = pytest.mark.e2e

GOAL = 0.02


@pytest.mark.exhaustive  # three quarters of a minute of traffic
def test_four_nodes_admit_what_one_limit_says() -> None:
    found = measure(Rules(client_limit=ClientLimit(requests=LIMIT)))
    assert abs(found.error) <= GOAL, found


@pytest.mark.exhaustive
def test_nodes_that_only_look_at_their_own_counts_admit_too_many() -> None:
    """The negative control: without the lines that add other nodes' counts."""
    found: Result = measure(Rules(client_limit=ClientLimit(requests=LIMIT)), without=",add(txn.counted)")
    assert found.error > 10 * GOAL, found


@pytest.mark.exhaustive
def test_four_nodes_send_as_many_bytes_as_one_limit_says() -> None:
    found = measure_bytes(10_000)
    assert abs(found.error) <= GOAL, found


@pytest.mark.exhaustive
def test_nodes_that_only_look_at_their_own_bytes_send_too_many() -> None:
    """The negative control: without the lines that add other nodes' bytes."""
    found = measure_bytes(10_000, without=",add(txn.counted)")
    assert found.error > 10 * GOAL, found


@pytest.mark.exhaustive
def test_four_nodes_let_as_many_connections_in_as_one_limit_says() -> None:
    found = measure_connections()
    assert abs(found.error) <= GOAL, found


@pytest.mark.exhaustive
def test_nodes_that_only_look_at_their_own_connections_let_too_many_in() -> None:
    """The negative control: without the lines that add other nodes' connections."""
    found = measure_connections(without=",add(sess.counted)")
    assert found.error > 10 * GOAL, found


@pytest.mark.exhaustive  # nodes that have just been started learn from each other for some ten seconds
def test_four_nodes_bound_together_what_a_client_has_under_way() -> None:
    """Eight requests at once on four nodes; five may be under way, and there is room again when they have ended."""
    rules = Rules(client_limit=ClientLimit(in_flight=5))
    with regions(RegionSetup(nodes=4, held=True), rules=rules) as env:
        env.wait_learned()
        for _ in range(2):
            statuses = at_once(env, 8)
            assert (statuses[200], statuses[429]) == (5, 3)
            wait_until(lambda: all(node.ask().status == 200 for node in env.nodes[0]), "there is room again")
            wait_until(lambda: agreed(env), "all nodes know of it")


@pytest.mark.exhaustive
def test_four_nodes_let_in_together_as_many_connections_of_a_client_as_it_may_open() -> None:
    """Eight connections on four nodes by turns; five may be opened in the minute."""
    said = ConnectionLimit(connections=5, per="minute")
    with regions(RegionSetup(nodes=4), client_limit=said) as env:
        env.wait_learned()
        found: list[bool] = []
        for node in env.nodes[0] * 2:
            found.append(is_let_in(node))
            wait_until(lambda: counted_by_all(env) == sum(found), "all nodes know of it")
    assert found == [True] * 5 + [False] * 3


def is_let_in(node: Node) -> bool:
    """Whether a new connection from another address than the node's gets an answer."""
    try:
        with socket.create_connection(("127.0.0.1", node.port), timeout=60, source_address=(CLIENT, 0)) as client:
            client.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            return client.recv(1) != b""
    except ConnectionError:
        return False


def counted_by_all(env: OverflowEnv) -> int:
    """How many connections all nodes know of; -1 while they do not agree."""
    tables = [node.command("show table st_clients_minute") for node in env.nodes[0]]
    sums = {sum(map(int, re.findall(r"gpc0=([0-9]+)", table))) for table in tables}
    return sums.pop() if len(sums) == 1 else -1


PUBLISHED = re.compile(r"key=(\S+) .*gpt0=([0-9]+)")


def agreed(env: OverflowEnv) -> bool:
    """Whether all nodes believe the same of what each of them has under way."""
    tables = [node.command(f"show table {table('second')}") for node in env.nodes[0]]
    return len({frozenset(PUBLISHED.findall(table)) for table in tables}) == 1


def at_once(env: OverflowEnv, count: int) -> Counter[int]:
    """The statuses of requests that are sent by turns to all nodes, each when the one before waits or is answered."""
    found: list[int] = []
    nodes = env.nodes[0]

    def one(node: Node) -> None:
        found.append(node.ask().status)

    with env.gate.closed():
        threads = [threading.Thread(target=one, args=(nodes[number % len(nodes)],)) for number in range(count)]
        for number, thread in enumerate(threads, 1):
            thread.start()
            wait_until(lambda so_far=number: env.gate.waiting + len(found) == so_far, "it waits or is answered")
            wait_until(lambda: agreed(env), "all nodes know of it")
    for thread in threads:
        thread.join()
    return Counter(found)
