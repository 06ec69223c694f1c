"""The HTTP/1.1 engine in this process against a server that misbehaves in every way."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop

from apps.drivers.load.contract import Arrivals, Endpoint, Plan, Request, Second, Tls
from apps.drivers.load.histogram import merged
from apps.drivers.load.http1 import engine
from apps.drivers.load.http1.engine import Engine, wire_of
from tests.conformance.load_certificate import write_certificate
from tests.conformance.load_server import Seen, load_server
from tests.conformance.test_load_generators import errors, total

REQUESTS = 20


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with other things to do requests leave late and connections close late: neither is asked here."""
    monkeypatch.setattr(engine, "MOST_LATE_S", 60.0)
    monkeypatch.setattr(engine, "STALE_S", 60.0)


def plan_of(seen: Seen, path: str = "/", **values: Any) -> Plan:
    """20 requests in a tenth of a second to a path of the server; with `users` as many as they can."""
    usual: dict[str, Any] = {
        "endpoints": (Endpoint("127.0.0.1", seen.port),),
        "request": Request("a.example", path),
        "arrivals": Arrivals.CONSTANT,
        "ramp_s": 0.0,
        "duration_s": 0.1,
        "timeout_s": 60.0,
        "rate": 0.0 if "users" in values else REQUESTS / 0.1,
    }
    return Plan(**{**usual, **values})


def run(plan: Plan, *, quiet_at_last: bool = False) -> list[Second]:
    """Carry it out in this process; `quiet_at_last` sends nothing in its second half: all that began has an end."""

    async def carry_out() -> list[Second]:
        found: list[Second] = []
        engine = Engine(plan, found.append)
        engine.begin(time.monotonic() + 0.01)
        if quiet_at_last:
            await asyncio.sleep(plan.duration_s / 2)
            engine.set_users(0) if plan.users else engine.set_rate(0.0)
        await engine.over.wait()
        await asyncio.sleep(0.05)
        return found

    return on_the_fast_loop(carry_out())


