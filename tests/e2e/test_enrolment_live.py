"""A machine enrols at a real console, serves, is renewed under traffic, goes over to a new authority, is revoked."""

from __future__ import annotations

import datetime as dt
import http.client
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.core.clock import now
from apps.definitions.services import apply_document, save_object
from apps.drivers.proxy.contract import NodeTarget, Revoked
from apps.drivers.proxy.registry import open_driver
from apps.enrolment import revoking, rotating
from apps.enrolment.tokens import make_token
from apps.fleet import pki
from apps.fleet.certificates import authorities
from apps.fleet.models import Authority, Node, NodeCertificate
from apps.observe.collect.readings import addresses_of, target_of
from apps.observe.models import Condition, NodeReport
from tests.conformance.real_agent import short_folder
from tests.database_url import database_url
from tests.e2e.installation import HOST, ROOT, _Server, route, wait_until
from tests.e2e.installation import _Answer as Answer
from tests.ports import fleet_ports, spare_port

pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.django_db(transaction=True)]


@dataclass
class Live:
    """A console behind TLS with its collector and sweeps, a server that answers `blue`, and one machine."""

    operator: Actor
    folder: Path
    port: int
    console: int
    listen: int
    environment: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *command: str) -> None:
        """Start a process; what it says is in <name>.log."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)

    def agent(self, *words: str) -> tuple[str, ...]:
        """The agent's command line."""
        return (sys.executable, "-m", "apps.agent", *words)

    def enroll(self, token: str) -> subprocess.CompletedProcess[str]:
        """`spillway-agent enroll` on the machine."""
        where = ("--state-dir", str(self.folder / "n"), "--listen", f"127.0.0.1:{self.listen}")
        command = self.agent("enroll", f"https://localhost:{self.console}", "--token", token, *where)
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    def get(self) -> tuple[int, str]:
        """One request of a client; status 0 when nobody answers."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            client.request("GET", "/", headers={"host": HOST})
            response = client.getresponse()
            return response.status, response.read().decode()
        except OSError:
            return 0, ""
        finally:
            client.close()

    def target(self) -> NodeTarget:
        """The node as consoles reach it now."""
        return target_of(addresses_of(Node.objects.filter(name="us-1"))[0])

    def shown(self) -> str:
        """The certificate that the collector saw last."""
        return NodeReport.objects.values_list("certificate_sha256", flat=True).filter(node__name="us-1").first() or ""

    def logs(self) -> str:
        """The end of what everybody said."""
        return "\n".join(f"{path.name}\n{path.read_text()[-3000:]}" for path in sorted(self.folder.glob("*.log")))


@pytest.fixture
def live(operator: Actor, settings: Settings) -> Iterator[Live]:
    """Everything but the machine, which has nothing of ours yet."""
    folder = short_folder()
    authority = pki.make_authority(now(), "the console")
    pair = pki.issue(authority, "localhost", client=False, now=now())
    (folder / "ca.pem").write_bytes(authority.certificate)
    (folder / "tls.pem").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    settings.CONSOLE_CA_FILE = str(folder / "ca.pem")
    environment = os.environ | {
        "SPILLWAY_DATABASE_URL": database_url(),
        "SPILLWAY_REDIS_URL": f"redis://127.0.0.1:{spare_port()}/0",  # nobody is there: the sweep does the work
        "SPILLWAY_CONSOLE_CA": settings.CONSOLE_CA_FILE,
        "SPILLWAY_VAR": str(folder),
    }
    found = Live(operator, folder, spare_port(), spare_port(), spare_port(), environment)
    try:
        with ExitStack() as stack:
            _define(found, stack)
            python = (sys.executable, "-m")
            tls = ("--certfile", str(folder / "tls.pem"), "--keyfile", str(folder / "tls.key"))
            bind = ("--bind", f"127.0.0.1:{found.console}", "--threads", "4", *tls)
            found.start("console", *python, "gunicorn", "controlplane.wsgi:application", *bind)
            found.start("collect", sys.executable, "manage.py", "collect")
            found.start("schedule", sys.executable, "manage.py", "schedule", "--every", "1")
            yield found
    finally:
        print(found.logs())
        _end(found)
        shutil.rmtree(folder, ignore_errors=True)


def _define(live: Live, stack: ExitStack) -> None:
    server = _Server(("127.0.0.1", 0), Answer)
    server.pool_name = "blue"  # type: ignore[attr-defined]  # read by the handler
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    servers = [{"name": "s1", "address": "127.0.0.1", "port": server.server_port}]
    pool = {"protocol": "http", "backends": [{"region": "us", "servers": servers}]}
    listener = {"name": "http", "protocol": "http", "port": live.port}
    apply_document(
        actor=live.operator,
        objects=[
            {"kind": "Region", "name": "us", "spec": {"title": "us"}},
            {"kind": "Fleet", "name": "us", "spec": {"region": "us", "local_development": True, **fleet_ports()}},
            {"kind": "Pool", "name": "blue", "spec": pool},
            {"kind": "LoadBalancer", "name": "front", "spec": {"fleets": ["us"], "listeners": [listener]}},
            {"kind": "Route", "name": "home", "spec": route("/", "blue")},
        ],
    )


def _end(live: Live) -> None:
    for process in live.processes.values():
        process.send_signal(signal.SIGTERM)
    for process in live.processes.values():
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(15)
    stop = live.agent("--name", "us-1", "--state-dir", str(live.folder / "n"), "--stop")
    subprocess.run(stop, cwd=ROOT, check=False, timeout=60)


EVERY_S = 2.0  # a console reads anew whom it believes


class Asking:
    """Clients that ask the node, and a console that asks its agent, all the while; `failed` is what went wrong."""

    def __init__(self, live: Live) -> None:
        self._live, self._over = live, threading.Event()
        self.asked, self.failed = 0, list[str]()
        self._threads = [threading.Thread(target=self._run, args=(act,)) for act in (self._client, self._console)]
        self._target, self._read_at = live.target(), time.monotonic()

    def __enter__(self) -> Asking:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, act: Callable[[], None]) -> None:
        while not self._over.wait(0.02):
            try:
                act()
            except Exception as error:  # noqa: BLE001 - it is what is counted
                self.failed.append(repr(error))
            self.asked += 1
        connection.close()

    def _client(self) -> None:
        status, body = self._live.get()
        assert (status, body) == (200, "blue")

    def _console(self) -> None:
        if time.monotonic() - self._read_at > EVERY_S:
            self._target, self._read_at = self._live.target(), time.monotonic()
        open_driver(self._target).read_state()


def test_a_machine_comes_in_serves_is_renewed_under_traffic_and_is_revoked(live: Live) -> None:
    _row, token = make_token(actor=live.operator, node="us-1", fleet="us")
    wait_until(lambda: "Listening at" in (live.folder / "console.log").read_text(), "the console is up")
    _it_enrols_once(live, token)
    live.start("agent", *live.agent("--state-dir", str(live.folder / "n"), "--reload-gap", "0"))
    wait_until(lambda: live.get() == (200, "blue"), "a push has come and a request is served")
    first = live.shown()
    with Asking(live) as asking:
        NodeCertificate.objects.update(ends_at=now() + timedelta(days=9))
        wait_until(lambda: live.shown() not in ("", first), "its certificate is renewed")
        second = live.shown()
        old, new = authorities.believed()[0], rotating.rotate(actor=live.operator)
        time.sleep(2 * EVERY_S)  # every console knows it now, and need not wait for half a minute
        Authority.objects.filter(pk=new.pk).update(created_at=now() - timedelta(minutes=1))
        wait_until(lambda: authorities.believed() == [new], "it has gone over, and the old authority is retired")
        third = live.shown()
        wait_until(lambda: live.shown() != third, "it is told to believe the new one alone")
        asked_before = asking.asked
        wait_until(lambda: asking.asked > asked_before + 20, "it is asked some more")
    assert len({first, second, third}) == 3
    assert asking.failed == []
    assert asking.asked > 50
    assert live.processes["agent"].poll() is None, "it was never started again"
    assert old != new
    _it_is_revoked(live)


def _it_enrols_once(live: Live, token: str) -> None:
    done = live.enroll(token)
    assert done.returncode == 0, done.stderr
    assert "us-1 of fleet us is enrolled" in done.stdout
    key = live.folder / "n" / "identity" / "current" / "key.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    secret = key.read_text().splitlines()[1]
    assert all(secret not in path.read_text(errors="replace") for path in live.folder.glob("*.log"))
    again = live.enroll(token)
    assert again.returncode == 1
    assert "used already" in again.stderr
    assert key.read_text().splitlines()[1] == secret, "the node keeps what it has"


def _it_is_revoked(live: Live) -> None:
    before = live.shown()
    revoking.revoke_node(actor=live.operator, name="us-1")
    began = time.monotonic()
    target = live.target()
    with pytest.raises(Revoked, match="was revoked"):
        open_driver(target).read_state()
    believed = open_driver(replace(target, revoked=frozenset()))
    assert believed.read_state().serving, "without the list a console would go on speaking to it"

    def said() -> bool:
        return Condition.objects.filter(object_kind="node", reason="CertificateRevoked", status=False).exists()

    wait_until(said, "pages and alerts know")
    print(f"revoked, and told after {time.monotonic() - began:.1f} s")
    NodeCertificate.objects.update(ends_at=now() + timedelta(days=9), next_renewal_at=None)
    generation = believed.read_state().generation
    spec = route("/", "blue") | {"action": {"fixed_response": {"status": 200, "body": "changed"}}}
    save_object(actor=live.operator, kind="Route", name="home", spec=spec)
    time.sleep(3)
    assert believed.read_state().generation == generation, "no change goes to it"
    assert believed.read_state().certificate_sha256 == before, "and no certificate"
    assert live.get() == (200, "blue"), "its clients are served as before"


def test_a_machine_without_a_console_says_so_and_keeps_the_token(operator: Actor, settings: Settings) -> None:
    folder = short_folder()
    settings.CONSOLE_CA_FILE = str(folder / "ca.pem")
    (folder / "ca.pem").write_bytes(pki.make_authority(dt.datetime.now(dt.UTC)).certificate)
    code = (
        "import apps.agent.identity.console as c; c.PATIENCE_S = 3.0\n"
        "import sys; from apps.agent.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    save_object(actor=operator, kind="Region", name="us", spec={"title": "us"})
    save_object(actor=operator, kind="Fleet", name="us", spec={"region": "us"})
    _row, token = make_token(actor=operator, node="us-1", fleet="us")
    words = ("enroll", f"https://localhost:{spare_port()}", "--token", "-", "--state-dir", str(folder / "n"))
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=ROOT, input=token, capture_output=True, text=True, check=False
    )
    shutil.rmtree(folder)
    assert done.returncode == 1
    assert "does not answer" in done.stderr
    assert token not in done.stderr
