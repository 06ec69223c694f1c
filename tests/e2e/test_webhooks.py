"""With everything real: whoever is killed on the way, every event arrives, in order, with a good signature."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from standardwebhooks import Webhook as Standard

from apps.accounts.actors import Actor
from apps.audit import chain
from apps.definitions.services import save_object
from apps.webhooks import services
from apps.webhooks.delivering import TIMEOUT_S
from apps.webhooks.models import Delivery, Webhook
from tests.conftest import actor_of
from tests.database_url import database_url
from tests.e2e.installation import Installation, broker, built, wait_until
from tests.receiver import Receiver, receiving

# A worker of its own for each; that what it tells arrives is asked each time in test_rollout_live.
pytestmark = [pytest.mark.e2e, pytest.mark.exhaustive, pytest.mark.django_db(transaction=True)]
PATIENCE = 180.0  # of a busy machine


@pytest.fixture
def acme(transactional_db: None) -> Actor:
    """An owner of acme."""
    actor_of("operator", "operator")
    return actor_of("acme", "customer")


@pytest.fixture
def installation(acme: Actor) -> Iterator[Installation]:
    """Redis, a worker and the sweep."""
    with built(database_url(), "redis", "worker", "schedule") as found, broker(found.redis_url):
        yield found
        print(found.logs())


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Somebody who listens."""
    with receiving() as found:
        yield found


def listen(actor: Actor, receiver: Receiver, name: str = "hook") -> tuple[Webhook, str]:
    """An endpoint that is told about pools."""
    spec = {"url": receiver.url, "event_types": ["pool.*"]}
    return services.make_webhook(actor=actor, name=name, spec=spec)


def change(actor: Actor, first: int, last: int) -> list[str]:
    """Pools made one after the other; what is to be heard of them."""
    for number in range(first, last):
        save_object(actor=actor, kind="Pool", name=f"p{number}", spec={})
    return [f"acme/p{number}" for number in range(first, last)]


def told(receiver: Receiver) -> list[str]:
    """The objects that were heard of, each once, in the order of their first message."""
    return list(dict.fromkeys(json.loads(each.body)["data"]["object"] for each in receiver.heard))


def seconds_until_told(actor: Actor, receiver: Receiver, number: int) -> float:
    """How long the receiver waits for one more change."""
    heard = len(receiver.heard)
    change(actor, number, number + 1)
    return wait_until(lambda: len(receiver.heard) > heard, "the next event came", PATIENCE)


def test_a_change_is_told_within_a_second_or_two(installation: Installation, acme: Actor, receiver: Receiver) -> None:
    """The quickest of some: at the others this computer had other things to do."""
    _, secret = listen(acme, receiver)
    change(acme, 0, 1)
    wait_until(lambda: bool(receiver.heard), "the first event came", PATIENCE)  # the worker is starting
    assert min(seconds_until_told(acme, receiver, number) for number in (1, 2)) < 3
    for heard in receiver.heard:
        assert Standard(secret).verify(heard.body, dict(heard.headers))["type"] == "pool.created"


def test_nothing_is_lost_and_nothing_out_of_order_when_the_worker_and_redis_are_killed(
    installation: Installation, acme: Actor, receiver: Receiver
) -> None:
    receiver.delay_s = 0.1
    _, secret = listen(acme, receiver)
    wanted = change(acme, 0, 20)
    wait_until(lambda: len(receiver.heard) > 4, "some events came", PATIENCE)
    installation.kill("worker")
    assert Delivery.objects.filter(state="waiting").exists()
    wanted += change(acme, 20, 30)
    installation.kill("redis")
    wanted += change(acme, 30, 40)
    installation.kill("schedule")
    wanted += change(acme, 40, 50)
    for name in ("redis", "schedule", "worker"):
        installation.start(name)
    wait_until(lambda: len(told(receiver)) == len(wanted), "every event came", PATIENCE)
    wait_until(lambda: not Delivery.objects.exclude(state="delivered").exists(), "all is noted", PATIENCE)
    assert told(receiver) == wanted
    # What was under way when the worker died came twice, with the same id; nothing else did.
    ids = [each.headers["webhook-id"] for each in receiver.heard]
    assert len(set(ids)) == len(wanted)
    assert len(ids) <= len(wanted) + 1
    for heard in receiver.heard:
        Standard(secret).verify(heard.body, dict(heard.headers))
    assert chain.verify().broken_at is None


def test_a_dead_endpoint_delays_nobody(installation: Installation, acme: Actor, receiver: Receiver) -> None:
    with receiving() as tarpit:
        tarpit.delay_s = 30
        for number in range(3):
            listen(acme, tarpit, f"dead-{number}")
        listen(acme, receiver)
        wanted = change(acme, 0, 10)
        wait_until(lambda: bool(tarpit.heard), "the dead ones are called", PATIENCE)
        began = time.monotonic()
        wait_until(lambda: told(receiver) == wanted, "the others are told", PATIENCE)
        # Its account has fewer seats than dead endpoints: until they have failed once it may wait for a time-out.
        assert time.monotonic() - began < 2 * TIMEOUT_S
