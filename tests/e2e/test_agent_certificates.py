"""A certificate is replaced by the agent without a reload: under load, and never by one that does not hold together."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from apps.agent.errors import Malformed, Refusal
from apps.compiler.bundle import MANIFEST, Bundle, assemble
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.listener_options import ClientCertificates, ClientVerify
from apps.compiler.model.operations import SetCertificate, UpdateCertificateList
from apps.compiler.model.shared import Certificate, FixedResponse, Protocol
from apps.compiler.plan import Reload, Runtime, plan
from apps.compiler.targets.haproxy.certificate_changes import LARGEST
from tests.authorities import Authority
from tests.conformance.inside import Inside, inside
from tests.pure.compiler_fixtures import front, listener, route, snapshot

pytestmark = pytest.mark.e2e

NAMES, ISSUER = ("a.example", "b.example", "c.example", "*.d.example"), Authority()
PATH = "certs/crt-1.pem"
CLIENTS = 4


def signed(name: str) -> str:
    """A certificate and its key."""
    return ISSUER.signed(name)


def bundle(port: int, *pems: str, **fields: Any) -> Bundle:
    """One https listener with a certificate for each name; those that are empty are not there."""
    certificates = tuple(
        Certificate(f"crt-{number}", name, "acme", pem, (name,))
        for number, (name, pem) in enumerate(zip(NAMES, pems, strict=False), 1)
        if pem
    )
    return compiled(port, certificates, **fields)


def compiled(port: int, certificates: tuple[Certificate, ...], **fields: Any) -> Bundle:
    """One https listener with these certificates."""
    keys = tuple(each.id for each in certificates)
    secure = listener(1, port=port, protocol=Protocol.HTTPS, certificate_ids=keys, **fields)
    routes = (route(number, name, fixed_response=FixedResponse(200)) for number, name in enumerate(NAMES, 1))
    found = compile_snapshot(snapshot(front(*routes, listeners=(secure,)), certificates=certificates))
    assert found.left_out == ()
    return found.output


def shown(port: int, name: str = NAMES[0], requests: int = 1) -> str:
    """The certificate that a new client sees, which then asks so many times on its connection."""
    context = ssl.create_default_context(cadata=ISSUER.pem)
    with (
        socket.create_connection(("127.0.0.1", port), 30) as raw,
        context.wrap_socket(raw, server_hostname=name) as stream,
    ):
        for _ in range(requests):
            stream.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
            answer = stream.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 "), answer
        return ssl.DER_cert_to_PEM_cert(stream.getpeercert(binary_form=True) or b"")


@pytest.fixture(scope="module")
def node() -> Iterator[Inside]:
    with inside() as found:
        yield found


def begin(node: Inside) -> tuple[Bundle, int]:
    """The node runs new certificates: the bundle, and the generation of the next change."""
    generation = node.node.confirmed.generation
    base = bundle(node.port, *map(signed, NAMES[:2]))
    node.push(base, generation + 1)
    return base, generation + 2


def follow(node: Inside, base: Bundle, wanted: Bundle, generation: int) -> dict[str, object]:
    """Operate as planned."""
    steps = plan(base, wanted)
    assert isinstance(steps, Runtime)
    paths = [each.path for each in steps.operations if isinstance(each, SetCertificate | UpdateCertificateList)]
    return node.operate(steps.operations, wanted, base.digest, generation, *paths)


@contextmanager
def load(node: Inside) -> Iterator[None]:
    """Clients that keep connecting for both names of the beginning; none of their requests fails."""
    done, failed, asked = threading.Event(), list[Exception](), list[str]()

    def keep_asking(name: str) -> None:
        while not done.is_set():
            try:
                shown(node.port, name, requests=3)
                asked.append(name)
            except (OSError, AssertionError) as error:
                failed.append(error)

    threads = [threading.Thread(target=keep_asking, args=(NAMES[number % 2],)) for number in range(CLIENTS)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        done.set()
        for each in threads:
            each.join()
    assert failed == []
    assert len(asked) > CLIENTS


def test_certificates_come_and_go_without_a_reload_and_no_request_fails(node: Inside) -> None:
    base, generation = begin(node)
    first = [base.files[f"certs/crt-{number}.pem"].decode() for number in (1, 2)]
    more = [signed(NAMES[2]), signed(NAMES[3])]
    reloads = node.node.state()["reloads"]
    with load(node):
        for turn in range(3):
            with pytest.raises(ssl.SSLError):
                shown(node.port, NAMES[2])
            wanted = bundle(node.port, *first, *more)
            state = follow(node, base, wanted, generation + 2 * turn)
            assert (state["digest"], state["on_disk"], state["reloads"]) == (wanted.digest, wanted.digest, reloads)
            assert more[0].startswith(shown(node.port, NAMES[2]))
            assert more[1].startswith(shown(node.port, "x.d.example"))
            follow(node, wanted, base, generation + 2 * turn + 1)
    assert node.node.state()["reloads"] == reloads
    assert sorted(named(node)) == ["certs/crt-1.pem", "certs/crt-2.pem"]


def named(node: Inside) -> list[str]:
    """Certificates that the worker holds."""
    return [line for line in node.node.proxy.worker("show ssl cert").split() if line.startswith("certs/")]


def test_another_certificate_takes_over_a_name(node: Inside) -> None:
    base, generation = begin(node)
    kept = base.files["certs/crt-2.pem"].decode()
    successor = signed(NAMES[0])
    certificates = (
        Certificate("crt-2", NAMES[1], "acme", kept, (NAMES[1],)),
        Certificate("crt-9", NAMES[0], "acme", successor, (NAMES[0],)),
    )
    wanted = compiled(node.port, certificates)
    follow(node, base, wanted, generation)
    assert successor.startswith(shown(node.port))
    node.push(wanted, generation + 1)
    assert successor.startswith(shown(node.port))


def test_what_depends_on_the_order_of_a_list_or_on_other_files_is_a_reload() -> None:
    one, two = Certificate("crt-1", "one", "acme", signed("a.example"), ("a.example",)), signed("b.example")
    base = compiled(1, (one,))
    other = Certificate("crt-2", "two", "acme", two, ("b.example",))
    assert isinstance(plan(base, compiled(1, (one, other))), Runtime)
    asks = ClientCertificates(ClientVerify.REQUIRED, ISSUER.pem)
    for before, after in (
        (
            compiled(1, (one,), default_certificate_id="crt-1"),
            compiled(1, (one, other), default_certificate_id="crt-1"),
        ),
        (base, compiled(1, (one, replace(other, hostnames=("b.example", "a.example"))))),
        (base, compiled(1, (replace(one, hostnames=("a.example", "b.example")),))),
        (base, compiled(1, (one, other), client_certificates=(asks,))),
        (compiled(1, (one, other)), compiled(1, (replace(one, hostnames=("b.example",)),))),
    ):
        assert isinstance(plan(before, after), Reload)


def test_a_certificate_comes_with_what_is_asked_of_its_clients(node: Inside) -> None:
    generation = node.node.confirmed.generation + 1
    asks = ClientCertificates(ClientVerify.REQUIRED, ISSUER.pem)
    pems = [signed(name) for name in NAMES[:2]]
    base = bundle(node.port, pems[0], client_certificates=(asks,))
    node.push(base, generation)
    follow(node, base, bundle(node.port, *pems, client_certificates=(asks,)), generation + 1)
    with pytest.raises(AssertionError, match="403"):
        shown(node.port, NAMES[1])


def test_a_renewed_certificate_is_shown_without_a_reload_and_no_request_fails(node: Inside) -> None:
    base, generation = begin(node)
    reloads, other = node.node.state()["reloads"], base.files["certs/crt-2.pem"].decode()
    with load(node):
        for turn in range(5):
            renewed = signed(NAMES[0])
            wanted = bundle(node.port, renewed, other)
            state = follow(node, base, wanted, generation + turn)
            assert (state["digest"], state["on_disk"], state["reloads"]) == (wanted.digest, wanted.digest, reloads)
            assert renewed.startswith(shown(node.port))
            base = wanted
    assert other.startswith(shown(node.port, NAMES[1]))
    node.push(base, generation + 9)
    assert renewed.startswith(shown(node.port))


def test_a_chain_of_the_largest_size_is_taken(node: Inside) -> None:
    base, generation = begin(node)
    renewed = signed(NAMES[0])
    renewed += ISSUER.pem * ((LARGEST - len(renewed)) // len(ISSUER.pem))
    assert len(renewed) > LARGEST - len(ISSUER.pem)
    follow(node, base, bundle(node.port, renewed, base.files["certs/crt-2.pem"].decode()), generation)
    assert renewed.startswith(shown(node.port))


def test_a_certificate_whose_key_is_another_one_changes_nothing(node: Inside) -> None:
    base, generation = begin(node)
    before = shown(node.port)
    mixed = signed(NAMES[0]).partition("-----BEGIN PRIVATE")[0]
    key = base.files[PATH].decode().partition("-----BEGIN PRIVATE")[2]
    wanted = bundle(node.port, f"{mixed}-----BEGIN PRIVATE{key}", base.files["certs/crt-2.pem"].decode())
    reloads = node.node.state()["reloads"]
    with pytest.raises(Refusal, match="HAProxy objects"):
        follow(node, base, wanted, generation)
    assert shown(node.port) == before
    state = node.node.state()
    assert (state["digest"], state["on_disk"], state["reloads"]) == (base.digest, base.digest, reloads)
    follow(node, base, bundle(node.port, *map(signed, NAMES[:2])), generation)


def altered(base: Bundle, content: bytes, path: str = PATH) -> Bundle:
    """The bundle with something else in a certificate's place, as nobody compiles it."""
    files = {name: text for name, text in base.files.items() if name != MANIFEST}
    return assemble({**files, path: content}, base.binds, {}, base.nodes)