def on_the_fast_loop(running: Coroutine[Any, Any, list[Second]]) -> list[Second]:
    """As in the generator's own process."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(running)


def outcomes(seconds: list[Second]) -> dict[int | str, int]:
    """All statuses and errors."""
    found: Counter[int | str] = Counter(errors(seconds))
    for second in seconds:
        found.update(second.statuses)
    return dict(found)


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("/", 200),
        ("/no-content", 204),
        ("/chunked", 200),
        ("/early-hints", 200),
        ("/unavailable", 503),
        ("/until-the-end", 200),
        ("/says-close", 200),
        ("/big", 200),
        ("/garbage", "protocol"),
        ("/cut-short", "reset"),
        ("/nothing", "reset"),
        ("/reset", "reset"),
    ],
)
def test_every_kind_of_answer_is_understood(path: str, outcome: int | str) -> None:
    with load_server() as seen:
        seconds = run(plan_of(seen, path))
        assert outcomes(seconds) == {outcome: total(seconds, "sent")}
        assert total(seconds, "sent") == len(seen.asked)


def test_redirects_are_counted_and_not_followed() -> None:
    with load_server() as seen:
        seconds = run(plan_of(seen, "/elsewhere"))
        assert outcomes(seconds) == {302: total(seconds, "sent")}
        assert {head.split()[1] for head in seen.heads} == {"/elsewhere"}


@pytest.mark.parametrize(("path", "status"), [("/head", 200), ("/unavailable", 503), ("/no-content", 204)])
def test_an_answer_to_head_has_no_body(path: str, status: int) -> None:
    with load_server() as seen:
        # Long enough for a second request on a machine that stands still for a while.
        seconds = run(plan_of(seen, request=Request("a.example", path, "HEAD"), users=1, duration_s=0.5))
        assert outcomes(seconds) == {status: total(seconds, "sent")}
        assert total(seconds, "sent") > 1
        assert seen.connections == 1


def test_an_answer_that_was_not_asked_for_ends_the_connection() -> None:
    with load_server() as seen:
        seconds = run(plan_of(seen, "/twice", users=1, duration_s=0.5))
        assert outcomes(seconds) == {200: total(seconds, "sent")}
        assert seen.connections == total(seconds, "sent") > 1


def test_an_answer_that_never_comes_is_given_up_and_its_connection_closed() -> None:
    with load_server() as seen:
        seconds = run(plan_of(seen, "/never", users=1, timeout_s=0.02, duration_s=0.3))
        assert set(outcomes(seconds)) == {"timeout"}
        assert total(seconds, "sent") > 1
        assert seen.most_open <= 2  # the next may come before the server has seen the last one go


def test_an_answer_longer_than_the_plan_allows_is_cut_off() -> None:
    with load_server() as seen:
        assert set(outcomes(run(plan_of(seen, "/big", max_answer_bytes=100_000)))) == {"too_big"}


def test_when_all_connections_are_busy_a_request_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "DRAIN_S", 0.01)
    with load_server() as seen:
        seconds = run(plan_of(seen, "/never", max_connections=10))
        assert outcomes(seconds) == {"refused": REQUESTS - 10}
        assert max(each.in_flight for each in seconds) == 10
        assert all(each.connections <= 10 for each in seconds)


def test_a_server_that_is_not_there_is_an_error_of_connecting() -> None:
    assert outcomes(run(plan_of(Seen(port=1)))) == {"connect": REQUESTS}


def test_connections_are_kept_and_no_more_than_needed_are_opened() -> None:
    with load_server() as seen:
        seconds = run(plan_of(seen, users=3))
        assert total(seconds, "sent") > 3
        assert seen.connections == 3


def test_without_keep_alive_each_request_has_a_connection_of_its_own() -> None:
    with load_server() as seen:
        seconds = run(plan_of(seen, keep_alive=False))
        assert outcomes(seconds) == {200: seen.connections}
        assert all("connection: close" in head.lower() for head in seen.heads)


def test_users_without_keep_alive_go_on_though_all_connections_are_theirs() -> None:
    with load_server(delay_s=0.01) as seen:
        seconds = run(plan_of(seen, users=4, max_connections=4, keep_alive=False, duration_s=0.5))
        assert set(outcomes(seconds)) == {200}
        assert total(seconds, "answered") > 4
        assert seen.most_open <= 5


def test_what_the_server_closed_while_it_was_idle_is_asked_again_on_a_new_connection() -> None:
    with load_server(closes_after=5) as seen:
        seconds = run(plan_of(seen, users=1, duration_s=1), quiet_at_last=True)
        assert outcomes(seconds) == {200: total(seconds, "sent")}
        assert seen.connections >= total(seconds, "sent") // 5 > 1


def test_what_could_do_something_twice_is_never_sent_twice() -> None:
    with load_server(closes_after=5) as seen:
        seconds = run(plan_of(seen, request=Request("a.example", method="POST", body=b"one"), users=1))
        found = outcomes(seconds)
        assert found["reset"] > 0
        assert found[200] == len(seen.asked)


def test_a_body_arrives_with_its_length() -> None:
    with load_server() as seen:
        request = Request("a.example", "/", "POST", {"content-type": "text/plain"}, b"hello")
        assert set(outcomes(run(plan_of(seen, request=request)))) == {200}
        assert set(seen.bodies) == {b"hello"}


def test_the_request_is_exactly_what_was_asked_for() -> None:
    request = Request("a.example:8080", "/p?q=1", "PUT", {"X-Load-Test": "run-17"}, b"abc")
    assert wire_of(request, keep_alive=False) == (
        b"PUT /p?q=1 HTTP/1.1\r\nHost: a.example:8080\r\nX-Load-Test: run-17\r\n"
        b"Content-Length: 3\r\nConnection: close\r\n\r\nabc"
    )
    assert wire_of(Request("a.example"), keep_alive=True) == b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"


def test_endpoints_take_turns() -> None:
    with load_server() as first, load_server() as second:
        endpoints = (Endpoint("127.0.0.1", first.port), Endpoint("127.0.0.1", second.port))
        run(plan_of(first, endpoints=endpoints))
        assert len(first.asked) == pytest.approx(len(second.asked), abs=1)


def held_up(plan: Plan, *, after_s: float, for_s: float) -> list[Second]:
    """Carry it out while this process, and with it the generator, stands still for a while."""

    async def carry_out() -> list[Second]:
        found: list[Second] = []
        engine = Engine(plan, found.append)
        engine.begin(time.monotonic() + 0.01)
        await asyncio.sleep(after_s)
        time.sleep(for_s)  # noqa: ASYNC251  # the generator itself is held up
        await engine.over.wait()
        return found

    return on_the_fast_loop(carry_out())


def test_latency_counts_from_when_the_request_was_due() -> None:
    """Whoever was due while the generator stood still waited, and the record says so."""
    with load_server() as seen:
        seconds = held_up(plan_of(seen, duration_s=0.3, max_connections=200), after_s=0.1, for_s=0.1)
        assert seconds[0].late_ms > 90
        assert seconds[0].generator_limited
        assert (merged([seconds[0].histogram]).highest() or 0) > 90_000
        assert total(seconds, "sent") == total(seconds, "offered")


def test_a_generator_that_missed_its_time_does_not_catch_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_LATE_S", 0.25)
    with load_server() as seen:
        plan = plan_of(seen, rate=1000.0, duration_s=0.6, max_connections=500)
        seconds = held_up(plan, after_s=0.05, for_s=0.5)
        assert total(seconds, "offered") == pytest.approx(600, abs=1)
        assert total(seconds, "sent") <= 400
        assert seconds[0].generator_limited


@pytest.mark.parametrize(("renewed", "goes_on"), [(False, False), (True, True)])
def test_a_lease_that_nobody_renews_ends_it(monkeypatch: pytest.MonkeyPatch, *, renewed: bool, goes_on: bool) -> None:
    monkeypatch.setattr(engine, "LEASE_S", 0.4)

    async def carry_out() -> str:
        made = Engine(plan_of(seen, duration_s=60.0), lambda _: None)
        made.begin(time.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(0.6):
                while not made.over.is_set():
                    made.renew() if renewed else None
                    await asyncio.sleep(0.01)
        return made.why

    with load_server() as seen, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert (runner.run(carry_out()) == "") is goes_on


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    """A server's side of TLS for a.example, and the file of who signed it."""
    chain, key = write_certificate(tmp_path_factory.mktemp("tls"), "a.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    return context, chain


def test_tls_is_spoken_and_verified(signed: tuple[ssl.SSLContext, Path]) -> None:
    context, chain = signed
    with load_server(context) as seen:
        plan = plan_of(seen, tls=Tls("a.example", str(chain)), ramp_s=0.1)
        assert set(outcomes(run(plan))) == {200}


@pytest.mark.parametrize(("name", "trusted"), [("b.example", True), ("a.example", False)])
def test_a_certificate_that_does_not_fit_is_an_error(
    signed: tuple[ssl.SSLContext, Path], name: str, trusted: bool
) -> None:
    context, chain = signed
    with load_server(context) as seen:
        plan = plan_of(seen, tls=Tls(name, str(chain) if trusted else ""), ramp_s=0.1)
        assert set(outcomes(run(plan))) == {"tls"}
        assert seen.asked == []
        assert set(outcomes(run(replace(plan, tls=replace(plan.tls or Tls(name), verify=False))))) == {200}
