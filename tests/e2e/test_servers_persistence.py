"""Clients that stay with their server, through real HAProxy: by cookie, header and address, over reload and drain."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Region, RegionNode, Snapshot
from apps.compiler.model.servers import CookieMode, OnOverflow, PersistBy, Persistence, SameSite
from apps.compiler.model.shared import Balance
from tests.e2e.overflow_env import NO_LIMIT, RegionSetup, rate, regions, wait_until
from tests.e2e.rendered_proxy import Answer, RenderedProxy, echo_servers, running
from tests.ports import spare_port
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e
HOST = "a.example"


def fleet_of(ports: list[int], persistence: Persistence | None) -> Snapshot:
    """A pool of so many servers, asked in turns; one node, so that tables have a peer."""
    servers = tuple(server(number, address="127.0.0.1", port=port) for number, port in enumerate(ports, 1))
    one = pool(1, servers=servers, persistence=persistence, balance=Balance.ROUNDROBIN)
    region = Region("rgn-2", "here", (RegionNode("node-1", "n1", "127.0.0.1", spare_port(), 9800, 9900),))
    own = {"region_id": "rgn-2", "regions": (region,), "overflow_key": "7" * 64}
    return snapshot(front(route(1)), pools=(one,), local_development=True, **own)


def proxied(directory: Path, ports: list[int], persistence: Persistence | None) -> Any:
    compilation = compile_snapshot(fleet_of(ports, persistence))
    assert compilation.left_out == ()
    return running(compilation.output, directory)


def ports_of(proxy: RenderedProxy, times: int, headers: dict[str, str]) -> Counter[str]:
    """Which servers answered."""
    return Counter(proxy.ask("lst-1", HOST, "/", headers=headers).headers["x-echo-port"] for _ in range(times))


def cookie_in(answer: Answer) -> str:
    """`name=value` of what was set."""
    return answer.headers["set-cookie"].split(";")[0]


def test_a_client_with_the_cookie_stays_and_the_server_never_sees_it(tmp_path: Path) -> None:
    with (
        echo_servers(3) as ports,
        proxied(tmp_path, ports, Persistence(cookie="SRV", same_site=SameSite.STRICT)) as proxy,
    ):
        first = proxy.ask("lst-1", HOST, "/")
        assert re.fullmatch(r"SRV=2-[123]; path=/; HttpOnly; SameSite=Strict", first.headers["set-cookie"])
        sent = {"Cookie": f"theirs=1; {cookie_in(first)}"}
        assert ports_of(proxy, 12, sent) == {first.headers["x-echo-port"]: 12}
        again = proxy.ask("lst-1", HOST, "/", headers=sent)
        assert "set-cookie" not in again.headers
        assert again.json["headers"]["cookie"] == ["theirs=1"]
        assert len(ports_of(proxy, 12, {})) == 3


def test_without_persistence_it_wanders(tmp_path: Path) -> None:
    with echo_servers(3) as ports, proxied(tmp_path, ports, None) as proxy:
        assert len(ports_of(proxy, 12, {"Cookie": "SRV=2-1", "X-User": "u"})) == 3


def test_a_prefixed_cookie_reaches_the_server_as_it_set_it(tmp_path: Path) -> None:
    with echo_servers(3) as ports:
        persistence = Persistence(cookie="SESSION", mode=CookieMode.PREFIX)
        with proxied(tmp_path, ports, persistence) as proxy:
            for number, port in enumerate(ports, 1):
                sent = {"Cookie": f"SESSION=2-{number}~abc"}
                answer = proxy.ask("lst-1", HOST, "/", headers=sent)
                assert answer.headers["x-echo-port"] == str(port)
                assert answer.json["headers"]["cookie"] == ["SESSION=abc"]


@pytest.mark.parametrize(
    ("persistence", "sent"),
    [
        (Persistence(cookie="SRV"), {"Cookie": "SRV=2-2"}),
        pytest.param(  # it is kept in a table, as by source
            Persistence(PersistBy.HEADER, header="X-User"), {"X-User": "u" * 3000}, marks=pytest.mark.exhaustive
        ),
        (Persistence(PersistBy.SOURCE), {}),
    ],
    ids=["cookie", "header", "source"],
)
def test_a_client_stays_over_a_reload_and_while_its_server_is_drained_and_leaves_one_in_maintenance(
    tmp_path: Path, persistence: Persistence, sent: dict[str, str]
) -> None:
    with echo_servers(3) as ports, proxied(tmp_path, ports, persistence) as proxy:
        (mine,) = ports_of(proxy, 6, sent)
        number = ports.index(int(mine)) + 1
        wait_until(lambda: _has_learned(proxy), "the worker may teach its successor")
        proxy.reload()
        wait_until(lambda: _has_learned(proxy), "the new worker was taught")
        assert ports_of(proxy, 6, sent) == {mine: 6}
        proxy.command(f"set weight pool-1/srv-{number} 0")
        assert ports_of(proxy, 6, sent) == {mine: 6}
        proxy.command(f"set server pool-1/srv-{number} state maint")
        assert mine not in ports_of(proxy, 6, sent)


def _has_learned(proxy: RenderedProxy) -> bool:
    """Whether a worker has what its predecessor knew, five seconds after its start at the latest: two lowest flags."""
    first = next(iter(proxy.command("show peers").splitlines()), "flags=0 ")
    return int(first.partition("flags=")[2].split()[0], 16) & 3 == 3


def test_other_values_of_the_header_are_other_clients(tmp_path: Path) -> None:
    persistence = Persistence(PersistBy.HEADER, header="X-User")
    with echo_servers(3) as ports, proxied(tmp_path, ports, persistence) as proxy:
        each = [ports_of(proxy, 3, {"X-User": f"user-{number}"}) for number in range(9)]
    assert all(len(found) == 1 for found in each)
    assert len({port for found in each for port in found}) == 3


KEEPS = Persistence(cookie="SRV", overflow=OnOverflow.KEEPS)


def regions_of(
    cookie: str, *setups: RegionSetup, persistence: Persistence, **how: Any
) -> tuple[Counter[str], dict[str, int]]:
    """Where ten requests with a cookie are served that arrive in the first region, and what it counted."""
    with regions(*setups, persistence=persistence) as stage:
        node = stage.nodes[0][0]
        found = Counter(node.ask(headers={"Cookie": cookie}).region for _ in range(10))
        return found, node.flows()


def test_a_client_that_is_kept_goes_to_the_region_of_its_cookie_and_stays_at_home_over_the_limit() -> None:
    full = RegionSetup(rate(2))
    assert regions_of("SRV=2-11", RegionSetup(), full, persistence=KEEPS)[0] == {"rgn-2": 10}
    assert regions_of("SRV=1-1", full, RegionSetup(), persistence=KEEPS)[0] == {"rgn-1": 10}
    found, flows = regions_of("SRV=2-11", RegionSetup(), RegionSetup(), persistence=KEEPS)
    assert flows == {"pool-1/to/rgn-2/kept": 10}
    assert found == {"rgn-2": 10}


def test_a_client_whose_cookie_breaks_is_served_at_home_and_overflows() -> None:
    breaks = replace(KEEPS, overflow=OnOverflow.BREAKS)
    assert regions_of("SRV=2-11", RegionSetup(), RegionSetup(), persistence=breaks)[0] == {"rgn-1": 10}
    found, _ = regions_of("SRV=1-1", RegionSetup(rate(2)), RegionSetup(NO_LIMIT), persistence=breaks)
    assert found["rgn-2"] > 0


def test_a_region_that_is_drained_keeps_nobody() -> None:
    found, _ = regions_of("SRV=2-11", RegionSetup(), RegionSetup(scaler=0.0), persistence=KEEPS)
    assert found == {"rgn-1": 10}
