"""Challenges of certificate authorities, answered by a real HAProxy before everything that the host does otherwise."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Challenge
from apps.compiler.model.shared import Redirect
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, running
from tests.pure.compiler_fixtures import front, route, snapshot

pytestmark = pytest.mark.e2e

TOKEN, ANSWER = "token-of-a-test-1", "token-of-a-test-1.thumbprint_of-the-key"
PATH = f"/.well-known/acme-challenge/{TOKEN}"


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    """Every host is redirected; a.example has an order under way."""
    routes = (route(1, redirect=Redirect(301, "https")), route(2, "b.example", redirect=Redirect(301, "https")))
    made = snapshot(front(*routes), pools=(), challenges=(Challenge("a.example", TOKEN, ANSWER),))
    compiled = compile_snapshot(made)
    assert compiled.left_out == ()
    with running(compiled.output, tmp_path_factory.mktemp("challenges")) as started:
        yield started


def ask(proxy: RenderedProxy, host: str, path: str = PATH) -> tuple[int, str]:
    """Status and body."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.ports["lst-1"], timeout=PATIENCE_S / 4)
    try:
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("host", ["a.example", "a.example:80", "A.Example"])
def test_the_answer_comes_before_the_redirect_of_the_host(proxy: RenderedProxy, host: str) -> None:
    assert ask(proxy, host) == (200, ANSWER)


@pytest.mark.parametrize(
    ("host", "path"),
    [
        ("b.example", PATH),  # no order of this host
        ("a.example", PATH + "x"),
        ("a.example", PATH[:-1]),
        ("a.example", PATH.upper()),
        ("a.example", f"/x{PATH}"),
        ("a.example", "/.well-known/acme-challenge/"),
    ],
)
def test_everything_else_is_what_the_host_does_otherwise(proxy: RenderedProxy, host: str, path: str) -> None:
    assert ask(proxy, host, path)[0] == 301
