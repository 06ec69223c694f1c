"""What a rendered bundle does with traffic: probe, headers, splits, redirects, rewrites, refusals, counters."""

from __future__ import annotations

import re
import socket
import ssl
from collections import Counter
from collections.abc import Iterator

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.shared import Certificate, FixedResponse, PathKind, Protocol, Redirect, WeightedPool
from tests.e2e.rendered_proxy import PATIENCE_S, PROBE, RenderedProxy, echo_servers, running
from tests.pure.compiler_fixtures import certificate_pem, front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

LONG = "/" + "a" * 1023
BODY = 'I\'m "a" teapot é\n#{}|| %[env(HOME)] \\ ${HOME}\n'


@pytest.fixture(scope="module")
def ports() -> Iterator[list[int]]:
    with echo_servers(2) as opened:
        yield opened


@pytest.fixture(scope="module")
def proxy(ports: list[int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    compilation = compile_snapshot(_world(ports))
    assert compilation.left_out == ()
    with running(compilation.output, tmp_path_factory.mktemp("proxy")) as started:
        yield started


def _world(ports: list[int]) -> Snapshot:
    routes = (
        route(1, "a.example", "/"),
        route(2, "split.example", "/", pools=(WeightedPool("pool-1", 20), WeightedPool("pool-2", 80))),
        route(3, "r.example", "/old", redirect=Redirect(301, "https", "new.example", "/new")),
        route(4, "r.example", "/host", redirect=Redirect(302, host="new.example", keep_query=False)),
        route(5, "r.example", "/scheme", redirect=Redirect(308, "https"), scheme="http"),
        route(15, "r.example", LONG, redirect=Redirect(301, host="new.example", port=80, prefix="/")),
        route(14, "r.example", "/prefix", redirect=Redirect(307, port=8443, prefix="/new", query="from=%25old")),
        route(12, "a.example", "/secure", redirect=Redirect(308, "https"), scheme="http"),
        route(13, "a.example", "/secure"),
        route(6, "f.example", "/", fixed_response=FixedResponse(418, body=BODY)),
        route(7, "w.example", "/api/v2", prefix_rewrite="/v3"),
        route(8, "w.example", "/strip", prefix_rewrite="/"),
        route(9, "w.example", "/", prefix_rewrite="/below"),
        route(10, "w.example", "/one", path_kind=PathKind.EXACT, prefix_rewrite="/other"),
        route(11, "empty.example", "/", pools=(WeightedPool("pool-3", 1),)),
    )
    listeners = (
        listener(1),
        listener(2, protocol=Protocol.TCP, default_pool_id="pool-4"),
        listener(3, protocol=Protocol.HTTPS, certificate_ids=("crt-1",)),
    )
    loop = {"address": "127.0.0.1"}
    pools = (
        pool(1, servers=(server(1, port=ports[0], **loop),)),
        pool(2, servers=(server(2, port=ports[1], **loop),)),
        pool(3, servers=()),
        pool(4, protocol=Protocol.TCP, servers=(server(4, port=ports[1], **loop),)),
    )
    certificates = (Certificate("crt-1", "tls", "acme", certificate_pem("a.example"), ("a.example",)),)
    return snapshot(front(*routes, listeners=listeners), pools=pools, certificates=certificates, local_development=True)


def test_the_probe_says_generation_and_digest_on_every_host(proxy: RenderedProxy) -> None:
    answer = proxy.ask("lst-1", "whatever.example", f"/{PROBE}")
    assert (answer.status, answer.headers["x-spillway-generation"]) == (200, "7")
    assert re.fullmatch("[0-9a-f]{64}", answer.headers["x-spillway-digest"])


def test_what_clients_claim_about_themselves_is_replaced_by_what_we_know(proxy: RenderedProxy) -> None:
    forged = {
        "X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example",
        "Forwarded": "for=6.6.6.6", "X-Real-IP": "6.6.6.6", "X-Forwarded-Port": "443", "X-Request-Id": "mine",
    }  # fmt: skip
    headers = proxy.ask("lst-1", "a.example", "/", headers=forged).json["headers"]
    assert isinstance(headers, dict)
    assert headers["x-forwarded-for"] == ["127.0.0.1"]
    assert headers["x-forwarded-proto"] == ["http"]
    assert headers["x-forwarded-host"] == ["a.example"]
    assert headers["x-real-ip"] == ["127.0.0.1"]
    assert headers["x-forwarded-port"] == [str(proxy.ports["lst-1"])]
    assert "forwarded" not in headers
    assert re.fullmatch("[0-9a-f]{32}", *headers["x-request-id"])


def test_an_underscore_twin_of_a_header_is_refused(proxy: RenderedProxy) -> None:
    assert proxy.ask("lst-1", "a.example", "/", headers={"X_Forwarded_For": "6.6.6.6"}).status in (400, 403)


def test_a_split_follows_its_weights(proxy: RenderedProxy, ports: list[int]) -> None:
    counts = Counter(proxy.ask("lst-1", "split.example", "/").json["port"] for _ in range(400))
    assert 40 <= counts[ports[0]] <= 125
    assert counts.total() == 400


def test_moving_a_weight_is_one_change_of_a_map(proxy: RenderedProxy, ports: list[int]) -> None:
    proxy.command("set map maps/lb-1-http-action.map route-2 split|0|pool-1|1000|pool-2")
    assert {proxy.ask("lst-1", "split.example", "/").json["port"] for _ in range(30)} == {ports[1]}
    proxy.command("set map maps/lb-1-http-action.map route-2 split|200|pool-1|1000|pool-2")


@pytest.mark.parametrize(
    ("path", "status", "location"),
    [
        ("/old/x?q=1", 301, "https://new.example/new?q=1"),
        ("/host/x?q=1", 302, "http://new.example:8080/host/x"),
        ("/scheme/x", 308, "https://r.example/scheme/x"),
        (LONG, 301, "http://new.example/"),
        (LONG + "/x", 301, "http://new.example/x"),
        ("/prefix/x?q=1", 307, "http://r.example:8443/new/x?q=1&from=%25old"),
        ("/prefix", 307, "http://r.example:8443/new?from=%25old"),
        (
            "/prefix//evil.example/%0d%0aX-Evil:%201",
            307,
            "http://r.example:8443/new//evil.example/%0d%0aX-Evil:%201?from=%25old",
        ),
        (
            r"/prefix/\evil.example/%[src]?%[src]&${HOME}|9|",
            307,
            r"http://r.example:8443/new/\evil.example/%[src]?%[src]&${HOME}|9|&from=%25old",
        ),
    ],
)
def test_a_redirect_takes_what_it_does_not_say_from_the_request(
    proxy: RenderedProxy, path: str, status: int, location: str
) -> None:
    answer = proxy.ask("lst-1", "r.example:8080", path)
    assert (answer.status, answer.headers["location"]) == (status, location)
    assert "x-evil" not in answer.headers


def test_a_fixed_response_arrives_as_written_whatever_signs_are_in_it(proxy: RenderedProxy) -> None:
    answer = proxy.ask("lst-1", "f.example", "/")
    assert (answer.status, answer.body) == (418, BODY)


@pytest.mark.parametrize(
    ("path", "arrives"),
    [
        ("/api/v2", "/v3"),
        ("/api/v2/", "/v3/"),
        ("/api/v2/x?q=1", "/v3/x?q=1"),
        ("/strip", "/"),
        ("/strip/x", "/x"),
        ("/z", "/below/z"),
        ("/one", "/other"),
    ],
)
def test_a_rewrite_replaces_the_matched_prefix_and_nothing_else(proxy: RenderedProxy, path: str, arrives: str) -> None:
    assert proxy.ask("lst-1", "w.example", path).json["path"] == arrives


def test_a_pool_without_servers_answers_503_and_no_route_404(proxy: RenderedProxy) -> None:
    assert proxy.ask("lst-1", "empty.example", "/").status == 503
    assert proxy.ask("lst-1", "unknown.example", "/").status == 404


def test_a_tcp_listener_passes_bytes_to_its_pool(proxy: RenderedProxy, ports: list[int]) -> None:
    assert proxy.ask("lst-2", "anything.example", "/raw").json["port"] == ports[1]


def test_https_serves_the_names_of_its_certificates_only(proxy: RenderedProxy) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection(("127.0.0.1", proxy.ports["lst-3"]), timeout=PATIENCE_S) as raw,
        context.wrap_socket(raw, server_hostname="a.example") as tls,
    ):
        assert (tls.selected_alpn_protocol(), tls.version()) == ("h2", "TLSv1.3")
    with (
        socket.create_connection(("127.0.0.1", proxy.ports["lst-3"]), timeout=PATIENCE_S) as raw,
        pytest.raises(ssl.SSLError),
    ):
        context.wrap_socket(raw, server_hostname="other.example")


def test_http_leads_to_https_where_the_same_path_is_served(proxy: RenderedProxy) -> None:
    answer = proxy.ask("lst-1", "a.example", "/secure/x")
    assert (answer.status, answer.headers["location"]) == (308, "https://a.example/secure/x")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", proxy.ports["lst-3"]), timeout=PATIENCE_S) as raw,
        context.wrap_socket(raw, server_hostname="a.example") as tls,
    ):
        tls.sendall(b"GET /secure/x HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
        assert tls.makefile("rb").readline().startswith(b"HTTP/1.1 200 ")


def test_requests_are_counted_per_route_and_latency_per_pool(proxy: RenderedProxy) -> None:
    for _ in range(5):
        proxy.ask("lst-1", "a.example", "/")
    routes, latency = proxy.command("show table st_routes"), proxy.command("show table st_latency")
    assert re.search(r"key=route-1 .*http_req_cnt=[1-9]", routes)
    assert sum(int(n) for n in re.findall(r"key=pool-1/-?[0-9]+ .*gpc0=([0-9]+)", latency)) >= 5


def test_a_host_with_a_comma_belongs_to_nobody(proxy: RenderedProxy) -> None:
    assert proxy.ask("lst-1", "a.example,evil.example", "/").status in (400, 404)
    assert proxy.ask("lst-1", "evil.example,a.example", "/").status in (400, 404)
