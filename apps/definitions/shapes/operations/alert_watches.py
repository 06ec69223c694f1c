"""What alert rules can look at, each with what a rule has where it says nothing else; pure.

A watch is looked up in apps/alerts/looking/. Metrics made of request logs become watches here.
"""

from __future__ import annotations

from dataclasses import dataclass

CRITICAL, WARNING, INFO = "critical", "warning", "info"
# The worst first, as people say them.
SEVERITIES = {CRITICAL: "Critical", WARNING: "Warning", INFO: "Info"}


@dataclass(frozen=True, slots=True)
class Threshold:
    """The number above which (certificates: below which) a rule sees something wrong."""

    default: float
    lowest: float
    highest: float
    unit: str


@dataclass(frozen=True, slots=True)
class Watch:
    """One thing to look at: what people call it, whose objects those are, and what holds by default.

    `operators` says that only operators may look at it: it tells of the platform. Without `built_in`, accounts have no
    rule for it until they write one, with a threshold: only they know what is too much.
    """

    label: str
    noun: str
    severity: str
    for_s: int = 0
    threshold: Threshold | None = None
    operators: bool = False
    built_in: bool = True


OBJECTIVE, TIMES = "pool or route", "times"
WATCHES: dict[str, Watch] = {
    "pool_down": Watch("Pool is down, everywhere or in a region", "pool", CRITICAL),
    "pool_degraded": Watch("Pool has lost servers", "pool", WARNING),
    "pool_errors": Watch("Share of 5xx responses", "pool", WARNING, 60, Threshold(5, 0.1, 100, "%")),
    "pool_slow": Watch("Latency, 95th percentile", "pool", WARNING, 120, Threshold(1000, 1, 600_000, "ms")),
    "pool_queue": Watch("Requests queue for servers", "pool", WARNING, 30),
    "pool_at_limit": Watch("Pool is always at its limit", "pool", INFO),
    "pool_refusing": Watch("Requests refused for lack of capacity", "pool", CRITICAL, 30, Threshold(1, 0.1, 100, "%")),
    "objective_burning_fast": Watch(
        "Error budget, in an hour", OBJECTIVE, CRITICAL, 0, Threshold(14.4, 1, 1000, TIMES)
    ),
    "objective_burning": Watch("Error budget, in six hours", OBJECTIVE, WARNING, 0, Threshold(6, 1, 1000, TIMES)),
    "objective_burning_slowly": Watch("Error budget, in three days", OBJECTIVE, INFO, 0, Threshold(1, 1, 1000, TIMES)),
    "certificate_expiring": Watch("Certificate expires soon", "certificate", WARNING, 0, Threshold(14, 1, 365, "days")),
    "route_lost_pool": Watch("Route lost a shared pool", "route", CRITICAL),
    "run_inconclusive": Watch("Capacity run has no result", "capacity test", INFO),
    "schedule_missed": Watch("Schedule was missed or gave up", "schedule", WARNING),
    "quota_used": Watch("Quota nearly used up", "account", INFO, 0, Threshold(90, 1, 100, "%")),
    "search_metric": Watch(
        "Metric of a saved search", "saved search", WARNING, 0, Threshold(0, 0, 1_000_000, ""), built_in=False
    ),
    "forward_failing": Watch("Log forward does not reach its receiver", "log forward", WARNING, 60),
    "channel_failing": Watch("Channel does not take messages", "channel", WARNING),
    "nobody_told": Watch("Nobody was told of a critical alert", "account", CRITICAL, 60),
    "node_down": Watch("Node is gone or does not serve", "node", CRITICAL, operators=True),
    "region_down": Watch("Region has no node left", "region", CRITICAL, operators=True),
    "node_drift": Watch("Node runs something other than what was pushed", "node", WARNING, 30, operators=True),
    "node_unfit": Watch("Node has a wrong clock, version or peer", "node", WARNING, 60, operators=True),
    "rollout_stopped": Watch("Rollout failed or was rolled back", "fleet", WARNING, operators=True),
    "log_dropped": Watch("Node lost request lines", "node", WARNING, operators=True),
    "log_waiting": Watch("Request lines wait to be stored", "node", WARNING, 60, Threshold(60, 5, 86_400, "s"), True),
    "collector_silent": Watch("No collector watches the nodes", "Spillway", CRITICAL, 15, operators=True),
    "worker_silent": Watch("No worker takes up changes", "Spillway", CRITICAL, 60, operators=True),
}


def rule_name(watch: str) -> str:
    """The name of the rule that every account has for a watch, until it has one of its own by this name."""
    return watch.replace("_", "-")


BUILT_IN = {rule_name(word): word for word, watch in WATCHES.items() if watch.built_in}
