"""A rollout with everything real: a change goes live, and whoever is killed on the way only costs time."""

from __future__ import annotations

import copy
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import redis
from django.db.models import F
from standardwebhooks import Webhook

from apps.accounts.actors import Actor
from apps.accounts.models import Account, Hostname
from apps.core.secrets.sealing import seal
from apps.definitions.models import Certificate
from apps.definitions.services import apply_document, delete_object, save_object
from apps.fleet.models import Fleet
from apps.rollouts import selectors
from apps.rollouts.models import Quarantine, Rollout
from tests.conftest import actor_of
from tests.database_url import database_url
from tests.e2e.installation import FLEETS, HOST, NODES, OFFSETS, Installation, broker, built, route, wait_until
from tests.e2e.poison import certificate
from tests.e2e.test_webhooks import change, listen, told
from tests.ports import spare_port
from tests.receiver import receiving

pytestmark = [pytest.mark.long, pytest.mark.e2e]

NAMES = ("redis", *NODES, "worker", "schedule")
# Seconds between two reloads of a node; the agent's own is two.
RELOAD_GAP = 0.5


@dataclass(frozen=True)
class Env:
    """Everything that runs, and the document that everything starts from."""

    installation: Installation
    document: list[dict[str, Any]]


@pytest.fixture(scope="module")
def db(lasting_db: None) -> None:
    """One database for all tests of this module."""


@pytest.fixture(scope="module")
def env(db: None) -> Iterator[Env]:
    """All processes, started at the same time."""
    with built(database_url(), *NAMES, reload_gap=RELOAD_GAP) as installation, broker(installation.redis_url):
        yield Env(installation, installation.document())


@pytest.fixture
def installation(env: Env) -> Iterator[Installation]:
    """Everything runs and all nodes answer with pool blue, whoever the last test has killed."""
    found = env.installation
    for name in NAMES:
        if not found.lives(name):
            found.start(name)
    if not Fleet.objects.exists():
        apply_document(actor=operator(), objects=copy.deepcopy(env.document))
    try:
        wait_until(lambda: somebody_listens(found), "a worker is up")
        wait_until(lambda: in_sync(found), "all nodes are in sync")
        wait_until(lambda: all(found.get(node, "/") == (200, "blue") for node in NODES), "all nodes answer")
        yield found
    finally:
        print(*(f"{row} {row.state} {row.message}" for row in Rollout.objects.all()), found.logs(), sep="\n")


@pytest.fixture
def spoilt(installation: Installation, env: Env) -> Iterator[Installation]:
    """The same for a test that changes what everything starts from, which is put back afterwards."""
    yield installation
    apply_document(actor=operator(), objects=copy.deepcopy(env.document))
    for row in Certificate.objects.select_related("account"):  # a customer's is presented by every https listener
        delete_object(actor=actor_of(row.account.name, row.account.kind), kind="Certificate", name=row.name)
    publish(f"after-{Rollout.objects.count()}")  # a fleet that has turned back says so until it is to run something new


def operator() -> Actor:
    """Who changes things."""
    return actor_of("operator", Account.Kind.OPERATOR)


def in_sync(installation: Installation) -> bool:
    """What was desired last runs on every node, as the nodes say themselves."""
    ids = Fleet.objects.values_list("pk", "desired_generation")
    if not all(selectors.is_live(pk, desired) for pk, desired in ids):
        return False
    return all(len({installation.digest(node) for node in nodes} - {""}) == 1 for nodes in FLEETS.values())


def publish(name: str, pool: str = "green") -> float:
    """Commit a route; the seconds that it took."""
    begin = time.monotonic()
    save_object(actor=operator(), kind="Route", name=name, spec=route(f"/{name}", pool))
    return time.monotonic() - begin


def answers(installation: Installation, name: str, nodes: tuple[str, ...] = NODES) -> bool:
    """Whether the nodes answer the route with green."""
    return all(installation.get(node, f"/{name}") == (200, "green") for node in nodes)


def test_a_route_is_answered_by_every_node_without_a_reload(installation: Installation) -> None:
    reloads = [installation.state(node).reloads for node in NODES]
    publish("news")
    wait_until(lambda: answers(installation, "news"), "the route is live everywhere")
    wait_until(lambda: in_sync(installation), "the rollout is done")
    assert [installation.state(node).reloads for node in NODES] == reloads


