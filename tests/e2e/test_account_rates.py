"""An account that asks as often as it can, on a real HAProxy: its rate is held, and the others are served."""

from __future__ import annotations

import re
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from apps.compiler.model.fleet import AccountShare, RegionShare
from apps.compiler.model.shared import Limit, LimitKind, Protocol, WhenFull
from tests.e2e.overflow_env import POOL, OverflowEnv, RegionSetup, rate, regions
from tests.e2e.region_servers import HOST
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy
from tests.e2e.test_ceilings import node_env, wait_until

pytestmark = pytest.mark.e2e

RPS = 300
SHARES = (AccountShare("acc-1", "acme", 100, RPS), AccountShare("acc-2", "globex", 100, RPS))
MUCH = 3000
# Tests connect anew for each, which takes a busy machine a while.
FEW_RPS = 60
MANY_RPS = 1_000_000
FEW_SHARES = (AccountShare("acc-1", "acme", 100, FEW_RPS), SHARES[1])
# Of a burst out of the quiet a pool gets its own part a few times over, until HAProxy has seen a second of it.
BURST = 2 * RPS
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
ONE_MORE = 20


@contextmanager
def node(directory: Path, shares: tuple[AccountShare, ...] = SHARES, **fields: Any) -> Iterator[RenderedProxy]:
    """A node whose servers answer at once."""
    with node_env(directory, shares, **fields) as shown:
        shown.gate.open()
        yield shown.proxy


def flood(port: int, count: int, host: str = HOST) -> Counter[int]:
    """So many requests on one connection, a few at a time and as fast as they are answered; by status."""
    found: Counter[int] = Counter()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        while found.total() < count:
            client.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() * ONE_MORE)
            before, text = found.total(), b""
            while len(STATUS.findall(text)) < ONE_MORE or not text.endswith((b"\r\n\r\n", b".\n")):
                text += client.recv(65536)
            found += Counter(map(int, STATUS.findall(text)))
            assert found.total() - before == ONE_MORE
    return found


def reasons(flows: str) -> set[str]:
    """Keys of a table of flows."""
    return set(re.findall(r"key=(\S+)", flows))


