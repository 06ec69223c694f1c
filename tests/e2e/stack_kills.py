"""Kills workers of a stack at every step they take, counts what stands twice in the cloud and what nobody knows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.definitions.services import apply_document
from apps.fleet.models import Stack
from apps.stacks import services
from apps.stacks.models import RunEvent, StackRun, StackSync, StateLock
from apps.stacks.state import storage as state
from tests.e2e.stack_definitions import shop, stack_objects
from tests.e2e.stack_env import LONGEST_S, Cloud, StackEnv, kill

ROUTES = 12
Point = Callable[["Kills"], bool]


@dataclass
class Kills:
    """One stack, one worker after the other; `done` says at which steps they were killed."""

    env: StackEnv
    aws: Cloud
    done: list[str] = field(default_factory=list)
    too_late: list[str] = field(default_factory=list)
    attempt: int = 0
    lock: str = ""
    workspaces: frozenset[Path] = frozenset()

    def run(self) -> StackRun:
        """The last run."""
        return StackRun.objects.order_by("-id")[0]

    def file(self, pattern: str) -> bool:
        """Whether this worker's private directory has it; those of the dead do not count."""
        return any(
            workspace not in self.workspaces and (workspace / pattern).exists() for workspace in self._workspaces()
        )

    def locked(self) -> bool:
        """Whether this worker's Terraform holds the lock."""
        return StateLock.objects.exclude(lock_id=self.lock).exists()

    def began(self) -> bool:
        """Whether this worker has the stack."""
        return StackSync.objects.filter(attempt__gt=self.attempt).exists()

    def _workspaces(self) -> frozenset[Path]:
        return frozenset(self.env.directory.glob("terraform/stack-*"))

    def _remember(self) -> None:
        """What the dead left behind, so that it is not taken for the next one's."""
        sync, lock = StackSync.objects.first(), StateLock.objects.first()
        self.attempt, self.lock = sync.attempt if sync else 0, lock.lock_id if lock else ""
        self.workspaces = self._workspaces()

    def completed(self) -> int:
        """Resources that Terraform said it had finished, in the last run."""
        return RunEvent.objects.filter(run=self.run(), kind="complete").count()

    def at(self, name: str, point: Point) -> None:
        """Start a worker, kill it as soon as it is there; one that was too fast is noted as such."""
        self._remember()
        with self.env.worker() as process:
            deadline = time.monotonic() + LONGEST_S
            while not (self.began() and point(self)) and not self._over():
                assert time.monotonic() < deadline, f"never came to {name}"
                time.sleep(0.01)
            kill(process)
        (self.too_late if self._over() else self.done).append(name)

    def _over(self) -> bool:
        return self.run().finished_at is not None

    def finish(self) -> StackRun:
        """A worker that nobody kills."""
        with self.env.worker():
            self.env.wait("the end", self.env.settled)
        return self.run()


PLANNING: dict[str, Point] = {
    "the run begins": lambda kills: kills.run().state == "planning",
    "the document is written": lambda kills: kills.file("cdk.tf.json"),
    "providers are there": lambda kills: kills.file(".terraform/providers"),
    "planning under the lock": Kills.locked,
    "the plan is written": lambda kills: kills.file("plan.tfplan"),
}


def after(count: int) -> Point:
    """As soon as so many resources are finished."""
    return lambda kills: kills.completed() >= count


def change(kills: Kills, wanted: list[dict[str, Any]], name: str, point: Point) -> None:
    """Definitions change; a worker dies at each step of planning, and one at a point of the apply."""
    before = StackRun.objects.count()
    apply_document(actor=kills.env.actor, objects=wanted, manager="shop", prune=True)
    with kills.env.worker():
        kills.env.wait("a run", lambda: StackRun.objects.count() > before)
    for step, reached in PLANNING.items():
        kills.at(step, reached)
    _approve(kills)
    kills.at(name, lambda kills: kills.run().state == "applying" and point(kills))


def _approve(kills: Kills) -> None:
    """What loses everything waits for a person under every policy."""
    with kills.env.worker():
        kills.env.wait("a plan", lambda: kills.run().state not in {"waiting", "planning"})
    if kills.run().state == "planned":
        services.approve(actor=kills.env.actor, run_id=kills.run().pk, plan_digest=kills.run().plan_digest)


def rounds(aws: Cloud) -> dict[str, list[dict[str, Any]]]:
    """What a stack goes through."""
    return {
        "built": shop(aws, routes=ROUTES, approval="automatic"),
        "changed": shop(aws, routes=ROUTES + 5, weight=40, approval="automatic"),
        "shrunk": shop(aws, routes=5, weight=40, approval="automatic"),
        "deleted": stack_objects(aws, "automatic"),
    }


APPLYING: dict[str, Point] = {
    "the apply begins": Kills.began,
    "applying under the lock": Kills.locked,
    "2 resources are done": after(2),
    "5 resources are done": after(5),
}


def twice(aws: Cloud) -> list[str]:
    """What stands twice."""
    found = aws.standing()
    return [f"{kind}: {name}" for kind, names in found.items() for name in set(names) if names.count(name) > 1]


def of_state(stack: Stack) -> Iterator[dict[str, Any]]:
    """Attributes of every resource that the state knows."""
    kept = state.read(stack.pk)
    for resource in json.loads(kept.content)["resources"] if kept else []:
        for instance in resource["instances"]:
            yield {"type": resource["type"], **instance["attributes"]}


def orphans(aws: Cloud, stack: Stack) -> list[str]:
    """What stands in the cloud and the state does not know."""
    rows = list(of_state(stack))
    names = {str(row.get("name")) for row in rows} | {f"{row.get('name')}." for row in rows}
    arns = {str(row.get("arn")) for row in rows} | {str(row.get("id")) for row in rows}
    rules = {f"{row['listener_arn']} {row['priority']}" for row in rows if row["type"] == "aws_lb_listener_rule"}
    allowed = names | arns | rules
    return [f"{kind}: {name}" for kind, found in aws.standing().items() for name in found if name not in allowed]
