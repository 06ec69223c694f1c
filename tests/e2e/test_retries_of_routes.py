"""How often a request is sent again: as its route says by each HAProxy that can count so, else as its pool says."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.capabilities import ROUTE_RETRIES
from apps.compiler.model.policy import Retries, Rules
from apps.compiler.model.servers import Retries as PoolRetries
from apps.compiler.policies import rule_set
from tests.conformance.plain_servers import answering, read_until
from tests.conformance.slow_haproxy import BINARIES, version_of
from tests.e2e.rendered_proxy import running
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

OF_POOL = PoolRetries(attempts=3)
ROUTES = {
    "/as-the-pool": Retries(),
    "/never": Retries(attempts=0),
    "/once": Retries(attempts=1),
    "/more": Retries(attempts=5),
    "/not-sent-again": Retries(after_sending=False, attempts=5),
}


class HangingUp:
    """A server that closes each connection once it got a request, and remembers their paths."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, connection: socket.socket) -> None:
        if read := read_until(connection, b"\r\n\r\n"):
            self.paths.append(read.split(b" ")[1].decode())


@pytest.mark.parametrize("binary", BINARIES)
def test_a_request_is_sent_again_as_often_as_its_route_says(binary: str, tmp_path: Path) -> None:
    sets = {path: rule_set(Rules(retries=said)) for path, said in ROUTES.items()}
    routes = [route(number, path=path, rule_set=sets[path].id) for number, path in enumerate(sets, 1)]
    served = replace(front(*routes), rule_sets=tuple(sets.values()))
    with answering(hanging_up := HangingUp()) as port:
        pools = (pool(1, servers=(server(1, address="127.0.0.1", port=port),), retries=OF_POOL),)
        compilation = compile_snapshot(snapshot(served, pools=pools, local_development=True))
        assert compilation.left_out == ()
        with running(compilation.output, tmp_path, program=binary) as proxy:
            statuses = [proxy.ask("lst-1", "a.example", path).status for path in ROUTES]
    own = version_of(binary) >= ROUTE_RETRIES.since
    wanted = {"/as-the-pool": 4, "/never": 1 if own else 4, "/once": 2 if own else 4, "/more": 6 if own else 4}
    assert statuses == [502] * len(ROUTES)
    assert {path: hanging_up.paths.count(path) for path in ROUTES} == wanted | {"/not-sent-again": 1}
