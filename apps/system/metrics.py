"""Metrics of Spillway itself: queues, HTTP, processes, clocks, certificates of the console, backups, parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import redis
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from apps.core.clock import database_now, now
from apps.observe.models import Console
from apps.system import http_times
from apps.system.heartbeat import MISSED
from apps.system.http_times import BOUNDS_S
from apps.system.models import PartState, Process
from apps.system.parts import backups, machine
from apps.system.parts.part import State
from apps.system.queues import queues

CLOCKS_KNOWN_FOR = timedelta(minutes=1)


def families() -> Iterator[Metric]:
    """Four queries and two trips to Redis; what Redis does not tell is missing."""
    yield from _queues()
    yield from _http()
    processes = GaugeMetricFamily("spillway_processes", "Processes that were heard of lately.", labels=["kind"])
    alive = Process.objects.filter(heard_at__gte=database_now() - MISSED).values_list("kind", flat=True)
    for kind, count in sorted(Counter(alive).items()):
        processes.add_metric([kind], count)
    yield processes
    clocks = GaugeMetricFamily(
        "spillway_clock_ahead_seconds", "How far the clock of a console is ahead of the database's.", labels=["console"]
    )
    for row in Console.objects.filter(heard_at__gte=now() - CLOCKS_KNOWN_FOR):
        clocks.add_metric([row.name], row.clock_ahead_ms / 1000)
    yield clocks
    yield _certificates()
    yield _backups()
    failed = GaugeMetricFamily("spillway_part_failed", "1 when a part of Spillway fails.", labels=["part"])
    for part, state in PartState.objects.order_by("name").values_list("name", "state"):
        failed.add_metric([part], state == State.FAILED)
    yield failed


def _queues() -> Iterator[Metric]:
    length = GaugeMetricFamily("spillway_queue_length", "Wake-ups that wait for a worker.", labels=["queue"])
    text = "For how long the oldest wake-up waits; 0 where none does."
    oldest = GaugeMetricFamily("spillway_queue_oldest_seconds", text, labels=["queue"])
    try:
        for queue in queues():
            length.add_metric([queue.name], queue.length)
            if queue.oldest_s is not None:
                oldest.add_metric([queue.name], queue.oldest_s)
    except redis.RedisError:
        pass
    yield length
    yield oldest


def _http() -> Iterator[Metric]:
    labels = ["console", "kind"]
    responses = CounterMetricFamily(
        "spillway_http_responses", "Answers of the console, by class; kind is page or api.", labels=[*labels, "class"]
    )
    took = HistogramMetricFamily(
        "spillway_http_duration_seconds", "Time from the request to its answer in the console.", labels=labels
    )
    try:
        totals = http_times.totals()
    except redis.RedisError:
        totals = {}
    for host, kinds in totals.items():
        for kind, counts in kinds.items():
            for name, count in counts.classes.items():
                responses.add_metric([host, kind, name], count)
            passed, buckets = 0, []
            for bound in BOUNDS_S:
                passed += counts.within[bound]
                buckets.append(("+Inf" if bound == float("inf") else f"{bound:g}", passed))
            took.add_metric([host, kind], buckets, counts.seconds)
    yield responses
    yield took


def _certificates() -> Metric:
    text = "When a certificate of the console (authority, console) ends, in Unix time."
    family = GaugeMetricFamily("spillway_console_certificate_not_after_seconds", text, labels=["certificate"])
    for name, end in machine.ends().items():
        family.add_metric([name], end.timestamp())
    return family


def _backups() -> Metric:
    text = "Age of the newest backup; missing where none was ever made."
    family = GaugeMetricFamily("spillway_backup_age_seconds", text, labels=[])
    if (row := backups.newest()) is not None:
        family.add_metric([], (now() - row.at).total_seconds())
    return family
