"""HTTP/3 by a real agent and a HAProxy that speaks it: it answers, is promised, outlives a reload, and is refused."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from apps.agent.errors import Refusal
from apps.agent.release.nodecfg import Endpoint
from apps.agent.release.probes import taken
from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.capabilities import NodeBuild
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.listener_options import ListenerTls
from apps.compiler.model.policy import ClientLimit, Rules
from apps.compiler.model.shared import Certificate, Listener, Protocol, WeightedPool
from apps.compiler.policies import rule_set
from tests.conformance.inside import Inside, inside, nothing
from tests.conformance.real_agent import wait_until
from tests.conformance.slow_haproxy import REAL
from tests.e2e.rendered_proxy import Answer, echo_servers
from tests.http3 import Client, Ended, ask, connected, every_quic
from tests.pure.compiler_fixtures import certificate_pem, front, listener, pool, route, server, snapshot

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]

ABLE = (NodeBuild("us-1", (3, 2), http3=True),)
SLOW_S = 2.0
TLS = ListenerTls(http3=True, same_certificate=True)
NAMES = ("a.example", "b.example")
CERTIFICATES = tuple(
    Certificate(f"crt-{number}", name, "acme", certificate_pem(name), (name,)) for number, name in enumerate(NAMES, 1)
)


def secure(port: int, tls: ListenerTls | None = TLS, number: int = 1) -> Listener:
    """An https listener on the node's own address."""
    return listener(number, port=port, protocol=Protocol.HTTPS, tls=tls, certificate_ids=("crt-1", "crt-2"))


def topology(servers: list[int], *listeners: Listener) -> Snapshot:
    """a.example and b.example; of the first one, /slow takes a while and /limited takes one request of a client."""
    limited = rule_set(Rules(client_limit=ClientLimit(requests=1, per="minute")))
    pools = tuple(
        pool(number, servers=(server(number, address="127.0.0.1", port=port),))
        for number, port in enumerate(servers, 1)
    )
    routes = (
        route(1),
        route(2, "b.example"),
        route(3, "a.example", "/slow", pools=(WeightedPool("pool-2", 1),)),
        route(4, "a.example", "/limited", rule_set=limited.id),
    )
    return snapshot(
        replace(front(*routes, listeners=listeners), rule_sets=(limited,)),
        pools=pools,
        certificates=CERTIFICATES,
        local_development=True,
        builds=ABLE,
    )


def bundle_of(wanted: Snapshot) -> Bundle:
    """Compiled without a word about HTTP/3."""
    compiled = compile_snapshot(wanted)
    assert not compiled.left_out
    assert not [each for each in compiled.warnings if each.code == "http3"]
    return compiled.output


class _Slow(BaseHTTPRequestHandler):
    """Answers after two seconds."""

    def do_GET(self) -> None:
        """Wait, then answer."""
        time.sleep(SLOW_S)
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"slow")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Keep quiet."""


@contextmanager
def node_of(binary: str, **taken_away: Any) -> Iterator[tuple[Inside, list[int]]]:
    """A node with that HAProxy, and the ports of an echo and of a slow server."""
    slow = ThreadingHTTPServer(("127.0.0.1", 0), _Slow)
    threading.Thread(target=slow.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    with ExitStack() as stack:
        stack.callback(slow.server_close)
        stack.callback(slow.shutdown)
        echo = stack.enter_context(echo_servers(1))
        node = stack.enter_context(inside({"haproxy": binary}, **taken_away))
        yield node, [*echo, slow.server_address[1]]


def is_free(port: int) -> bool:
    """Whether nobody listens on that port of UDP."""
    return taken(Endpoint("127.0.0.1", port, udp=True)) is None


def over_tcp(port: int, name: str = "a.example", path: str = "/") -> Answer:
    """The same question over TLS on TCP."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), 30) as raw:
        connection = http.client.HTTPConnection(name, timeout=30)
        connection.sock = context.wrap_socket(raw, server_hostname=name)
        connection.request("GET", path)
        response = connection.getresponse()
        headers = {key.lower(): value for key, value in response.getheaders()}
        return Answer(response.status, headers, response.read().decode())


