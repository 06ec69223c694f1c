"""A capacity test's own requests in real HAProxy: served at home over the limit, and nobody else's are."""

from __future__ import annotations

import http.client
import secrets
import socket
import ssl
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import BypassToken
from apps.compiler.model.shared import Certificate, Listener, Protocol, WhenFull
from tests.e2e import rendered_proxy
from tests.e2e.limit_windows import in_ten_seconds
from tests.e2e.overflow_env import (
    KEY,
    POOL,
    TESTS_MAP,
    OverflowEnv,
    RegionSetup,
    in_flight,
    rate,
    regions,
)
from tests.e2e.region_servers import HOST
from tests.pure.compiler_fixtures import certificate_pem

pytestmark = pytest.mark.e2e

PATIENCE_S = 60.0  # of a busy machine
EXEMPTION = "http-request unset-var(txn.why) if { var(txn.bypass),strcmp(txn.pool)"


def digest_of(token: str) -> str:
    """As the control plane stores it."""
    return sha256(token.encode()).hexdigest()


def headers_with(token: str) -> dict[str, str]:
    """What a generator sends."""
    return {"X-Spillway-Test": token, "X-Load-Test": "run-17", "User-Agent": "Spillway-CapacityTest/1"}


def add_token(env: OverflowEnv, token: str, pool: str = POOL) -> None:
    """The runtime operation by which a run begins."""
    env.nodes[0][0].command(f"add map {TESTS_MAP} {digest_of(token)} {pool}")


def asked(env: OverflowEnv, count: int, headers: Mapping[str, str]) -> Counter[str]:
    """Requests in region 1, as fast as they come; counts by region or status."""
    answers = [env.nodes[0][0].ask(headers=headers) for _ in range(count)]
    return Counter(answer.region or str(answer.status) for answer in answers)


@pytest.fixture
def env(fresh: OverflowEnv) -> OverflowEnv:
    """15 requests in ten seconds in the first region, and plenty in the second."""
    fresh.set_limit(2, "1500|10000||backend", where=[0, 1])
    return fresh


def test_twice_the_limit_stays_at_home_with_a_bypass_token_and_spills_without(env: OverflowEnv) -> None:
    token = secrets.token_urlsafe(24)
    add_token(env, token)
    assert asked(env, 30, headers_with(token)) == {"rgn-1": 30}
    assert env.nodes[0][0].flows() == {}
    assert asked(env, 10, {}) == {"rgn-2": 10}  # those with a bypass token counted in the limit


def test_a_wrong_token_opens_nothing(env: OverflowEnv) -> None:
    token = secrets.token_urlsafe(24)
    add_token(env, token)
    for wrong in (secrets.token_urlsafe(24), digest_of(token), f"{token},x", f"x,{token}", token[:-1], ""):
        assert asked(env, 20, headers_with(wrong))["rgn-2"] >= 4, wrong


def test_a_bypass_token_of_another_pool_opens_nothing_here(env: OverflowEnv) -> None:
    token = secrets.token_urlsafe(24)
    add_token(env, token, pool="pool-2")
    assert asked(env, 30, headers_with(token)) == {"rgn-1": 15, "rgn-2": 15}


def test_a_bypass_token_that_was_taken_back_opens_nothing_any_more(env: OverflowEnv) -> None:
    token = secrets.token_urlsafe(24)
    add_token(env, token)
    assert asked(env, 20, headers_with(token)) == {"rgn-1": 20}
    env.nodes[0][0].command(f"del map {TESTS_MAP} {digest_of(token)}")
    assert asked(env, 5, headers_with(token)) == {"rgn-2": 5}


def test_the_token_reaches_no_server_and_the_name_of_the_run_does(env: OverflowEnv) -> None:
    token = secrets.token_urlsafe(24)
    add_token(env, token)
    answer = env.nodes[0][0].ask(headers=headers_with(token))
    marks = answer.headers["x-marks"]
    assert "x-load-test" in marks
    assert "x-spillway" not in marks


def test_a_drained_region_stays_closed_for_tests(env: OverflowEnv) -> None:
    token = secrets.token_urlsafe(24)
    add_token(env, token)
    env.set_limit(1, "0|0|0|backend", where=[0])
    assert asked(env, 3, headers_with(token)) == {"rgn-2": 3}


def test_overflow_ports_know_no_bypass_token(env: OverflowEnv) -> None:
    token = secrets.token_urlsafe(24)
    add_token(env, token)
    port = env.nodes[0][0].facts.overflow_port
    guest = {"x-spillway-key": KEY, "x-spillway-pool": POOL, "x-spillway-from": "rgn-2", **headers_with(token)}
    statuses = Counter(status_of_guest(port, guest) for _ in range(20))
    assert statuses == {200: 15, 425: 5}


def status_of_guest(port: int, headers: Mapping[str, str]) -> int:
    """The status of one request as another region's node sends it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/", headers={"Host": HOST, **headers})
        return connection.getresponse().status
    finally:
        connection.close()


def test_without_the_exemption_a_bypass_token_is_worth_nothing() -> None:
    with regions(RegionSetup(rate(10)), RegionSetup(rate(1000)), without=EXEMPTION) as env:
        token = secrets.token_urlsafe(24)
        add_token(env, token)
        assert asked(env, 30, headers_with(token)) == {"rgn-1": 15, "rgn-2": 15}


def test_a_limit_in_flight_is_exempt_as_well() -> None:
    with regions(RegionSetup(in_flight(1), held=True), RegionSetup(rate(1000))) as env:
        token = secrets.token_urlsafe(24)
        add_token(env, token)
        assert env.asked_together(4, headers_with(token)) == {"rgn-1": 4}
        assert env.asked_together(4) == {"rgn-1": 1, "rgn-2": 3}


def test_bypass_tokens_work_behind_tls(tmp_path: Path) -> None:
    """One region that refuses what is over: with a bypass token nothing is."""
    token = secrets.token_urlsafe(24)
    with regions(RegionSetup(rate(10)), when_full=WhenFull.REFUSE) as env:
        honest = env.snapshot(0)
        pem = Certificate("crt-1", "acme/shop", "acme", certificate_pem(HOST), (HOST,))
        listener = Listener("lst-1", "web", Protocol.HTTPS, 443, certificate_ids=("crt-1",))
        fronts = tuple(replace(front, listeners=(listener,)) for front in honest.load_balancers)
        tested = replace(
            honest, load_balancers=fronts, certificates=(pem,), bypass_tokens=(BypassToken(digest_of(token), POOL),)
        )
        with rendered_proxy.running(in_ten_seconds(compile_snapshot(tested).output), tmp_path) as proxy:
            statuses = [
                Counter(over_tls(proxy.ports["lst-1"], headers) for _ in range(20))
                for headers in ({}, headers_with(token))
            ]
    assert statuses == [{200: 15, 503: 5}, {200: 20}]


def over_tls(port: int, headers: Mapping[str, str]) -> int:
    """The status of one request; who signed the certificate is not the question here."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPConnection("127.0.0.1", port)
    plain = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    connection.sock = context.wrap_socket(plain, server_hostname=HOST)
    try:
        connection.request("GET", "/", headers={"Host": HOST, **headers})
        return connection.getresponse().status
    finally:
        connection.close()
