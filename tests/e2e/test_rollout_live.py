"""PUSH with everything real: a change goes live, and whoever is killed on the way only costs time."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import kombu.pools
import pytest
import redis
from celery import current_app
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.definitions.services import apply_document, save_object
from apps.fleet.models import Fleet
from apps.rollouts import selectors
from apps.rollouts.models import Rollout
from tests.conftest import actor_of
from tests.database_url import database_url
from tests.e2e.stage import FLEETS, HOST, NODES, OFFSETS, Stage, built, route, wait_until
from tests.ports import spare_port

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


def _forget_connections() -> None:
    kombu.pools.reset()
    setattr(current_app.amqp, "_producer_pool", None)  # noqa: B010 - Celery has no public way to forget its pools
    setattr(current_app, "_pool", None)  # noqa: B010


@contextlib.contextmanager
def broker(url: str) -> Iterator[None]:
    """Wake-ups of this process go to the stage's own Redis and not to the one that all tests share."""
    before = os.environ.get("CELERY_BROKER_URL")
    os.environ["CELERY_BROKER_URL"] = url
    _forget_connections()
    try:
        yield
    finally:
        os.environ.pop("CELERY_BROKER_URL") if before is None else os.environ.update(CELERY_BROKER_URL=before)
        _forget_connections()


@pytest.fixture
def stage(transactional_db: None) -> Iterator[Stage]:
    """Everything runs and all nodes answer with pool blue."""
    with built(database_url()) as found, broker(found.redis_url):
        apply_document(actor=operator(), objects=found.document())
        found.start("worker")
        found.start("schedule")
        try:
            wait_until(lambda: in_sync(found), "all nodes are in sync")
            wait_until(lambda: all(found.get(node, "/") == (200, "blue") for node in NODES), "all nodes answer")
            yield found
        finally:
            print(*(f"{row} {row.state} {row.message}" for row in Rollout.objects.all()), found.logs(), sep="\n")


def operator() -> Actor:
    """Who changes things."""
    return actor_of("operator", Account.Kind.OPERATOR)


def in_sync(stage: Stage) -> bool:
    """What was desired last runs on every node, as the nodes say themselves."""
    ids = Fleet.objects.values_list("pk", "desired_generation")
    if not all(selectors.is_live(pk, desired) for pk, desired in ids):
        return False
    return all(len({stage.digest(node) for node in nodes} - {""}) == 1 for nodes in FLEETS.values())


def publish(name: str, pool: str = "green") -> float:
    """Commit a route; the seconds that it took."""
    begin = time.monotonic()
    save_object(actor=operator(), kind="Route", name=name, spec=route(f"/{name}", pool))
    return time.monotonic() - begin


def answers(stage: Stage, name: str, nodes: tuple[str, ...] = NODES) -> bool:
    """Whether the nodes answer the route with green."""
    return all(stage.get(node, f"/{name}") == (200, "green") for node in nodes)


def test_a_route_is_answered_by_every_node_without_a_reload(stage: Stage) -> None:
    reloads = [stage.state(node).reloads for node in NODES]
    publish("news")
    wait_until(lambda: answers(stage, "news"), "the route is live everywhere")
    wait_until(lambda: in_sync(stage), "the rollout is done")
    assert [stage.state(node).reloads for node in NODES] == reloads


def test_a_hundred_changes_in_a_row_need_no_reload_and_few_rollouts(stage: Stage) -> None:
    reloads = [stage.state(node).reloads for node in NODES]
    for number in range(100):
        publish(f"r{number}")
    wait_until(lambda: in_sync(stage), "all is out")
    assert answers(stage, "r99")
    assert [stage.state(node).reloads for node in NODES] == reloads
    assert Rollout.objects.count() < 202


def test_changes_that_need_a_reload_are_gathered_into_one_every_two_seconds(stage: Stage) -> None:
    reloads = {node: stage.state(node).reloads for node in NODES}
    begin = time.monotonic()
    port = stage.servers["blue"].server_port
    for number in range(20):
        spec = stage.pool_spec(port, ("roundrobin", "leastconn")[number % 2]) | {"server_timeout_ms": 20_000 + number}
        save_object(actor=operator(), kind="Pool", name="blue", spec=spec)
        time.sleep(0.2)
    wait_until(lambda: in_sync(stage), "all is out")
    most = (time.monotonic() - begin) / 2 + 1
    assert all(1 <= stage.state(node).reloads - reloads[node] <= most for node in NODES)


def test_a_worker_killed_in_the_middle_is_replaced_within_30_seconds(stage: Stage) -> None:
    killer = threading.Timer(0.03, stage.kill, ["worker"])
    killer.start()
    for number in range(10):
        publish(f"r{number}")
    killer.join()
    stage.start("worker")
    wait_until(lambda: somebody_listens(stage), "the next worker is up")
    wait_until(lambda: in_sync(stage) and answers(stage, "r9"), "every node runs the wanted revision", 30)


