"""The request log of a real HAProxy: one line for a request, whatever a client writes into it."""

from __future__ import annotations

import fcntl
import http.client
import re
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from apps.agent.events import Events
from apps.agent.log.pipe import SET_SIZE, Pipe
from apps.agent.log.reading import Reader
from apps.agent.log.segments import Segments
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.access import Access, NetworkList
from apps.compiler.model.authentication import BasicAuth
from apps.compiler.model.policy import Body, ClientLimit, Log, Maintenance, Rules
from apps.compiler.model.servers import Reuse
from apps.compiler.model.shared import FixedResponse, Protocol, Redirect, WeightedPool
from apps.compiler.policies import rule_set
from apps.drivers.logs.contract import Query
from apps.drivers.logs.memory import MemoryStore
from apps.logs.filters import parse
from apps.logs.lines import LONGEST_TEXT, Line, read_segment
from apps.logs.meaning import Names, names_of, record_of
from apps.logs.patterns import PATTERNS, Around, found
from tests.e2e.rendered_proxy import PROBE, RenderedProxy, echo_servers, running
from tests.ports import spare_port
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

ACCOUNT = 7
HERE = NetworkList("net-1", "acme/here", ("127.0.0.0/8",))
LOGS = {
    "silent": Rules(log=Log(requests="none", query=True)),
    "errors": Rules(log=Log(requests="errors")),
    "sampled": Rules(log=Log(requests="sampled", one_in=4)),
    "kept": Rules(log=Log(query=True, headers=("User-Agent", "X-Tenant"))),
    "errors-denied": Rules(log=Log(requests="errors"), access=Access(deny=("net-1",))),
}


@contextmanager
def racing_server() -> Iterator[int]:
    """A server that keeps connections and closes each at its second request, as one does whose patience just ended."""

    def serve(stream: socket.socket) -> None:
        with stream, suppress(OSError):  # health checks leave early
            stream.recv(65536)
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            stream.recv(65536)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server_socket.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server_socket:
        threading.Thread(target=accept, daemon=True).start()
        yield server_socket.getsockname()[1]
        server_socket.shutdown(socket.SHUT_RDWR)


NOBODY = NetworkList("net-2", "acme/nobody", ())
# Rules, the method that is asked with, and what the line says: status, why, decided by.
POLICIES = {
    "denied": (Rules(access=Access(deny=("net-1",))), "GET", 403, "denied", "here"),
    "outside": (Rules(access=Access(allow=("net-2",), status=404)), "GET", 404, "denied", ""),
    "password": (Rules(basic_auth=BasicAuth(())), "GET", 401, "unauthenticated", ""),
    "closed": (Rules(maintenance=Maintenance(enabled=True)), "GET", 503, "maintenance", ""),
    "small": (Rules(body=Body(max_bytes=10)), "POST", 413, "too_large", ""),
    "limited": (Rules(client_limit=ClientLimit(requests=1, burst=1)), "GET", 429, "limited", ""),
    "noted": (Rules(client_limit=ClientLimit(requests=1, burst=1, log_only=True)), "GET", 200, "", ""),
    "passing": (Rules(access=Access(allow=("net-1",), deny=("net-2",))), "GET", 200, "", ""),
}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RenderedProxy, Names]]:
    """A pool that answers, one whose server is away, a redirect, an answer of the route's own, and tcp."""
    errors = rule_set(LOGS["errors"]).id
    with echo_servers(1) as ports, racing_server() as racing:
        routes = (
            route(1),
            route(2, path="/moved", redirect=Redirect(302, host="b.example")),
            route(3, path="/fixed", fixed_response=FixedResponse(418)),
            route(5, path="/race", pools=(WeightedPool("pool-4", 1),)),
            route(4, "errors.example", "/away", pools=(WeightedPool("pool-3", 1),), rule_set=errors),
        )
        database = listener(2, protocol=Protocol.TCP, default_pool_id="pool-2")
        both = (
            pool(1, servers=(server(1, address="127.0.0.1", port=ports[0]),)),
            pool(3, servers=(server(3, address="127.0.0.1", port=spare_port()),)),
            pool(4, servers=(server(4, address="127.0.0.1", port=racing),), connection_reuse=Reuse.ALWAYS),
            pool(2, protocol=Protocol.TCP, servers=(server(2, address="127.0.0.1", port=ports[0]),)),
        )
        answering = {name: rules for name, (rules, *_) in POLICIES.items()}
        sets = {name: rule_set(rules) for name, rules in {**LOGS, **answering}.items()}
        followed = [
            route(number, f"{name}.example", rule_set=each.id) for number, (name, each) in enumerate(sets.items(), 10)
        ]
        served = front(*routes, *followed, listeners=(listener(1), database))
        served = replace(served, rule_sets=tuple(sets.values()), network_lists=(HERE, NOBODY))
        given = snapshot(served, pools=both, local_development=True)
        compilation = compile_snapshot(given)
        assert not compilation.left_out, compilation.left_out
        with running(compilation.output, tmp_path_factory.mktemp("log")) as proxy:
            yield proxy, names_of(given, node="n1", fleet="f1", accounts={"acme": ACCOUNT})


