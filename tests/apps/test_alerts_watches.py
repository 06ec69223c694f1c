"""Every watch that no other file asks: it begins on what it is for, not just below that, and ends with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from apps.accounts.actors import Actor
from apps.alerts.models import Finding
from apps.capacity.measure.results import Result
from apps.capacity.models import Run
from apps.core.clock import database_now
from apps.definitions.models import Certificate, Pool, Schedule
from apps.definitions.shapes.operations.alert_watches import WATCHES
from apps.fleet.models import Fleet, Node
from apps.observe.collect.buckets import SHORT
from apps.observe.collect.fitness import CLOCK_TOLERANCE_S, evaluate_clock
from apps.observe.evaluate.conditions import NodeFacts, Verdict, evaluate_node, evaluate_queue
from apps.observe.evaluate.limit_use import LimitFacts, evaluate_limits
from apps.observe.models import Sample
from apps.observe.services import store_verdicts
from apps.rollouts.models import FleetSync, Revision, Rollout
from apps.rollouts.push.states import RolloutState
from apps.schedules.models import ScheduleRun
from tests.apps.alerts_env import Installation, make_pool
from tests.interfaces.capacity_env import make_run, make_test


@dataclass(frozen=True)
class Scene:
    """Where a case happens: a pool of acme's own for it, and a node."""

    installation: Installation
    pool: Pool
    node: Node

    @property
    def at(self) -> datetime:
        """What time it is."""
        return self.installation.at

    def says(self, *verdicts: Verdict) -> None:
        """What the collector's own functions find."""
        store_verdicts(verdicts, self.at)


State = Callable[[Scene], None]


@dataclass(frozen=True)
class Case:
    """A watch, whose alert it is, its title, and three states: below, wrong, over. A state is told again each time."""

    watch: str
    title: str
    below: State
    wrong: State
    over: State
    account: str = "acme"


def _served(responses: int = 100, failed: int = 0, slow: int = 0, refused: int = 0) -> State:
    """The last ten seconds of the pool; `slow` of them took one to two seconds."""

    def state(scene: Scene) -> None:
        flow = f"pool-{scene.pool.pk}/refuse/rgn-1/rate"
        same = {"at": scene.at, "resolution": SHORT, "node": scene.node, "seconds": 10}
        good = responses - failed
        Sample.objects.create(
            **same,
            kind="backend",
            object_id=f"pool-{scene.pool.pk}",
            requests=responses,
            status_2xx=good,
            status_5xx=failed,
            latency_buckets={"600": responses - slow, "2000": slow},
        )
        Sample.objects.create(**same, kind="flow", object_id=flow, requests=refused)

    return state


def _queue(*lengths: int) -> State:
    return lambda scene: scene.says(evaluate_queue(scene.pool.pk, lengths))


def _at_limit(minutes: int, of: int = 60) -> State:
    """So many minutes of the last hour at the limit."""
    rates = [10.0] * minutes + [1.0] * (of - minutes)
    return lambda scene: scene.says(evaluate_limits(scene.pool.pk, [LimitFacts("us", 10, rates, rates)]))


def _valid_for(time: timedelta) -> State:
    def state(scene: Scene) -> None:
        ends = {"not_after": scene.at + time, "hostnames": ["shop.acme.example"]}
        Certificate.objects.update_or_create(account=scene.pool.account, name=scene.pool.name, defaults=ends)

    return state


def _run(capacity: float | None = None, state: str = Run.State.DONE, limited_by: str = "time") -> State:
    """The last run of a capacity test ended so."""

    def ended(scene: Scene) -> None:
        test = scene.pool.capacity_tests.first() or make_test(scene.pool)
        found = Result("search", "", limited_by, capacity=capacity).document() if state == Run.State.DONE else None
        make_run(test, steps=0, state=state, result=found, ended_at=scene.at)

    return ended


