"""Limits per client in a real HAProxy: who is counted as one, who is let through, and what the others get."""

from __future__ import annotations

import http.client
import http.server
import re
import socket
import socketserver
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.policy import ClientLimit, HeaderChanges, Rules
from apps.compiler.model.shared import WeightedPool
from apps.compiler.policies import rule_set
from apps.compiler.questions.client_bans import read_key, scopes_of
from tests.e2e.rendered_proxy import Answer, RenderedProxy, echo_servers, running
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

# A minute's limit does not depend on how busy the machine is; 127.0.0.0/8 is where the tests ask from.
FEW = ClientLimit(requests=3, per="minute")
HELD = "st_clients_held_minute"
CASES = {
    "address": FEW,
    "wider": replace(FEW, requests=4, ipv4_prefix=24),
    "header": replace(FEW, key="header", key_name="X-Api-Key"),
    "cookie": replace(FEW, key="cookie", key_name="session"),
    "exempt": replace(FEW, exempt=("127.0.0.0/8", "2001:db8::/32")),
    "not-exempt": replace(FEW, exempt=("198.51.100.0/24",)),
    "logged": replace(FEW, log_only=True),
    "dropped": replace(FEW, action="silent_drop"),
    "tarred": replace(FEW, action="tarpit"),
    "by-route": replace(FEW, counted_for="route", requests=2),
    "by-hostname": replace(FEW, counted_for="hostname", requests=2),
    "burst": ClientLimit(requests=2, burst=2),
    "banned": replace(FEW, ban_after=2, ban_within_s=10, ban_for_s=10),
    "banned-key": replace(FEW, ban_after=2, ban_within_s=10, ban_for_s=10, key="header", key_name="X-Api-Key"),
    "banned-later": replace(FEW, ban_after=1000, ban_within_s=10, ban_for_s=10),
    "bytes-out": ClientLimit(bytes_out=3000, per="minute"),
    "bytes-in": ClientLimit(bytes_in=3000, per="minute"),
    "bytes-logged": ClientLimit(bytes_out=3000, per="minute", log_only=True),
    "bytes-exempt": ClientLimit(bytes_out=3000, per="minute", exempt=("127.0.0.0/8",)),
    "bytes-by-key": ClientLimit(bytes_out=3000, per="minute", key="header", key_name="X-Api-Key"),
    "bytes-and-all": ClientLimit(requests=10, in_flight=10, bytes_out=3000, bytes_in=100_000, per="minute"),
    "errors": ClientLimit(errors=3, per="minute"),
    "errors-and-all": ClientLimit(requests=50, in_flight=10, bytes_out=100_000, errors=3, per="minute"),
    "errors-banned": ClientLimit(errors=2, per="minute", ban_after=1, ban_within_s=10, ban_for_s=10),
    "says-nothing": ClientLimit(exempt=("192.0.2.0/24",)),
}


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    """Two routes for each case, `<case>.example` and `<case>.two.example`, and `plain.example` without a limit."""
    told = HeaderChanges(set=(("X-Client", "{client_address}"),))
    sets = {name: rule_set(Rules(client_limit=said, request_headers=told)) for name, said in CASES.items()}
    hosts = [(name, f"{name}{rest}.example") for rest in ("", ".two") for name in sets]
    routes = [route(number, hostname=host, rule_set=sets[name].id) for number, (name, host) in enumerate(hosts, 2)]
    below = route(500, hostname="by-hostname.example", path="/below", rule_set=sets["by-hostname"].id)
    other = route(600, hostname="other.example", account="other", rule_set=sets["address"].id)
    slow = (WeightedPool("pool-2", 100),)
    long = route(700, hostname="bytes-trickle.example", rule_set=sets["bytes-out"].id, pools=slow)
    wrong = (WeightedPool("pool-3", 100),)
    errors = [
        route(710 + n, hostname=f"{name}.example", path="/wrong", rule_set=sets[name].id, pools=wrong)
        for n, name in enumerate(name for name in CASES if name.startswith("errors"))
    ]
    all_routes = (route(1, hostname="plain.example"), *routes, below, other, long, *errors)
    served = replace(front(*all_routes), rule_sets=tuple(sets.values()))
    directory: Path = tmp_path_factory.mktemp("limits")
    with echo_servers(1) as ports, trickling_server() as trickling, failing_server() as failing:
        ways = enumerate((ports[0], trickling, failing), 1)
        pools = tuple(pool(n, servers=(server(n, address="127.0.0.1", port=port),)) for n, port in ways)
        compilation = compile_snapshot(snapshot(served, pools=pools, local_development=True))
        assert compilation.left_out == ()
        with running(compilation.output, directory) as found:
            yield found


