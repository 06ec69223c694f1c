"""The Forwarded header (RFC 7239) in a real HAProxy: believed from named proxies alone, however it is written."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from ipaddress import ip_address

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import ClientAddress
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, echo_servers, running
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

STRANGER, PROXY, INNER, OTHER = "127.0.0.9", "127.0.0.2", "127.0.0.3", "127.0.0.4"
TRUSTED = ClientAddress((), (f"{OTHER}/32",), (f"{PROXY}/32", f"{INNER}/32", "2001:db8:1::/48"))
SENDING = ClientAddress((), (f"{OTHER}/32",), (f"{PROXY}/32",), send_forwarded=True)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    """lst-1 believes two proxies; lst-2 one, and tells servers in the same header."""
    listeners = (listener(1, client_address=TRUSTED), listener(2, client_address=SENDING))
    with echo_servers(1) as ports:
        pools = (pool(1, servers=(server(1, address="127.0.0.1", port=ports[0]),)),)
        made = snapshot(front(route(1), listeners=listeners), pools=pools, local_development=True)
        compiled = compile_snapshot(made)
        assert compiled.left_out == ()
        with running(compiled.output, tmp_path_factory.mktemp("forwarded")) as started:
            yield started


def told(proxy: RenderedProxy, *headers: tuple[str, str], source: str = PROXY, number: int = 1) -> dict[str, list[str]]:
    """What the server got when somebody at this address sent these headers."""
    port = proxy.ports[f"lst-{number}"]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S / 4, source_address=(source, 0))
    try:
        connection.putrequest("GET", "/", skip_host=True)
        connection.putheader("Host", "a.example")
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
        found: dict[str, list[str]] = json.loads(body)["headers"]
        return found
    finally:
        connection.close()


def client(proxy: RenderedProxy, *values: str, source: str = PROXY) -> str:
    """Where the client is, if this is what Forwarded says."""
    [found] = told(proxy, *(("Forwarded", value) for value in values), source=source)["x-forwarded-for"]
    return str(ip_address(found))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("for=192.0.2.60", "192.0.2.60"),
        ("For=192.0.2.60;Proto=https;By=203.0.113.43", "192.0.2.60"),
        ('for="192.0.2.60:47011"', "192.0.2.60"),
        ('for="192.0.2.60:_obf"', "192.0.2.60"),
        ('for="[2001:db8:cafe::17]:4711"', "2001:db8:cafe::17"),
        ('by=_x;for="[2001:db8:cafe::17]"', "2001:db8:cafe::17"),
        ("for=198.51.100.1, for=192.0.2.60", "192.0.2.60"),  # the last one is whom the proxy saw
        (f"for=192.0.2.60, for={INNER}", "192.0.2.60"),  # which was a proxy of ours
        ('for=192.0.2.60, for="[2001:db8:1::5]"', "192.0.2.60"),
        (f"for=198.51.100.1, for=_hidden, for={INNER}", INNER),  # nobody knows whom that one saw
        ('host="a;for=6.6.6.6";for=192.0.2.60', "192.0.2.60"),  # what is quoted is no parameter
        (r'host="a\";for=6.6.6.6";for=192.0.2.60', "192.0.2.60"),
        ('for=192.0.2.60;host="x,for=6.6.6.6"', "192.0.2.60"),
    ],
)
def test_the_client_is_whom_a_trusted_proxy_names(proxy: RenderedProxy, value: str, expected: str) -> None:
    assert client(proxy, value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "for=unknown",
        "for=_gazonk",
        'for="_gazonk:80"',
        "for=2001:db8::17",  # an address of IPv6 is quoted and in brackets
        'for="2001:db8::17"',
        "for=192.0.2.999",
        "for=6.6.6.6;for=7.7.7.7",
        "for = 6.6.6.6",
        "xfor=6.6.6.6",
        "6.6.6.6",
        'by="for=6.6.6.6"',
        'for="6.6.6.6',
        'for="6.6.6.6, for=7.7.7.7',
        "for=6.6.6.6;proto",
        "for=6.6.6.6; proto=https",
        "for=",
        ";;;",
        "",
        ";" * 6000,
        "a=b;" * 1500 + "for",
        'a="' + "\\" * 5001,
    ],
)
def test_what_names_nobody_leaves_the_proxy_as_the_client(proxy: RenderedProxy, value: str) -> None:
    assert client(proxy, value) == PROXY


def test_several_headers_are_read_as_one_list(proxy: RenderedProxy) -> None:
    assert client(proxy, "for=6.6.6.6", "for=192.0.2.60") == "192.0.2.60"
    assert client(proxy, 'for="6.6.6.6', "for=192.0.2.60") == "192.0.2.60"


def test_nobody_else_is_believed(proxy: RenderedProxy) -> None:
    assert client(proxy, "for=6.6.6.6;proto=https", source=STRANGER) == STRANGER
    found = told(proxy, ("Forwarded", "for=6.6.6.6;proto=https"), source=STRANGER)
    assert (found["x-forwarded-proto"], found.get("forwarded")) == (["http"], None)


def test_each_proxy_is_believed_for_the_one_header_that_it_writes(proxy: RenderedProxy) -> None:
    both = (("Forwarded", "for=192.0.2.60"), ("X-Forwarded-For", "192.0.2.61"), ("X-Forwarded-Proto", "https"))
    assert told(proxy, *both)["x-forwarded-for"] == ["192.0.2.60"]
    assert told(proxy, *both)["x-forwarded-proto"] == ["http"]  # a client may have written it
    assert told(proxy, *both, source=OTHER)["x-forwarded-for"] == ["192.0.2.61"]
    only_spoofed = (("X-Forwarded-For", "6.6.6.6"),)
    assert told(proxy, *only_spoofed)["x-forwarded-for"] == [PROXY]


def test_the_scheme_is_that_of_the_element_that_names_the_client(proxy: RenderedProxy) -> None:
    found = told(proxy, ("Forwarded", f"for=192.0.2.60;proto=https, for={INNER};proto=http"))
    assert (found["x-forwarded-proto"], found["x-forwarded-port"]) == (["https"], ["443"])
    odd = told(proxy, ("Forwarded", "for=192.0.2.60;proto=gopher"))
    assert odd["x-forwarded-proto"] == ["http"]


def test_servers_get_one_element_of_ours_whatever_was_written(proxy: RenderedProxy) -> None:
    spoofed = told(proxy, ("Forwarded", "for=6.6.6.6"), ("Forwarded", "secret=x"), source=STRANGER, number=2)
    assert spoofed["forwarded"] == [f'for={STRANGER};host="a.example";proto=http']
    six = told(proxy, ("Forwarded", 'for="[2001:db8:cafe::17]";proto=https'), number=2)
    assert six["forwarded"] == ['for="[2001:db8:cafe::17]";host="a.example";proto=https']
    assert "forwarded" not in told(proxy, ("Forwarded", "for=192.0.2.60"))