def _scheduled(last: str) -> State:
    """The last run of a schedule that is over ended so; another one waits."""

    def state(scene: Scene) -> None:
        account = scene.pool.account
        row, _ = Schedule.objects.get_or_create(
            account=account, name=scene.pool.name, defaults={"target_kind": "topic"}
        )
        for order, each in enumerate((last, "waiting")):
            at = scene.at + timedelta(seconds=order)
            same = {"scheduled_at": at, "due_at": at, "next_try_at": at}
            ScheduleRun.objects.create(schedule=row, account=account, state=each, **same)

    return state


def _pools(count: int, quota: int = 100) -> State:
    def state(scene: Scene) -> None:
        account = scene.pool.account
        account.quotas = {"pools": quota}
        account.save()
        own = Pool.objects.filter(account=account)
        own.filter(pk__in=own.filter(name__startswith="more-").values("pk")).delete()
        Pool.objects.bulk_create([Pool(account=account, name=f"more-{each}") for each in range(count - own.count())])

    return state


def _rollout(*ends: tuple[str, str]) -> State:
    """These rollouts (kind, state) ended one after the other."""

    def state(scene: Scene) -> None:
        fleet = scene.node.fleet
        revision, _ = Revision.objects.get_or_create(
            fleet=fleet, number=999, defaults={"digest": "d" * 64, "snapshot": b"", "bundle": b"", "actor": "ada"}
        )
        for kind, each in ends:
            about = {"fleet": fleet, "revision": revision, "actor": "ada", "generation": 1}
            Rollout.objects.create(**about, kind=kind, state=each, finished_at=scene.at)

    return state


def _drifted(*drift: str) -> State:
    def state(scene: Scene) -> None:
        scene.says(*evaluate_node(NodeFacts(scene.node.pk, True, generation=1, serving=True, drift=drift)))

    return state


def _clock(ahead_s: float) -> State:
    return lambda scene: scene.says(evaluate_clock("node", scene.node.pk, ahead_s))


def _compiled(behind: int, *, claimed: bool = False) -> State:
    """One fleet is so many generations behind, and the others are not; a worker has it, or none."""

    def state(scene: Scene) -> None:
        until = database_now() + timedelta(minutes=1) if claimed else None
        for fleet in Fleet.objects.all():
            late = behind if fleet == scene.node.fleet else 0
            done = {"compiled_generation": fleet.desired_generation - late, "claimed_until": until}
            FleetSync.objects.update_or_create(fleet=fleet, defaults=done)

    return state


CHANGE, REPAIR = Rollout.Kind.CHANGE, Rollout.Kind.REPAIR
DONE, FAILED, BACK = RolloutState.DONE, RolloutState.FAILED, RolloutState.ROLLED_BACK
DAYS, A_WHILE = timedelta(days=14), timedelta(minutes=10)
ERRORS = "Pool {pool} answers with errors"
NO_RESULT, STOPPED = "Capacity test {pool}-us-central1 has no result", "Rollout to {fleet} "
CASES = (
    Case("pool_errors", ERRORS, _served(failed=4), _served(failed=5), _served()),
    Case("pool_errors", ERRORS, _served(19, failed=19), _served(20, failed=20), _served(0)),
    Case("pool_slow", "Pool {pool} is slow", _served(slow=4), _served(slow=6), _served()),
    Case("pool_refusing", "Pool {pool} refuses requests", _served(100, refused=1), _served(99, refused=1), _served()),
    Case("pool_queue", "Pool {pool} makes requests queue", _queue(2, 3, 4), _queue(2, 3, 5), _queue(5, 3, 2)),
    Case("pool_at_limit", "Pool {pool} is always at its limit", _at_limit(53), _at_limit(54), _at_limit(5)),
    Case(
        *("certificate_expiring", "Certificate {pool} expires on "),
        *(_valid_for(DAYS + A_WHILE), _valid_for(DAYS - A_WHILE), _valid_for(90 * DAYS)),
    ),
    Case("run_inconclusive", NO_RESULT, _run(limited_by="nothing"), _run(), _run(10)),
    Case("run_inconclusive", NO_RESULT, _run(10), _run(state=Run.State.REFUSED), _run(10)),
    Case(
        "schedule_missed",
        "Schedule {pool} was missed",
        _scheduled("skipped"),
        _scheduled("missed"),
        _scheduled("done"),
    ),
    Case(
        "schedule_missed",
        "Schedule {pool} gave up",
        _scheduled("done"),
        _scheduled("dead"),
        _scheduled("done"),
    ),
    Case("quota_used", "Account acme has used 90 of 100 pools", _pools(89), _pools(90), _pools(89)),
    Case(
        *(
            "rollout_stopped",
            STOPPED + "failed",
            _rollout((CHANGE, DONE), (REPAIR, FAILED)),
            _rollout((CHANGE, FAILED)),
        ),
        *(_rollout((CHANGE, DONE)), "operator"),
    ),
    Case(
        *("rollout_stopped", STOPPED + "was rolled back", _rollout((CHANGE, DONE))),
        *(_rollout((CHANGE, BACK), (CHANGE, RolloutState.SUPERSEDED)), _rollout((CHANGE, DONE)), "operator"),
    ),
    Case(
        "node_drift",
        "Node {node} runs something else than was pushed",
        _drifted(),
        _drifted("haproxy.cfg was edited"),
        _drifted(),
        "operator",
    ),
    Case(
        "node_unfit",
        "Node {node} has a clock that is off",
        _clock(CLOCK_TOLERANCE_S),
        _clock(-CLOCK_TOLERANCE_S - 0.1),
        _clock(0),
        "operator",
    ),
    Case(
        "worker_silent",
        "No worker takes up changes",
        _compiled(1, claimed=True),
        _compiled(1),
        _compiled(0),
        "operator",
    ),
)


