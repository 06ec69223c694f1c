"""Listeners of tcp that end TLS, and such that pass it on for some names, through a real HAProxy."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.fleet import Region, RegionNode
from apps.compiler.model.listener_options import (
    ClientAddress,
    ClientCertificates,
    ClientVerify,
    ConnectionLimit,
    ListenerTls,
    SniRoute,
    TlsPreset,
    TlsVersion,
)
from apps.compiler.model.servers import ProxyProtocol
from apps.compiler.model.shared import Certificate, Limit, LimitKind, Listener, Protocol, WhenFull
from apps.logs.lines import Line
from tests.authorities import Authority
from tests.e2e.rendered_proxy import PATIENCE_S, RenderedProxy, running
from tests.ports import spare_port
from tests.pure.compiler_fixtures import certificate_pem, front, listener, pool, server, snapshot

pytestmark = pytest.mark.e2e

HOSTS = ("a.example", "b.example", "*.w.example")
PEMS = {name: certificate_pem(name) for name in HOSTS}
SERVERS_OWN = certificate_pem("server.example")
CERTIFICATES = tuple(
    Certificate(f"crt-{number}", name, "acme", PEMS[name], (name,)) for number, name in enumerate(HOSTS, 1)
)
A, STRANGER = Authority("Authority A"), Authority("Authority A")
GOOD, FOREIGN, REVOKED = A.signed("anna"), STRANGER.signed("anna"), A.signed("stolen")
NEEDS_A = ClientCertificates(ClientVerify.REQUIRED, A.pem, A.revoked(REVOKED), ("b.example", "x.w.example"))
FIRST, SECOND, THIRD = (f"pool-{number}" for number in (1, 2, 3))


def ending(number: int, **options: object) -> Listener:
    """A tcp listener that ends TLS."""
    keys = tuple(each.id for each in CERTIFICATES)
    options = {"certificate_ids": keys, "default_pool_id": FIRST, **options}
    return listener(number, protocol=Protocol.TCP, ends_tls=True, **options)


MIXED = (
    SniRoute("b.example", SECOND),
    SniRoute("x.w.example", SECOND),
    SniRoute("*.w.example", THIRD, passthrough=True),
    SniRoute("passed.example", THIRD, passthrough=True),
)
LISTENERS = (
    ending(1, sni_routes=(SniRoute("b.example", SECOND), SniRoute("*.w.example", THIRD))),
    ending(2, default_certificate_id="crt-1", tls=ListenerTls(minimum_version=TlsVersion.V13, alpn=("mqtt", "h2"))),
    ending(3, client_certificates=(NEEDS_A,)),
    ending(4, client_certificates=(replace(NEEDS_A, hostnames=()),), default_certificate_id="crt-1"),
    ending(5, sni_routes=MIXED),
    ending(6, client_address=ClientAddress(proxy_protocol_from=("127.0.0.9/32",)), sni_routes=MIXED),
    ending(
        7, tls=ListenerTls(preset=TlsPreset.MODERN), default_pool_id=None, sni_routes=(SniRoute("a.example", FIRST),)
    ),
)


@contextmanager
def told_of_clients(name: str, directory: Path) -> Iterator[int]:
    """A server that says its name and the address that the PROXY protocol told it; to TLS behind its own handshake."""
    pem = directory / f"{name}.pem"
    pem.write_text(SERVERS_OWN)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)

    def answer(client: socket.socket) -> None:
        with client:
            said = b""
            while not said.endswith(b"\r\n"):
                byte = client.recv(1)
                if not byte:
                    return
                said += byte
            try:
                is_tls = client.recv(1, socket.MSG_PEEK) == b"\x16"
                talk = context.wrap_socket(client, server_side=True) if is_tls else client
                sent = talk.recv(64).decode()
                talk.sendall(f"{name} {said.split()[2].decode()}:{said.split()[4].decode()} {sent}".encode())
                talk.close()
            except OSError:
                return

    def serve(listening: socket.socket) -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(
    directory: Path,
    *listeners: Listener,
    without: str = "",
    limits: Mapping[str, Limit] | None = None,
    locked: bool = False,
) -> Iterator[RenderedProxy]:
    """A HAProxy with these listeners before three servers; `without` takes lines away that hold it.

    With `limits` it is the only node of its region, and counts. `locked` takes its rights away.
    """
    with ExitStack() as stack:
        ports = [stack.enter_context(told_of_clients(name, directory)) for name in ("first", "second", "third")]
        pools = tuple(
            pool(
                number,
                protocol=Protocol.TCP,
                proxy_protocol=ProxyProtocol.V1,
                limit=(limits or {}).get(f"pool-{number}", Limit()),
                when_full=WhenFull.REFUSE,
                servers=(server(number, address="127.0.0.1", port=port),),
            )
            for number, port in enumerate(ports, 1)
        )
        given = snapshot(front(listeners=listeners), pools=pools, certificates=CERTIFICATES, local_development=True)
        if limits:
            node = RegionNode("node-1", "us-1", "127.0.0.1", spare_port(), spare_port(), spare_port())
            region = Region("rgn-1", "us", (node,))
            given = replace(given, region_id="rgn-1", regions=(region,), overflow_key="5ec2e7" * 8)
        compiled = compile_snapshot(given)
        assert not compiled.left_out
        bundle = _without(compiled.output, without)
        bundle = _locked(bundle, directory / "cell") if locked else bundle
        yield stack.enter_context(running(bundle, directory))


def _locked(bundle: Bundle, cell: Path) -> Bundle:
    """As agents start it that are root: as another user, in an empty directory."""
    cell.mkdir()
    config = bundle.files["haproxy.cfg"].replace(
        b"global\n", f"global\n    user nobody\n    chroot {cell}\n".encode(), 1
    )
    return replace(bundle, files={**bundle.files, "haproxy.cfg": config})


def _without(bundle: Bundle, words: str) -> Bundle:
    if not words:
        return bundle
    lines = bundle.files["haproxy.cfg"].decode().splitlines(keepends=True)
    kept = [line for line in lines if words not in line]
    assert kept != lines, "the safeguard to take away is not there"
    return replace(bundle, files={**bundle.files, "haproxy.cfg": "".join(kept).encode()})


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RenderedProxy]:
    with proxied(tmp_path_factory.mktemp("proxy"), *LISTENERS) as started:
        yield started


@dataclass(frozen=True)
class Reached:
    """Who answered, what it knows of the client, whose certificate the client saw, which protocol was agreed upon."""

    server: str
    client: str
    certificate: str
    own: str = ""
    alpn: str | None = None


NOBODY = Reached("", "", "")


def context_of(directory: Path | None = None, pem: str = "", alpn: tuple[str, ...] = ()) -> ssl.SSLContext:
    """Of a client, with a certificate where it has one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols(list(alpn))
    if pem and directory:
        (directory / "client.pem").write_text(pem)
        context.load_cert_chain(directory / "client.pem")
    return context


