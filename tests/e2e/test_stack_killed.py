"""A push to AWS while workers die: kill -9 at every step, and in the end nothing stands twice and nothing is forgotten.

First two workers die at the steps that matter most; then one at every step, for everything that a stack goes through:
built, changed, deleted. That what stands is taken over, each time: test_stack_aws.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.definitions.services import apply_document
from apps.fleet.models import Stack
from apps.stacks.models import StackRun, StateLock
from tests.e2e.stack_definitions import shop
from tests.e2e.stack_env import NEEDS_AWS, Cloud, StackEnv, cloud
from tests.e2e.stack_kills import APPLYING, PLANNING, Kills, change, orphans, rounds, twice

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,
    pytest.mark.timeout(3000),
    pytest.mark.django_db(transaction=True),
    *NEEDS_AWS,
]


@pytest.fixture
def kills(operator: Actor, live_server: Any, tmp_path: Path) -> Kills:
    """Nobody has died yet."""
    aws = cloud()
    return Kills(StackEnv(operator, tmp_path, live_server.url, lease_s=2, endpoint=aws.endpoint), aws)


def check(kills: Kills, aws: Cloud) -> None:
    """Nothing stands twice, nothing is unknown to the state, nothing is left to do."""
    stack = Stack.objects.get()
    assert StackRun.objects.order_by("-id")[0].state in {"done", "unchanged"}
    assert (twice(aws), orphans(aws, stack)) == ([], [])
    assert not StateLock.objects.exists()


def test_workers_that_die_while_a_shop_is_built_leave_nothing_twice_and_nothing_unknown(kills: Kills) -> None:
    apply_document(actor=kills.env.actor, objects=shop(kills.aws, routes=6, approval="automatic"))
    with kills.env.worker():
        kills.env.wait("a run", StackRun.objects.exists)
    kills.at("the plan is written", PLANNING["the plan is written"])
    kills.at("2 resources are done", APPLYING["2 resources are done"])
    kills.finish()
    check(kills, kills.aws)
    assert kills.aws.count()["rules"] == 6
    assert kills.too_late == []


def test_at_every_step_of_building_changing_and_deleting(kills: Kills) -> None:
    for (word, wanted), (name, point) in zip(rounds(kills.aws).items(), APPLYING.items(), strict=True):
        change(kills, wanted, name, point)
        kills.finish()
        print(f"{word}: {len(kills.done)} killed so far, {kills.aws.count()}", flush=True)
        check(kills, kills.aws)
    assert kills.aws.count() == {}
    print("killed:", *kills.done, "too late:", *kills.too_late, sep="\n  ", flush=True)
    assert len(kills.done) >= 20
