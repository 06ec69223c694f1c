"""Tries at what nobody may load: hundreds of them in every form, at a socket that listens, and not one connection."""

from __future__ import annotations

import random
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Grant, Hostname
from apps.capacity import services
from apps.capacity.models import Blackout, Run
from apps.capacity.run import facts, running
from apps.capacity.run.abort_conditions import Environment
from apps.core.clock import now
from apps.core.errors import Invalid, NotFound
from apps.definitions.models import CapacityTest, Route, Server
from apps.definitions.services import save_object
from apps.drivers.load import maximum
from apps.drivers.load.contract import Maximum
from apps.drivers.load.memory import MemoryBackend, forget_memory_backends, memory_backend
from apps.fleet.models import Fleet, Node
from tests.apps.capacity_env import HOSTNAME, Watched, a_test, put, stepwise
from tests.conftest import actor_of

# A public address that nobody in these tests has: what stands there is in memory, and counts.
PUBLIC = "93.184.215.14"
HOLD = {"kind": "constant", "rate": 10, "duration_s": 5, "arrivals": "constant"}
HOSTS = (
    *("bank.example", "api.globex.example", "localhost", "169.254.169.254", "metadata.google.internal", "127.0.0.1"),
    *("[::1]", "shop.acme.example.evil.example", "SHOP.acme.example", "shop.acme.example.", "*.acme.example", ""),
    *(
        "http://bank.example",
        "shop.acme.example:22",
        "shop.acme.example/..",
        "shop.acme.example\n",
        "sh\u00f6p.example",
    ),
)


class Door:
    """A socket that listens, answers requests and counts who connects."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client:
            while client.recv(65536):
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


@pytest.fixture(autouse=True)
def known_maximum() -> Iterator[None]:
    """What the generator can is known: it does not find out here."""
    maximum.remember(Maximum(30_000.0, 1, time.time(), 2, 0.0))
    yield
    maximum.forget()


@pytest.fixture(scope="module")
def open_door() -> Iterator[Door]:
    """A door whose port stays the same, so that the environment with it is built once."""
    made = Door()
    yield made
    made.socket.shutdown(socket.SHUT_RDWR)  # else who waits there may take what comes to the next socket
    made.socket.close()


@pytest.fixture
def door(open_door: Door) -> Door:
    """The only thing that could be hit: listener and server of the environment are this socket."""
    open_door.connections = 0
    return open_door


@pytest.fixture
def victim(door: Door) -> Iterator[MemoryBackend]:
    """What stands at the public address."""
    yield memory_backend(PUBLIC, door.port, servers=8, service_ms=10)
    forget_memory_backends()


@pytest.fixture
def editor(db: None, live_redis: str, door: Door) -> Actor:
    """Acme's editor in an environment whose every address is the door."""
    return put(listener=door.port, server=door.port)