def reach(
    proxy: RenderedProxy,
    number: int,
    name: str | None,
    context: ssl.SSLContext | None = None,
    *,
    before: bytes = b"",
    source: str = "127.0.0.1",
) -> Reached:
    """What a client finds that asks for this name; NOBODY where it is turned away."""
    where = ("127.0.0.1", proxy.ports[f"lst-{number}"])
    try:
        with socket.create_connection(where, timeout=PATIENCE_S / 4, source_address=(source, 0)) as plain:
            own = "{}:{}".format(*plain.getsockname())
            plain.sendall(before)
            with (context or context_of()).wrap_socket(plain, server_hostname=name) as client:
                shown = ssl.DER_cert_to_PEM_cert(client.getpeercert(binary_form=True) or b"")
                client.sendall(b"hello")
                who, _, rest = client.recv(256).decode().partition(" ")
                return Reached(who, rest.split()[0], _owner(shown), own, client.selected_alpn_protocol())
    except (OSError, IndexError):  # an error of TLS is one of these
        return NOBODY


def _owner(shown: str) -> str:
    known = {**PEMS, "server": SERVERS_OWN}
    return next(name for name, pem in known.items() if shown.strip() in pem)


@pytest.mark.parametrize(
    ("number", "name", "who", "shown"),
    [
        (1, "a.example", "first", "a.example"),
        (1, "b.example", "second", "b.example"),
        (1, "B.Example", "second", "b.example"),
        (1, "x.w.example", "third", "*.w.example"),
        (2, "b.example", "first", "b.example"),
        (2, "unknown.example", "first", "a.example"),
        (2, None, "first", "a.example"),
        (7, "a.example", "first", "a.example"),
    ],
)
def test_tls_is_ended_and_its_name_chooses_certificate_and_pool(
    proxy: RenderedProxy, number: int, name: str | None, who: str, shown: str
) -> None:
    found = reach(proxy, number, name)
    assert (found.server, found.certificate) == (who, shown)
    assert found.client == found.own  # the PROXY protocol to servers says who the client is


