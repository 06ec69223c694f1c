"""Redirects and cookies of servers as clients get them by policy, in a real HAProxy, beside what stays as it is."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import ClientAddress
from apps.compiler.model.policy import ResponseRewrite, Rules
from apps.compiler.model.shared import Redirect
from apps.compiler.policies import rule_set
from tests.conformance.plain_servers import answering, read_until
from tests.e2e.rendered_proxy import RenderedProxy, running
from tests.pure.compiler_fixtures import front, listener, pool, route, server, snapshot

pytestmark = pytest.mark.e2e

CASES: dict[str, ResponseRewrite | None] = {
    "moved": ResponseRewrite("http://App.internal:8080/a.b/", "/shop/"),
    "upgraded": ResponseRewrite("http://", "https://"),
    "rooted": ResponseRewrite("/inner", "/outer"),
    "secure": ResponseRewrite(secure_cookies=True),
    "plain": None,
}


def say(connection: socket.socket) -> None:
    """Answers with the headers that the request names in X-Say."""
    while head := read_until(connection, b"\r\n\r\n"):
        said = next(line[7:] for line in head.split(b"\r\n") if line.lower().startswith(b"x-say: "))
        headers = b"".join(f"{name}: {value}\r\n".encode() for name, value in json.loads(said))
        connection.sendall(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n" + headers + b"\r\n")


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    sets = {name: rule_set(Rules(response_rewrite=said)) for name, said in CASES.items() if said}
    routes = [
        route(number, f"{name}.example", rule_set=sets[name].id if name in sets else "")
        for number, name in enumerate(CASES, 1)
    ]
    own = route(90, "upgraded.example", "/own", rule_set=sets["upgraded"].id, redirect=Redirect(302, host="x.example"))
    trusting = ClientAddress(forwarded_from=("127.0.0.0/8",))
    whole = front(*routes, own, listeners=(listener(1, client_address=trusting),))
    served = replace(whole, rule_sets=tuple(sets.values()))
    with answering(say) as port:
        pools = (pool(1, servers=(server(1, address="127.0.0.1", port=port),)),)
        compilation = compile_snapshot(snapshot(served, pools=pools, local_development=True))
        assert compilation.left_out == ()
        with running(compilation.output, tmp_path_factory.mktemp("rewrite")) as found:
            yield found


def got(proxy: RenderedProxy, case: str, header: str, value: str, scheme: str = "http") -> str:
    """A header of the server as the client of a route gets it."""
    told = {"X-Say": json.dumps([[header, value]]), "X-Forwarded-Proto": scheme, "X-Forwarded-For": "192.0.2.1"}
    return proxy.ask("lst-1", f"{case}.example", "/", "GET", told).headers[header.lower()]


@pytest.mark.parametrize(
    ("case", "said", "location"),
    [
        ("moved", "http://app.internal:8080/a.b/c?d=1", "/shop/c?d=1"),
        ("moved", "HTTP://APP.internal:8080/a.b/", "/shop/"),
        ("moved", "http://app.internal:8080/A.B/c", "http://app.internal:8080/A.B/c"),
        ("moved", "http://app.internal:8080/a-b/c", "http://app.internal:8080/a-b/c"),
        ("moved", "https://b.example/?u=http://app.internal:8080/a.b/", "https://b.example/?u=http://app.internal:8080/a.b/"),
        ("upgraded", "http://x.example/100%25", "https://x.example/100%25"),
        ("rooted", "/inner/a", "/outer/a"),
        ("plain", "http://app.internal:8080/a.b/c", "http://app.internal:8080/a.b/c"),
    ],
)  # fmt: skip
def test_a_location_of_servers_begins_as_the_policy_says(
    proxy: RenderedProxy, case: str, said: str, location: str
) -> None:
    assert got(proxy, case, "Location", said) == location


def test_redirects_of_our_own_stay(proxy: RenderedProxy) -> None:
    assert proxy.ask("lst-1", "upgraded.example", "/own").headers["location"] == "http://x.example/own"


@pytest.mark.parametrize(
    ("scheme", "cookie", "wanted"),
    [
        ("https", "a=1; Path=/", "a=1; Path=/; Secure"),
        ("https", "a=1; secure; HttpOnly", "a=1; secure; HttpOnly"),
        ("https", "secure=1", "secure=1; Secure"),
        ("http", "a=1", "a=1"),
    ],
)
def test_cookies_of_servers_are_secure_where_clients_use_https(
    proxy: RenderedProxy, scheme: str, cookie: str, wanted: str
) -> None:
    assert got(proxy, "secure", "Set-Cookie", cookie, scheme) == wanted
    assert got(proxy, "plain", "Set-Cookie", cookie, scheme) == cookie