def sent(proxy: RenderedProxy, raw: bytes) -> bytes:
    """What a client gets who writes these bytes and nothing more."""
    with socket.create_connection(("127.0.0.1", proxy.ports["lst-1"]), timeout=30) as stream:
        stream.sendall(raw)
        stream.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: stream.recv(65536), b""))


def new_lines(proxy: RenderedProxy, before: int, count: int = 1) -> list[Line]:
    """Exactly so many lines came since then; connections that only looked at a port are none."""
    found = proxy.lines(before + count)[before:]
    assert len(found) == count, found
    return found


def how_many(proxy: RenderedProxy) -> int:
    """Lines so far, once nobody writes any more."""
    count = -1
    while count != (count := len(proxy.lines(0))):
        time.sleep(0.05)
    return count


def test_a_request_is_one_line_with_the_id_that_client_and_server_got(env: tuple[RenderedProxy, Names]) -> None:
    proxy, names = env
    before, started = how_many(proxy), time.time()
    answer = proxy.ask("lst-1", "a.example", "/a/b?c=d", headers={"X-Request-Id": "theirs\t1"})
    (line,) = new_lines(proxy, before)
    found = record_of(line, names)
    assert found is not None
    got = answer.json["headers"]
    assert isinstance(got, dict)
    assert [found.id] == got["x-request-id"] == [answer.headers["x-request-id"]]
    assert re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{3}8[0-9a-f]{15}", found.id)
    assert abs(found.time.timestamp() - started) < 30
    assert (found.parent_id, found.method, found.host, found.path) == ("theirs%091", "GET", "a.example", "/a/b")
    assert (found.query, found.headers, found.why, found.status) == ("", {}, "", 200)
    assert (found.account, found.load_balancer, found.listener) == (ACCOUNT, "front-1", "listener-1")
    assert (found.route, found.pool, found.server) == ("route-1-label", "pool-1-label", "server-1")
    assert (found.region, found.home_region, found.client) == ("region-a", "region-a", "127.0.0.1")
    assert found.total_ms is not None
    assert found.bytes_out > found.bytes_in > 50


@pytest.mark.parametrize(
    ("path", "host", "why", "status", "named"),
    [
        ("/moved", "a.example", "redirect", 302, "route-2-label"),
        ("/fixed", "a.example", "fixed_answer", 418, "route-3-label"),
        ("/", "other.example", "no_route", 404, ""),
        ("/", "b ad", "malformed", 400, ""),
    ],
)
def test_a_line_says_why_no_server_answered(
    env: tuple[RenderedProxy, Names], path: str, host: str, why: str, status: int, named: str
) -> None:
    proxy, names = env
    before = how_many(proxy)
    assert proxy.ask("lst-1", host, path).status == status
    found = record_of(new_lines(proxy, before)[0], names)
    assert found is not None
    assert (found.why, found.status, found.route, found.server, found.region) == (why, status, named, "", "")
    assert found.account == ACCOUNT


def asked_and_lines(env: tuple[RenderedProxy, Names], name: str, count: int, path: str = "/") -> list[Line]:
    """The lines of so many requests; one to another route at the end is not among them."""
    proxy, _ = env
    before = how_many(proxy)
    for _ in range(count):
        proxy.ask("lst-1", f"{name}.example", path)
    proxy.ask("lst-1", "a.example", "/the-last")
    proxy.until(lambda: any(line.path == "/the-last" for line in proxy.lines(0)[before:]), "the last one is there")
    return [line for line in proxy.lines(0)[before:] if line.path != "/the-last"]


@pytest.mark.slow(reason="HAProxy asks a server that is not there again, each second")
def test_routes_have_no_lines_or_those_of_errors(env: tuple[RenderedProxy, Names]) -> None:
    assert asked_and_lines(env, "silent", 5) == []
    assert asked_and_lines(env, "errors", 5) == []
    assert [line.status for line in asked_and_lines(env, "errors", 1, "/away")] == [503]
    assert [line.status for line in asked_and_lines(env, "errors-denied", 2)] == [403, 403]


