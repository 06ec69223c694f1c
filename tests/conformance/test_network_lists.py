"""Lists of networks in a real HAProxy: who is let in, and ten thousand networks that change under load."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from apps.agent.release.runtime import replace_map
from apps.compiler.bundle import Bundle
from apps.compiler.compile import Compilation, compile_snapshot
from apps.compiler.model.access import Access, NetworkList
from apps.compiler.model.operations import ReplaceMap, SetMapEntry
from apps.compiler.model.policy import Rules
from apps.compiler.plan import Reload, Runtime, plan
from apps.compiler.policies import rule_set
from tests.e2e.rendered_proxy import RenderedProxy, echo_servers, running
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

HOME = NetworkList("net-1", "acme/home", ("127.0.0.0/30",))
BAD = NetworkList("net-2", "acme/bad", ("127.0.0.2/32", "2001:db8::/48"))
NOBODY = NetworkList("net-3", "acme/nobody")
MANY = NetworkList("net-4", "acme/many")
ABROAD = NetworkList("geo-5", "acme/abroad", countries=("AA",))
ISLANDS = NetworkList("geo-6", "other/islands", countries=("AA", "BB"))
COUNTRY = NetworkList("country-AA", "AA", ("127.0.0.2/32",))
OTHER_COUNTRY = NetworkList("country-BB", "BB", ("127.0.0.3/32",))
CASES = {
    "denied": Rules(access=Access(deny=("net-2", "net-3"))),
    "allowed": Rules(access=Access(allow=("net-1", "net-3"), status=404)),
    "both": Rules(access=Access(allow=("net-1",), deny=("net-2",))),
    "closed": Rules(access=Access(allow=("net-3",))),
    "open": Rules(access=Access(allow=(), deny=())),
    "many": Rules(access=Access(deny=("net-4",))),
    "abroad": Rules(access=Access(deny=("geo-5", "net-3"))),
    "islands": Rules(access=Access(allow=("net-3", "geo-6"))),
}
LISTS = (HOME, BAD, NOBODY, MANY, ABROAD, ISLANDS, COUNTRY, OTHER_COUNTRY)
CHANGED = 10_000


def bundle_with(changed: NetworkList) -> Bundle:
    """The bundle with one list or country as it is now."""
    return bundle_of(9, *(changed if each.id == changed.id else each for each in LISTS))


def bundle_of(port: int, *lists: NetworkList) -> Bundle:
    """The bundle of every case with these lists."""
    compilation = compiled(port, *lists)
    assert compilation.left_out == ()
    return compilation.output


def compiled(port: int, *lists: NetworkList) -> Compilation[Bundle]:
    """Every case with these lists, and what was left out."""
    sets = {name: rule_set(rules) for name, rules in CASES.items()}
    routes = [route(number, hostname=f"{name}.example", rule_set=sets[name].id) for number, name in enumerate(sets, 2)]
    served = replace(
        front(route(1, hostname="plain.example"), *routes), rule_sets=tuple(sets.values()), network_lists=lists
    )
    pools = (pool(1, servers=(server(1, address="127.0.0.1", port=port),)),)
    return compile_snapshot(snapshot(served, pools=pools, local_development=True))


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    """One route for each case, `<case>.example`, and `plain.example` with no rules at all."""
    directory: Path = tmp_path_factory.mktemp("lists")
    with echo_servers(1) as ports, running(bundle_of(ports[0], *LISTS), directory) as found:
        yield found


def status(proxy: RenderedProxy, name: str, source: str) -> int:
    """What a client of this address gets of a case."""
    address = ("127.0.0.1", proxy.ports["lst-1"])
    connection = http.client.HTTPConnection(*address, timeout=30, source_address=(source, 0))
    try:
        connection.request("GET", "/a", headers={"Host": f"{name}.example"})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("denied", "127.0.0.1", 200),
        ("denied", "127.0.0.2", 403),
        ("allowed", "127.0.0.2", 200),
        ("allowed", "127.0.0.9", 404),
        ("both", "127.0.0.1", 200),
        ("both", "127.0.0.2", 403),
        ("both", "127.0.0.9", 403),
        ("closed", "127.0.0.1", 403),
        ("open", "127.0.0.2", 200),
        ("abroad", "127.0.0.2", 403),
        ("abroad", "127.0.0.3", 200),
        ("abroad", "127.0.0.9", 200),
        ("islands", "127.0.0.2", 200),
        ("islands", "127.0.0.3", 200),
        ("islands", "127.0.0.9", 403),
        ("plain", "127.0.0.2", 200),
    ],
)
def test_networks_are_let_in_or_kept_out(proxy: RenderedProxy, name: str, source: str, expected: int) -> None:
    assert status(proxy, name, source) == expected


def test_no_header_makes_somebody_else_of_a_client(proxy: RenderedProxy) -> None:
    headers = {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1"}
    assert proxy.ask("lst-1", "closed.example", "/a", headers=headers).status == 403


def test_a_change_of_a_list_is_a_map_entry_and_a_large_one_a_new_map() -> None:
    before = bundle_of(9, *LISTS)
    one = plan(before, bundle_with(replace(BAD, networks=("127.0.0.2/32", "192.0.2.0/24"))))
    assert isinstance(one, Runtime)
    assert SetMapEntry("maps/net-2.map", "192.0.2.0/24", "1") in one.operations
    many = plan(before, bundle_with(replace(MANY, networks=many_networks(0))))
    assert isinstance(many, Runtime)
    assert many.operations == (ReplaceMap("maps/net-4.map"),)
    assert not isinstance(many, Reload)


def test_a_country_comes_and_its_networks_change_without_a_reload() -> None:
    before = bundle_of(9, *LISTS)
    more = plan(before, bundle_with(replace(ABROAD, countries=("AA", "BB"))))
    assert isinstance(more, Runtime)
    assert more.operations == (SetMapEntry("maps/geo-5.map", "BB", "1"),)
    moved = plan(before, bundle_with(replace(COUNTRY, networks=("127.0.0.2/32", "192.0.2.0/24"))))
    assert isinstance(moved, Runtime)
    assert moved.operations == (SetMapEntry("maps/countries.map", "192.0.2.0/24", "AA"),)


@pytest.mark.parametrize(
    "lists", [LISTS[:-1], (*LISTS[:-1], replace(OTHER_COUNTRY, networks=("127.0.0.3/32 AA\n::/0",)))]
)
def test_a_route_whose_country_is_missing_or_wrong_is_left_out(lists: tuple[NetworkList, ...]) -> None:
    assert [each.object_id for each in compiled(9, *lists).left_out] == ["route-9"]


def many_networks(start: int) -> tuple[str, ...]:
    """Ten thousand networks, and the one of the test's client where `start` is odd."""
    first = int(IPv4Address("10.0.0.0")) + start * CHANGED * 256
    networks = [f"{IPv4Address(first + number * 256)}/24" for number in range(CHANGED - 1)]
    return (*networks, "127.0.0.2/32" if start % 2 else "192.0.2.2/32")


