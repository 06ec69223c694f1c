"""May this test run now? Every question has an answer in a sentence; one no keeps every packet back.

Asked when a run is asked for, when a worker takes it, and right before the first packet; what the account must be
allowed is asked again each second of the run (`standing`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from apps.accounts.actors import Actor
from apps.accounts.models import Membership
from apps.accounts.quotas import quota
from apps.capacity.models import Blackout, Run
from apps.capacity.run import claims
from apps.capacity.run.targets import target_of, target_of_run
from apps.compiler.model.shared import Protocol
from apps.compiler.questions.trace import Question
from apps.core.clock import now
from apps.core.concurrency.fairness import of_one
from apps.core.errors import Conflict
from apps.definitions.load_targets import hostname_may_be_tested, routes_to
from apps.definitions.models import Backend, CapacityTest
from apps.definitions.previewing.tracing import trace_request
from apps.definitions.selectors import capacity_tests, only
from apps.fleet.models import Fleet
from apps.overflow.selectors import predicted
from apps.rollouts.selectors import sync_statuses
from apps.rollouts.waiting_for import missing


@dataclass(frozen=True, slots=True)
class Check:
    """One question: whether the answer is yes, and the sentence. A `passing` no may be a yes in a moment."""

    code: str
    ok: bool
    message: str
    passing: bool = False


def checks_of(actor: Actor, test_id: int) -> tuple[Check, ...]:
    """The checks of a test that the actor sees. Raises NotFound."""
    return checks(only(capacity_tests(actor), test_id), now())


def checks(test: CapacityTest, instant: datetime, *, run: Run | None = None) -> tuple[Check, ...]:
    """Every question about a test as things are; `run` is the one that asks, which does not stand in its own way."""
    questions: tuple[Callable[[], Check], ...] = (
        lambda: _account(test),
        lambda: _hostname(test),
        lambda: _route(test),
        lambda: _address(test, run),
        lambda: _quotas(test),
        *(functools.partial(question, test, run) for question in AMONG_OTHERS),
        lambda: _blackout(test, instant),
        lambda: _region(test),
        lambda: _headroom(test),
    )
    return tuple(question() for question in questions)


def among_others(test: CapacityTest, run: Run) -> tuple[Check, ...]:
    """What of several runs that are due together not all can have; to be asked while no other takes its place."""
    return tuple(question(test, run) for question in AMONG_OTHERS)


def refusal(found: tuple[Check, ...]) -> Check | None:
    """The first no; one that does not pass comes before one that does."""
    wrong = sorted((check for check in found if not check.ok), key=lambda check: check.passing)
    return wrong[0] if wrong else None


def standing(test: CapacityTest) -> tuple[Check, ...]:
    """What must hold at every second of a run, whatever else happens."""
    return _account(test), _hostname(test), _backend(test)


def reader_of(test: CapacityTest) -> Actor:
    """Somebody who sees what the test's account sees, and changes nothing."""
    return Actor("capacity test", test.account, Membership.Role.VIEWER)


def _account(test: CapacityTest) -> Check:
    active = test.account.suspended_at is None
    return Check("account", active, "The account is active." if active else "The account is suspended.")


def _hostname(test: CapacityTest) -> Check:
    if hostname_may_be_tested(test.account, test.hostname, test.region):
        return Check("hostname", True, f"{test.account.title} may load {test.hostname}.")
    why = f"{test.hostname} is no verified hostname that {test.account.title} may load-test."
    return Check("hostname", False, why)


def _backend(test: CapacityTest) -> Check:
    there = Backend.objects.filter(pool=test.pool_id, region=test.region_id).exists()
    name = f"Pool {test.pool.name}"
    return Check("pool", there, f"{name} has {'' if there else 'no '}servers in {test.region.name}.")


def _route(test: CapacityTest) -> Check:
    """The whole of the request goes to the pool: a split would load others, a longer route somebody else."""
    routes = routes_to(test.account, test.pool, test.region, test.hostname, test.path)
    fronts = set(routes.values_list("load_balancer__name", flat=True))
    if not fronts:
        return Check("route", False, f"No route of {test.hostname} leads {test.path} to pool {test.pool.name}.")
    if test.server:
        return Check("route", True, f"{test.hostname} leads to the pool of the server.")
    question = Question(test.hostname, test.path, test.load.get("method", "GET"), _scheme(test), {})
    label = f"{test.pool.account.name}/{test.pool.name}"
    for name in sorted(fronts):
        for traced in trace_request(reader_of(test), question, name):
            if traced.pools != ((label, 1.0),):
                others = ", ".join(f"{pool} {100 * part:.0f} %" for pool, part in traced.pools) or traced.sentence
                why = f"{name} does not lead all of {test.hostname}{test.path} to {label}: {others}"
                return Check("route", False, why if why.endswith(".") else f"{why}.")
    return Check("route", True, f"All of {test.hostname}{test.path} routes to {label}.")


def _scheme(test: CapacityTest) -> Protocol:
    return Protocol.HTTPS if test.load.get("tls") else Protocol.HTTP


def _address(test: CapacityTest, run: Run | None) -> Check:
    try:
        target = target_of_run(run, test) if run else target_of(test)
    except Conflict as refused:
        return Check("address", False, refused.detail)
    approval = f" An operator must approve each run: {target.approval}" if target.approval else ""
    return Check("address", True, f"Target: {target.words}.{approval}")


