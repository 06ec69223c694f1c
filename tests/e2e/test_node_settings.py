"""What an operator says of the nodes of a fleet, asked of a real HAProxy."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import ListenerTls, TlsPreset
from apps.compiler.model.node_settings import NodeSettings
from apps.compiler.model.shared import Certificate, FixedResponse, Protocol
from tests.e2e.rendered_proxy import RenderedProxy, running
from tests.e2e.test_listener_options import TLS12, shaken
from tests.e2e.test_relayed_clients import come, denied
from tests.pure.compiler_fixtures import certificate_pem, front, listener, route, snapshot

pytestmark = pytest.mark.e2e


@contextmanager
def node(directory: Path, said: NodeSettings | None) -> Iterator[RenderedProxy]:
    """A node of which an operator said this."""
    secure = listener(2, protocol=Protocol.HTTPS, certificate_ids=("crt-1",))
    listeners = (listener(1), secure, replace(secure, id="lst-3", port=8083, tls=ListenerTls(TlsPreset.INTERMEDIATE)))
    certificates = (Certificate("crt-1", "a", "acme", certificate_pem("a.example"), ("a.example",)),)
    made = snapshot(front(route(1, fixed_response=FixedResponse(200)), listeners=listeners), certificates=certificates)
    compiled = compile_snapshot(replace(made, node_settings=said))
    assert not compiled.left_out
    with running(compiled.output, directory) as proxy:
        yield proxy


def info(proxy: RenderedProxy, name: str) -> int:
    """A number of `show info`."""
    lines = dict(line.split(": ", 1) for line in proxy.command("show info").splitlines() if ": " in line)
    return int(lines[name])


def test_a_node_has_the_size_that_it_is_told(tmp_path: Path) -> None:
    with node(tmp_path, NodeSettings(max_connections=300, threads=1, buffer_bytes=32_768)) as proxy:
        assert (info(proxy, "Maxconn"), info(proxy, "Nbthread")) == (300, 1)
        long = {"X-Long": "x" * 20_000}
        assert proxy.ask("lst-1", "a.example", "/", headers=long).status == 200
    with node(tmp_path, None) as proxy:
        assert info(proxy, "Maxconn") > 300
        assert proxy.ask("lst-1", "a.example", "/", headers=long).status == 400


@pytest.mark.parametrize(("said", "some"), [(NodeSettings(max_connections=200), True), (None, False)])
def test_shares_are_parts_of_what_the_node_is_told(tmp_path: Path, said: NodeSettings | None, some: bool) -> None:
    with node(tmp_path, said) as proxy:
        clients: list[socket.socket] = []
        come(proxy, clients, 1, "127.0.0.9", [b""] * 190)
        assert (denied(proxy, 1) > 0) is some
        for client in clients:
            client.close()


def test_a_fleet_offers_its_preset_where_a_listener_says_nothing(tmp_path: Path) -> None:
    with node(tmp_path, NodeSettings(tls_preset=TlsPreset.MODERN)) as proxy:
        assert [bool(shaken(proxy, number, *TLS12)) for number in (2, 3)] == [False, True]
        assert shaken(proxy, 2, "-tls1_3")
    with node(tmp_path, NodeSettings()) as proxy:
        assert [bool(shaken(proxy, number, *TLS12)) for number in (2, 3)] == [True, True]