def somebody_listens(stage: Stage) -> bool:
    """Whether a worker waits for wake-ups."""
    clients: Any = redis.Redis.from_url(stage.redis_url).client_list()
    return any(each["cmd"] == "brpop" for each in clients)


def test_redis_killed_costs_no_change_and_holds_no_request_up(stage: Stage) -> None:
    stage.kill("redis")
    assert publish("news") < 3, "a request waits for a dead Redis"
    wait_until(lambda: in_sync(stage) and answers(stage, "news"), "the sweep did the work without Redis")
    stage.start("redis")
    publish("more")
    wait_until(lambda: in_sync(stage) and answers(stage, "more"), "the worker found Redis again")


def test_an_agent_killed_is_finished_later_and_its_neighbours_at_once(stage: Stage) -> None:
    stage.kill("us-1")
    publish("news")
    others = tuple(node for node in NODES if node != "us-1")
    wait_until(lambda: answers(stage, "news", others), "the other nodes have it")
    assert stage.get("us-1", "/") == (200, "blue"), "haproxy outlives its agent"
    stage.start("us-1")
    wait_until(lambda: in_sync(stage) and answers(stage, "news"), "the node caught up")


def front(stage: Stage, *ports: int) -> None:
    """Listeners on these ports."""
    listeners = [{"name": f"http-{port}", "protocol": "http", "port": port} for port in (stage.base_port, *ports)]
    spec = {"fleets": list(FLEETS), "listeners": listeners}
    save_object(actor=operator(), kind="LoadBalancer", name="front", spec=spec)


def test_what_one_node_refuses_leaves_its_fleet_on_the_old_revision(stage: Stage) -> None:
    before = {node: stage.digest(node) for node in NODES}
    port = spare_port(OFFSETS.values())
    taken = port + OFFSETS["us-2"]
    with socket.create_server(("127.0.0.1", taken)):
        front(stage, port)
        rows = Rollout.objects.filter(fleet__name="us").order_by("-id")
        wait_until(lambda: rows[0].state in ("rolled_back", "failed"), "the rollout turned back")
        rollout = rows[0]
        assert rollout.state == "rolled_back", rollout.message
        assert f"port {taken}" in rollout.message
        assert "us-2" in rollout.message
        assert {node: stage.digest(node) for node in FLEETS["us"]} == {node: before[node] for node in FLEETS["us"]}
        assert all(stage.get(node, "/") == (200, "blue") for node in NODES)


def certificate(bits: int) -> dict[str, str]:
    """A certificate with an RSA key of that size; below 2 048 bits only the node's OpenSSL objects."""
    key = rsa.generate_private_key(65537, bits)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    begin = datetime.now(UTC) - timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin + timedelta(days=90))
    signed = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {"chain": signed.sign(key, SHA256()).public_bytes(Encoding.PEM).decode(), "key": secret}


def serve_https(stage: Stage, bits: int) -> None:
    """A second listener, with a certificate of that strength."""
    save_object(actor=operator(), kind="Certificate", name="site", spec=certificate(bits))
    plain = {"name": "http", "protocol": "http", "port": stage.base_port}
    port = spare_port(OFFSETS.values())
    secure = {"name": "https", "protocol": "https", "port": port, "certificates": ["site"]}
    spec = {"fleets": list(FLEETS), "listeners": [plain, secure]}
    save_object(actor=operator(), kind="LoadBalancer", name="front", spec=spec)


def test_what_only_haproxy_refuses_leaves_every_node_on_the_old_revision(stage: Stage) -> None:
    before = {node: stage.digest(node) for node in NODES}
    serve_https(stage, bits=1024)
    ended = Rollout.objects.filter(state="rolled_back")
    wait_until(lambda: ended.count() == len(FLEETS), "both fleets turned back")
    for rollout in ended:
        assert "unable to load SSL certificate" in rollout.message, rollout.message
        assert rollout.line is not None
        assert "https" in rollout.object_label
    assert {node: stage.digest(node) for node in NODES} == before
    assert all(stage.get(node, "/") == (200, "blue") for node in NODES)


def test_the_same_listener_with_a_strong_certificate_is_taken_by_all(stage: Stage) -> None:
    before = {node: stage.digest(node) for node in NODES}
    serve_https(stage, bits=2048)
    wait_until(lambda: in_sync(stage), "all nodes took it")
    assert all(stage.digest(node) != before[node] for node in NODES)


def test_the_same_listener_on_a_free_port_is_taken_by_all(stage: Stage) -> None:
    before = {node: stage.digest(node) for node in NODES}
    front(stage, spare_port(OFFSETS.values()))
    wait_until(lambda: in_sync(stage), "all nodes took it")
    assert all(stage.digest(node) != before[node] for node in NODES)