def _quotas(test: CapacityTest) -> Check:
    """A quota that nobody set is zero."""
    guards = test.guards
    for name, field, unit in (
        ("test_rate", "max_rate", "requests/s"),
        ("test_connections", "max_connections", "connections"),
        ("test_seconds", "max_duration_s", "seconds"),
    ):
        most = quota(test.account, name)
        if most is not None and guards[field] > most:
            why = f"guards.{field} is {guards[field]:,}; {test.account.title} may load with {most:,} {unit}: "
            return Check("quota", False, f"{why}lower the guard, or ask an operator for more.")
    return Check("quota", True, f"At most {guards['max_rate']:,} requests/s for {guards['max_duration_s']:,} s.")


def _at_once(test: CapacityTest, run: Run | None) -> Check:
    active = _placed_besides(run)
    own, most = active.filter(account=test.account).count(), quota(test.account, "test_runs_at_once")
    if most is not None and own >= most:
        why = f"{test.account.title} may run {most} tests at once and runs {own}"
        return Check("at_once", False, f"{why}: wait for the end of one, or ask an operator.", passing=most > 0)
    if own >= of_one(settings.TEST_RUNS_AT_ONCE):
        why = (
            f"{test.account.title} has {own} of {settings.TEST_RUNS_AT_ONCE} slots "
            f"for tests; the rest are for other accounts"
        )
        return Check("at_once", False, f"{why}: wait for the end of one.", passing=True)
    if active.count() >= settings.TEST_RUNS_AT_ONCE:
        return Check("at_once", False, f"{settings.TEST_RUNS_AT_ONCE} tests run already; wait.", passing=True)
    return Check("at_once", True, "There is a free slot for a test.")


def _alone(test: CapacityTest, run: Run | None) -> Check:
    """Two runs in a region would measure each other."""
    if _placed_besides(run).filter(region=test.region_id).exists():
        return Check("alone", False, f"Another test runs in {test.region.name}; one at a time.", passing=True)
    return Check("alone", True, f"No other test runs in {test.region.name}.")


def _placed_besides(run: Run | None) -> QuerySet[Run]:
    return claims.placed().exclude(pk=run.pk if run else 0)


AMONG_OTHERS = (_at_once, _alone)


def _blackout(test: CapacityTest, instant: datetime) -> Check:
    end = instant + timedelta(seconds=test.guards["max_duration_s"])
    met = Blackout.objects.filter(starts_at__lt=end, ends_at__gt=instant).first()
    if met is None:
        return Check("blackout", True, "No blackout applies.")
    window = f"{met.starts_at:%Y-%m-%d %H:%M} to {met.ends_at:%Y-%m-%d %H:%M} UTC"
    return Check("blackout", False, f"No test may run from {window}: {met.reason}")


def _region(test: CapacityTest) -> Check:
    status, why = _trouble(test)
    words = why or f"No rollout is in progress in {test.region.name}."
    return Check("region", not why, words, passing=status == "behind")


def trouble_of_region(test: CapacityTest) -> str:
    """A rollout, a freeze or a failover in the region, as a sentence; empty when there is none. Three queries then."""
    return _trouble(test)[1]


def _trouble(test: CapacityTest) -> tuple[str, str]:
    """A word for it and the sentence."""
    test.region.refresh_from_db(fields=("drained",))
    if test.region.drained:
        return "drained", f"{test.region.name} is drained, so it serves no traffic."
    reader = reader_of(test)
    words = sync_statuses(reader)
    said = {"held": "is held at an old revision", "refused": "rejected its last change"}
    for pk, name in Fleet.objects.filter(region=test.region_id).order_by("name").values_list("pk", "name"):
        if words.get(pk) in said:
            return words[pk], f"Fleet {name} {said[words[pk]]}."
        if words.get(pk) == "behind":
            why = [each.message for each in missing(reader, [pk])] or [f"A rollout to fleet {name} is in progress."]
            return "behind", why[0]
    return "", ""


def _headroom(test: CapacityTest) -> Check:
    why = shortage(test)
    return Check("headroom", not why, why or "The other regions have the required capacity.")


def shortage(test: CapacityTest, traffic: float | None = None) -> str:
    """Why the other regions could not take `guards.headroom` × the region's traffic of this pool; empty if they can.

    `traffic` (requests/s) is the region's own as it was before the test; None asks for the present one.
    """
    share = test.guards["headroom"]
    if not share:
        return ""
    flow = predicted(reader_of(test), test.pool)
    if flow.at is None or flow.stale:
        return "There is no current traffic data, so the headroom is unknown."
    here = next((use for use in flow.regions if use.name == test.region.name), None)
    needed = share * (traffic if traffic is not None else here.demand_rps if here else 0.0)
    room = 0.0
    for use in flow.regions:
        if use is not here and use.healthy and not use.drained:
            room += float("inf") if use.capacity_rps is None else max(0.0, use.capacity_rps - use.served_rps)
    if room >= needed:
        return ""
    return f"The other regions have capacity for {room:.1f} requests/s; guards.headroom requires {needed:.1f}."
