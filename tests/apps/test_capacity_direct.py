"""A customer's test that asks a public server directly is an operator's to approve: for this run, at this address."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.accounts.models import Account
from apps.api.v1.capacity.runs import run_shape
from apps.capacity import services
from apps.capacity.models import Run
from apps.capacity.run import running
from apps.capacity.run.checking import checks_of
from apps.core.errors import Forbidden
from apps.definitions.models import Server
from apps.drivers.load.memory import MemoryBackend, forget_memory_backends, memory_backend
from tests.apps.capacity_env import Watched, a_test, put, stepwise
from tests.conftest import actor_of
from tests.interfaces.people import client_of

HOLD = {"kind": "constant", "rate": 10, "duration_s": 5, "arrivals": "constant"}
# Public addresses that nobody in these tests has; whatever stands there is in memory.
PUBLIC, OTHER, NAME = "93.184.215.14", "93.184.215.15", "shop.provider.example"
WHY = f"{PUBLIC}:19101 is asked directly, past the load balancer, and nobody verified whose address it is."


@pytest.fixture
def editor(db: None, live_redis: str) -> Actor:
    """Acme's editor, whose servers have a public address."""
    made = put()
    Server.objects.update(address=PUBLIC)
    return made


@pytest.fixture
def operator(editor: Actor) -> Actor:
    return actor_of("operator", Account.Kind.OPERATOR)


@pytest.fixture
def nodes(editor: Actor, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """The nodes, pushed to and read."""
    return stepwise(monkeypatch)


@pytest.fixture
def servers(nodes: Watched) -> Iterator[dict[str, MemoryBackend]]:
    """What stands at each address."""
    endpoints = [(PUBLIC, 19101), (OTHER, 19101), (PUBLIC, 22), ("127.0.0.1", 19101)]
    yield {f"{host}:{port}": memory_backend(host, port, servers=4) for host, port in endpoints}
    forget_memory_backends()


def carried_out(run: Run) -> Run:
    """The run after a worker had it."""
    running.carry_out(run.pk)
    run.refresh_from_db()
    return run


def received(servers: dict[str, MemoryBackend]) -> dict[str, int]:
    """How many requests came where any did."""
    return {endpoint: server.received for endpoint, server in servers.items() if server.received}


def test_it_waits_and_says_why_until_an_operator_approves(
    editor: Actor, operator: Actor, servers: dict[str, MemoryBackend]
) -> None:
    test = a_test(editor, load=HOLD)
    address = next(check for check in checks_of(editor, test.pk) if check.code == "address")
    assert address.message.endswith(f"An operator must approve each run: {WHY}")
    run = carried_out(services.request_run(actor=editor, test_id=test.pk))
    services.sweep()
    assert (run.state, run.phase, received(servers)) == (
        Run.State.WAITING,
        f"Waiting for an operator to approve it: {WHY}",
        {},
    )
    assert run_shape(run)["waits_for_approval"]
    assert WHY in client_of(editor).get(f"/capacity-runs/{run.pk}").content.decode()
    with pytest.raises(Forbidden):
        services.approve_run(actor=editor, run_id=run.pk)
    services.approve_run(actor=operator, run_id=run.pk)
    assert carried_out(run).state == Run.State.DONE, run.message
    assert received(servers) == {f"{PUBLIC}:19101": servers[f"{PUBLIC}:19101"].received}


def test_an_approval_is_for_one_run(editor: Actor, operator: Actor, servers: dict[str, MemoryBackend]) -> None:
    test = a_test(editor, load=HOLD)
    first = services.request_run(actor=operator, test_id=test.pk, approve=True)
    assert carried_out(first).state == Run.State.DONE, first.message
    again = services.request_run(actor=editor, test_id=test.pk)
    assert (again.state, again.begin_by) == (Run.State.WAITING, None)


@pytest.mark.parametrize("moved", [{"address": OTHER}, {"port": 22}], ids=["address", "port"])
def test_an_approval_is_for_one_address(
    editor: Actor, operator: Actor, servers: dict[str, MemoryBackend], moved: dict[str, Any]
) -> None:
    run = services.request_run(actor=operator, test_id=a_test(editor, load=HOLD).pk, approve=True)
    Server.objects.update(**moved)
    assert carried_out(run).state == Run.State.REFUSED
    assert run.message.startswith(f"An operator approved {PUBLIC}:19101, but the target is now "), run.message
    assert received(servers) == {}


def test_a_server_that_becomes_public_after_the_asking_is_not_loaded(
    editor: Actor, servers: dict[str, MemoryBackend]
) -> None:
    Server.objects.update(address="127.0.0.1")
    run = services.request_run(actor=editor, test_id=a_test(editor, load=HOLD).pk)
    assert run.begin_by is not None
    Server.objects.update(address=PUBLIC)
    assert carried_out(run).state == Run.State.REFUSED
    assert ("no one has" in run.message, received(servers)) == (True, {})


@pytest.mark.parametrize("later", [(OTHER, PUBLIC), (OTHER,)], ids=["still one of them", "gone"])
def test_of_a_name_the_approved_address_is_loaded_or_none(
    editor: Actor,
    operator: Actor,
    servers: dict[str, MemoryBackend],
    monkeypatch: pytest.MonkeyPatch,
    later: tuple[str, ...],
) -> None:
    answers, resolve = [PUBLIC], socket.getaddrinfo

    def getaddrinfo(host: Any, *rest: Any, **more: Any) -> Any:
        if host != NAME:
            return resolve(host, *rest, **more)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (answer, 19101)) for answer in answers]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    Server.objects.update(address=NAME)
    run = services.request_run(actor=operator, test_id=a_test(editor, load=HOLD).pk, approve=True)
    answers[:] = later
    carried_out(run)
    if PUBLIC in later:
        assert (run.state, list(received(servers))) == (Run.State.DONE, [f"{PUBLIC}:19101"]), run.message
    else:
        assert (run.state, received(servers)) == (Run.State.REFUSED, {})


@pytest.mark.parametrize("whose", ["operator", "acme"])
def test_an_operators_own_test_and_one_through_the_load_balancer_need_nobody(
    editor: Actor, operator: Actor, servers: dict[str, MemoryBackend], whose: str
) -> None:
    if whose == "operator":
        test = a_test(operator, pool="acme/shop", account="operator", load=HOLD)
    else:
        test = a_test(editor, server="", load=HOLD)
    run = services.request_run(actor=editor if whose == "acme" else operator, test_id=test.pk)
    assert (run.state, run.begin_by is None, run.direct_address) == (Run.State.WAITING, False, "")
