"""Traces through a real HAProxy: what came, what goes on to the server, and what the line says of both."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import TraceMode, Tracing
from apps.compiler.model.shared import FixedResponse
from apps.logs.forward.spans import spans
from apps.logs.lines import Line
from apps.logs.meaning import Named, Names, record_of
from tests.e2e.rendered_proxy import RenderedProxy, echo_servers, running
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
THEIRS = f"00-{TRACE}-{SPAN}-01"
MAKE, KEEP, TRUSTED, HALF, OTHERS, OFF = "lst-1", "lst-2", "lst-3", "lst-4", "lst-5", "lst-6"
NS = 10**6
HERE = ("127.0.0.0/8",)
LISTENERS = {
    MAKE: Tracing(sample_percent=100),
    KEEP: Tracing(TraceMode.KEEP, sample_percent=0),
    TRUSTED: Tracing(sample_percent=0, sampled_from=HERE),
    HALF: Tracing(sample_percent=50),
    OTHERS: Tracing(sample_percent=0, sampled_from=("192.0.2.0/24",)),
    OFF: None,
}
OURS = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-0([01])")
# What is no traceparent of W3C Trace Context.
MALFORMED = {
    "empty": "",
    "no version": f"{TRACE}-{SPAN}-01",
    "version ff": f"ff-{TRACE}-{SPAN}-01",
    "more after version 00": f"{THEIRS}-what-the-future-will-be",
    "more after a later version without a dash": f"cc-{TRACE}-{SPAN}-01.what",
    "capital letters": f"00-{TRACE.upper()}-{SPAN}-01",
    "a capital version": f"CC-{TRACE}-{SPAN}-01",
    "trace of zeros": f"00-{'0' * 32}-{SPAN}-01",
    "span of zeros": f"00-{TRACE}-{'0' * 16}-01",
    "short trace": f"00-{TRACE[:-1]}-{SPAN}-01",
    "long span": f"00-{TRACE}-{SPAN}0-01",
    "no hexadecimal": f"00-{TRACE[:-1]}g-{SPAN}-01",
    "no flags": f"00-{TRACE}-{SPAN}-",
    "two in one": f"{THEIRS},{THEIRS}",
    "a quote": f'"{THEIRS}"',
    "a tab within": f"00-{TRACE}\t{SPAN}-01",
    "a line of the log": f"{THEIRS}\tR1",
    "a very long one": "0" * 5000,
}


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    """A pool that echoes, and an answer of the load balancer's own, behind listeners that say each thing of traces."""
    with echo_servers(1) as ports:
        listeners = tuple(listener(int(name[4:]), tracing=said) for name, said in LISTENERS.items())
        routes = (route(1), route(2, path="/fixed", fixed_response=FixedResponse(418)))
        pools = (pool(1, servers=(server(1, address="127.0.0.1", port=ports[0]),)),)
        given = snapshot(front(*routes, listeners=listeners), pools=pools, local_development=True)
        compilation = compile_snapshot(given)
        assert not compilation.left_out, compilation.left_out
        with running(compilation.output, tmp_path_factory.mktemp("traces")) as found:
            yield found


class Asked:
    """One request, with its headers as bytes: what the server got, and the line."""

    def __init__(self, proxy: RenderedProxy, name: str, *headers: str, path: str = "/") -> None:
        before = len(proxy.lines(0))
        told = "".join(f"{each}\r\n" for each in headers)
        request = f"GET {path} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n{told}\r\n".encode()
        with socket.create_connection(("127.0.0.1", proxy.ports[name]), timeout=30) as stream:
            stream.sendall(request)
            self.answer = b"".join(iter(lambda: stream.recv(65536), b"")).decode()
        self.line: Line = proxy.lines(before + 1)[before]

    def got(self, header: str) -> list[str]:
        """The values of a header that the server saw."""
        found = re.search(rf'"{header}": \[([^\]]*)\]', self.answer)
        return re.findall(r'"([^"]*)"', found[1]) if found else []

    @property
    def ours(self) -> tuple[str, str, str]:
        """Trace, span and flag that the server got; there is exactly one traceparent."""
        (header,) = self.got("traceparent")
        found = OURS.fullmatch(header)
        assert found is not None, header
        return found[1], found[2], found[3]


def test_a_trace_goes_through_with_our_span_as_the_servers_parent(proxy: RenderedProxy) -> None:
    for name in (MAKE, KEEP, TRUSTED):
        asked = Asked(proxy, name, f"traceparent: {THEIRS}", "tracestate: a=1", "tracestate: b=2")
        trace, span, flag = asked.ours
        assert trace == TRACE
        assert span == asked.line.id[16:]
        assert asked.got("tracestate") == ["a=1", "b=2"]
        line = asked.line
        assert (line.trace_id, line.span_id, line.parent_span_id) == (trace, span, SPAN)
        assert line.sampled is (flag == "1")


def test_a_trace_that_begins_here_has_the_id_of_the_request(proxy: RenderedProxy) -> None:
    asked, again = Asked(proxy, MAKE), Asked(proxy, MAKE)
    trace, span, flag = asked.ours
    assert trace == asked.line.id == asked.line.trace_id
    assert (asked.line.span_id, asked.line.parent_span_id, asked.line.sampled, flag) == (span, "", True, "1")
    assert again.ours[0] != trace
    assert again.ours[1] != span


