"""A split that stays: 10 000 clients in a real HAProxy while the share of the canary grows."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.policy import Rules, Split
from apps.compiler.model.shared import WeightedPool
from apps.compiler.policies import rule_set
from tests.conformance.plain_servers import answering, read_until
from tests.e2e.rendered_proxy import RenderedProxy, running
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

CLIENTS = 10_000
# Points of percent: cookies are drawn by chance, and this is five standard deviations of so many draws.
BY_CHANCE = 2.5
BATCH = 100
WEIGHTS = (10, 25, 50)
CASES = {
    "header": Rules(split=Split("header", header="X-Account")),
    "address": Rules(split=Split("address")),
    "cookie": Rules(split=Split("cookie", cookie="side", max_age_s=600, secure=True, same_site="none")),
    "plain": Rules(),
}


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    """`<case>-<weight>.example`: a canary with that weight of 100, for each case."""
    sets = {name: rule_set(rules) for name, rules in CASES.items()}
    routes = [
        route(
            100 * number + weight,
            hostname=f"{name}-{weight}.example",
            pools=(WeightedPool("pool-1", 100 - weight), WeightedPool("pool-2", weight)),
            rule_set=sets[name].id,
        )
        for number, name in enumerate(sets, 1)
        for weight in WEIGHTS
    ]
    served = replace(front(*routes), rule_sets=tuple(sets.values()))
    with answering(server_of(b"stable")) as stable, answering(server_of(b"canary")) as canary:
        pools = tuple(
            pool(number, servers=(server(number, address="127.0.0.1", port=port),))
            for number, port in enumerate((stable, canary), 1)
        )
        compilation = compile_snapshot(snapshot(served, pools=pools, local_development=True))
        assert compilation.left_out == ()
        with running(compilation.output, tmp_path_factory.mktemp("split")) as found:
            yield found


def server_of(name: bytes) -> Callable[[socket.socket], None]:
    """A server that answers each request with its name."""

    def serve(connection: socket.socket) -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Side: %s\r\n\r\n" % name
        while read_until(connection, b"\r\n\r\n"):
            connection.sendall(answer)

    return serve


def ask(proxy: RenderedProxy, host: str, headers: Sequence[str], source: str = "127.0.0.1") -> list[tuple[bool, str]]:
    """A request with each of the headers, all on one connection: whether the canary answered, and its cookie."""
    found: list[tuple[bool, str]] = []
    with socket.create_connection(
        ("127.0.0.1", proxy.ports["lst-1"]), timeout=60, source_address=(source, 0)
    ) as client:
        for start in range(0, len(headers), BATCH):
            some = headers[start : start + BATCH]
            client.sendall("".join(f"GET / HTTP/1.1\r\nHost: {host}\r\n{each}\r\n\r\n" for each in some).encode())
            text = b""
            while text.count(b"\r\n\r\n") < len(some):
                text += client.recv(65536)
            found += [_side(each) for each in text.decode().split("\r\n\r\n")[:-1]]
    return found


def _side(answer: str) -> tuple[bool, str]:
    cookie = re.search(r"(?im)^set-cookie: (.*?)\r?$", answer)
    return "x-side: canary" in answer.lower(), cookie[1] if cookie else ""


def share(sides: Sequence[bool]) -> float:
    """Percent of clients on the side of the canary."""
    return 100 * sum(sides) / len(sides)


@pytest.mark.slow(reason="ten thousand clients ask again at each step")
def test_clients_known_by_a_header_stay_while_the_canary_grows(proxy: RenderedProxy) -> None:
    headers = [f"X-Account: account-{number}" for number in range(CLIENTS)]
    before = [False] * CLIENTS
    for weight in WEIGHTS:
        now = [side for side, _ in ask(proxy, f"header-{weight}.example", headers)]
        assert abs(share(now) - weight) < 1
        assert not [each for each, (was, is_now) in enumerate(zip(before, now, strict=True)) if was and not is_now]
        before = now


@pytest.mark.slow(reason="ten thousand clients ask again at each step")
def test_clients_known_by_their_cookie_stay_while_the_canary_grows(proxy: RenderedProxy) -> None:
    first = ask(proxy, "cookie-10.example", ["X-A: b"] * CLIENTS)
    assert [each for each in first if not each[1]] == []
    assert abs(share([side for side, _ in first]) - WEIGHTS[0]) < BY_CHANCE
    kept = [f"Cookie: other=1; {cookie.partition(';')[0]}" for _, cookie in first]
    before = [side for side, _ in first]
    for weight in WEIGHTS:
        now = ask(proxy, f"cookie-{weight}.example", kept)
        assert not [cookie for _, cookie in now if cookie]
        assert abs(share([side for side, _ in now]) - weight) < BY_CHANCE
        pairs = zip(before, (side for side, _ in now), strict=True)
        assert not [each for each, (was, is_now) in enumerate(pairs) if was and not is_now]
        before = [side for side, _ in now]


def test_the_cookie_says_what_was_asked_for(proxy: RenderedProxy) -> None:
    [(_, cookie)] = ask(proxy, "cookie-10.example", ["Cookie: side=junk"])
    value, *attributes = cookie.split("; ")
    assert value.removeprefix("side=").isdecimal()
    assert attributes == ["Path=/", "SameSite=None", "Max-Age=600", "HttpOnly", "Secure"]


def test_a_client_known_by_its_address_stays(proxy: RenderedProxy) -> None:
    sides = []
    for each in range(200):
        found = ask(proxy, "address-50.example", ["X-A: b"] * 3, f"127.0.{each % 7}.{each + 1}")
        assert len(set(found)) == 1
        sides.append(found[0][0])
    assert 35 < share(sides) < 65


def test_without_it_a_client_is_now_here_now_there(proxy: RenderedProxy) -> None:
    headers = ["X-Account: account-1\r\nCookie: side=1"] * 60
    assert set(ask(proxy, "plain-50.example", headers)) == {(True, ""), (False, "")}
