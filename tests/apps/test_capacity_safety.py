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
from apps.capacity import running, services
from apps.capacity.models import Blackout, Run
from apps.core.clock import now
from apps.core.errors import Invalid, NotFound
from apps.definitions.models import CapacityTest, Route, Server
from apps.definitions.services import save_object
from apps.drivers.load import maximum
from apps.drivers.load.contract import Maximum
from apps.drivers.load.memory import MemoryBackend, forget_memory_backends, memory_backend
from apps.fleet.models import Fleet, Node
from tests.apps.capacity_world import HOSTNAME, Watched, a_test, make, watched
from tests.conftest import actor_of

pytestmark = pytest.mark.django_db(transaction=True)
TRIES = 500
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


@pytest.fixture
def door() -> Iterator[Door]:
    """The only thing that could be hit: listener and server of the world are this socket."""
    made = Door()
    yield made
    made.socket.close()


@pytest.fixture
def victim(door: Door) -> Iterator[MemoryBackend]:
    """What stands at the public address."""
    yield memory_backend(PUBLIC, door.port, servers=8, service_ms=10)
    forget_memory_backends()


@pytest.fixture
def editor(transactional_db: None, live_redis: str, door: Door) -> Actor:
    """Acme's editor in a world whose every address is the door."""
    return make(secrets.token_hex(4), listener=door.port, server=door.port)


@pytest.fixture
def nodes(editor: Actor) -> Iterator[Watched]:
    """The nodes, pushed to and read."""
    with watched() as found:
        yield found


def unproved() -> None:
    Hostname.objects.filter(name=HOSTNAME).update(proof="")


def released() -> None:
    Hostname.objects.filter(name=HOSTNAME).update(released_at=now())


def handed_on() -> None:
    Hostname.objects.filter(name=HOSTNAME).update(account=Account.objects.get(name="globex"))


def grant_ended() -> None:
    Hostname.objects.filter(name=HOSTNAME).update(proof=Hostname.Proof.GRANT)
    account = Account.objects.get(name="acme")
    Grant.objects.create(
        name=secrets.token_hex(4), account=account, hostname=HOSTNAME, may_load_test=True,
        expires_at=now() - timedelta(seconds=1),
    )  # fmt: skip


def grant_without_the_right() -> None:
    Hostname.objects.filter(name=HOSTNAME).update(proof=Hostname.Proof.GRANT)
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


def routed_elsewhere() -> None:
    Route.objects.filter(name="shop").update(path="/other", path_kind="exact")


def blacked_out() -> None:
    Blackout.objects.create(starts_at=now(), ends_at=now() + timedelta(hours=1), reason="x", set_by="x")


WRONGS: tuple[Callable[[], None], ...] = (
    *(unproved, released, handed_on, grant_ended, grant_without_the_right, suspended, without_quota, below_quota),
    *(loopback_in_production, metadata_service, routed_elsewhere, blacked_out),
)
# Wrong through the load balancer and directly, or directly only.
WRONG_FOR = (*((wrong, server) for wrong in WRONGS for server in ("", "one")), (public_address_of_somebody_else, "one"))


def test_five_hundred_tries_send_not_one_packet_and_the_allowed_one_does(
    editor: Actor, nodes: Watched, door: Door, victim: MemoryBackend
) -> None:
    rights = {server: a_test(editor, f"t{server}", server=server, load=HOLD) for server in ("", "one")}
    seeded, tries = random.Random(5), 0
    while tries < TRIES:
        tries += _strange(editor, seeded)
    for wrong, server in WRONG_FOR:
        with _undone():
            wrong()
            run = services.request_run(actor=editor, test_id=rights[server].pk)
            waits = run.state == Run.State.WAITING and run.begin_by is None
            assert run.why if run.state == Run.State.REFUSED else waits, (wrong.__name__, server)
            running.carry_out(run.pk)
            # Whoever got past the asking finds the same wall before the first packet.
            Run.objects.filter(pk=run.pk).update(begin_by=now() + timedelta(minutes=1))
            running.carry_out(run.pk)
            assert Run.objects.get(pk=run.pk).state == Run.State.REFUSED, (wrong.__name__, server)
    assert (door.connections, victim.received) == (0, 0)
    run = services.request_run(actor=editor, test_id=rights["one"].pk)
    running.carry_out(run.pk)
    assert Run.objects.get(pk=run.pk).state == Run.State.DONE, Run.objects.get(pk=run.pk).why
    assert door.connections > 0


@pytest.mark.parametrize("wrong", WRONGS[:6], ids=lambda wrong: wrong.__name__)
def test_what_becomes_wrong_after_the_request_is_found_before_the_first_packet(
    editor: Actor, nodes: Watched, door: Door, wrong: Callable[[], None]
) -> None:
    run = services.request_run(actor=editor, test_id=a_test(editor, load=HOLD).pk)
    assert run.state == Run.State.WAITING
    wrong()
    running.carry_out(run.pk)
    run.refresh_from_db()
    assert (run.state, door.connections) == (Run.State.REFUSED, 0), run.why


def _strange(editor: Actor, seeded: random.Random) -> int:
    """One try at a target that is not acme's: it cannot even be stored; and at another account's test."""
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
    return 2


class _undone:  # noqa: N801 - reads like a statement
    """What a try makes wrong is put right again."""

    MODELS = (Hostname, Account, Fleet, Server, Node, Route)

    def __enter__(self) -> None:
        self.rows = {model: list(model._default_manager.all()) for model in self.MODELS}

    def __exit__(self, *_: object) -> None:
        Grant.objects.all().delete()
        Blackout.objects.all().delete()
        for rows in self.rows.values():
            for row in rows:
                row.save()
