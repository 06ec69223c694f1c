"""Every watch with the function that looks for it, and how often: what costs more is looked at less often."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django import db

from apps.alerts.looking import conditions, objectives, operations, platform, traffic
from apps.alerts.looking.contract import BLIND, Look

logger = logging.getLogger(__name__)
EACH_TIME, TEN_SECONDS, MINUTE = timedelta(), timedelta(seconds=10), timedelta(minutes=1)
TEN_MINUTES = 10 * MINUTE


def _one(name: str, look: Callable[[], Look]) -> Callable[[datetime], dict[str, Look]]:
    return lambda _instant: {name: look()}


def _timed(name: str, look: Callable[[datetime], Look]) -> Callable[[datetime], dict[str, Look]]:
    return lambda instant: {name: look(instant)}


LOOKS: tuple[tuple[tuple[str, ...], timedelta, Callable[[datetime], dict[str, Look]]], ...] = (
    (
        (*conditions.OF_POOLS, *conditions.OF_NODES, "region_down"),
        EACH_TIME,
        lambda _instant: conditions.look_at_conditions(),
    ),
    (("collector_silent",), EACH_TIME, _timed("collector_silent", platform.look_at_collectors)),
    (("worker_silent",), TEN_SECONDS, _timed("worker_silent", platform.look_at_workers)),
    (("log_dropped",), TEN_SECONDS, _timed("log_dropped", platform.look_at_lost_lines)),
    (("log_waiting",), TEN_SECONDS, _timed("log_waiting", platform.look_at_waiting_lines)),
    (("rollout_stopped",), EACH_TIME, _one("rollout_stopped", platform.look_at_rollouts)),
    (traffic.WATCHES, TEN_SECONDS, traffic.look_at_traffic),
    (tuple(objectives.FAST), MINUTE, objectives.look_fast),
    (tuple(objectives.SLOW), TEN_MINUTES, objectives.look_slow),
    (("search_metric",), TEN_SECONDS, _one("search_metric", operations.look_at_metrics)),
    (("forward_failing",), TEN_SECONDS, _one("forward_failing", operations.look_at_forwards)),
    (("channel_failing",), TEN_SECONDS, _one("channel_failing", operations.look_at_channels)),
    (("nobody_told",), TEN_SECONDS, _one("nobody_told", operations.look_at_untold)),
    (("run_inconclusive",), MINUTE, _one("run_inconclusive", operations.look_at_runs)),
    (("schedule_missed",), TEN_SECONDS, _one("schedule_missed", operations.look_at_schedules)),
    (("route_lost_pool",), MINUTE, _timed("route_lost_pool", operations.look_at_lost_pools)),
    (("certificate_expiring",), MINUTE, _timed("certificate_expiring", operations.look_at_certificates)),
    (("quota_used",), MINUTE, _timed("quota_used", operations.look_at_quotas)),
)


@dataclass(slots=True)
class Watcher:
    """What was seen last, and when it is looked for again; throw it away when the lease is lost."""

    found: dict[str, Look] = field(default_factory=dict)
    due: dict[int, datetime] = field(default_factory=dict)

    def look(self, instant: datetime) -> dict[str, Look]:
        """What every watch sees now; one whose look fails is blind until the next, and the others go on."""
        for index, (names, every, look) in enumerate(LOOKS):
            if instant >= self.due.get(index, instant):
                try:
                    self.found |= look(instant)
                except db.Error:
                    raise
                except Exception:
                    logger.exception("looking for %s failed", ", ".join(names))
                    self.found |= dict.fromkeys(names, BLIND)
                self.due[index] = instant + every
        return self.found