@dataclass(frozen=True, slots=True)
class Worker:
    """What the agent tells a worker by, of the running proxy."""

    proxy: RenderedProxy

    def worker(self, command: str) -> str:
        """One command."""
        return self.proxy.command(command)


@pytest.mark.slow(reason="keeps asking while lists of ten thousand networks come and go")
def test_ten_thousand_networks_change_under_load_and_no_request_fails(proxy: RenderedProxy) -> None:
    """About three seconds: thirty swaps beside clients that ask all the time."""
    failed: list[object] = []
    asked, ended = [0], threading.Event()

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", proxy.ports["lst-1"], timeout=30)
        while not ended.is_set():
            try:
                connection.request("GET", "/a", headers={"Host": "many.example"})
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    failed.append(answer.status)
            except (OSError, http.client.HTTPException) as error:
                failed.append(error)
                connection.close()
            asked[0] += 1

    clients = [threading.Thread(target=ask) for _ in range(4)]
    for each in clients:
        each.start()
    took = []
    for number in range(30):
        lines = [f"{each} 1\n".encode() for each in sorted(many_networks(number))]
        start = time.perf_counter()
        replace_map("maps/net-4.map", lines, Worker(proxy))  # type: ignore[arg-type]
        took.append(time.perf_counter() - start)
        assert status(proxy, "many", "127.0.0.2") == (403 if number % 2 else 200)
    ended.set()
    for each in clients:
        each.join()
    print(f"{CHANGED} networks swapped in {sorted(took)[15] * 1000:.0f} ms, {asked[0]} requests")
    assert failed == []
    assert asked[0] > 20