LONGEST = max(WATCHES[case.watch].for_s for case in CASES)


@pytest.fixture
def scenes(tutorial_env: Actor, acme: Actor) -> list[tuple[Scene, Case]]:
    """Every case in a scene of its own, all in the tutorial's installation."""
    installation, fleets = Installation(), list(Fleet.objects.order_by("name"))
    return [
        (
            Scene(
                installation,
                make_pool(acme, f"pool-{number:02}", f"10.1.0.{number}"),
                fleets[number % len(fleets)].nodes.earliest("name"),
            ),
            case,
        )
        for number, case in enumerate(CASES, 1)
    ]


def _looks(scenes: Sequence[tuple[Scene, Case]], which: str, after: float) -> list[str]:
    """The cases that fire when more time has passed than any look takes, and their states were told."""
    installation = scenes[0][0].installation
    installation.at += timedelta(seconds=after)
    for scene, case in scenes:
        getattr(case, which)(scene)
    installation.tick(1)
    rows = Finding.objects.filter(ended_at=None).exclude(alert=None).values_list("watches", "account__name", "title")
    titles = {(watch, account): [row[2] for row in rows if row[:2] == (watch, account)] for watch, account, _ in rows}
    found = ((scene, case) for scene, case in scenes if _any(titles.get((case.watch, case.account), []), scene, case))
    return [_named(*each) for each in found]


def _any(titles: Sequence[str], scene: Scene, case: Case) -> bool:
    return any(title.startswith(_title(scene, case)) for title in titles)


def _title(scene: Scene, case: Case) -> str:
    return case.title.format(pool=scene.pool.name, fleet=scene.node.fleet.name, node=scene.node.name)


def _named(scene: Scene, case: Case) -> str:
    return f"{case.watch}: {_title(scene, case)}"


def test_a_watch_begins_when_its_state_has_lasted_and_not_just_below_it_and_ends_with_it(
    scenes: list[tuple[Scene, Case]],
) -> None:
    below = _looks(scenes, "below", 80) + _looks(scenes, "below", 80 + LONGEST)
    assert below == []
    assert _looks(scenes, "wrong", 80) == [_named(*each) for each in scenes if WATCHES[each[1].watch].for_s == 0]
    assert _looks(scenes, "wrong", 80 + LONGEST) == [_named(*each) for each in scenes]
    _looks(scenes, "over", 80)
    assert _looks(scenes, "over", 80) == []