@pytest.mark.exhaustive  # of one change it is asked above
def test_a_hundred_changes_in_a_row_need_no_reload_and_few_rollouts(installation: Installation) -> None:
    reloads, rollouts = [installation.state(node).reloads for node in NODES], Rollout.objects.count()
    for number in range(100):
        publish(f"row-{number}")
    wait_until(lambda: in_sync(installation), "all is out")
    assert answers(installation, "row-99")
    assert [installation.state(node).reloads for node in NODES] == reloads
    assert Rollout.objects.count() - rollouts <= 200


def test_changes_that_need_a_reload_are_gathered_into_one_in_a_while(spoilt: Installation) -> None:
    reloads = {node: spoilt.state(node).reloads for node in NODES}
    begin = time.monotonic()
    port = spoilt.servers["blue"].server_port
    for number in range(8):
        spec = spoilt.pool_spec(port, ("roundrobin", "leastconn")[number % 2]) | {"server_timeout_ms": 20_000 + number}
        save_object(actor=operator(), kind="Pool", name="blue", spec=spec)
        time.sleep(RELOAD_GAP / 10)
    wait_until(lambda: in_sync(spoilt), "all is out")
    most = (time.monotonic() - begin) / RELOAD_GAP + 1
    assert all(1 <= spoilt.state(node).reloads - reloads[node] <= most for node in NODES)


@pytest.mark.exhaustive  # that the work of one that died is taken over is asked in tests/apps/test_rollouts_claims.py
def test_a_worker_killed_in_the_middle_is_replaced_within_30_seconds(installation: Installation) -> None:
    killer = threading.Timer(0.03, installation.kill, ["worker"])
    killer.start()
    for number in range(10):
        publish(f"killed-{number}")
    killer.join()
    installation.start("worker")
    wait_until(lambda: somebody_listens(installation), "the next worker is up")
    wait_until(
        lambda: in_sync(installation) and answers(installation, "killed-9"), "every node runs the wanted revision", 30
    )


def somebody_listens(installation: Installation) -> bool:
    """Whether a worker waits for wake-ups."""
    try:
        clients: Any = redis.Redis.from_url(installation.redis_url).client_list()
    except redis.ConnectionError:
        return False
    return any(each["cmd"] == "brpop" for each in clients)


@pytest.mark.exhaustive  # that the sweep finds what no wake-up told of is asked in tests/apps
def test_redis_killed_costs_no_change_and_holds_no_request_up(installation: Installation) -> None:
    installation.kill("redis")
    assert publish("without") < 3, "a request waits for a dead Redis"
    wait_until(
        lambda: in_sync(installation) and answers(installation, "without"), "the sweep did the work without Redis"
    )
    installation.start("redis")
    publish("with")
    wait_until(lambda: in_sync(installation) and answers(installation, "with"), "the worker found Redis again")


@pytest.mark.exhaustive  # that a node which was away catches up is asked in tests/apps/test_rollouts_push.py
def test_an_agent_killed_is_finished_later_and_its_neighbours_at_once(installation: Installation) -> None:
    installation.kill("us-1")
    publish("alone")
    others = tuple(node for node in NODES if node != "us-1")
    wait_until(lambda: answers(installation, "alone", others), "the other nodes have it")
    assert installation.get("us-1", "/") == (200, "blue"), "haproxy outlives its agent"
    installation.start("us-1")
    wait_until(lambda: in_sync(installation) and answers(installation, "alone"), "the node caught up")


def front(installation: Installation, *ports: int) -> None:
    """Listeners on these ports."""
    listeners = [
        {"name": f"http-{port}", "protocol": "http", "port": port} for port in (installation.base_port, *ports)
    ]
    spec = {"fleets": list(FLEETS), "listeners": listeners}
    save_object(actor=operator(), kind="LoadBalancer", name="front", spec=spec)


def test_what_one_node_refuses_leaves_its_fleet_on_the_old_revision_and_a_free_port_is_taken_by_all(
    spoilt: Installation,
) -> None:
    before = {node: spoilt.digest(node) for node in NODES}
    last = max(Rollout.objects.values_list("pk", flat=True))
    port = spare_port(OFFSETS.values())
    taken = port + OFFSETS["us-2"]
    with socket.create_server(("127.0.0.1", taken)):
        front(spoilt, port)
        rows = Rollout.objects.filter(fleet__name="us", pk__gt=last).order_by("-id")
        wait_until(lambda: rows.exists() and rows[0].state in ("rolled_back", "failed"), "the rollout turned back")
        rollout = rows[0]
        assert rollout.state == "rolled_back", rollout.message
        assert f"port {taken}" in rollout.message
        assert "us-2" in rollout.message
        assert {node: spoilt.digest(node) for node in FLEETS["us"]} == {node: before[node] for node in FLEETS["us"]}
        assert all(spoilt.get(node, "/") == (200, "blue") for node in NODES)
    front(spoilt, spare_port(OFFSETS.values()))
    wait_until(lambda: in_sync(spoilt), "all nodes took it")
    assert all(spoilt.digest(node) != before[node] for node in NODES)