def test_who_asks_for_no_name_of_the_certificates_or_of_the_routes_is_turned_away(proxy: RenderedProxy) -> None:
    for name in ("unknown.example", None):
        assert reach(proxy, 1, name) == NOBODY
    assert reach(proxy, 7, "b.example") == NOBODY  # it has a certificate, but no pool


def test_what_is_no_tls_reaches_no_server(proxy: RenderedProxy) -> None:
    for number in (1, 2, 5):
        where = ("127.0.0.1", proxy.ports[f"lst-{number}"])
        with socket.create_connection(where, timeout=PATIENCE_S / 4) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            try:
                assert client.recv(64)[:1] in (b"", b"\x15")  # closed, perhaps with an alert of TLS
            except ConnectionResetError:
                continue


def test_versions_and_alpn_are_as_they_were_set(proxy: RenderedProxy) -> None:
    old = context_of()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert reach(proxy, 1, "a.example", old).server == "first"
    assert reach(proxy, 2, "a.example", old) == NOBODY
    assert reach(proxy, 7, "a.example", old) == NOBODY
    for offered, agreed in ((("h2", "mqtt"), "mqtt"), (("h2",), "h2"), (("imap",), None)):
        assert reach(proxy, 2, "a.example", context_of(alpn=offered)).alpn == agreed
        assert reach(proxy, 1, "a.example", context_of(alpn=offered)).alpn is None


def test_only_clients_with_a_valid_certificate_reach_names_that_require_one(
    proxy: RenderedProxy, tmp_path: Path
) -> None:
    for pem, is_let_in in ((GOOD, True), ("", False), (FOREIGN, False), (REVOKED, False)):
        context = context_of(tmp_path, pem)
        for number, name in ((3, "b.example"), (3, "x.w.example"), (4, "a.example"), (4, "unknown.example")):
            assert (reach(proxy, number, name, context).server == "first") is is_let_in, (pem, number, name)
    for name in ("a.example", "y.w.example"):
        assert reach(proxy, 3, name).server == "first"


def test_without_the_rule_anybody_reaches_them(tmp_path: Path) -> None:
    with proxied(tmp_path, LISTENERS[2], without="tcp-request content reject if { var(txn.clients)") as proxy:
        assert reach(proxy, 3, "b.example").server == "first"


@pytest.mark.parametrize(
    ("name", "who", "shown"),
    [
        ("b.example", "second", "b.example"),
        ("x.w.example", "second", "*.w.example"),  # the exact name wins over the wildcard that is passed on
        ("y.w.example", "third", "server"),
        ("passed.example", "third", "server"),
        ("a.example", "first", "a.example"),
    ],
)
def test_one_port_ends_tls_for_some_names_and_passes_it_on_for_others(
    proxy: RenderedProxy, name: str, who: str, shown: str
) -> None:
    found = reach(proxy, 5, name)
    assert (found.server, found.certificate) == (who, shown)
    assert found.client == found.own


def test_the_address_that_the_proxy_protocol_brings_goes_through_both_frontends(proxy: RenderedProxy) -> None:
    before = b"PROXY TCP4 203.0.113.7 192.0.2.1 4711 443\r\n"
    for name, who in (("b.example", "second"), ("passed.example", "third")):
        found = reach(proxy, 6, name, before=before, source="127.0.0.9")
        assert (found.server, found.client) == (who, "203.0.113.7:4711")
    assert reach(proxy, 6, "b.example", before=before) == NOBODY  # from elsewhere it is no word of a proxy


