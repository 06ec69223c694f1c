"""Carries out one run, from claim to result; the load profile decides the steps, abort conditions the end.

1. Claim the run (claims.py). Somebody else has it, or its time has passed: leave.
2. Ask every check, and take a slot among the runs that may be at once. A no that passes is asked again until the
   run's time is over; any other no refuses the run. Ask the generator how much it can send (generator_capacity.py): a
   rate above it refuses the run, a search is bounded by it.
3. Activate the bypass token and wait until the nodes know it. Ask every check once more, right before a packet.
4. Start the generator. Every second: renew the claim, then the generator; write the second down; look around; abort,
   stop or go on as the load profile says. A generator that is not renewed ends by itself (its lease is five seconds):
   whatever happens to this process or to the database ends the load.
5. Load is at zero; take the bypass token back; write the end down, if the claim is still ours; let the policy act.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from apps.accounts.quotas import quota
from apps.capacity.measure.bottleneck import bottleneck
from apps.capacity.measure.history import since_last
from apps.capacity.measure.measuring import failed_of, latencies_of
from apps.capacity.models import Run
from apps.capacity.models import Second as SecondRow
from apps.capacity.models import Step as StepRow
from apps.capacity.run import bypass_tokens, claims, facts, generator_capacity
from apps.capacity.run.abort_conditions import PROBING, Environment, SecondSample, abort_for
from apps.capacity.run.checking import Check, among_others, checks, refusal
from apps.capacity.run.claims import ClaimLost
from apps.capacity.run.generating import Load
from apps.capacity.run.profiles import load_profile_of
from apps.capacity.run.steps import LoadProfile, Outcome, Purpose, Status, StepPlan, Verdict
from apps.capacity.run.targets import target_of_run
from apps.capacity.use import limits, staleness
from apps.core.clock import database_now
from apps.core.concurrency.fairness import Owners, Seats, in_turns
from apps.core.errors import SpillwayError
from apps.core.events import publish
from apps.definitions.models import Backend, CapacityTest
from apps.definitions.serving import usable_servers
from apps.definitions.shapes.base.reading import read_or_raise
from apps.definitions.shapes.operations.capacity_test import CapacityTestSpec
from apps.drivers.load.contract import Arrivals, LoadError, Plan, Request, Second
from apps.overflow.facts import LimitRow, share_of

logger = logging.getLogger(__name__)
LIVE_WITHIN_S = 20.0
LOAD_LOST = "The load generator stopped before the test was over. Start it again."
TURN_S = 4.0
# One thread is left for what comes.
# A run takes minutes by its nature.
SEATS: Seats[int] = Seats(lambda: settings.LOADGEN_THREADS - 1, slow_s=900.0)
_begun: set[int] = set()  # by this process, so that two threads do not sit down for one run
CALM = (Purpose.WARM_UP, Purpose.HOLD)


@dataclass(frozen=True, slots=True)
class End:
    """How a run ends: its state, and why in a sentence."""

    state: str
    message: str = ""


def carry_out_in_turns() -> int:
    """Carry out what waits, account by account, as long as there are seats; the number of runs.

    A run holds its thread until it ends, also while it waits for others: those of one account are never all.
    """

    def choose(accounts: Owners, done: frozenset[int]) -> tuple[Hashable, int] | None:
        waiting = Run.objects.filter(state=Run.State.WAITING, begin_by__gt=database_now(), stop_requested_at=None)
        waiting = waiting.exclude(account__in=accounts).exclude(pk__in=done | _begun)
        found = waiting.order_by("begin_by", "pk").values_list("account", "pk").first()
        if found is not None:
            _begun.add(found[1])
        return found

    def begin(run_id: int) -> None:
        try:
            carry_out(run_id)
        finally:
            _begun.discard(run_id)

    return in_turns(SEATS, choose, begin)


def carry_out(run_id: int) -> None:
    """Do all of it; nothing is raised, what went wrong stands in the run."""
    run = claims.take(run_id)
    if run is None:
        return
    profile: LoadProfile | None = None
    end: End | None
    try:
        test = run.test
        end = _may_begin(run, test)
        if end is None and test is not None:
            claims.renew(run, phase="The load generator is measuring its own capacity.")
            claims.renew(run, generator=generator_capacity.advertised_max(run.plan, test))
            profile = _load_profile(run, test)
            end = _offers(run) or _load(run, test, profile)
    except ClaimLost:
        logger.warning("%s is another's now, or over", run.name)
        return
    except (LoadError, SpillwayError) as error:
        end = End(Run.State.FAILED, getattr(error, "message", str(error)))
    except Exception:
        logger.exception("%s failed", run.name)
        end = End(Run.State.FAILED, "The run failed because of an error in Spillway. See the worker's log.")
    _end(run, end or End(Run.State.FAILED), profile)


def _may_begin(run: Run, test: CapacityTest | None) -> End | None:
    """Ask until every answer is yes, a no stays no, or the time is over; None when it may begin."""
    if test is None:
        return End(Run.State.REFUSED, "The test was deleted.")
    while found := _hindrance(run, test):
        late = run.begin_by is not None and database_now() >= run.begin_by
        if late or not found.passing:
            return End(Run.State.REFUSED, found.message)
        if not claims.renew(run, phase=f"Waiting: {found.message}"[:400]):
            return _stopped(run)
        time.sleep(0.5)
    return None


def _hindrance(run: Run, test: CapacityTest) -> Check | None:
    """What keeps it from beginning; where nothing does, it has its slot among the runs now."""
    found = refusal(_checks(run, test))
    return found or claims.take_slot(run, lambda: refusal(among_others(test, run)))


def _stopped(run: Run) -> End:
    run.refresh_from_db(fields=("stopped_by",))
    return End(Run.State.STOPPED, f"{run.stopped_by or 'Somebody'} stopped it.")


def _checks(run: Run, test: CapacityTest) -> tuple[Check, ...]:
    """With everything read anew: what was true a minute ago is not asked about."""
    fresh = CapacityTest.objects.select_related("account", "pool__account", "region").get(pk=test.pk)
    return (*checks(fresh, database_now(), run=run), _as_planned(run, fresh))


def _as_planned(run: Run, test: CapacityTest) -> Check:
    target = dict(run.plan["target"])
    same = (target["hostname"], target["path"], target["server"]) == (test.hostname, test.path, test.server)
    same = same and (run.pool_id, run.region_id) == (test.pool_id, test.region_id)
    return Check(
        "plan", same, "The test has not changed." if same else "The target of the test has changed; start it again."
    )


def _allowed(run: Run) -> float:
    """The highest rate that the test and the quota allow, requests/s."""
    guard, most = run.plan["guards"]["max_rate"], quota(run.account, "test_rate")
    return float(guard if most is None else min(guard, most))


def _offers(run: Run) -> End | None:
    """The end of a run that is to hold more than the generator can offer; nothing is sent."""
    why = generator_capacity.exceeds(read_or_raise(CapacityTestSpec, run.plan), run.generator, _allowed(run))
    return End(Run.State.REFUSED, why) if why else None


def _load_profile(run: Run, test: CapacityTest) -> LoadProfile:
    most = generator_capacity.bound(_allowed(run), run.generator)
    return load_profile_of(read_or_raise(CapacityTestSpec, run.plan), known_limit=_known_limit(test), max_rate=most)


def _known_limit(test: CapacityTest) -> float:
    """The present rate limit of what is loaded, requests/s; 0 without one."""
    rows = Backend.objects.filter(pool=test.pool_id, region=test.region_id).annotate(usable=usable_servers())
    found = rows.values_list(*LimitRow._fields, "usable", "region__drained").first()
    if found is None:
        return 0.0
    *limit, servers, drained = found
    whole = share_of(LimitRow(*limit), servers, drained=drained).rps or 0.0
    return whole / max(1, servers) if test.server else whole


def _load(run: Run, test: CapacityTest, profile: LoadProfile) -> End:
    """Bypass token, last look, load; the token is taken back whatever happens."""
    first = profile.next_step()
    if first is None:
        return End(Run.State.DONE, "There was nothing to measure.")
    watched = facts.watch(test)
    run.result = {"build": staleness.build_of(test.pool, test.region)}
    try:
        token = bypass_tokens.activate(run)
        if not _live(run):
            return End(Run.State.REFUSED, "The nodes did not take the bypass token in time; nothing was sent.")
        if found := refusal(_checks(run, test)):
            return End(Run.State.REFUSED, found.message)
        plan = _plan(run, test, first, token)
        before = facts.look(watched)
        if stopped := abort_for([SecondSample(0, 0, None, environment=before)], before):
            return End(Run.State.REFUSED, stopped.message)
        if not claims.renew(run, phase="The load generator is starting."):
            return _stopped(run)
        with Load(plan) as load:
            claims.renew(run, state=Run.State.RUNNING, started_at=database_now())
            return _Drive(run, profile, load, watched, before).drive(first)
    finally:
        bypass_tokens.deactivate(run)


def _live(run: Run) -> bool:
    deadline = time.monotonic() + LIVE_WITHIN_S
    while time.monotonic() < deadline:
        claims.renew(run, phase="Preparing the nodes.")
        if not run.bypass_digest or bypass_tokens.wait_until_live(run, TURN_S):
            return True
    return False


def _plan(run: Run, test: CapacityTest, first: StepPlan, token: str) -> Plan:
    """What the generator may do, all of it bounded and pinned."""
    spec, target = read_or_raise(CapacityTestSpec, run.plan), target_of_run(run, test)
    return Plan(
        endpoints=target.endpoints,
        request=Request(spec.target.hostname, spec.target.path, spec.load.method, bypass_tokens.headers_of(run, token)),
        rate=first.rate,
        users=first.users,
        arrivals=Arrivals(spec.load.arrivals),
        duration_s=float(spec.guards.max_duration_s),
        max_rate=0.0 if first.users else generator_capacity.bound(float(spec.guards.max_rate), run.generator),
        max_connections=spec.guards.max_connections,
        keep_alive=spec.load.keep_alive,
        tls=target.tls,
        seed=run.pk,
    )


class _Drive:
    """The seconds of one run, from the first packet to the last."""

    def __init__(self, run: Run, profile: LoadProfile, load: Load, watched: facts.Watch, before: Environment) -> None:
        self.run, self.profile, self.load = run, profile, load
        self.watched, self.before = watched, before
        self.samples: list[SecondSample] = []
        self.ordinal = 0

    def drive(self, first: StepPlan) -> End:
        """Step after step until the profile has none, or something ends it."""
        step: StepPlan | None = first
        while step is not None:
            if step is not first:
                self._ask(step)
            if (end := self._hold(step)) is not None:
                return end
            step = self.profile.next_step()
        return End(Run.State.DONE)

    def _ask(self, step: StepPlan) -> None:
        if step.users or self.run.plan["load"]["kind"] == "users":
            self.load.set_users(step.users)
        else:
            self.load.set_rate(step.rate)

    def _hold(self, step: StepPlan) -> End | None:
        """One step, second by second; how the run ends if it does in this step."""
        began, seconds = database_now(), list[Second]()
        while True:
            second = self.load.next_second()
            if second is None:
                self._record(step, seconds, Verdict(Status.UNDECIDED), began)
                return self._end_of_load()
            go_on = claims.renew(self.run, phase=(step.note or str(step.purpose))[:400])
            self.load.renew()
            seconds.append(second)
            self._write_down(second)
            if (end := self._broken_off(step, second, go_on=go_on)) is not None:
                self.load.stop()
                status = Status.BAD if seconds and go_on else Status.UNDECIDED
                self._record(step, seconds, Verdict(status, end.message), began)
                return end
            verdict = self.profile.evaluate(step, seconds)
            if verdict.decided:
                self._record(step, seconds, verdict, began)
                return None

    def _end_of_load(self) -> End:
        """The plan is over; or the generator was ended, or its lease, while this worker was held up."""
        if len(self.samples) < self.run.plan["guards"]["max_duration_s"]:
            return End(Run.State.FAILED, LOAD_LOST)
        return End(Run.State.DONE, "The test reached its maximum duration (guards.max_duration_s).")

    def _broken_off(self, step: StepPlan, second: Second, *, go_on: bool) -> End | None:
        if not go_on:
            return _stopped(self.run)
        self.samples.append(_second_sample(self.run, step, second, facts.look(self.watched)))
        abort = abort_for(self.samples, self.before)
        return End(Run.State.STOPPED, f"Aborted: {abort.message}") if abort else None

    def _write_down(self, second: Second) -> None:
        known = latencies_of(second.histogram)
        percentiles = {f"p{share}_ms": known.percentile_ms(share) for share in (50, 95, 99)}
        row = {
            "target": second.target,
            "offered": second.offered,
            "answered": second.answered,
            "errors": failed_of(second),
            "in_flight": second.in_flight,
        }
        at = datetime.fromtimestamp(second.at, UTC)
        SecondRow.objects.bulk_create([SecondRow(run=self.run, at=at, **row, **percentiles)], ignore_conflicts=True)
        publish("runs", run=self.run.pk)

    def _record(self, step: StepPlan, seconds: Sequence[Second], verdict: Verdict, began: datetime) -> None:
        outcome = self.profile.record(step, seconds, verdict)
        if verdict.status is Status.BAD:
            self._find_bottleneck()
        if seconds and step.purpose is not Purpose.DRAIN and verdict.decided:
            self.ordinal += 1
            _step_row(self.run, self.ordinal, outcome, began).save()

    def _find_bottleneck(self) -> None:
        """Kept with the result, where there is somebody to ask."""
        servers, nodes = facts.servers_now(self.watched), facts.nodes_now(self.watched)
        found = bottleneck(servers, nodes)
        if servers or found.reason == "node":
            self.run.result = {**(self.run.result or {}), "bottleneck": asdict(found)}


def _second_sample(run: Run, step: StepPlan, second: Second, environment: Environment) -> SecondSample:
    """A second in which the generator could not keep up says nothing about the backend."""
    if second.generator_limited:
        return SecondSample(0, 0, None, environment=environment)
    failed = failed_of(second)
    probing = run.plan["load"]["kind"] in PROBING and step.purpose not in CALM
    ended = second.answered + sum(second.errors.values())
    return SecondSample(ended, failed, latencies_of(second.histogram).percentile_ms(95), probing, environment)


def _step_row(run: Run, ordinal: int, outcome: Outcome, began: datetime) -> StepRow:
    step, found = outcome.step, outcome.measured
    return StepRow(
        run=run,
        ordinal=ordinal,
        purpose=str(step.purpose),
        rate=step.rate,
        users=step.users,
        started_at=began,
        seconds=found.seconds,
        offered=found.offered,
        answered=found.answered,
        errors=dict(found.errors),
        error_rate=found.error_rate,
        p50_ms=found.p50_ms,
        p95_ms=found.p95_ms,
        p99_ms=found.p99_ms,
        max_ms=found.max_ms,
        histogram=found.histogram,
        status=str(outcome.verdict.status)[:4],
        message=outcome.verdict.message[:400],
    )


def _end(run: Run, end: End, profile: LoadProfile | None) -> None:
    """Write the end down, and let the policy act on a result that is whole."""
    try:
        result = _result(run, end, profile)
        message = end.message or (result or {}).get("message", "")
        claims.finish(run, end.state, message, result)
    except ClaimLost:
        logger.warning("%s was given up before its worker came to an end", run.name)
        return
    if run.state == Run.State.DONE and run.plan["policy"]["apply"] == "automatic":
        limits.apply_automatically(run)
        publish("runs", run=run.pk)


def _result(run: Run, end: End, profile: LoadProfile | None) -> dict[str, Any] | None:
    """What is known by now, also of a run that was broken off; nothing when nothing was sent."""
    if profile is None or run.started_at is None:
        return None
    found = generator_capacity.cap_result(profile.result(), run.generator, _allowed(run)).document()
    if end.state == Run.State.STOPPED:
        found["limited_by"] = "stopped"
    found["since_last"] = since_last(run, found)
    return found | (run.result or {})
