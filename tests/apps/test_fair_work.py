"""One account's slow work never delays another's: each queue with a flood and without, counted in steps.

The threads of a process are played in turns: in each step every free one looks for work as the product's own tasks do,
and work keeps its thread and its seat for so long that it never ends here. Another account's work comes when the flood
has taken what it gets; its lag is the number of steps until a thread has it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from types import ModuleType

import pytest
from django.db import transaction
from pytest_django.fixtures import Settings

from apps.accounts.actors import Actor
from apps.accounts.models import Hostname
from apps.capacity.models import Run
from apps.capacity.run import running
from apps.core.clock import database_now, now
from apps.core.concurrency import fairness
from apps.core.concurrency.fairness import Choose, Owners, Seats
from apps.definitions.key_sets import fetching
from apps.definitions.models import KeySet, Zone
from apps.definitions.writing.kinds import hostnames
from apps.dns import services as dns
from apps.fleet.models import CloudAccount
from apps.schedules.run import working
from apps.schedules.run.booking import book
from apps.stacks.cloud import reading
from apps.stacks.models import StackSync
from apps.stacks.run import turns
from apps.webhooks import delivering
from apps.webhooks.models import Delivery, Webhook
from tests.apps.schedules_env import Notes, a_schedule, ago, notes
from tests.apps.stacks_env import a_run as a_stack_run
from tests.apps.stacks_env import a_stack
from tests.conftest import actor_of

__all__ = ["notes"]
THREADS, FLOOD, STEPS = 12, 30, 10
Look = Callable[[ExitStack], list[Hashable]]


class Process:
    """So many threads; `look` gives a thread work and lets it sit down, or gives it nothing."""

    def __init__(self, look: Look) -> None:
        self._look, self._free, self._open = look, THREADS, ExitStack()

    def step(self) -> list[Hashable]:
        """What the free threads took."""
        taken: list[Hashable] = []
        for _ in range(self._free):
            found = self._look(self._open)
            self._free -= bool(found)
            taken += found
        return taken

    def lag(self, come: Callable[[], Hashable]) -> int:
        """Steps until what comes now is taken; STEPS when it never is."""
        self.step()
        self.step()
        wanted = come()
        return next((step for step in range(1, STEPS) if wanted in self.step()), STEPS)


@pytest.fixture(autouse=True)
def _small(settings: Settings) -> None:
    settings.WEBHOOK_WORKER_THREADS = settings.LOADGEN_THREADS = THREADS


@contextmanager
def no_walls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Seats as there were before: as many as threads, whoever comes first."""

    def chosen(self: Seats[int], choose: Choose[int]) -> tuple[Hashable, int] | None:
        return choose(frozenset())

    with monkeypatch.context() as patched:
        patched.setattr(Seats, "_chosen", chosen)
        yield


def tasks_of(module: ModuleType, run: Callable[[], int], *, slow: bool = False) -> Process:
    """Threads that choose as `run` of this module does; what they took is under way and not due again.

    With `slow` all whose work is due now are known to be slow.
    """
    heard: list[Callable[[Owners, frozenset[int]], tuple[Hashable, int] | None]] = []

    def listen(
        _seats: object, choose: Callable[[Owners, frozenset[int]], tuple[Hashable, int] | None], _do: object
    ) -> int:
        heard.append(choose)
        return 0

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "in_turns", listen)
        run()
    own = vars(module)["SEATS"]
    seats, taken = Seats[int](own._count, own._each, own._slow_s), set[int]()
    owners: set[Hashable] = set()
    while slow and (due := heard[0](frozenset(owners), frozenset())):
        owners.add(due[0])
        seats.remember(due[0], own._slow_s)

    def look(sits: ExitStack) -> list[Hashable]:
        found = sits.enter_context(seats.seat(lambda owners: heard[0](owners, frozenset(taken))))
        taken.update([] if found is None else [found])
        return [] if found is None else [found]

    return Process(look)


def a_webhook(actor: Actor, name: str) -> int:
    hook = Webhook.objects.create(account=actor.account, name=name, url="https://x.example", secret=b"", event_types=[])
    Delivery.objects.create(webhook=hook, next_at=database_now() - timedelta(seconds=1))
    return hook.pk


def a_claim(actor: Actor, name: str) -> int:
    return Hostname.objects.create(account=actor.account, name=f"{name}.example").pk


def a_key_set(actor: Actor, name: str) -> int:
    return KeySet.objects.create(account=actor.account, url=f"https://{name}.example/", next_at=now()).pk


def a_zone(actor: Actor, name: str) -> int:
    """Servers stand for accounts here: zones are the operator's."""
    zone = Zone.objects.create(
        account=actor.account, name=name, domain=f"{name}.example", driver="memory", server=actor.account.name
    )
    return zone.pk


