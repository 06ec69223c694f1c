"""The keep-alive race: servers close idle connections just when a request goes out on one; none of it is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.targets.haproxy import pools
from apps.compiler.targets.haproxy.servers.connections import purge_interval_ms
from tests.e2e.closing_server import ClosingServer, ask
from tests.e2e.rendered_proxy import running
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

REPEATABLE = ("GET", "HEAD", "PUT", "DELETE")
NEAR_A_SECOND = (0.9, 1.1)


def env(port: int) -> Snapshot:
    """A pool with that server, of which nothing is known."""
    pools = (pool(1, servers=(server(1, address="127.0.0.1", port=port),)),)
    return snapshot(front(route(1)), pools=pools, local_development=True)


async def answers(directory: Path, methods: tuple[str, ...], clients: int, times: int) -> dict[str, Counter[str]]:
    """What so many clients of each method got, all at once, with pauses in which the server closes connections."""
    async with ClosingServer().running() as closing:
        with running(compile_snapshot(env(closing.port)).output, directory) as proxy:
            asked = [ask(proxy.ports["lst-1"], each, times, NEAR_A_SECOND) for each in methods for _ in range(clients)]
            found = await asyncio.gather(*asked)
    return {each: sum(found[index * clients : (index + 1) * clients], Counter()) for index, each in enumerate(methods)}


async def statuses_and_readings(directory: Path, method: str, dies: int) -> tuple[Counter[str], int]:
    """One request to a server that dies on the first ones it reads: what the client got, how often it was read."""
    async with ClosingServer(dies).running() as closing:
        with running(compile_snapshot(env(closing.port)).output, directory) as proxy:
            got = await ask(proxy.ports["lst-1"], method, 1)
    return got, closing.read[method]


def test_no_request_is_lost_to_a_server_that_closes_idle_connections_after_a_second(tmp_path: Path) -> None:
    found = asyncio.run(answers(tmp_path, (*REPEATABLE, "POST"), clients=20, times=4))
    assert found == {method: Counter({"200": 80}) for method in (*REPEATABLE, "POST")}


@pytest.mark.exhaustive  # repetition is taken away by a planted defect as well
def test_without_repetition_and_short_idling_some_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "add_repetition", lambda *_: None)
    found = asyncio.run(answers(tmp_path, ("GET", "POST"), clients=20, times=4))
    assert all(counts["200"] < 80 for counts in found.values())


@pytest.mark.parametrize("method", REPEATABLE)
def test_what_may_be_repeated_is_answered_though_its_server_died_on_it(tmp_path: Path, method: str) -> None:
    assert asyncio.run(statuses_and_readings(tmp_path, method, dies=1)) == (Counter({"200": 1}), 2)


def test_what_may_not_is_read_once_whatever_happens(tmp_path: Path) -> None:
    got, read = asyncio.run(statuses_and_readings(tmp_path, "POST", dies=1))
    assert read == 1
    assert got in (Counter({"502": 1}), Counter({"lost": 1}))


@pytest.mark.parametrize(("stated", "interval"), [(None, 62), (1000, 62), (75_000, 4687), (600_000, 5000), (5, 10)])
def test_idle_connections_go_before_the_server_would_close_them(stated: int | None, interval: int) -> None:
    assert purge_interval_ms(pool(1, server_keepalive_ms=stated)) == interval
