"""gRPC from end to end: clients of grpcio, our listeners with and without TLS on a real HAProxy, servers of grpcio."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.servers import CheckKind, HttpVersion, Retries, ServerTls, Verify
from apps.compiler.model.shared import Certificate, HealthCheck, Protocol, WeightedPool
from tests.authorities import Authority
from tests.e2e.grpc_servers import Heard, Methods, grpc_server, health
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, running
from tests.ports import spare_port
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e
INNER = "orders.internal.example"
POOLS = {"plain": 1, "tls": 2, "http1": 3, "nobody": 4, "hasty": 5}
LISTENERS = {"plain": 1, "tls": 2}
WAYS = [(client, server) for client in ("plain", "tls") for server in ("plain", "tls")]
SOON_S = 30


@dataclass(frozen=True, slots=True)
class GrpcEnv:
    """Servers behind a running proxy, and clients for it."""

    proxy: RenderedProxy
    heard: Heard
    authority: Authority

    def channel(self, client: str, server: str) -> Any:
        """A connection of its own to that listener, for the host of that pool."""
        host, port = f"{server}.example", self.proxy.ports[f"lst-{LISTENERS[client]}"]
        options: list[tuple[str, Any]] = [
            ("grpc.default_authority", host),
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_receive_message_length", -1),
        ]
        if client == "plain":
            return grpc.insecure_channel(f"127.0.0.1:{port}", options)
        credentials = grpc.ssl_channel_credentials(self.authority.pem.encode())
        return grpc.secure_channel(
            f"127.0.0.1:{port}", credentials, [*options, ("grpc.ssl_target_name_override", host)]
        )


def pools_at(plain: int, tls: int, authority: Authority) -> tuple[Any, ...]:
    """A pool for each way to servers."""
    http2, trusted = HttpVersion.HTTP2, ServerTls(Verify.CA, authority.pem, INNER)
    ports = {"plain": plain, "tls": tls, "http1": plain, "nobody": spare_port(), "hasty": plain}
    fields: dict[str, dict[str, Any]] = {
        "tls": {"server_tls": trusted},
        "nobody": {"retries": Retries(0)},
        "hasty": {"server_timeout_ms": 500},
    }
    return tuple(
        pool(
            number,
            servers=(server(number, address="127.0.0.1", port=ports[name]),),
            **({} if name == "http1" else {"http_version": http2}) | fields.get(name, {}),
        )
        for name, number in POOLS.items()
    )


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrpcEnv]:
    authority, heard = Authority(), Heard()
    certificates = tuple(
        Certificate(f"crt-{number}", name, "acme", authority.signed(f"{name}.example"), (f"{name}.example",))
        for name, number in POOLS.items()
    )
    shown = tuple(each.id for each in certificates)
    listeners = (listener(1), listener(2, protocol=Protocol.HTTPS, certificate_ids=shown))
    routes = [route(n, f"{name}.example", pools=(WeightedPool(f"pool-{n}", 1),)) for name, n in POOLS.items()]
    with ExitStack() as stack:
        plain = stack.enter_context(grpc_server(Methods(heard)))
        tls = stack.enter_context(grpc_server(Methods(heard), authority.signed(INNER)))
        compilation = compile_snapshot(
            snapshot(
                front(*routes, listeners=listeners),
                pools=pools_at(plain, tls, authority),
                certificates=certificates,
                local_development=True,
            )
        )
        assert compilation.left_out == ()
        proxy = stack.enter_context(running(compilation.output, tmp_path_factory.mktemp("proxy")))
        yield GrpcEnv(proxy, heard, authority)


@pytest.fixture(params=WAYS, ids=[f"{client}-to-{server}" for client, server in WAYS])
def channel(request: pytest.FixtureRequest, env: GrpcEnv) -> Iterator[Any]:
    """A client on either listener with servers of either sort."""
    with env.channel(*request.param) as found:
        yield found


def failure_of(call: Any) -> Any:
    """The error that a call ends with."""
    with pytest.raises(grpc.RpcError) as raised:
        call()
    return raised.value


def test_each_of_the_four_kinds_goes_through(channel: Any) -> None:
    assert channel.unary_unary("/test/one")(b"one", timeout=SOON_S) == b"one"
    assert list(channel.unary_stream("/test/many")(b"x", timeout=SOON_S)) == [b"x"] * 3
    assert channel.stream_unary("/test/gather")(iter([b"a", b"b"]), timeout=SOON_S) == b"ab"
    assert list(channel.stream_stream("/test/talk")(iter([b"a", b"b"]), timeout=SOON_S)) == [b"a", b"b"]


def test_both_sides_say_something_of_themselves_before_and_behind_messages(channel: Any) -> None:
    said = (("x-said", "plain text"), ("x-said-bin", bytes(range(256))))
    answer, call = channel.unary_unary("/test/one").with_call(b"", metadata=said, timeout=SOON_S)
    assert answer == b""
    assert set(said) <= set(call.initial_metadata())
    assert {*said, ("x-end", "yes")} <= set(call.trailing_metadata())


@pytest.mark.parametrize("method", ["refuse", "break"])
def test_every_status_arrives_with_its_words_with_and_without_messages_before_it(channel: Any, method: str) -> None:
    for code in grpc.StatusCode:
        if code is grpc.StatusCode.OK:
            continue
        words = f"{code.name}: 100 % “näh”\n"
        request = f"{code.value[0]} {words}".encode()
        if method == "refuse":
            call = failure_of(lambda request=request: channel.unary_unary("/test/refuse")(request, timeout=SOON_S))
        else:
            call = channel.unary_stream("/test/break")(request, timeout=SOON_S)
            assert next(call) == b"first"
            failure_of(lambda call=call: next(call))
        assert (call.code(), call.details()) == (code, words)
        assert ("x-end", "refused") in call.trailing_metadata()


def test_a_deadline_reaches_the_server_and_ends_the_call(channel: Any, env: GrpcEnv) -> None:
    env.heard.next_call()
    failure = failure_of(lambda: channel.unary_unary("/test/wait")(b"", timeout=0.3))
    assert failure.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert env.heard.ended.wait(SOON_S)
    remaining = env.heard.time_remaining[-1]
    assert remaining is not None
    assert 0 < remaining < 1


def test_a_server_hears_that_its_client_wants_no_answer_any_more(channel: Any, env: GrpcEnv) -> None:
    env.heard.next_call()
    call = channel.unary_unary("/test/wait").future(b"")
    assert env.heard.began.wait(SOON_S)
    call.cancel()
    assert env.heard.ended.wait(SOON_S)


def conversation(channel: Any) -> tuple[Any, Any]:
    """A stream of both directions: say a message and get its answer; and the call."""
    messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    call = channel.stream_stream("/test/talk")(iter(messages.get, None), timeout=PATIENCE_S)

    def say(message: bytes | None) -> bytes | None:
        messages.put(message)
        return next(call, None)

    return say, call


def test_messages_of_a_stream_are_not_kept_back(channel: Any) -> None:
    say, call = conversation(channel)
    assert [say(bytes((number,))) for number in range(50)] == [bytes((number,)) for number in range(50)]
    assert say(None) is None
    assert call.code() is grpc.StatusCode.OK


def test_messages_longer_than_any_buffer_go_through(channel: Any) -> None:
    long = bytes(range(256)) * 8192
    assert channel.unary_unary("/test/one")(long, timeout=SOON_S) == long


def test_more_calls_at_once_than_a_connection_has_streams(channel: Any) -> None:
    ask = channel.unary_unary("/test/one")
    with ThreadPoolExecutor(32) as clients:
        asked = [number.to_bytes(2, "big") for number in range(300)]
        assert list(clients.map(lambda each: ask(each, timeout=SOON_S), asked)) == asked


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("http1", grpc.StatusCode.UNAVAILABLE),  # the control: what speaks HTTP/1.1 to servers carries no gRPC
        ("nobody", grpc.StatusCode.UNAVAILABLE),
        ("hasty", grpc.StatusCode.UNAVAILABLE),
        ("unknown", grpc.StatusCode.UNIMPLEMENTED),
    ],
)
def test_what_the_load_balancer_answers_itself_has_a_status_of_grpc(env: GrpcEnv, host: str, code: Any) -> None:
    method = "/test/wait" if host == "hasty" else "/test/one"
    env.heard.next_call()
    with env.channel("plain", host) as channel:
        assert failure_of(lambda: channel.unary_unary(method)(b"", timeout=SOON_S)).code() is code
    env.heard.ended.set()


@pytest.mark.parametrize(("host", "cut"), [("hasty", True), ("plain", False)])
def test_a_stream_may_be_silent_for_as_long_as_its_pool_waits(env: GrpcEnv, host: str, cut: bool) -> None:
    with env.channel("plain", host) as channel:
        say, _ = conversation(channel)
        assert say(b"a") == b"a"
        threading.Event().wait(1)
        if cut:
            assert failure_of(lambda: say(b"b")).code() is grpc.StatusCode.CANCELLED
        else:
            assert say(b"b") == b"b"


def test_a_stream_goes_on_over_a_reload(channel: Any, env: GrpcEnv) -> None:
    say, _ = conversation(channel)
    assert say(b"before") == b"before"
    env.proxy.reload()
    assert say(b"after") == b"after"


@pytest.mark.parametrize("by_tls", [False, True])
def test_a_check_of_grpc_looks_into_the_answer(tmp_path: Path, by_tls: bool) -> None:
    answer, authority = [1], Authority()
    asked: list[tuple[str, bytes]] = []
    pem = authority.signed(INNER) if by_tls else ""
    trusted = ServerTls(Verify.CA, authority.pem, INNER) if by_tls else None
    check = HealthCheck(kind=CheckKind.GRPC, service="shop.v1.Orders", interval_ms=100, timeout_ms=1000, rise=1, fall=1)
    with grpc_server(health(lambda: answer[0], asked), pem) as port:
        servers = (server(1, address="127.0.0.1", port=port),)
        one = pool(1, servers=servers, http_version=HttpVersion.HTTP2, server_tls=trusted, health_check=check)
        compilation = compile_snapshot(snapshot(front(route(1)), pools=(one,), local_development=True))
        assert compilation.left_out == ()
        with running(compilation.output, tmp_path) as proxy:
            proxy.until(lambda: bool(asked), "it was asked")
            for number, state in ((1, "UP"), (2, "DOWN"), (1, "UP")):
                answer[0] = number
                proxy.until_checked("srv-1", state)
    assert asked[0] == ("/grpc.health.v1.Health/Check", b"\n\x0eshop.v1.Orders")
