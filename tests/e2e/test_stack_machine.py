"""A push to AWS while whole machines die: worker, process guard, Terraform and provider at once, with kill -9.

What AWS had made by then no state knows. The next worker asks AWS for it and takes it over: nothing stands twice.
First a machine dies when it has made addresses and a zone; then one after the other as soon as each kind of thing
stands, while a shop is built.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.definitions.services import apply_document
from apps.fleet.models import Stack
from apps.stacks import selectors
from apps.stacks.models import StackRun, StackSync, StateLock
from apps.stacks.review.differences import TAKEN_OVER
from tests.e2e.stack_definitions import addresses, shop
from tests.e2e.stack_env import (
    LONGEST_S,
    NEEDS_AWS,
    Cloud,
    StackEnv,
    cloud,
    kill,
)
from tests.e2e.stack_kills import orphans, twice

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,
    pytest.mark.timeout(3000),
    pytest.mark.django_db(transaction=True),
    *NEEDS_AWS,
]


@dataclass
class Machine:
    """Where workers work, until it dies."""

    env: StackEnv
    aws: Cloud

    def dies_when(self, point: Callable[[dict[str, int]], bool]) -> None:
        """A worker works; all that runs here is killed as soon as the cloud has what `point` says."""
        with self.env.worker() as process:
            deadline = time.monotonic() + LONGEST_S
            while not point(self.aws.count()):
                assert time.monotonic() < deadline, f"the cloud never had it: {self.aws.count()}"
                time.sleep(0.01)
            kill(process)
        while left := list(self._processes()):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        assert StateLock.objects.exists(), "too late: the apply had ended"

    def comes_back(self) -> StackRun:
        """A worker that nobody kills works to the end."""
        with self.env.worker():
            self.env.wait("the end", self.env.settled)
        return StackRun.objects.order_by("-id")[0]

    def lost(self) -> list[str]:
        """What stands in the cloud and no state knows."""
        return orphans(self.aws, Stack.objects.get())

    def _processes(self) -> Iterator[int]:
        """What works in a private directory of a run: the process guard, Terraform, its provider."""
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (entry / "cwd").readlink().is_relative_to(self.env.directory / "terraform"):
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    if state not in {"Z", "X"}:
                        yield int(entry.name)


@pytest.fixture
def machine(operator: Actor, live_server: Any, tmp_path: Path) -> Machine:
    """Nothing stands yet."""
    aws = cloud()
    return Machine(StackEnv(operator, tmp_path, live_server.url, lease_s=2, endpoint=aws.endpoint, grace_s=3), aws)


def stands(**wanted: int) -> Callable[[dict[str, int]], bool]:
    """As soon as the cloud has so many of each."""
    return lambda counted: all(counted.get(kind.replace("_", " "), 0) >= count for kind, count in wanted.items())


def test_what_the_cloud_made_as_the_machine_died_is_taken_over_and_stands_once(machine: Machine) -> None:
    apply_document(actor=machine.env.actor, objects=addresses(machine.aws))
    machine.dies_when(stands(addresses=2, zones=1))
    made, lost = machine.aws.standing(), machine.lost()
    assert "zones: example.com." in lost
    run = machine.comes_back()
    assert (run.state, machine.aws.standing(), machine.lost()) == ("done", made, [])
    changes, _ = selectors.plan_of(machine.env.actor, run.pk)
    assert [each.details[0].sentence for each in changes if each.details] == [TAKEN_OVER] * len(lost)
    sync = StackSync.objects.get()
    assert (sync.doubted, sync.unknown, StateLock.objects.exists()) == (None, [], False)


def test_where_the_cloud_is_not_asked_addresses_and_zone_stand_twice(machine: Machine) -> None:
    apply_document(actor=machine.env.actor, objects=addresses(machine.aws))
    machine.dies_when(stands(addresses=2, zones=1))
    lost = machine.lost()
    StackSync.objects.update(doubted=None)
    machine.comes_back()
    again = [each for each in lost if each.startswith("addresses")]
    assert machine.aws.count() == {"addresses": 2 + len(again), "zones": 2}
    assert twice(machine.aws) == ["zones: example.com."]


def test_a_machine_after_the_other_dies_as_soon_as_each_kind_of_thing_stands(machine: Machine) -> None:
    """Of a shop and an address; moto does not say on which addresses an NLB stands, so that none can be taken over."""
    objects = [*shop(machine.aws, routes=3, approval="automatic"), *addresses(machine.aws)[-2:-1]]
    apply_document(actor=machine.env.actor, objects=objects)
    kinds = ("addresses", "zones", "security_groups", "target_groups", "load_balancers")
    for count, kind in [(1, each) for each in kinds] + [(1, "listeners"), (3, "rules")]:
        if not stands(**{kind: count})(machine.aws.count()):
            machine.dies_when(stands(**{kind: count}))
            print(f"{kind} {count}: {machine.aws.count()}", flush=True)
    run = machine.comes_back()
    print(f"in the end: {run.state}, {machine.aws.count()}", flush=True)
    assert run.state == "done", run.message
    assert (twice(machine.aws), machine.lost()) == ([], [])
    assert machine.aws.count()["addresses"] == 2
    assert machine.aws.count()["zones"] == 1
