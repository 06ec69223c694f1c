"""The hands: many nodes at once are brought to a bundle at the lowest price; no database in here."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from apps.compiler.bundle import Bundle
from apps.compiler.plan import Plan, Runtime, plan
from apps.drivers.proxy.contract import (
    NodeState,
    NodeTarget,
    ProxyDriver,
    ProxyError,
    Refused,
    Superseded,
    Unreachable,
)
from apps.drivers.proxy.registry import open_driver
from apps.observe.collect.readings import check_state

AT_ONCE = 64
POLL_SECONDS = 0.2
# No worker waits longer than this for nodes, however long they may take.
LONGEST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Job:
    """Bring one node to `wanted` with this generation; `believed` is the digest that it probably runs ("": ask it).

    `looked_up` says that the revision store was asked what the node runs: whatever is not known is foreign.
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

    With `how` empty nothing was done yet: the node runs something that has to be looked up in the revision store first.
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


@dataclass(frozen=True, slots=True)
class Pace:
    """How the worker of a fleet goes along with its nodes.

    `heartbeat` is called each `every` seconds. `leave` is asked, with the seconds since the first node of the fleet was
    free, whether those that are still at it are left to go on by themselves; `late` hears when such a one is done.
    """

    heartbeat: Callable[[], None]
    every: float
    leave: Callable[[float], bool]
    late: Callable[[], object]
    others_free: bool = False


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="push")


@functools.cache
def _lookers() -> ThreadPoolExecutor:
    """Threads of their own, so that nodes that do not answer keep no push waiting."""
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="look")


_behind: dict[int, Future[Outcome]] = {}


def occupied(node_ids: Iterable[int]) -> set[int]:
    """Those of the nodes that this process has left behind at a push."""
    return {pk for pk in node_ids if _is_behind(pk)}


def _is_behind(node_id: int) -> bool:
    future = _behind.get(node_id)
    return future is not None and not future.done()


def push_all(jobs: list[Job], plans: Plans, pace: Pace) -> Iterator[list[Outcome]]:
    """Work on all nodes at once and hand out what is done as it is done, until all are or `pace` leaves the rest."""
    for digest in {job.believed for job in jobs}:
        plans.runtime_from(digest)  # once here rather than in every thread
    began = free_since = beaten = time.monotonic()
    some_free = pace.others_free
    running: dict[Future[Outcome], Job] = {_threads().submit(push_one, job, plans): job for job in jobs}
    while running:
        done, _ = wait(running, timeout=min(pace.every, POLL_SECONDS), return_when=FIRST_COMPLETED)
        if time.monotonic() - beaten >= pace.every:
            pace.heartbeat()
            beaten = time.monotonic()
        if done:
            for each in done:
                del running[each]
            yield [each.result() for each in done]
            if not some_free:
                some_free, free_since = True, time.monotonic()
        late = time.monotonic() - began >= LONGEST_SECONDS
        if running and (late or (some_free and pace.leave(time.monotonic() - free_since))):
            _leave_behind(running, pace.late)
            return


def _leave_behind(running: Mapping[Future[Outcome], Job], late: Callable[[], object]) -> None:
    for future, job in running.items():
        _behind[job.node_id] = future
        future.add_done_callback(lambda _: late())


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
            raise Superseded(f"{job.target.name} already runs generation {state.generation}.")
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
        return Outcome(
            job.node_id, job.generation, error=Unreachable(f"{job.target.name}: its answer cannot be used: {error}.")
        )


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


def look_at(
    targets: Mapping[int, NodeTarget], enough: Callable[[], bool] = lambda: False
) -> dict[int, NodeState | str]:
    """What every node says it runs, or why it cannot be asked, by node id; of those that said so before `enough`."""
    running = {_lookers().submit(_look, target): node_id for node_id, target in targets.items()}
    found: dict[int, NodeState | str] = {}
    while running:
        done, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        found |= {running.pop(each): each.result() for each in done}
        if not done and enough():
            break
    return found


def _look(target: NodeTarget) -> NodeState | str:
    try:
        state = open_driver(target).read_state()
        check_state(state)
    except ProxyError as error:
        return error.message
    except Exception as error:  # noqa: BLE001 - as above
        return f"{target.name}: its answer cannot be used: {error}."
    return state
