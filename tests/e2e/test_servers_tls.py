"""TLS to servers through real HAProxy: whose certificates are taken, what is shown, and what is refused."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Snapshot
from apps.compiler.model.servers import ServerTls, TlsVersion, Verify
from apps.compiler.model.shared import Certificate, HealthCheck
from tests.authorities import Authority
from tests.e2e.rendered_proxy import running
from tests.e2e.tls_servers import context_of, tls_server
from tests.pure.compiler_fixtures import front, pool, route, server, snapshot

pytestmark = pytest.mark.e2e
NAME = "shop.internal.example"
HOST = "a.example"


def fleet_of(port: int, tls: ServerTls, **fields: Any) -> Snapshot:
    """A pool of one server behind TLS."""
    one = pool(1, servers=(server(1, address="127.0.0.1", port=port),), server_tls=tls, **fields)
    return snapshot(front(route(1)), pools=(one,), local_development=True)


def status(fleet_of: Snapshot, directory: Path, host: str = HOST) -> int:
    """What a client gets."""
    compilation = compile_snapshot(fleet_of)
    assert compilation.left_out == ()
    with running(compilation.output, directory) as proxy:
        return proxy.ask("lst-1", host, "/").status


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 200),
        ({"server_name": "other.example"}, 503),
        ({"server_name": ""}, 503),  # the host of the request is another
        ({"verify": Verify.SYSTEM, "ca": ""}, 503),
        ({"verify": Verify.NONE, "ca": "", "server_name": "other.example"}, 200),
    ],
)
def test_a_server_is_asked_only_if_its_certificate_is_for_it_and_of_a_known_authority(
    authority: Authority, tmp_path: Path, changes: dict[str, Any], expected: int
) -> None:
    tls = replace(ServerTls(Verify.CA, authority.pem, NAME), **changes)
    with tls_server(context_of(authority, NAME, tmp_path)) as port:
        assert status(fleet_of(port, tls), tmp_path) == expected


def test_a_server_of_another_authority_is_asked_nothing(authority: Authority, tmp_path: Path) -> None:
    with tls_server(context_of(Authority(), NAME, tmp_path)) as port:
        assert status(fleet_of(port, ServerTls(Verify.CA, authority.pem, NAME)), tmp_path) == 503


def test_without_a_name_the_certificate_is_for_the_host_that_is_asked_for(authority: Authority, tmp_path: Path) -> None:
    tls = ServerTls(Verify.CA, authority.pem)
    with tls_server(context_of(authority, HOST, tmp_path)) as port:
        assert status(fleet_of(port, tls), tmp_path) == 200
    with tls_server(context_of(authority, NAME, tmp_path)) as port:
        assert status(fleet_of(port, tls, host_header=NAME), tmp_path) == 200


def test_a_server_that_asks_for_a_certificate_is_shown_the_pools(authority: Authority, tmp_path: Path) -> None:
    ours = Certificate("crt-3", "acme/client", "acme", authority.signed("client.example"), ("client.example",))
    with tls_server(context_of(authority, NAME, tmp_path, asks_clients=True)) as port:
        tls = ServerTls(Verify.CA, authority.pem, NAME)
        assert status(fleet_of(port, tls), tmp_path) in (502, 503)
        shown = replace(tls, client_certificate_id="crt-3")
        assert status(replace(fleet_of(port, shown), certificates=(ours,)), tmp_path) == 200


def test_a_certificate_of_another_account_is_not_shown(authority: Authority) -> None:
    theirs = Certificate("crt-3", "other/client", "other", authority.signed("client.example"), ("client.example",))
    tls = ServerTls(Verify.CA, authority.pem, NAME, client_certificate_id="crt-3")
    compilation = compile_snapshot(replace(fleet_of(1, tls), certificates=(theirs,)))
    assert ("pool-1", "unknown_certificate") in {(each.object_id, each.code) for each in compilation.left_out}


def test_a_server_that_speaks_too_old_a_version_is_asked_nothing(authority: Authority, tmp_path: Path) -> None:
    context = context_of(authority, NAME, tmp_path)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with tls_server(context) as port:
        tls = ServerTls(Verify.CA, authority.pem, NAME)
        assert status(fleet_of(port, tls), tmp_path) == 200
        assert status(fleet_of(port, replace(tls, min_version=TlsVersion.V1_3)), tmp_path) == 503


@pytest.mark.parametrize("by", ["pool", "check"])
@pytest.mark.parametrize(("name", "found"), [(NAME, "L7OK"), ("other.example", "L6RSP")])
def test_health_checks_verify_the_same(authority: Authority, tmp_path: Path, name: str, found: str, by: str) -> None:
    """The name of the pool, or else that of the check: it has no request whose host could be taken."""
    check = HealthCheck(path="/up", host="" if by == "pool" else name, interval_ms=60_000)
    tls = ServerTls(Verify.CA, authority.pem, name if by == "pool" else "")
    with tls_server(context_of(authority, NAME, tmp_path)) as port:
        compiled = compile_snapshot(fleet_of(port, tls, health_check=check))
        with running(compiled.output, tmp_path) as proxy:
            proxy.until(lambda: proxy.last_checks().get("srv-1", "") not in ("", "INI"), "it was checked")
            assert proxy.last_checks()["srv-1"] == found


def test_who_chooses_not_to_verify_is_told_what_that_means() -> None:
    warnings = compile_snapshot(fleet_of(1, ServerTls(Verify.NONE))).warnings
    assert [(each.object_id, each.code, each.field) for each in warnings] == [
        ("pool-1", "tls_not_verified", "server_tls.verify")
    ]