@pytest.fixture
def nodes(editor: Actor, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """The nodes, pushed to and read."""
    return stepwise(monkeypatch)


def unverified() -> None:
    Hostname.objects.filter(name=HOSTNAME).update(verification="")


def released() -> None:
    Hostname.objects.filter(name=HOSTNAME).update(released_at=now())


def handed_on() -> None:
    Hostname.objects.filter(name=HOSTNAME).update(account=Account.objects.get(name="globex"))


def grant_ended() -> None:
    Hostname.objects.filter(name=HOSTNAME).update(verification=Hostname.Verification.GRANT)
    account = Account.objects.get(name="acme")
    Grant.objects.create(
        name=secrets.token_hex(4), account=account, hostname=HOSTNAME, may_load_test=True,
        expires_at=now() - timedelta(seconds=1),
    )  # fmt: skip


def grant_without_the_right() -> None:
    Hostname.objects.filter(name=HOSTNAME).update(verification=Hostname.Verification.GRANT)
    account = Account.objects.get(name="acme")
    Grant.objects.create(name=secrets.token_hex(4), account=account, hostname=HOSTNAME, may_load_test=False)


def suspended() -> None:
    Account.objects.filter(name="acme").update(suspended_at=now())


def without_quota() -> None:
    Account.objects.filter(name="acme").update(quotas={})


def below_quota() -> None:
    Account.objects.filter(name="acme").update(quotas={"test_runs_at_once": 1, "test_rate": 49})


def loopback_in_production() -> None:
    Fleet.objects.update(local_development=False)


def metadata_service() -> None:
    Server.objects.update(address="169.254.169.254")
    Node.objects.update(address="169.254.169.254")


def public_address_of_somebody_else() -> None:
    Server.objects.update(address=PUBLIC)


def private_network_that_the_fleet_refuses() -> None:
    Server.objects.update(address="10.9.9.9")
    Fleet.objects.update(private_networks=["10.1.0.0/16"])


def routed_elsewhere() -> None:
    Route.objects.filter(name="shop").update(path="/other", path_kind="exact")


def blacked_out() -> None:
    Blackout.objects.create(starts_at=now(), ends_at=now() + timedelta(hours=1), reason="x", set_by="x")


WRONGS: tuple[Callable[[], None], ...] = (
    *(unverified, released, handed_on, grant_ended, grant_without_the_right, suspended, without_quota, below_quota),
    *(loopback_in_production, metadata_service, routed_elsewhere, blacked_out),
)
# Wrong through the load balancer and directly, or directly only.
WAYS = ("", "one")
WRONG_FOR = (
    *((wrong, WAYS[at % 2]) for at, wrong in enumerate(WRONGS)),
    (public_address_of_somebody_else, "one"),
    (private_network_that_the_fleet_refuses, "one"),
)
OTHER_WAY = [pytest.param(wrong, WAYS[(at + 1) % 2], marks=pytest.mark.exhaustive) for at, wrong in enumerate(WRONGS)]


@pytest.mark.parametrize("tries", [20, pytest.param(500, marks=pytest.mark.exhaustive)])
def test_many_tries_at_foreign_targets_send_not_one_packet(
    editor: Actor, nodes: Watched, door: Door, victim: MemoryBackend, tries: int
) -> None:
    a_test(editor, load=HOLD)
    seeded = random.Random(tries)
    for _ in range(tries // 2):
        _try_what_is_not_ours(editor, seeded)
    assert (door.connections, victim.received) == (0, 0)


@pytest.mark.parametrize(
    ("wrong", "server"), [*WRONG_FOR, *OTHER_WAY], ids=lambda given: getattr(given, "__name__", given)
)
def test_what_is_wrong_before_or_after_the_asking_sends_not_one_packet(
    editor: Actor, nodes: Watched, door: Door, victim: MemoryBackend, wrong: Callable[[], None], server: str
) -> None:
    test = a_test(editor, server=server, load=HOLD)
    asked_before = services.request_run(actor=editor, test_id=test.pk)
    assert asked_before.begin_by is not None
    wrong()
    asked_after = services.request_run(actor=editor, test_id=test.pk)
    waits = asked_after.state == Run.State.WAITING and asked_after.begin_by is None
    assert asked_after.message if asked_after.state == Run.State.REFUSED else waits
    # Whoever got past the asking finds the same wall before the first packet.
    running.carry_out(asked_before.pk)
    assert Run.objects.get(pk=asked_before.pk).state == Run.State.REFUSED
    assert (door.connections, victim.received) == (0, 0)


@pytest.mark.slow(reason="a second of load from a real generator")
def test_the_allowed_run_does_send(editor: Actor, nodes: Watched, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    run, looks = services.request_run(actor=editor, test_id=a_test(editor, load=HOLD).pk), facts.look

    def look(watch: facts.Watch) -> Environment:
        if door.connections:
            services.stop_run(actor=editor, run_id=run.pk)
        return looks(watch)

    monkeypatch.setattr(facts, "look", look)
    running.carry_out(run.pk)
    run.refresh_from_db()
    assert (run.state, run.message) == (Run.State.STOPPED, "somebody of acme stopped it.")
    assert door.connections > 0


def _try_what_is_not_ours(editor: Actor, seeded: random.Random) -> None:
    """A target that is not acme's cannot even be stored; and another account's test is not there."""
    host = seeded.choice(HOSTS)
    target = {
        "pool": seeded.choice(("shop", "globex/api", "acme/shop", "api")),
        "region": seeded.choice(("here", "there")),
        "hostname": host,
        "server": seeded.choice(("", "one", "two", "127.0.0.1")),
        "path": seeded.choice(("/", "//bank.example/", "/a", "/..", "http://bank.example/")),
    }
    with pytest.raises(Invalid):
        save_object(actor=editor, kind="CapacityTest", name="strange", spec={"target": target})
    globex = actor_of("globex", Account.Kind.CUSTOMER)
    with pytest.raises(NotFound):
        services.request_run(actor=globex, test_id=CapacityTest.objects.order_by("?").values_list("pk", flat=True)[0])
