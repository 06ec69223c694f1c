"""What a capacity test asks and how a run stands, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.capacity.measure.results import result_of
from apps.capacity.models import Run
from apps.core.written.numbers import plain

Mark = tuple[str, str, str]
MARKS: Mapping[str, Mark] = {
    "waiting": ("idle", "behind", "Waiting"),
    "starting": ("busy", "busy", "Starting"),
    "running": ("busy", "busy", "Running"),
    "done": ("good", "check", "Done"),
    "stopped": ("warn", "stop", "Stopped"),
    "refused": ("bad", "stop", "Rejected"),
    "failed": ("bad", "bad", "Failed"),
}
INCONCLUSIVE: Mark = ("warn", "unknown", "Inconclusive")
PURPOSES = {
    "warm_up": "Warm-up",
    "double": "Doubling",
    "bisect": "Narrowing",
    "confirm": "Confirming",
    "hold": "Holding",
    "ramp": "Ramp",
    "drain": "Draining",
}
LIMITED_BY = {
    "objective": "The objective was not met above this rate",
    "max_rate": "The objective was met up to the highest allowed rate",
    "generator": "The load generator reached its own limit",
    "time": "The run reached its maximum duration",
    "overload": "The run reached the maximum time in overload",
    "nothing": "Not even the lowest rate met the objective",
    "no_recovery": "The target did not recover after an overloaded step",
    "noise": "Results were too noisy to find a limit",
    "stopped": "The run was stopped",
}


def mark_of(run: Run) -> Mark:
    """Kind, shape and word of `components/mark.html`."""
    return INCONCLUSIVE if inconclusive(run) else MARKS[run.state]


def inconclusive(run: Run) -> bool:
    """Whether a run came to its end and left open what it was asked."""
    if run.state != Run.State.DONE:
        return False
    return not run.result or result_of(run.result).inconclusive


def spoken(seconds: float) -> str:
    """A span of time: `45 s`, `5 min`, `2 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def objective_words(objective: Mapping[str, Any]) -> str:
    """`p95 below 600 ms, errors below 1 %`."""
    errors = f"{100 * objective.get('max_error_rate', 0.01):g} %"
    return (
        f"p{objective.get('percentile', 95)} below {objective.get('max_latency_ms', 600):,} ms, errors below {errors}"
    )


def load_words(load: Mapping[str, Any]) -> str:
    """What is sent: `12 requests/s for 60 s`."""
    kind, rate, lasts = load.get("kind", "search"), plain(load.get("rate") or 0), spoken(load.get("duration_s", 60))
    if kind == "search":
        return f"finds the highest rate, from {rate} requests/s on" if load.get("rate") else "finds the highest rate"
    if kind == "users":
        return f"{load.get('users', 0):,} concurrent users for {lasts}"
    if kind == "ramp":
        to, step = plain(load.get("to_rate") or 0), plain(load.get("step") or 0)
        return f"from {rate} to {to} requests/s by {step}, {lasts} each"
    return f"{rate} requests/s for {lasts}"


def guard_words(guards: Mapping[str, Any]) -> str:
    """What is never exceeded."""
    rate, connections = guards.get("max_rate", 100), guards.get("max_connections", 200)
    longest = spoken(guards.get("max_duration_s", 300))
    return f"never more than {rate:,} requests/s or {connections:,} connections, at most {longest}"


def headroom_words(guards: Mapping[str, Any]) -> str:
    """What must be free elsewhere, empty where nothing need be."""
    share = guards.get("headroom") or 0
    if not share:
        return ""
    return f"starts only while other regions have capacity for {100 * share:g} % of the region's current traffic"


def policy_words(policy: Mapping[str, Any]) -> str:
    """What becomes of the number."""
    margin = f"{100 * policy.get('margin', 0.1):g} %"
    if policy.get("apply") == "automatic":
        most = f"{100 * policy.get('max_change', 0.2):g} %"
        return f"the limit is set automatically to the capacity minus {margin}, changed by at most {most} at a time"
    return f"the limit stays the same until someone sets it, usually to the capacity minus {margin}"


def address_of(target: Mapping[str, Any], load: Mapping[str, Any]) -> str:
    """The URL that is asked for."""
    scheme = "https" if load.get("tls") else "http"
    return f"{scheme}://{target.get('hostname', '')}{target.get('path', '/')}"


def through(target: Mapping[str, Any]) -> str:
    """Where load enters: `through the load balancer in us-central1`."""
    region = target.get("region", "")
    server = target.get("server")
    return f"directly to server {server} in {region}" if server else f"through the load balancer in {region}"


def capitalised(text: str) -> str:
    """The text with its first letter large, the others as they are."""
    return text[:1].upper() + text[1:]


def what_happens(spec: Mapping[str, Any]) -> list[str]:
    """The whole test in four sentences, as somebody should read it before it is saved."""
    target, load = spec.get("target", {}), spec.get("load", {})
    guards = spec.get("guards", {})
    load_said = load_words(load)
    verb = "It " if load.get("kind", "search") == "search" else "It sends "
    arrivals = "" if load.get("kind") == "users" else f", arrivals {load.get('arrivals', 'poisson')}"
    method = load.get("method", "GET")
    pool = target.get("pool", "")
    found = [
        f"Load on pool {pool}: {method} {address_of(target, load)}, {through(target)}.",
        f"{verb}{load_said}{arrivals}. Objective: {objective_words(spec.get('objective', {}))}.",
        f"{capitalised(guard_words(guards))}. The test stops automatically if other traffic degrades.",
        f"After the run, {policy_words(spec.get('policy', {}))}.",
    ]
    if said := headroom_words(guards):
        found.insert(3, f"It {said}.")
    return found
