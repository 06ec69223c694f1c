"""Processes of every console: which kinds run, where, with which code; and what they do that others see."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Max

from apps.core.clock import database_now
from apps.fleet.models import Node
from apps.logs.models import NodeLog
from apps.observe.collect import lease
from apps.observe.models import NodeReport
from apps.schedules.selectors import behind_s
from apps.system.heartbeat import MISSED
from apps.system.models import Process
from apps.system.parts.part import Answer, Detail, State, worst
from apps.system.queues import NAMES

# Without these nothing goes to nodes; the other queues are of one feature each.
NEEDED_QUEUES = frozenset({"default", "push"})
LATE_S, LAG_S, WAITS_S = 60.0, 10.0, 120.0
Rows = list[Process]


def kind(name: str, unit: str) -> Answer:
    """Processes of one kind."""
    rows, instant = _rows(name)
    alive = _alive(rows, instant)
    remedy = f"Start {unit} on a console."
    if alive:
        return Answer(State.OK, _where(alive), details=_details(alive))
    if not rows:
        return Answer(State.UNKNOWN, "None was ever heard of.", remedy)
    last = max(each.heard_at for each in rows)
    return Answer(State.FAILED, f"None was heard of for {_ago(instant, last)}.", remedy)


def workers() -> Answer:
    """Whether somebody takes from each queue."""
    rows, instant = _rows("worker")
    details = tuple(_taken(queue, rows, instant) for queue in NAMES)
    state = worst(each.state for each in details)
    if state == State.OK:
        return Answer(state, "Every queue has a worker.", details=details)
    lacking = ", ".join(each.name for each in details if each.state != State.OK)
    remedy = (
        "Start the workers of deploy/systemd that take from these queues; a queue of an unused feature may stay so."
    )
    return Answer(state, f"Nobody takes from {lacking}.", remedy, details)


def schedule() -> Answer:
    """The scheduler, and how late it is."""
    found = kind("schedule", "spillway-schedule.service")
    late = behind_s()
    if found.state == State.OK and late > LATE_S:
        remedy = "Look at the log of spillway-schedule.service."
        return Answer(State.WARNING, f"Schedules are {late:.0f} s late.", remedy, found.details)
    return found


def collector() -> Answer:
    """Whether somebody reads the nodes, and how old the newest reading is."""
    rows, instant = _rows("collector")
    details = _details(_alive(rows, instant))
    start = "Start spillway-collector.service on a console."
    if not lease.watched():
        return Answer(State.FAILED, "Nobody reads the nodes: health and numbers are unknown.", start, details)
    if alone := lease.unwatched(Node.objects.values_list("pk", flat=True)):
        said = f"Nobody reads {len(alone)} of the nodes: what they do is unknown."
        return Answer(State.WARNING, said, "Look at the logs of the collectors.", details)
    newest = NodeReport.objects.aggregate(at=Max("seen_at"))["at"]
    if newest is None:
        return Answer(State.OK, "Nodes are read; none has answered yet.", details=details)
    lag = (instant - newest).total_seconds()
    if lag > LAG_S:
        remedy = "Look at the log of the collector, and whether any node answers."
        return Answer(State.WARNING, f"The newest reading is {lag:.0f} s old.", remedy, details)
    return Answer(State.OK, f"The newest reading is {max(0.0, lag):.0f} s old.", details=details)


def log_collector() -> Answer:
    """Whether request lines are fetched, and how long the oldest one waits on a node."""
    found = kind("log-collector", "spillway-log-collector.service")
    waits = NodeLog.objects.aggregate(most=Max("waiting_s"))["most"]
    if found.state == State.OK and waits and waits > WAITS_S:
        said = f"Request lines wait on a node for {waits:.0f} s."
        return Answer(State.WARNING, said, "Start more log collectors.", found.details)
    return found


def versions() -> Answer:
    """Whether all that runs is of the same code."""
    rows = Process.objects.filter(heard_at__gte=database_now() - MISSED)
    by_version: dict[str, set[str]] = {}
    for row in rows:
        by_version.setdefault(row.version, set()).add(row.host)
    details = tuple(
        Detail(version, State.OK if len(by_version) == 1 else State.WARNING, f"on {', '.join(sorted(hosts))}")
        for version, hosts in sorted(by_version.items())
    )
    if not details:
        return Answer(State.UNKNOWN, "No process was heard of.")
    if len(details) > 1:
        remedy = "Finish the upgrade, and restart what runs the older code."
        return Answer(State.WARNING, f"{len(details)} versions run.", remedy, details)
    return Answer(State.OK, f"Every process runs {details[0].name}.", details=details)


def _rows(name: str) -> tuple[Rows, datetime]:
    return list(Process.objects.filter(kind=name)), database_now()


def _alive(rows: Iterable[Process], instant: datetime) -> Rows:
    return [each for each in rows if each.heard_at >= instant - MISSED]


def _taken(queue: str, rows: Rows, instant: datetime) -> Detail:
    mine = [each for each in rows if queue in each.queues.split(",")]
    if alive := _alive(mine, instant):
        return Detail(queue, State.OK, _where(alive))
    if not mine:
        return Detail(
            queue, State.FAILED if queue in NEEDED_QUEUES and rows else State.UNKNOWN, "none was ever heard of"
        )
    gone = f"none was heard of for {_ago(instant, max(each.heard_at for each in mine))}"
    return Detail(queue, State.FAILED if queue in NEEDED_QUEUES else State.WARNING, gone)


def _details(rows: Rows) -> tuple[Detail, ...]:
    return tuple(
        Detail(
            f"{each.host}, process {each.pid}", State.OK, f"{each.version}, since {each.began_at:%Y-%m-%d %H:%M} UTC"
        )
        for each in sorted(rows, key=lambda row: (row.host, row.pid))
    )


def _where(rows: Rows) -> str:
    hosts = sorted({each.host for each in rows})
    count = f"{len(rows)} processes" if len(rows) != 1 else "1 process"
    return f"{count} on {', '.join(hosts)}."


def _ago(instant: datetime, at: datetime) -> str:
    seconds = (instant - at).total_seconds()
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
