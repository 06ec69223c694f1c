"""PUSH, the hands: many nodes at once are brought to a bundle at the lowest price; no database in here."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from apps.compiler.bundle import Bundle
from apps.compiler.plan import Plan, Runtime, plan
from apps.drivers.proxy.contract import NodeState, NodeTarget, ProxyDriver, ProxyError, Refused, Superseded, Unreachable
from apps.drivers.proxy.registry import open_driver
from apps.observe.readings import check_state

AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Job:
    """Bring one node to `wanted` with this generation; `believed` is the digest that it probably runs ("": ask it).

    `looked_up` says that the shelf was asked for what the node runs, so that whatever is not known is foreign.
    """

    node_id: int
    target: NodeTarget
    wanted: Bundle
    generation: int
    believed: str = ""
    looked_up: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a job: the node's state, or the error; `how` is nothing, runtime or reload.

    With `how` empty nothing was done yet: the node runs something that has to be looked up on the shelf first.
    """

    node_id: int
    generation: int
    state: NodeState | None = None
    how: str = ""
    error: ProxyError | None = None


@dataclass(slots=True)
class Plans:
    """What leads from each known bundle to the wanted one, decided once for all nodes that run the same."""

    known: Mapping[str, Bundle]
    wanted: Bundle
    _decided: dict[str, Plan] = field(default_factory=dict)

    def runtime_from(self, digest: str) -> Runtime | None:
        """The operations that lead from the running digest to the wanted bundle, None when only a push does."""
        if digest not in self.known or digest == self.wanted.digest:
            return None
        if digest not in self._decided:
            self._decided[digest] = plan(self.known[digest], self.wanted)
        decided = self._decided[digest]
        return decided if isinstance(decided, Runtime) else None


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="push")


def push_all(jobs: list[Job], plans: Plans, heartbeat: Callable[[], None], every: float) -> Iterator[list[Outcome]]:
    """Work on all nodes at once and hand out what is done as it is done; calls `heartbeat` each `every` seconds."""
    for digest in {job.believed for job in jobs}:
        plans.runtime_from(digest)  # once here rather than in every thread
    beaten = time.monotonic()
    running: set[Future[Outcome]] = {_threads().submit(push_one, job, plans) for job in jobs}
    while running:
        done, running = wait(running, timeout=every, return_when=FIRST_COMPLETED)
        if time.monotonic() - beaten >= every:
            heartbeat()
            beaten = time.monotonic()
        if done:
            yield [each.result() for each in done]


def push_one(job: Job, plans: Plans) -> Outcome:
    """One node.

    1. When it is believed to run a revision from which runtime operations lead on, try them at once: the node itself
       refuses when the belief is wrong.
    2. Else ask what it runs. Already the wanted digest, on disk as well and nothing drifted: nothing to do.
    3. It runs a generation as high as ours: superseded, whoever sent it decides with a fresh look.
    4. Runtime operations where they lead from what it says it runs (looked up first), else the whole bundle.
    """
    try:
        driver = open_driver(job.target)
        changed = _operate(driver, job, plans, job.believed)
        if changed is not None:
            return changed
        state = driver.read_state()
        check_state(state)
        if is_as_wanted(state, job.wanted.digest):
            return Outcome(job.node_id, state.generation, state, "nothing")
        if state.generation >= job.generation:
            raise Superseded(f"{job.target.name} runs generation {state.generation} already.")
        clean = state.digest == state.on_disk and not state.drift
        if clean and state.digest and state.digest not in plans.known and not job.looked_up:
            return Outcome(job.node_id, state.generation, state)
        changed = _operate(driver, job, plans, state.digest) if clean and state.digest != job.believed else None
        if changed is not None:
            return changed
        return Outcome(job.node_id, job.generation, driver.push_bundle(job.wanted, job.generation), "reload")
    except ProxyError as error:
        return Outcome(job.node_id, job.generation, error=error)
    except Exception as error:  # noqa: BLE001 - one strange agent must not keep the other nodes from theirs
        return Outcome(job.node_id, job.generation, error=Unreachable(f"{job.target.name}: {error!r}."))


def _operate(driver: ProxyDriver, job: Job, plans: Plans, digest: str) -> Outcome | None:
    """Try runtime operations from `digest`; None when there are none or the node does not start from there."""
    decided = plans.runtime_from(digest)
    if decided is None:
        return None
    try:
        state = driver.run_operations(decided.operations, job.wanted, digest, job.generation)
    except (Refused, Superseded):
        return None
    return Outcome(job.node_id, job.generation, state, "runtime")


def is_as_wanted(state: NodeState, digest: str) -> bool:
    """Whether the node runs the digest, has it on disk, and nothing drifted."""
    return state.digest == digest == state.on_disk and not state.drift


def look_at(targets: Mapping[int, NodeTarget]) -> dict[int, NodeState | str]:
    """What every node says it runs, or why it cannot be asked, by node id."""
    found = _threads().map(_look, targets.values())
    return dict(zip(targets, found, strict=True))


def _look(target: NodeTarget) -> NodeState | str:
    try:
        state = open_driver(target).read_state()
        check_state(state)
    except ProxyError as error:
        return error.message
    except Exception as error:  # noqa: BLE001 - as above
        return f"{target.name}: {error!r}."
    return state