def test_of_a_sample_each_line_says_how_many_it_stands_for(env: tuple[RenderedProxy, Names]) -> None:
    found = asked_and_lines(env, "sampled", 80)
    assert 4 <= len(found) <= 45
    assert {line.one_in for line in found} == {4}


def test_query_and_headers_are_kept_where_a_policy_says_so(env: tuple[RenderedProxy, Names]) -> None:
    proxy, names = env
    before = how_many(proxy)
    headers = {"User-Agent": "a&b=c\td%", "x-tenant": "\xe9" * 300, "Cookie": "secret"}
    proxy.ask("lst-1", "kept.example", "/p?q=%0A&x=1", headers=headers)
    found = record_of(new_lines(proxy, before)[0], names)
    assert found is not None
    assert (found.path, found.query) == ("/p", "q=%0A&x=1")
    assert found.headers == {"user-agent": "a&b=c%09d%", "x-tenant": "%E9" * 256}


def until_a_race(proxy: RenderedProxy) -> list[int]:
    """Ask until a request meets a kept connection as its server closes it; the statuses of all answers.

    HAProxy closes a connection that nobody needs after 62 ms, which may pass between two requests on a busy machine.
    """
    statuses: list[int] = []

    def met() -> bool:
        statuses.extend(proxy.ask("lst-1", "a.example", "/race", method).status for method in ("GET", "POST"))
        return statuses[-1] == 502

    proxy.until(met, "a request meets a connection that its server closes")
    assert set(statuses[:-1]) == {200}
    return statuses


@pytest.mark.slow(reason="HAProxy asks a server that is not there again, each second")
def test_a_race_with_a_server_that_closes_a_kept_connection_is_found_and_named(
    env: tuple[RenderedProxy, Names],
) -> None:
    proxy, names = env
    before = how_many(proxy)
    statuses = until_a_race(proxy)
    store = MemoryStore()
    # Beside it a server that was not there at all, which is no race.
    proxy.ask("lst-1", "errors.example", "/away")
    records = [record_of(line, names) for line in new_lines(proxy, before, len(statuses) + 1)]
    store.store("n1-aa-1", [each for each in records if each])
    pattern = PATTERNS["keep-alive-races"]
    window = Query(min(each.time for each in records if each), datetime.max.replace(tzinfo=UTC), parse(pattern.words))
    groups = store.groups(ACCOUNT, window, pattern.fields, limit=10)
    (said,) = found(pattern, groups, Around(60)).sentences
    assert said.startswith("server-4 of pool pool-4-label closed a kept connection once")


@pytest.mark.parametrize("name", POLICIES)
def test_a_line_says_which_policy_answered(env: tuple[RenderedProxy, Names], name: str) -> None:
    proxy, names = env
    before = how_many(proxy)
    _, method, status, why, decided_by = POLICIES[name]
    for _ in range(20):
        sent(proxy, f"{method} / HTTP/1.1\r\nHost: {name}.example\r\nContent-Length: 20\r\n\r\n{'x' * 20}".encode())
    found = record_of(new_lines(proxy, before, 20)[-1], names)
    assert found is not None
    assert (found.status, found.why, found.decided_by) == (status, why, decided_by)


HOSTILE = (
    b"\x00", b"\x01", b"\t", b"\r", b"\x7f", b"\xff\xfe", "é".encode(), b"#0A", b"%0A%09", b'"', b"\\t", b"\x1b[2J",
)  # fmt: skip


