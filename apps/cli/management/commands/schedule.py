"""`manage.py schedule` books what is due, and finds work that no wake-up brought to a worker.

Any number of them may run; none is the leader.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django import db
from django.core.management.base import BaseCommand, CommandParser

from apps.alerts.evaluate import evaluating
from apps.alerts.evaluate.evaluating import Evaluator
from apps.alerts.sending import delivering as telling
from apps.alerts.sending.delivering import Deliverer
from apps.audit import chain
from apps.canaries import advancing as canaries
from apps.capacity import services as capacity
from apps.capacity.measure import comparisons
from apps.capacity.use.ageing import evaluate_measurements
from apps.core.clock import now
from apps.core.queue import enqueue
from apps.core.secrets import keys
from apps.definitions.countries import following as countries
from apps.definitions.key_sets import fetching
from apps.definitions.server_sources import finding
from apps.definitions.server_sources.watching import Watching
from apps.definitions.writing.kinds import hostnames, policies
from apps.dns import services as dns
from apps.enrolment import renewing, rotating, tokens
from apps.exporting.publishing import services as publishing
from apps.fleet.services import RECONCILE_TASK, STACK_TASK
from apps.issuing import services as issuing
from apps.observe import rolling
from apps.observe.collect import slots, tallies
from apps.replacements import advancing
from apps.rollouts import services as rollouts
from apps.rollouts import tickets
from apps.schedules.pruning import prune as prune_schedule_runs
from apps.schedules.run.ticking import LONGEST_SLEEP_S, schedules_tick
from apps.stacks import services as stacks
from apps.stacks.cloud import reading as clouds
from apps.status import days
from apps.status import following as incidents
from apps.status import services as status
from apps.system import heartbeat
from apps.system import selectors as system
from apps.webhooks import delivering, following
from apps.webhooks.services import DELIVER_TASK

logger = logging.getLogger(__name__)
TIDY_SECONDS = 300.0
ZONE_SECONDS = 30.0
LINK_SECONDS = 1.0
# Changes of a stack wait for each other some seconds; whoever waits should not wait for the sweep as well.
STACKS_SECONDS = 2.0
CLOUDS_SECONDS = 15.0
EXPIRY_SECONDS = 5.0
HEAD_SECONDS = 3600.0
ALERTS_SECONDS = 1.0
COUNT_SECONDS = 60.0
DAYS_SECONDS = 300.0
STATUS_SECONDS = 5.0
PARTS_SECONDS = 15.0
SOURCES_SECONDS = 1.0
PUBLISH_SECONDS = 2.0
REPLACEMENTS_SECONDS = 1.0
CANARIES_SECONDS = 5.0
T = TypeVar("T")
Work = Callable[[], float | None]


class Command(BaseCommand):
    """The scheduler and sweep process; SIGTERM and SIGINT end it after the present turn."""

    help = "Run schedules to the second, and every ten seconds wake workers for pending work, until SIGTERM."
    requires_system_checks = ()  # the sweep goes on where a page does not even import

    def add_arguments(self, parser: CommandParser) -> None:
        """`--every` seconds; `--once` for tests and for people."""
        parser.add_argument("--every", type=float, default=10.0, help="seconds between two sweeps")
        parser.add_argument("--once", action="store_true", help="sweep once and exit")

    def handle(self, *args: Any, every: float, once: bool, **options: Any) -> None:  # noqa: ARG002 - Django's signature
        """Run until a signal."""
        ended = threading.Event()
        alerts, watching = Alerts(), Watching()
        turns: list[tuple[float, Work]] = [
            (LONGEST_SLEEP_S, schedules_tick),
            (LINK_SECONDS, link),
            (every, sweep),
            (every, capacity.sweep),
            (every, comparisons.advance_all),
            (STACKS_SECONDS, sweep_stacks),
            (CLOUDS_SECONDS, look_at_clouds),
            (every, verify),
            (EXPIRY_SECONDS, expire_networks),
            (every, fetch_key_sets),
            (COUNT_SECONDS, countries.sweep),
            (SOURCES_SECONDS, find_servers),
            (SOURCES_SECONDS, watching.tick),
            (PUBLISH_SECONDS, publishing.sweep),
            (REPLACEMENTS_SECONDS, advancing.sweep),
            (CANARIES_SECONDS, canaries.sweep),
            (every, issue_certificates),
            (ZONE_SECONDS, ask_resolvers),
            (TIDY_SECONDS, tidy),
            (HEAD_SECONDS, note_head),
            (COUNT_SECONDS, count_pools),
            (ALERTS_SECONDS, alerts.tick),
            (STATUS_SECONDS, follow_alerts),
            (DAYS_SECONDS, count_days),
            (PARTS_SECONDS, system.note_states),
        ]
        due = dict.fromkeys(range(len(turns)), 0.0)
        if not once:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: ended.set())
        if not keys.wait_until_it_fits(lambda seconds: once or ended.wait(seconds)):
            return
        if not once:
            heartbeat.begin("schedule")
        while not ended.is_set():
            for index, (seconds, work) in enumerate(turns):
                if time.monotonic() >= due[index]:
                    again = _survive(work)
                    due[index] = time.monotonic() + (seconds if again is None else again)
            if once:
                break
            ended.wait(max(min(due.values()) - time.monotonic(), 0.0))
        _survive(alerts.stop)
        _survive(watching.stop)


class Alerts:
    """Rules are evaluated here, and messages leave from here: neither needs a worker or a broker."""

    def __init__(self) -> None:
        self._evaluator, self._deliverer = Evaluator(), Deliverer()

    def tick(self) -> None:
        """One evaluation, if it is this process's turn; what waits is sent by whichever process."""
        try:
            self._evaluator.tick()
        finally:
            self._deliverer.wake()

    def stop(self) -> None:
        """Send what is under way, and let another process go on at once."""
        self._deliverer.stop()
        self._evaluator.release()