def test_each_connection_has_one_line_with_its_name_and_tls(tmp_path: Path) -> None:
    with proxied(tmp_path, LISTENERS[0], LISTENERS[4]) as proxy:
        for number, name in ((1, "a.example"), (5, "b.example"), (5, "passed.example")):
            assert reach(proxy, number, name).server
        proxy.until(lambda: len(_connected(proxy)) >= 3, "each connection has its line")
        said = _connected(proxy)
        assert sorted((line.listener, line.host, line.tls, line.backend) for line in said) == [
            ("lst-1", "a.example", "TLSv1.3", "pool-1"),
            ("lst-5", "b.example", "TLSv1.3", "pool-2"),
            ("lst-5", "passed.example", "", "pool-3"),
        ]
        assert {line.client for line in said} == {"127.0.0.1"}


def _connected(proxy: RenderedProxy) -> list[Line]:
    """The log without the connections by which a test waited for the ports."""
    return [line for line in proxy.lines(0) if line.host]


@pytest.mark.parametrize(("number", "name"), [(1, "b.example"), (5, "b.example"), (5, "passed.example")])
def test_limits_of_pools_hold_however_tls_ends(tmp_path: Path, number: int, name: str) -> None:
    """Two connections a second, three in any one; the pool without a limit is the control."""
    limited = {"pool-2": Limit(LimitKind.RATE, 2), "pool-3": Limit(LimitKind.RATE, 2)}
    with proxied(tmp_path, LISTENERS[0], LISTENERS[4], limits=limited) as proxy:
        assert sum(bool(reach(proxy, number, name).server) for _ in range(8)) == 3
        assert sum(bool(reach(proxy, number, "a.example").server) for _ in range(8)) == 8


@pytest.mark.parametrize(("number", "name"), [(1, "b.example"), (5, "b.example"), (5, "passed.example")])
def test_one_client_opens_no_more_connections_than_it_may(tmp_path: Path, number: int, name: str) -> None:
    limit = ConnectionLimit(connections=1, per="minute", exempt=("127.0.0.9/32",))
    both = (replace(each, client_limit=limit) for each in (LISTENERS[0], LISTENERS[4]))
    with proxied(tmp_path, *both) as proxy:
        begun = sum(bool(reach(proxy, number, name, source="127.0.0.8").server) for _ in range(4))
        assert begun == 1
        assert all(reach(proxy, number, name, source="127.0.0.9").server for _ in range(4))


def test_names_change_without_a_reload(proxy: RenderedProxy) -> None:
    assert reach(proxy, 5, "a.example").server == "first"
    proxy.command("add map maps/lst-5-ended.map a.example pool-2")
    assert reach(proxy, 5, "a.example").server == "second"
    proxy.command("add map maps/lst-5-sni.map a.example pool-3")
    assert reach(proxy, 5, "a.example").certificate == "server"
    for path in ("maps/lst-5-ended.map", "maps/lst-5-sni.map"):
        proxy.command(f"del map {path} a.example")
    assert reach(proxy, 5, "a.example").server == "first"


def test_a_reload_takes_the_inner_frontend_along(tmp_path: Path) -> None:
    with proxied(tmp_path, LISTENERS[4]) as proxy:
        where = ("127.0.0.1", proxy.ports["lst-5"])
        with (
            socket.create_connection(where, timeout=PATIENCE_S / 4) as plain,
            context_of().wrap_socket(plain, server_hostname="b.example") as open_before,
        ):
            proxy.reload()
            assert reach(proxy, 5, "b.example").server == "second"
            open_before.sendall(b"hello")
            assert open_before.recv(256).startswith(b"second")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take rights away")
def test_a_process_without_rights_reaches_its_inner_frontend_also_after_a_reload(tmp_path: Path) -> None:
    with proxied(tmp_path, LISTENERS[4], locked=True) as proxy:
        assert reach(proxy, 5, "b.example").server == "second"
        assert reach(proxy, 5, "passed.example").server == "third"
        proxy.reload()
        assert reach(proxy, 5, "b.example").server == "second"