@pytest.mark.parametrize("word", HOSTILE)
def test_no_client_can_make_a_field_or_a_line(env: tuple[RenderedProxy, Names], word: bytes) -> None:
    proxy, names = env
    before = how_many(proxy)
    forged = b"x" + word + b"R1\t" + b"0" * 32 + word
    requests = (
        b"GET /" + forged + b" HTTP/1.1\r\nHost: a.example\r\n\r\n",
        b"GET /?q=" + forged + b" HTTP/1.1\r\nHost: a.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.example" + forged + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a.example\r\nX-Request-Id: " + forged + b"\r\n\r\n",
        b"GE" + forged + b" / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    )
    for raw in requests:
        sent(proxy, raw)
    for line in new_lines(proxy, before, len(requests)):
        found = record_of(line, names)
        assert found is not None
        texts = (found.id, found.parent_id, found.method, found.host, found.path, found.query, found.client)
        assert all(text.isprintable() and len(text) <= LONGEST_TEXT for text in texts), texts
        assert found.id != "0" * 32
        assert (found.listener, found.home_region, found.client) == ("listener-1", "region-a", "127.0.0.1")


def test_words_without_an_end_are_cut_and_the_line_still_counts(env: tuple[RenderedProxy, Names]) -> None:
    proxy, names = env
    before = how_many(proxy)
    long = b'"' * 6000
    sent(proxy, b"GET /" + long + b" HTTP/1.1\r\nHost: a.example\r\nX-Request-Id: " + b"%" * 3000 + b"\r\n\r\n")
    found = record_of(new_lines(proxy, before)[0], names)
    assert found is not None
    assert found.path == "/" + '"' * (len(found.path) - 1)
    assert 500 < len(found.path) <= LONGEST_TEXT
    assert found.parent_id == "%" * 128
    assert found.route == "route-1-label"


def test_our_own_questions_and_empty_connections_are_no_lines(env: tuple[RenderedProxy, Names]) -> None:
    proxy, names = env
    before = how_many(proxy)
    assert proxy.ask("lst-1", "a.example", f"/{PROBE}").status == 200
    sent(proxy, b"")
    assert proxy.ask("lst-1", "a.example", "/the-last").status == 200
    assert [each.path for each in new_lines(proxy, before)] == ["/the-last"]
    socket.create_connection(("127.0.0.1", proxy.ports["lst-2"]), timeout=5).close()
    assert record_of(new_lines(proxy, before + 1)[0], names) is None


def test_a_connection_is_one_line(env: tuple[RenderedProxy, Names]) -> None:
    proxy, names = env
    before = how_many(proxy)
    connection = http.client.HTTPConnection("127.0.0.1", proxy.ports["lst-2"], timeout=30)
    connection.request("GET", "/inside")
    assert connection.getresponse().read()
    connection.close()
    found = record_of(new_lines(proxy, before)[0], names)
    assert found is not None
    assert (found.kind, found.listener, found.pool, found.server) == (
        "connection",
        "listener-2",
        "pool-2-label",
        "server-2",
    )
    assert (found.status, found.path, found.account) == (None, "", ACCOUNT)
    assert found.bytes_in > 0 < found.bytes_out
    assert re.fullmatch(r"[0-9a-f]{12}7[0-9a-f]{3}8[0-9a-f]{15}", found.id)


def test_a_reload_loses_no_line_of_the_old_worker(env: tuple[RenderedProxy, Names]) -> None:
    proxy, _ = env
    before = how_many(proxy)
    kept = http.client.HTTPConnection("127.0.0.1", proxy.ports["lst-1"], timeout=30)
    kept.request("GET", "/first", headers={"Host": "a.example"})
    kept.getresponse().read()
    proxy.reload()
    kept.request("GET", "/of-the-old-worker", headers={"Host": "a.example"})
    assert kept.getresponse().status == 200
    proxy.ask("lst-1", "a.example", "/of-the-new-worker")
    paths = [each.path for each in new_lines(proxy, before, 3)]
    assert sorted(paths) == ["/first", "/of-the-new-worker", "/of-the-old-worker"]


def test_a_full_pipe_holds_no_request_up_and_each_line_that_is_lost_is_counted(tmp_path: Path) -> None:
    pipe, between = Pipe(tmp_path / "requests").open(), Pipe(tmp_path / "requests.taken").open()
    fcntl.fcntl(pipe, SET_SIZE, 4096)  # room for some twenty lines, and nobody reads
    segments = Segments(tmp_path / "segments", 10_000_000)
    given = snapshot(front(route(1, fixed_response=FixedResponse(200))), local_development=True)

    def stored() -> list[str]:
        reader.look(last=True)
        reader.count_lost()
        raw = [zlib.decompress(segments.read(each["id"]) or b"") for each in segments.waiting(0)["segments"]]
        return [each.id for part in raw for each in read_segment(part)]

    with running(compile_snapshot(given).output, tmp_path) as proxy:
        reader = Reader((pipe, between), segments, Events(), proxy.command)
        connection = http.client.HTTPConnection("127.0.0.1", proxy.ports["lst-1"], timeout=30)
        answered = set()
        for number in range(500):
            connection.request("GET", f"/{number}", headers={"Host": "a.example"})
            response = connection.getresponse()
            response.read()
            assert response.status == 200
            answered.add(response.headers["X-Request-Id"])
        connection.close()
        assert len(answered) == 500
        # A line is written when its answer is sent, so the last one may still come.
        proxy.until(lambda: len(stored()) + segments.waiting(0)["dropped"] >= 500, "each line is there or counted")
        ids = stored()
    assert segments.waiting(0)["dropped"] == 500 - len(ids)
    assert 0 < len(set(ids)) == len(ids) < 100
    assert set(ids) < answered