def sweep() -> None:
    """Wake a worker for every fleet, zone and endpoint that needs one; fleets are worked on here without a broker."""
    for fleet_id in rollouts.fleets_to_sweep():
        if not enqueue(RECONCILE_TASK, fleet_id):
            _survive(partial(rollouts.reconcile_fleet, fleet_id=fleet_id))
    for fleet_id in tickets.fleets_to_sweep(now()):
        if not enqueue(tickets.TICKETS_TASK, fleet_id, expires_s=ZONE_SECONDS):
            tickets.bring(fleet_id=fleet_id)
    waits = renewing.due(now()).exists() or rotating.under_way()
    if waits and not enqueue(renewing.RENEW_TASK, expires_s=ZONE_SECONDS):
        renewing.renew()
        rotating.finish()
    for zone_id in dns.zones_to_sweep():
        enqueue(dns.RECONCILE_ZONE_TASK, zone_id, expires_s=ZONE_SECONDS)
    for webhook_id in delivering.due_webhooks():
        enqueue(DELIVER_TASK, webhook_id)


def sweep_stacks() -> None:
    """Wake a worker for every stack on which there is something to do."""
    for stack_id in stacks.stacks_to_sweep():
        enqueue(STACK_TASK, stack_id, expires_s=STACKS_SECONDS * 5)


def look_at_clouds() -> None:
    """Let a worker read the health and the numbers of what stands in clouds."""
    for stack_id in clouds.stacks_to_read():
        enqueue(clouds.READ_STACK_TASK, stack_id, expires_s=CLOUDS_SECONDS)


def link() -> None:
    """Give entries of the audit log the links that nobody gave them, and note whom they are to be told."""
    while chain.link_pending():
        continue
    while following.follow():
        continue


def verify() -> None:
    """Verify the hostnames that are due."""
    hostnames.sweep(now())


def expire_networks() -> None:
    """Tell nodes of networks that have left their lists."""
    policies.push_expired(now())


def fetch_key_sets() -> None:
    """Let a worker fetch the keys of tokens that are due."""
    fetching.sweep(now())


def find_servers() -> None:
    """Let a worker ask the sources of servers that are due."""
    finding.sweep(now())


def issue_certificates() -> None:
    """Let a worker bring orders of certificates forward that are due."""
    issuing.sweep(now())


def ask_resolvers() -> None:
    """Let a worker ask what is really served of DNS zones."""
    enqueue(dns.ASK_TASK, expires_s=ZONE_SECONDS)


def tidy() -> None:
    """Forget what is too old to be shown; where one part cannot, the others do."""
    forgets: tuple[Callable[[datetime], object], ...] = (
        rolling.prune, renewing.prune, tokens.prune, slots.prune, clouds.prune, delivering.prune, prune_schedule_runs,
        advancing.prune, canaries.prune, dns.prune, publishing.prune, evaluate_measurements, evaluating.prune,
        telling.prune, days.prune, status.prune,
    )  # fmt: skip
    for forget in forgets:
        _survive(partial(forget, now()))
    _survive(heartbeat.forget)


def count_pools() -> None:
    """Count how requests ended of pools that have an objective."""
    tallies.count_pools(now())


def follow_alerts() -> None:
    """Open and resolve incidents of status pages that name alert rules."""
    incidents.follow(now())


def count_days() -> None:
    """Count what was measured today of what status pages show."""
    days.count_days(now())


def note_head() -> None:
    """Leave the head of the audit chain in the log, so that it can be kept where nobody changes the database."""
    last = chain.head()
    logger.info("audit chain: position %s, digest %s", last.position, last.digest)


def _survive(work: Callable[[], T]) -> T | None:
    """A database that is away now is asked again at the next sweep; so is anything else that went wrong.

    What a work of the schedule answers is after how many seconds it wants to be done again, where that varies.
    """
    try:
        return work()
    except Exception:
        logger.exception("this sweep failed; the next one starts in a moment")
        db.connections.close_all()
        return None