@pytest.fixture(autouse=True)
def _nobody_has_asked(proxy: RenderedProxy) -> None:
    for table in ("st_clients_minute", "st_clients_second", HELD, "st_over_10", "st_banned_10"):
        proxy.command(f"clear table {table}")


@contextmanager
def trickling_server() -> Iterator[int]:
    """Sends 100 bytes of its answer every hundredth of a second."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.recv(65536)
                self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                while True:
                    self.request.sendall(b"x" * 100)
                    time.sleep(0.01)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@contextmanager
def failing_server() -> Iterator[int]:
    """Answers `/wrong/404` with that status."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(int(self.path[-3:]))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
            """Keep quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def ask(
    proxy: RenderedProxy,
    name: str,
    *,
    path: str = "/",
    source: str = "127.0.0.1",
    headers: Mapping[str, str] | None = None,
    patience_s: float = 60,
) -> Answer:
    """One request to a case, from any address of this machine."""
    port = proxy.ports["lst-1"]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience_s, source_address=(source, 0))
    try:
        connection.request("GET", path, headers={"Host": f"{name}.example", **(headers or {})})
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read().decode())
    finally:
        connection.close()


def statuses(proxy: RenderedProxy, name: str, count: int, **fields: object) -> list[int]:
    """The answers to some requests."""
    return [ask(proxy, name, **fields).status for _ in range(count)]  # type: ignore[arg-type]


def test_one_address_gets_its_requests_and_then_429(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "address", 5) == [200, 200, 200, 429, 429]
    refused = ask(proxy, "address")
    assert refused.headers["retry-after"] == "20"
    assert refused.body == "Too many requests. Try again later.\n"


def test_another_address_is_another_client_unless_the_prefix_joins_them(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "address", 4) == [200, 200, 200, 429]
    assert ask(proxy, "address", source="127.0.0.2").status == 200
    assert statuses(proxy, "wider", 4) == [200] * 4
    assert ask(proxy, "wider", source="127.0.0.2").status == 429
    assert ask(proxy, "wider", source="127.0.1.1").status == 200


def test_a_forged_forwarded_address_changes_nothing(proxy: RenderedProxy) -> None:
    found = [
        ask(proxy, "address", headers={"X-Forwarded-For": f"192.0.2.{n}", "Forwarded": f"for=192.0.2.{n}"}).status
        for n in range(5)
    ]
    assert found == [200, 200, 200, 429, 429]


def test_the_server_still_sees_the_client_and_not_the_key(proxy: RenderedProxy) -> None:
    headers = ask(proxy, "address", source="127.0.0.9").json["headers"]
    assert isinstance(headers, dict)
    assert headers["x-forwarded-for"] == ["127.0.0.9"]
    assert headers["x-client"] == ["127.0.0.9"]  # rules that come after the count see the client as well


@pytest.mark.parametrize(("name", "key"), [("header", "X-Api-Key: {}"), ("cookie", "Cookie: a=b; session={}")])
def test_keys_of_headers_and_cookies_count_apart_from_each_other_and_from_addresses(
    proxy: RenderedProxy, name: str, key: str
) -> None:
    def with_key(value: str) -> dict[str, str]:
        header, _, text = key.format(value).partition(": ")
        return {header: text}

    assert statuses(proxy, name, 4, headers=with_key("one")) == [200, 200, 200, 429]
    assert statuses(proxy, name, 1, headers=with_key("two")) == [200]
    assert statuses(proxy, name, 1, headers=with_key("one"), source="127.0.0.2") == [429]
    assert statuses(proxy, name, 4) == [200, 200, 200, 429], "who sends none is counted by address"
    assert statuses(proxy, name, 1, headers=with_key("127.0.0.1")) == [200]


def test_exempt_networks_pass_and_others_do_not(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "exempt", 6) == [200] * 6
    assert statuses(proxy, "not-exempt", 4) == [200, 200, 200, 429]


def test_a_route_without_a_limit_is_left_alone(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "address", 4)[-1] == 429
    assert statuses(proxy, "plain", 6) == [200] * 6
    assert statuses(proxy, "says-nothing", 6) == [200] * 6


def test_log_only_lets_through_and_tells_the_server(proxy: RenderedProxy) -> None:
    found = [ask(proxy, "logged", headers={"X-Client-Limit": "forged"}).json["headers"] for _ in range(5)]
    assert [each.get("x-client-limit") for each in found if isinstance(each, dict)] == [None] * 3 + [["exceeded"]] * 2


def test_routes_of_an_account_count_together_or_apart(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "address", 4)[-1] == 429
    assert statuses(proxy, "address.two", 1) == [429]
    assert statuses(proxy, "other", 1) == [200], "another account's routes never count with these"
    assert statuses(proxy, "by-route", 3) == [200, 200, 429]
    assert statuses(proxy, "by-route.two", 3) == [200, 200, 429]
    assert statuses(proxy, "by-hostname", 2) == [200, 200]
    assert statuses(proxy, "by-hostname", 1, path="/below") == [429]
    assert statuses(proxy, "by-hostname.two", 1) == [200]


def test_a_burst_bounds_each_second(proxy: RenderedProxy) -> None:
    started = time.monotonic()
    found = statuses(proxy, "burst", 4)
    if time.monotonic() - started < 0.5:  # else the machine was too busy to ask four times in one second
        assert found == [200, 200, 429, 429]


def much(proxy: RenderedProxy, name: str, **headers: str) -> Answer:
    """A request and an answer of more than 2000 bytes each; the answer is counted when this returns."""
    before = counted(proxy)
    answer = ask(proxy, name, headers={"X-Pad": "x" * 2000, **headers})
    if answer.status == 200 and not name.startswith("bytes-exempt") and "x-client-limit" not in answer.body:
        proxy.until(lambda: counted(proxy) > before + 2000, "its bytes are counted")
    return answer


def counted(proxy: RenderedProxy) -> int:
    """Bytes of answers to all clients."""
    return sum(map(int, re.findall(r"bytes_out_rate\(60000\)=([0-9]+)", proxy.command(f"show table {HELD}"))))


@pytest.mark.parametrize("name", ["bytes-out", "bytes-in", "bytes-and-all"])
def test_the_answer_that_goes_over_is_whole_and_the_next_is_429(proxy: RenderedProxy, name: str) -> None:
    assert [much(proxy, name).status for _ in range(2)] == [200, 200]
    refused = ask(proxy, name)
    assert refused.status == 429
    # More than half as much again as may be: so of the minute a third has to pass.
    assert 60 / 5 < int(refused.headers["retry-after"]) < 60 / 2
    assert counted(proxy) < 7000, "what is refused is not counted"
    proxy.command(f"clear table {HELD}")
    assert ask(proxy, name).status == 200


def test_bytes_count_for_who_got_them(proxy: RenderedProxy) -> None:
    assert [much(proxy, "bytes-out").status for _ in range(3)] == [200, 200, 429]
    assert ask(proxy, "bytes-out", source="127.0.0.2").status == 200
    assert [much(proxy, "bytes-by-key", **{"X-Api-Key": "one"}).status for _ in range(3)] == [200, 200, 429]
    assert much(proxy, "bytes-by-key", **{"X-Api-Key": "two"}).status == 200
    assert [much(proxy, "bytes-exempt").status for _ in range(4)] == [200] * 4


def test_bytes_beyond_a_limit_that_only_logs_reach_the_client(proxy: RenderedProxy) -> None:
    found = [much(proxy, "bytes-logged", **{"X-Client-Limit": "forged"}).json["headers"] for _ in range(4)]
    assert [each.get("x-client-limit") for each in found if isinstance(each, dict)] == [None] * 2 + [["exceeded"]] * 2


@pytest.mark.slow(reason="HAProxy adds what is under way every five seconds")
def test_a_long_answer_counts_while_it_is_sent(proxy: RenderedProxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.ports["lst-1"]), timeout=60) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: bytes-trickle.example\r\n\r\n")
        proxy.until(lambda: counted(proxy) > 3000, "what was sent so far is counted")
        assert ask(proxy, "bytes-out.two", headers={"X-Pad": "x"}).status == 429
    proxy.until(lambda: "use=1" not in proxy.command(f"show table {HELD}"), "the request has ended")


def wrong(proxy: RenderedProxy, name: str, *answers: int) -> list[int]:
    """What requests get to which the server answers so."""
    return [ask(proxy, name, path=f"/wrong/{status}").status for status in answers]


@pytest.mark.parametrize("name", ["errors", "errors-and-all"])
def test_who_makes_too_many_errors_gets_429_whatever_it_asks_for_next(proxy: RenderedProxy, name: str) -> None:
    assert statuses(proxy, name, 6) == [200] * 6
    assert wrong(proxy, name, 500, 503, 302, 500) == [500, 503, 302, 500], "only what the client did wrong counts"
    assert wrong(proxy, name, 404, 401, 403, 404) == [404, 401, 403, 429]
    refused = ask(proxy, name)
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert ask(proxy, name, source="127.0.0.2").status == 200
    proxy.command(f"clear table {HELD}")
    assert ask(proxy, name).status == 200


def test_scanners_are_banned(proxy: RenderedProxy) -> None:
    assert wrong(proxy, "errors-banned", 404, 404, 404) == [404, 404, 429]
    proxy.command(f"clear table {HELD}")
    assert statuses(proxy, "errors-banned", 1) == [429], "the ban stands without any count"
    assert statuses(proxy, "errors-banned", 1, source="127.0.0.2") == [200]


@pytest.mark.slow(reason="a tarpit holds a client for five seconds")
def test_a_drop_and_a_tarpit_give_no_quick_answer(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "dropped", 3) == [200] * 3
    with pytest.raises((TimeoutError, ConnectionError)):  # the client is not even told that the connection is gone
        ask(proxy, "dropped", patience_s=2)
    assert statuses(proxy, "tarred", 3) == [200] * 3
    started = time.monotonic()
    assert ask(proxy, "tarred").status == 429
    assert time.monotonic() - started > 4


def banned(proxy: RenderedProxy) -> list[tuple[str, bool, list[str]]]:
    """Whom the table names: the client, whether it is a hash, and the first routes of the limit."""
    files = {path.name: path.read_bytes() for path in proxy.directory.rglob("*-limits.map")}
    scopes = scopes_of(files)
    found = (read_key(key, scopes) for key in re.findall(r"key=(\S+)", proxy.command("show table st_banned_10")))
    return [(each.client, each.hashed, scopes[each.scope]) for each in found if each]


def test_a_ban_says_whom_and_by_which_limit_and_can_be_lifted(proxy: RenderedProxy) -> None:
    statuses(proxy, "banned", 6, source="127.0.0.9")
    number = list(CASES).index("banned") + 2
    routes = [f"route-{number}", f"route-{number + len(CASES)}"]
    assert banned(proxy) == [("127.0.0.9", False, routes)]
    proxy.command("clear table st_clients_minute")
    assert statuses(proxy, "banned", 1, source="127.0.0.9") == [429], "the control: it is banned until it is lifted"
    (key,) = re.findall(r"key=(\S+)", proxy.command("show table st_banned_10"))
    proxy.command(f"clear table st_banned_10 key {key}")
    assert statuses(proxy, "banned", 1, source="127.0.0.9") == [200]


def test_of_a_header_only_a_hash_is_told(proxy: RenderedProxy) -> None:
    secret = {"X-Api-Key": "a-secret"}
    assert statuses(proxy, "banned-key", 6, headers=secret)[-1] == 429
    ((client, hashed, _),) = banned(proxy)
    assert hashed
    assert len(client) == 29
    assert statuses(proxy, "banned-key", 1, headers={"X-Api-Key": "another"}) == [200], "nobody else is banned"


def test_who_is_over_the_limit_too_often_is_banned_and_nobody_else(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "banned", 6) == [200, 200, 200, 429, 429, 429]
    proxy.command("clear table st_clients_minute")
    assert statuses(proxy, "banned", 2) == [429, 429], "the ban stands without any count"
    assert statuses(proxy, "banned", 1, source="127.0.0.2") == [200], "nobody else is banned"
    assert statuses(proxy, "banned-later", 6) == [200, 200, 200, 429, 429, 429]
    proxy.command("clear table st_clients_minute")
    assert statuses(proxy, "banned-later", 1) == [200], "too few refusals are no ban"


@pytest.mark.exhaustive  # that a ban can be lifted is asked above
@pytest.mark.slow(reason="a ban lasts ten seconds")
def test_who_is_banned_comes_back(proxy: RenderedProxy) -> None:
    assert statuses(proxy, "banned", 6)[-1] == 429
    proxy.command("clear table st_clients_minute")
    assert statuses(proxy, "banned", 1) == [429]
    time.sleep(11)  # what is asked meanwhile does not lengthen it
    proxy.command("clear table st_over_10")
    assert statuses(proxy, "banned", 1) == [200]