def test_where_traces_are_only_kept_none_begins(proxy: RenderedProxy) -> None:
    asked = Asked(proxy, KEEP, "tracestate: a=1")
    assert (asked.got("traceparent"), asked.got("tracestate")) == ([], [])
    assert (asked.line.trace_id, asked.line.span_id, asked.line.sampled) == ("", "", None)


@pytest.mark.parametrize("value", MALFORMED.values(), ids=MALFORMED)
def test_what_is_malformed_never_goes_on(proxy: RenderedProxy, value: str) -> None:
    made = Asked(proxy, MAKE, f"traceparent: {value}", "tracestate: a=1")
    assert made.ours[0] == made.line.id == made.line.trace_id
    assert (made.got("tracestate"), made.line.parent_span_id) == ([], "")
    kept = Asked(proxy, KEEP, f"traceparent: {value}", "tracestate: a=1")
    assert (kept.got("traceparent"), kept.got("tracestate"), kept.line.trace_id) == ([], [], "")


def test_two_traceparents_are_none(proxy: RenderedProxy) -> None:
    asked = Asked(proxy, MAKE, f"traceparent: {THEIRS}", f"Traceparent: 00-{TRACE[::-1]}-{SPAN}-01", "tracestate: a=1")
    assert asked.ours[0] == asked.line.id
    assert asked.got("tracestate") == []
    assert Asked(proxy, KEEP, f"traceparent: {THEIRS}", f"traceparent: {THEIRS}").got("traceparent") == []


@pytest.mark.parametrize("value", [f"cc-{TRACE}-{SPAN}-09", f"01-{TRACE}-{SPAN}-01-more", f"  {THEIRS}  "])
def test_a_later_version_is_read_as_ours_and_ours_goes_on(proxy: RenderedProxy, value: str) -> None:
    assert Asked(proxy, TRUSTED, f"traceparent: {value}").ours[::2] == (TRACE, "1")


def test_who_decides_about_sampling(proxy: RenderedProxy) -> None:
    for flags, flag in (("01", "1"), ("00", "0"), ("ff", "1"), ("fe", "0")):
        asked = Asked(proxy, TRUSTED, f"traceparent: 00-{TRACE}-{SPAN}-{flags}")
        assert (asked.ours[2], asked.line.sampled) == (flag, flag == "1")
    assert Asked(proxy, TRUSTED).ours[2] == "0"
    for name in (KEEP, OTHERS):
        assert Asked(proxy, name, f"traceparent: {THEIRS}").ours[2] == "0", "its network is not named"
    assert Asked(proxy, MAKE, f"traceparent: 00-{TRACE}-{SPAN}-00").ours[2] == "1", "its network is not named"


def test_of_a_share_as_many_are_sampled(proxy: RenderedProxy) -> None:
    before = len(proxy.lines(0))
    for _ in range(200):
        proxy.ask(HALF, "a.example", "/", headers={"traceparent": THEIRS})
    sampled = sum(line.sampled is True for line in proxy.lines(before + 200)[before:])
    assert 50 < sampled < 150


def test_the_servers_parent_is_the_span_that_is_sent_of_the_line(proxy: RenderedProxy) -> None:
    before = round(time.time() * 1000) * NS
    asked = Asked(proxy, MAKE, f"traceparent: {THEIRS}", path="/slow-enough")
    names = Names("n1", "f1", "region-a", {MAKE: (Named("front", 7), "web")})
    record = record_of(asked.line, names)
    assert record is not None
    ((span,),) = [scope["spans"] for scope in spans([record], {7: "acme"})["resourceSpans"][0]["scopeSpans"]]
    assert (span["traceId"], span["parentSpanId"], span["spanId"]) == (TRACE, SPAN, asked.ours[1])
    begun, ended = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    assert before - 2 * NS <= begun <= ended <= round(time.time() * 1000) * NS + 2 * NS


def test_an_answer_of_our_own_is_in_the_trace(proxy: RenderedProxy) -> None:
    line = Asked(proxy, MAKE, f"traceparent: {THEIRS}", path="/fixed").line
    assert (line.status, line.trace_id, line.parent_span_id) == (418, TRACE, SPAN)


def test_a_long_request_keeps_its_trace_in_the_line(proxy: RenderedProxy) -> None:
    asked = Asked(proxy, MAKE, f"traceparent: {THEIRS}", path="/" + '"' * 6000)
    assert asked.line.trace_id == TRACE


def test_a_listener_that_says_nothing_touches_nothing(proxy: RenderedProxy) -> None:
    """The control: what is malformed is malformed at the server as well."""
    asked = Asked(proxy, OFF, f"traceparent: {MALFORMED['capital letters']}", "tracestate: a=1")
    assert asked.got("traceparent") == [MALFORMED["capital letters"]]
    assert asked.got("tracestate") == ["a=1"]
    assert (asked.line.trace_id, asked.line.sampled) == ("", None)