def test_an_account_that_asks_without_end_is_refused_and_the_other_is_answered(tmp_path: Path) -> None:
    with node(tmp_path) as proxy:
        begun = time.monotonic()
        found = flood(proxy.ports["lst-1"], MUCH)
        most = BURST + RPS * (time.monotonic() - begun)
        assert found.keys() == {200, 429}
        assert found[200] <= most
        assert {proxy.ask("lst-1", "site.example", "/").status for _ in range(RPS // 2)} == {200}


def test_without_a_rate_nothing_is_refused(tmp_path: Path) -> None:
    with node(tmp_path, shares=()) as proxy:
        assert flood(proxy.ports["lst-1"], MUCH) == {200: MUCH}


@pytest.mark.parametrize(
    "fields",
    [
        {"limit": Limit(LimitKind.RATE, 1_000_000)},
        {"elsewhere": (RegionShare("rgn-2"),)},
        {"limit": Limit(LimitKind.RATE, 1), "when_full": WhenFull.SPREAD},
        {"limit": Limit(LimitKind.RATE, 1), "when_full": WhenFull.QUEUE},
    ],
    ids=["limit", "elsewhere", "spread", "queue"],
)
def test_pools_with_limits_have_the_same_rate(tmp_path: Path, fields: dict[str, Any]) -> None:
    with node(tmp_path, **fields) as proxy:
        begun = time.monotonic()
        found = flood(proxy.ports["lst-1"], MUCH)
        assert found[429] == MUCH - found[200]
        assert found[200] <= BURST + RPS * (time.monotonic() - begun)


def test_a_refusal_says_why_when_to_come_back_and_is_counted(tmp_path: Path) -> None:
    with node(tmp_path) as proxy:
        refused = flood(proxy.ports["lst-1"], MUCH)[429]
        flows = proxy.command("show table st_flow")
        assert reasons(flows) == {"pool-1/refuse/rgn-1/ceiling-rate"}
        assert f"gpc0={refused}" in flows
        wait_until(lambda: flood(proxy.ports["lst-1"], 10 * RPS)[429] > 0)
        answer = next(each for _ in range(MUCH) if (each := proxy.ask("lst-1", HOST, "/")).status == 429)
        assert answer.headers["retry-after"] == "1"
        assert "more per second than its share" in answer.body


def test_another_pool_of_the_account_has_its_own_part(tmp_path: Path) -> None:
    with node(tmp_path) as proxy:
        flood(proxy.ports["lst-1"], MUCH)
        assert {proxy.ask("lst-1", "second.example", "/").status for _ in range(RPS // 7)} == {200}


def test_what_is_too_fast_is_not_counted_as_under_way(tmp_path: Path) -> None:
    with node(tmp_path) as proxy:
        flood(proxy.ports["lst-1"], MUCH)
        assert reasons(proxy.command("show table st_accounts")) == {"acc-1/rate"}


def connected(port: int, count: int) -> int:
    """Of so many connections that ask once, how many are refused before an answer."""
    refused = 0
    for _ in range(count):
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
            try:
                client.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
                refused += not client.recv(1024)
            except ConnectionError:
                refused += 1
    return refused


def test_new_connections_have_the_same_rate(tmp_path: Path) -> None:
    with node(tmp_path, FEW_SHARES) as proxy:
        wait_until(lambda: connected(proxy.ports["lst-2"], MUCH // 10) > 0)
        assert "pool-3/refuse/rgn-1/ceiling-rate" in reasons(proxy.command("show table st_flow"))
        assert {proxy.ask("lst-1", "site.example", "/").status for _ in range(RPS // 2)} == {200}


@pytest.mark.exhaustive  # the control of requests is asked above
def test_without_a_rate_no_connection_is_refused(tmp_path: Path) -> None:
    with node(tmp_path, shares=()) as proxy:
        assert connected(proxy.ports["lst-2"], MUCH // 3) == 0


def sent_away(shown: OverflowEnv, reason: str) -> None:
    """Ask in the first region until something is refused for this reason."""
    port, key = shown.nodes[0][0].port, f"{POOL}/refuse/rgn-1/{reason}"
    wait_until(lambda: flood(port, MUCH // 10).total() > 0 and shown.nodes[0][0].flows().get(key, 0) > 0)


def test_what_goes_to_another_region_counts_where_it_came_in() -> None:
    with regions(RegionSetup(rate(1)), RegionSetup(), rps=(RPS, MANY_RPS)) as shown:
        sent_away(shown, "ceiling-rate-out")


def test_what_comes_from_another_region_counts_where_it_is_served() -> None:
    with regions(RegionSetup(rate(1)), RegionSetup(), rps=(MANY_RPS, RPS), when_full=WhenFull.REFUSE) as shown:
        sent_away(shown, "full")
        assert "acc-1/rate" in reasons(shown.nodes[1][0].command("show table st_accounts"))


@pytest.mark.exhaustive  # the control of requests is asked above
def test_without_rates_another_region_takes_all_of_it() -> None:
    with regions(RegionSetup(rate(1)), RegionSetup(), when_full=WhenFull.REFUSE) as shown:
        assert flood(shown.nodes[0][0].port, MUCH) == {200: MUCH}


def test_a_region_that_is_full_is_remembered_though_much_leaves() -> None:
    with regions(
        RegionSetup(rate(1)), RegionSetup(rate(RPS)), rps=(MANY_RPS, MANY_RPS), when_full=WhenFull.REFUSE
    ) as shown:
        home, other = shown.nodes[0][0], shown.nodes[1][0]
        refused = flood(home.port, 2 * MUCH)[503]
        asked = sum(count for key, count in other.flows().items() if "/bounce/" in key)
        assert refused > MUCH
        assert asked < refused // 2


def test_connections_that_leave_have_the_same_rate() -> None:
    with regions(RegionSetup(rate(1)), RegionSetup(), rps=(FEW_RPS, MANY_RPS), protocol=Protocol.TCP) as shown:
        wait_until(lambda: connected(shown.nodes[0][0].port, MUCH // 10) > 0)


@pytest.mark.exhaustive  # the control of requests is asked above
def test_without_a_rate_no_connection_that_leaves_is_refused() -> None:
    with regions(RegionSetup(rate(1)), RegionSetup(), protocol=Protocol.TCP) as shown:
        assert connected(shown.nodes[0][0].port, MUCH // 3) == 0