@every_quic
def test_a_listener_answers_by_http3_and_promises_it_over_tcp(binary: str) -> None:
    with node_of(binary) as (node, servers):
        assert node.push(bundle_of(topology(servers, secure(node.port))), 1)["http3"] is True
        over_quic, plain = ask(node.port, "a.example", "/x"), over_tcp(node.port)
        assert plain.headers["alt-svc"] == over_quic.headers["alt-svc"] == f'h3=":{node.port}"; ma=3600'
        headers = over_quic.json["headers"]
        assert isinstance(headers, dict)
        told = {name: headers[name] for name in ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-port", "host")}
        port = str(node.port)
        assert told == {
            "x-forwarded-for": ["127.0.0.1"], "x-forwarded-proto": ["https"], "x-forwarded-port": [port],
            "host": ["a.example"],
        }  # fmt: skip
        with connected(node.port, "a.example") as client:
            asked = [client.ask("a.example", path) for path in ("/1", "/2", "/3")]
            assert [client.answer(each).json["path"] for each in asked] == ["/1", "/2", "/3"]


@every_quic
def test_without_http3_nobody_listens_on_udp_and_nothing_is_promised(binary: str) -> None:
    with node_of(binary) as (node, servers):
        node.push(bundle_of(topology(servers, secure(node.port, ListenerTls()))), 1)
        assert "alt-svc" not in over_tcp(node.port).headers
        assert is_free(node.port)
        node.push(bundle_of(topology(servers, secure(node.port))), 2)
        assert not is_free(node.port)  # the control
        node.push(bundle_of(topology(servers, secure(node.port, ListenerTls()))), 3)
        assert is_free(node.port), "it can be taken back"


@every_quic
def test_rules_hold_for_http3_as_for_tcp(binary: str) -> None:
    with node_of(binary) as (node, servers):
        node.push(bundle_of(topology(servers, secure(node.port))), 1)
        assert ask(node.port, "b.example").status == 200
        assert ask(node.port, "a.example", host="b.example").status == 421, "another certificate's host"
        with pytest.raises(Ended), connected(node.port, "stranger.example", patience_s=3) as client:
            client.answer(client.ask("a.example"))  # HAProxy 3.0 does not even say no
        assert [ask(node.port, "a.example", "/limited").status for _ in range(3)][1:] == [429, 429]
        forged = ask(node.port, "a.example", **{"x-forwarded-for": "192.0.2.1", "x-spillway-x": "1"}).json["headers"]
        assert isinstance(forged, dict)
        assert (forged["x-forwarded-for"], forged.get("x-spillway-x")) == (["127.0.0.1"], None)


@every_quic
def test_tickets_allow_no_early_data(binary: str) -> None:
    with node_of(binary) as (node, servers):
        node.push(bundle_of(topology(servers, secure(node.port))), 1)
        with connected(node.port, "a.example") as client:
            assert client.answer(client.ask("a.example")).status == 200
            assert client.answer(client.ask("a.example")).status == 200
            assert [each for each in client.tickets if each.max_early_data_size] == []


@every_quic
def test_a_reload_loses_no_request_and_a_new_connection_meets_the_new_rules(binary: str) -> None:
    with node_of(binary) as (node, servers):
        node.push(bundle_of(topology(servers, secure(node.port))), 1)
        other = topology(servers, secure(node.port), secure(node.port + 1, None, number=2))
        with connected(node.port, "a.example") as client:
            assert client.answer(client.ask("a.example")).status == 200
            slow = client.ask("a.example", "/slow")
            client.go_on(SLOW_S / 4)
            assert node.push(bundle_of(other), 2)["reloads"] == 2
            answer = client.answer(slow)
        assert (answer.status, answer.body) == (200, "slow")
        assert ask(node.port, "a.example").status == 200


@every_quic
@pytest.mark.parametrize("known", [True, False])
def test_who_comes_back_to_another_haproxy_is_told_that_the_connection_is_gone(binary: str, known: bool) -> None:
    """As after an address has moved. The control: one that does not share the secret is not believed."""
    with node_of(binary) as (node, servers), connected_after_a_push(node, servers) as client:
        for pid in node.node.proxy._pids():
            os.kill(pid, signal.SIGKILL)
        if not known:
            config = node.folder / "n" / "live" / "haproxy.cfg"
            config.write_text(re.sub("(cluster-secret )[0-9a-f]{8}", r"\g<1>00000000", config.read_text()))
        wait_until(lambda: not node.node.proxy.masters(), "all are gone")
        node.node.proxy.start()
        wait_until(lambda: not is_free(node.port), "another one listens")
        assert ask(node.port, "a.example").status == 200
        client.ask("a.example")
        until = time.monotonic() + 3
        told = False
        while time.monotonic() < until and not told:
            try:
                client.go_on(0.1)
            except Ended:
                told = True
        assert told is known


@contextmanager
def connected_after_a_push(node: Inside, servers: list[int]) -> Iterator[Client]:
    """A connection that has been used, to the first release."""
    node.push(bundle_of(topology(servers, secure(node.port))), 1)
    with connected(node.port, "a.example") as client:
        assert client.answer(client.ask("a.example")).status == 200
        yield client


@every_quic
def test_a_udp_port_of_somebody_else_is_refused_before_the_switch(binary: str) -> None:
    with node_of(binary) as (node, servers), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as somebody:
        node.push(bundle_of(topology(servers, secure(node.port, ListenerTls()))), 1)
        somebody.bind(("127.0.0.1", node.port))
        with pytest.raises(Refusal, match=f"UDP port {node.port} on 127.0.0.1 is in use by another") as refusal:
            node.push(bundle_of(topology(servers, secure(node.port))), 2)
        assert refusal.value.stage == "switch"
        assert over_tcp(node.port).status == 200
    with node_of(binary, port_taken=nothing) as (node, servers), socket.socket(type=socket.SOCK_DGRAM) as somebody:
        node.push(bundle_of(topology(servers, secure(node.port, ListenerTls()))), 1)
        somebody.bind(("127.0.0.1", node.port))
        with pytest.raises(Refusal) as late:  # the control: found by the switch alone
            node.push(bundle_of(topology(servers, secure(node.port))), 2)
        assert late.value.stage == "confirm"


@every_quic
def test_a_node_of_ipv6_takes_http3(binary: str) -> None:
    with node_of(binary) as (node, servers):
        wanted = replace(secure(node.port), address="::1")
        node.push(bundle_of(topology(servers, wanted)), 1)
        with connected(node.port, "a.example", "::1") as client:
            assert client.answer(client.ask("a.example")).status == 200


def test_a_node_that_cannot_leaves_it_out_and_serves_the_rest() -> None:
    """What was compiled for nodes that can reaches one with HAProxy 2.6, as after a package was taken back."""
    with node_of(REAL) as (node, servers):
        state = node.push(bundle_of(topology(servers, secure(node.port))), 1)
        assert (state["http3"], over_tcp(node.port).status) == (False, 200)
        assert "alt-svc" not in over_tcp(node.port).headers
        assert is_free(node.port)
        with pytest.raises(Ended):
            ask(node.port, "a.example")
