"""What h2spec finds in HTTP/2 through our listeners, beside a HAProxy with nothing but a port and a server.

h2spec is a program in Go, built below `var/` from `h2spec/go.mod`; without Go or the proxy of its modules the tests are
skipped.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from apps.compiler.bundle import Bundle
from apps.compiler.compile import compile_snapshot
from apps.compiler.model.shared import Certificate, Protocol
from tests.e2e.rendered_proxy import echo_servers, running
from tests.golang import CACHE, go
from tests.pure.compiler_fixtures import certificate_pem, front, listener, pool, route, server, snapshot

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive]
MODULE = Path(__file__).with_name("h2spec")
PROGRAM = CACHE / "bin" / "h2spec"
NAME = "a.example"
BUILT_IN_S, CASE_S, ALL_S = 300, 10, 300
LEAST_CASES = 140
HTTP, HTTPS = "lst-1", "lst-2"
# A port without TLS speaks HTTP/1.1 as well: what does not begin as HTTP/2 gets a 400 of HTTP/1.1 and then is closed.
EXPECTED = {HTTP: {"http2/3.5: Sends invalid connection preface"}, HTTPS: set[str]()}
BARE = """
global
    default-path config
    stats socket "${SPILLWAY_RUN}/worker.sock" level admin
defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 60s
frontend lst-1
    bind "${SPILLWAY_BIND_LST_1}"
    default_backend servers
frontend lst-2
    bind "${SPILLWAY_BIND_LST_2}" ssl crt certs/crt-1.pem alpn h2,http/1.1
    default_backend servers
backend servers
    server one 127.0.0.1:%d
"""


@pytest.fixture(scope="module")
def _built() -> None:
    """The program is there."""
    words = ("build", "-o", str(PROGRAM), "github.com/summerwind/h2spec/cmd/h2spec")
    built = go(*words, cwd=MODULE, patience_s=BUILT_IN_S)
    if isinstance(built, str) or built.returncode:
        pytest.skip(f"h2spec was not built. {built if isinstance(built, str) else built.stderr[-300:]}")


def bundle_of(port: int) -> Bundle:
    """A listener without and one with TLS in front of a server, for any host."""
    certificate = Certificate("crt-1", NAME, "acme", certificate_pem(NAME), (NAME,))
    listeners = (
        listener(1),
        listener(2, protocol=Protocol.HTTPS, certificate_ids=("crt-1",), default_certificate_id="crt-1"),
    )
    compilation = compile_snapshot(
        snapshot(
            front(route(1, "*"), listeners=listeners),
            pools=(pool(1, servers=(server(1, address="127.0.0.1", port=port),)),),
            certificates=(certificate,),
            local_development=True,
        )
    )
    assert compilation.left_out == ()
    return compilation.output


@pytest.fixture(scope="module")
def ports(_built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, int]]]:
    """Ours, a bare one, and the server itself, which speaks HTTP/1.1 alone: port by listener."""
    with echo_servers(1) as (port,):
        ours = bundle_of(port)
        bare = replace(ours, files={**ours.files, "haproxy.cfg": (BARE % port).encode()})
        with (
            running(ours, tmp_path_factory.mktemp("ours")) as one,
            running(bare, tmp_path_factory.mktemp("bare")) as two,
        ):
            yield {"ours": dict(one.ports), "bare": dict(two.ports), "server": {HTTP: port}}


def failures(port: int, report: Path, *, tls: bool) -> set[str]:
    """Chapter and title of every case that fails."""
    options = ("--tls", "--insecure") if tls else ()
    where = ("--host", "127.0.0.1", "--port", str(port), "--timeout", str(CASE_S))
    words = [str(PROGRAM), *where, *options, "--strict", "--junit-report", str(report)]
    subprocess.run(words, capture_output=True, timeout=ALL_S, check=False)
    cases = list(ET.parse(report).iter("testcase"))  # noqa: S314  # of the program above
    assert len(cases) >= LEAST_CASES
    return {f"{each.get('package')}: {each.get('classname')}" for each in cases if len(each)}


@pytest.mark.parametrize("listener_id", [HTTP, HTTPS])
def test_a_listener_fails_nothing_that_a_bare_haproxy_passes(
    ports: dict[str, dict[str, int]], tmp_path: Path, listener_id: str
) -> None:
    ours, bare = (
        failures(ports[whose][listener_id], tmp_path / whose, tls=listener_id == HTTPS) for whose in ("ours", "bare")
    )
    assert ours <= bare
    assert ours == EXPECTED[listener_id]


def test_what_speaks_no_http2_fails_every_case(ports: dict[str, dict[str, int]], tmp_path: Path) -> None:
    assert len(failures(ports["server"][HTTP], tmp_path / "report", tls=False)) >= LEAST_CASES
