"""A push to a cloud never delays a push to a fleet: real Celery workers, a Terraform that takes its time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from apps.accounts.actors import Actor
from apps.definitions.services import save_object
from apps.rollouts.models import Rollout
from apps.stacks.models import StackRun
from tests.apps.pushed import add_route, make_env
from tests.e2e.stack_env import ROOT, StackEnv, kill

# Which queues and workers there are is asked in tests/architecture/test_tasks.py.
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.exhaustive,
    pytest.mark.timeout(600),
    pytest.mark.django_db(transaction=True),
]

SLOW = """#!/bin/sh
case "$1" in
  version) echo '{"terraform_version": "1.9.0"}' ;;
  init) ;;
  *) exec sleep 600 ;;
esac
"""
# A push takes well below a second; the rest is for machines that do other things as well.
SOON_S = 120.0
WHILE_S = 8.0


@pytest.fixture
def environment(operator: Actor, live_server: Any, live_redis: str, tmp_path: Path) -> dict[str, str]:
    """What the processes get: this test's database and Redis, and the slow Terraform."""
    slow = tmp_path / "slow-terraform"
    slow.write_text(SLOW)
    slow.chmod(0o700)
    env = StackEnv(operator, tmp_path, live_server.url)
    return env.environment() | {"TERRAFORM_BIN": str(slow), "SPILLWAY_REDIS_URL": live_redis}


@contextmanager
def process(environment: dict[str, str], *command: str) -> Iterator[None]:
    """A program of the product."""
    with Path(os.devnull).open("wb") as nowhere:
        started = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=nowhere, stderr=nowhere)
        try:
            yield
        finally:
            kill(started)


def worker(environment: dict[str, str], queues: str, name: str) -> Any:
    """A Celery worker that does one thing at a time."""
    celery = [sys.executable, "-m", "celery", "-A", "controlplane.celery", "worker", "--pool", "threads"]
    options = ["--concurrency", "1", "-Q", queues, "-n", f"{name}@here", "--without-mingle", "--without-gossip"]
    return process(environment, *celery, *options)


def wait(what: str, seconds: float, done: Any) -> float:
    """How long it took until it was so."""
    began = time.monotonic()
    while not done():
        assert time.monotonic() - began < seconds, f"waited {seconds:.0f} s in vain for {what}"
        time.sleep(0.05)
    return time.monotonic() - began


def keep_terraform_busy(operator: Actor) -> None:
    """A stack whose plan never ends."""
    save_object(actor=operator, kind="CloudAccount", name="aws", spec={"cloud": "aws", "credentials": "env:MOTO"})
    network = {"vpc": "vpc-0a1b2c3d", "subnets": ["subnet-0a1b2c3d", "subnet-1a1b2c3d"]}
    spec = {"cloud_account": "aws", "cloud_region": "eu-central-1", "region": "here", "network": network}
    save_object(actor=operator, kind="Stack", name="cloud", spec=spec)
    balancer = {"stacks": ["cloud"], "listeners": [{"name": "http", "protocol": "http", "port": 80}]}
    save_object(actor=operator, kind="LoadBalancer", name="sky", spec=balancer)


def planning() -> bool:
    return StackRun.objects.filter(state="planning").exists()


def rollouts() -> int:
    return Rollout.objects.filter(state="done").count()


def pushed(operator: Actor, number: int) -> float:
    """Seconds from a change to the end of its rollout."""
    before = rollouts()
    add_route(operator, f"more-{number}", f"/{number}")
    return wait("a rollout", SOON_S, lambda: rollouts() > before)


def test_a_fleet_is_pushed_to_while_terraform_works(operator: Actor, environment: dict[str, str]) -> None:
    make_env(operator, "beside")
    with ExitStack() as running:
        running.enter_context(worker(environment, "default,push", "pusher"))
        running.enter_context(worker(environment, "terraform", "terraform"))
        running.enter_context(process(environment, sys.executable, "manage.py", "schedule", "--every", "0.5"))
        wait("the first rollout", SOON_S, lambda: rollouts() == 1)
        alone = [pushed(operator, number) for number in range(3)]
        keep_terraform_busy(operator)
        wait("a plan under way", SOON_S, planning)
        beside = [pushed(operator, number) for number in range(3, 6)]
        assert planning()
    # Printed, not compared: what else a machine does decides over so short times. The next test shows what is held up.
    print(f"pushed in {median(alone):.2f} s alone, in {median(beside):.2f} s while terraform worked")


def test_without_a_queue_of_its_own_it_would_wait(operator: Actor, environment: dict[str, str]) -> None:
    make_env(operator, "together")
    with ExitStack() as running:
        running.enter_context(worker(environment, "default,push,terraform", "both"))
        running.enter_context(process(environment, sys.executable, "manage.py", "schedule", "--every", "0.5"))
        wait("the first rollout", SOON_S, lambda: rollouts() == 1)
        keep_terraform_busy(operator)
        wait("a plan under way", SOON_S, planning)
        add_route(operator, "more", "/more")
        time.sleep(WHILE_S)
        assert (rollouts(), planning()) == (1, True)