@pytest.mark.parametrize("more", ["\n\nshow env\n", "show env\n", "#\n", "\x00\n", "<<\n", ";", "-----BEGIN"])
def test_what_is_no_pem_is_not_told_to_haproxy(node: Inside, more: str) -> None:
    base, generation = begin(node)
    wanted = altered(base, base.files[PATH] + more.encode())
    with pytest.raises(Refusal, match="not in PEM"):
        node.operate((SetCertificate(PATH),), wanted, base.digest, generation, PATH)


def test_only_certificates_that_are_there_are_replaced_and_only_when_it_is_said(node: Inside) -> None:
    base, generation = begin(node)
    wanted = altered(base, signed(NAMES[0]).encode())
    with pytest.raises(Refusal, match="needs a reload"):
        node.operate((), wanted, base.digest, generation, PATH)
    for path in ("haproxy.cfg", "maps/lb-1-exact.map", "certs/lst-1.list", "certs/crt-1.pem\n", "../crt-1.pem", ""):
        with pytest.raises(Malformed):
            node.operate((SetCertificate(path),), wanted, base.digest, generation, PATH)
    new = "certs/crt-9.pem"
    with pytest.raises(Refusal, match="is new"):
        node.operate((SetCertificate(new),), altered(base, base.files[PATH], new), base.digest, generation, new)
    assert node.node.state()["digest"] == base.digest