def a_stack_to_read(actor: Actor, name: str) -> int:
    """Each account has a cloud account here."""
    cloud, _ = CloudAccount.objects.get_or_create(name=actor.account.name, account=actor.account, cloud="aws")
    run, _ = a_stack_run(a_stack(actor, name, cloud_account=cloud))
    StackSync.objects.create(stack=run.stack, applied=run.revision)
    return run.stack_id


def a_capacity_run(actor: Actor, name: str) -> int:
    soon = database_now() + timedelta(minutes=5)
    return Run.objects.create(account=actor.account, label=name, plan={}, actor=actor.name, begin_by=soon).pk


def a_stack_to_plan(actor: Actor, name: str) -> int:
    """Its cloud is slow for ever here."""
    cloud, _ = CloudAccount.objects.get_or_create(name=actor.account.name, account=actor.account, cloud="aws")
    return a_stack(actor, name, cloud_account=cloud, desired_generation=1).pk


QUEUES: dict[str, tuple[ModuleType, Callable[[], int], Callable[[Actor, str], int]]] = {
    "webhooks": (delivering, delivering.deliver_in_turns, a_webhook),
    "verifications": (hostnames, hostnames.check_in_turns, a_claim),
    "key sets": (fetching, fetching.fetch_in_turns, a_key_set),
    "zones": (dns, dns.reconcile_in_turns, a_zone),
    "clouds": (reading, reading.read_in_turns, a_stack_to_read),
    "stacks": (turns, turns.reconcile_in_turns, a_stack_to_plan),
    "capacity": (running, running.carry_out_in_turns, a_capacity_run),
}


@pytest.mark.both_engines
@pytest.mark.parametrize("queue", QUEUES)
def test_a_flood_of_one_delays_nobody_else(
    queue: str, acme: Actor, globex: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, run, one = QUEUES[queue]
    under_way: set[int] = {"verifications": hostnames._looked_at, "capacity": running._begun}.get(queue, set())
    with transaction.atomic():
        alone = tasks_of(module, run).lag(lambda: one(globex, "alone"))
        transaction.set_rollback(True)
    for number in range(FLOOD):
        one(acme, f"flood-{number}")
    assert tasks_of(module, run).lag(lambda: one(globex, "beside")) <= 2 * alone == 2
    under_way.clear()
    with no_walls(monkeypatch):
        assert tasks_of(module, run).lag(lambda: one(globex, "behind")) == STEPS
    under_way.clear()


@pytest.mark.both_engines
@pytest.mark.parametrize("queue", QUEUES)
def test_many_slow_accounts_together_delay_none_that_is_well(queue: str, globex: Actor) -> None:
    module, run, one = QUEUES[queue]
    under_way: set[int] = {"verifications": hostnames._looked_at, "capacity": running._begun}.get(queue, set())
    for number in range(THREADS):
        one(actor_of(f"slow-{number}", "customer"), f"flood-{number}")
    lags = []
    for slow in (True, False):
        process = tasks_of(module, run, slow=slow)
        under_way.clear()
        lags.append(process.lag(partial(one, globex, f"beside-{slow}")))
        under_way.clear()
    assert lags == [1, STEPS], "with what is known of them, and without"


def schedule_workers() -> Process:
    """Threads that look at the sources as `work_off` does, and act on nothing."""

    def look(sits: ExitStack) -> list[Hashable]:
        for source in working._sources():
            if taken := sits.enter_context(source()):
                # What is ours is done at once; what waits for somebody keeps its seat.
                return [run.schedule_id for run in taken]
        return []

    working.SEATS = Seats()
    return Process(look)


def a_run(actor: Actor, name: str, kind: str = "webhook") -> int:
    made = a_schedule(actor, name, next_at=ago(5), target_kind=kind)
    book()
    return made.pk


@pytest.mark.slow(reason="three processes of twelve threads look at every source of runs, again and again")
@pytest.mark.both_engines
@pytest.mark.parametrize("kind", ["webhook", "topic"])
def test_slow_receivers_of_one_delay_no_schedule_of_others(
    kind: str, acme: Actor, globex: Actor, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topics are ours: they wait behind nobody."""
    alone = schedule_workers().lag(lambda: a_run(globex, "alone", kind))
    for number in range(FLOOD):
        a_schedule(acme, f"flood-{number}", next_at=ago(9))
    book()
    assert schedule_workers().lag(lambda: a_run(globex, "beside", kind)) <= 2 * alone == 2
    with no_walls(monkeypatch):
        assert schedule_workers().lag(lambda: a_run(globex, "behind", kind)) == STEPS


def test_many_accounts_leave_threads_to_what_is_ours(operator: Actor, notes: Notes) -> None:
    for number in range(FLOOD):
        a_schedule(actor_of(f"slow-{number}", "customer"), next_at=ago(9))
    book()
    assert schedule_workers().lag(lambda: a_run(operator, "ours", "topic")) == 1


@pytest.mark.parametrize("shared", range(1, 40))
def test_what_one_may_have_is_less_than_half_of_what_is_shared(shared: int) -> None:
    assert 1 <= fairness.of_one(shared) <= max(1, (shared - 1) / 2)