def store(actor: Actor, name: str, bits: int, host: str = HOST) -> None:
    """A certificate of that strength, past the vetting: below 2 048 bits only the node's OpenSSL objects."""
    save_object(actor=actor, kind="Certificate", name=name, spec=certificate(host, 2048))
    weak = certificate(host, bits)
    rows = Certificate.objects.filter(account=actor.account, name=name)
    rows.update(chain_pem=weak["chain"], encrypted_key=seal(weak["key"].encode()))


def serve_https(installation: Installation, name: str, bits: int) -> None:
    """A second listener, with a certificate of that name and strength and no other."""
    store(operator(), name, bits)
    plain = {"name": "http", "protocol": "http", "port": installation.base_port}
    port = spare_port(OFFSETS.values())
    secure = {"name": "https", "protocol": "https", "port": port, "certificates": [name]}
    spec = {"fleets": list(FLEETS), "listeners": [plain, secure]}
    save_object(actor=operator(), kind="LoadBalancer", name="front", spec=spec)


@pytest.mark.exhaustive  # what all nodes refuse; what one refuses is asked above
def test_a_new_listener_that_haproxy_refuses_leaves_every_node_on_the_old_revision_and_a_strong_certificate_is_taken(
    spoilt: Installation,
) -> None:
    """No node ever took the certificate, and without it there is no listener: what is wanted is what was."""
    before = {node: spoilt.digest(node) for node in NODES}
    last = max(Rollout.objects.values_list("pk", flat=True))
    serve_https(spoilt, "first", bits=1024)
    ended = Rollout.objects.filter(state="rolled_back", pk__gt=last)
    wait_until(lambda: ended.count() == len(FLEETS), "both fleets turned back")
    for rollout in ended:
        assert "unable to load SSL certificate" in rollout.message, rollout.message
        assert rollout.line is not None
        assert rollout.object_label == "certificate operator/first", "not the listener that presents it"
    assert {node: spoilt.digest(node) for node in NODES} == before
    assert all(spoilt.get(node, "/") == (200, "blue") for node in NODES)
    serve_https(spoilt, "first", bits=2048)
    wait_until(lambda: in_sync(spoilt), "all nodes took it")
    assert all(spoilt.digest(node) != before[node] for node in NODES)


# HAProxy refuses it in test_attacks_poison.py as well, and nodes in memory in tests/apps/test_rollouts_quarantine.py.
@pytest.mark.exhaustive
def test_a_certificate_of_one_customer_that_haproxy_refuses_is_left_out_and_everybody_else_goes_live(
    spoilt: Installation,
) -> None:
    serve_https(spoilt, "site", bits=2048)
    wait_until(lambda: in_sync(spoilt), "all nodes present the operator's")
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    spec = {"load_balancer": "front", "hostname": "acme.example", "action": {"fixed_response": {"status": 200}}}
    save_object(actor=acme, kind="Route", name="shop", spec=spec)
    Hostname.objects.filter(name="acme.example").update(verification="dns")
    store(acme, "site", 1024, "acme.example")
    begin = time.monotonic()
    publish("beside")
    wait_until(lambda: answers(spoilt, "beside"), "what others changed is live", 60)
    print(f"others live after {time.monotonic() - begin:.1f} s")
    wait_until(lambda: in_sync(spoilt), "the rollout of all the rest is done")
    assert [(row.label, row.fleet.name) for row in Quarantine.objects.order_by("fleet__name")] == [
        ("acme/site", "eu"),
        ("acme/site", "us"),
    ]
    assert {row.message for row in Quarantine.objects.all()} == {
        "HAProxy rejects this: unable to load SSL certificate into SSL Context 'certificate acme/site'."
    }
    store(acme, "site", 2048, "acme.example")
    Fleet.objects.update(desired_generation=F("desired_generation") + 1)
    wait_until(lambda: in_sync(spoilt) and not Quarantine.objects.exists(), "a strong one is taken")


def test_whoever_listens_is_told_of_a_change(installation: Installation) -> None:
    acme = actor_of("acme", Account.Kind.CUSTOMER)
    with receiving() as receiver:
        _, secret = listen(acme, receiver)
        wanted = change(acme, 0, 2)
        wait_until(lambda: told(receiver) == wanted, "both changes were told in their order")
    for heard in receiver.heard:
        assert Webhook(secret).verify(heard.body, dict(heard.headers))["type"] == "pool.created"
